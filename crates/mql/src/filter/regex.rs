//! Regular expressions in PCRE's syntax: `$regex`, and for expressions such as `$regexFind`.
//!
//! What a linear engine can do, the crate `regex` does in time linear in the text. Look-around,
//! back-references and the like go to `fancy-regex`, which gives up after a limit of steps.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;

use super::pattern::{self, Options};
use crate::Error;

/// A compiled regular expression. Cloning shares the program.
#[derive(Clone)]
pub struct Regex(Arc<Compiled>);

struct Compiled {
    pattern: String,
    options: String,
    prefix: Option<(String, bool)>,
    engine: Engine,
}

enum Engine {
    /// A pattern that is but text: however long, it is sought in one pass.
    Text(Box<Finder<'static>>),
    Linear(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// The longest pattern, in bytes, as PCRE has it.
const PATTERN_BYTES_MAX: usize = 32_764;

/// Characters that mean something else than themselves.
const SPECIAL: &[char] = &[
    '\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}',
];

/// Steps of the backtracking engine per match.
const BACKTRACKING_STEPS_MAX: usize = 1_000_000;

impl Regex {
    /// Compiles for [`Regex::is_match`]. Options: i, m, s, x, u. Errors: 51091 for a malformed
    /// pattern, 51108 for an unknown option, 2 for a 0 byte in either.
    pub fn new(pattern: &str, options: &str) -> Result<Regex, Error> {
        Regex::compile(pattern, options, false)
    }

    /// Compiles for [`Regex::captures_at`].
    pub fn with_captures(pattern: &str, options: &str) -> Result<Regex, Error> {
        Regex::compile(pattern, options, true)
    }

    fn compile(pattern: &str, options: &str, positions: bool) -> Result<Regex, Error> {
        if pattern.contains('\0') || options.contains('\0') {
            return Err(Error::bad_value(
                "Regular expression cannot contain an embedded null byte",
            ));
        }
        let flags = Options {
            positions,
            ..parse_options(options)?
        };
        if pattern.len() > PATTERN_BYTES_MAX {
            let reason = "pattern string is longer than the limit set by the application";
            return Err(invalid(reason));
        }
        let translated = pattern::translate(pattern, flags).map_err(invalid)?;
        let is_text = !flags.case_insensitive && !flags.extended && !pattern.contains(SPECIAL);
        let engine = if is_text {
            Engine::Text(Box::new(Finder::new(pattern).into_owned()))
        } else if translated.backtracking {
            let built = fancy_regex::RegexBuilder::new(&translated.pattern)
                .backtrack_limit(BACKTRACKING_STEPS_MAX)
                .build();
            Engine::Backtracking(Box::new(built.map_err(invalid)?))
        } else {
            Engine::Linear(regex::Regex::new(&translated.pattern).map_err(invalid)?)
        };
        Ok(Regex(Arc::new(Compiled {
            pattern: pattern.to_owned(),
            options: options.to_owned(),
            prefix: pattern::prefix(pattern, flags),
            engine,
        })))
    }

    /// The pattern as it was given.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// The options as they were given.
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// The text that every match begins with, where the pattern is anchored at the start, and
    /// whether every string that begins with it matches: bounds for an index.
    pub fn prefix(&self) -> Option<(&str, bool)> {
        self.0
            .prefix
            .as_ref()
            .map(|(text, whole)| (text.as_str(), *whole))
    }

    /// Whether the text has a match. Error 51156 where the backtracking engine gave up.
    pub fn is_match(&self, text: &str) -> Result<bool, Error> {
        match &self.0.engine {
            Engine::Text(finder) => Ok(finder.find(text.as_bytes()).is_some()),
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(regex) => regex.is_match(text).map_err(gave_up),
        }
    }

    /// The pattern in the syntax of the linear engine, where that does.
    pub(super) fn linear(&self) -> Option<String> {
        match &self.0.engine {
            Engine::Text(_) => Some(regex::escape(&self.0.pattern)),
            Engine::Linear(regex) => Some(regex.as_str().to_owned()),
            Engine::Backtracking(_) => None,
        }
    }

    /// The first match at or after the byte `start`: the bytes of the match and of each group.
    pub fn captures_at(
        &self,
        text: &str,
        start: usize,
    ) -> Result<Option<Vec<Option<Range<usize>>>>, Error> {
        match &self.0.engine {
            Engine::Text(finder) => {
                let rest = text.get(start..).unwrap_or_default();
                let found = finder.find(rest.as_bytes()).map(|at| start + at);
                Ok(found.map(|at| vec![Some(at..at + self.0.pattern.len())]))
            }
            Engine::Linear(regex) => Ok(regex.captures_at(text, start).map(|captures| {
                captures
                    .iter()
                    .map(|group| group.map(|group| group.range()))
                    .collect()
            })),
            Engine::Backtracking(regex) => {
                let captures = regex.captures_from_pos(text, start).map_err(gave_up)?;
                Ok(captures.map(|captures| {
                    captures
                        .iter()
                        .map(|group| group.map(|group| group.range()))
                        .collect()
                }))
            }
        }
    }
}

fn parse_options(text: &str) -> Result<Options, Error> {
    let mut options = Options::default();
    for flag in text.chars() {
        match flag {
            'i' => options.case_insensitive = true,
            'm' => options.multiline = true,
            's' => options.dot_all = true,
            'x' => options.extended = true,
            'u' => {}
            other => {
                return Err(Error::new(
                    51108,
                    format!("invalid flag in regex options: {other}"),
                ));
            }
        }
    }
    Ok(options)
}

fn invalid(reason: impl fmt::Display) -> Error {
    Error::new(51091, format!("Regular expression is invalid: {reason}"))
}

fn gave_up(reason: impl fmt::Display) -> Error {
    Error::new(
        51156,
        format!("Error occurred while executing the regular expression: {reason}"),
    )
}

/// Two are equal that were written alike.
impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.pattern() == other.pattern() && self.options() == other.options()
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "/{}/{}", self.pattern(), self.options())
    }
}
