//! Regular expressions with MongoDB's error codes, for `$regex` and for expressions such as
//! `$regexFind`.
//!
//! A search calls the interrupt of its thread, see [`crate::interrupt`].

use std::fmt;
use std::sync::Arc;

use windrow_regex::{Captures, MatchError, Options, ParseError, Purpose, prefix};

use crate::interrupt::count_work;
use crate::{Error, interrupt};

/// Counts the work of a search in this many bytes. The regex engine also calls the interrupt during
/// a search, because a text of 100 KB may take milliseconds.
pub(super) fn count_search(bytes: usize) -> Result<(), Error> {
    count_work(8 + bytes / 16)
}

/// Bytes of a compiled pattern that count as a unit of work.
const COMPILED_BYTES_PER_UNIT: usize = 64;

/// A compiled regular expression. Clones share the compiled program.
///
/// ```
/// use windrow_mql::filter::Regex;
/// let regex = Regex::new("^her", "i").unwrap();
/// assert!(regex.is_match("Heron").unwrap());
/// assert_eq!(Regex::new("(", "").unwrap_err().code, 51091);
/// ```
#[derive(Clone)]
pub struct Regex(Arc<CompiledRegex>);

struct CompiledRegex {
    pattern: String,
    options: String,
    prefix: Option<(String, bool)>,
    regex: windrow_regex::Regex,
}

impl Regex {
    /// Compiles a pattern for [`Regex::is_match`]. The options are i, m, s, x and u.
    ///
    /// # Errors
    ///
    /// - 51091: the pattern is malformed.
    /// - 51108: an option is unknown.
    /// - 2: the pattern or the options contain a null byte.
    pub fn new(pattern: &str, options: &str) -> Result<Regex, Error> {
        Regex::compile(pattern, options, Purpose::Existence)
    }

    /// Compiles a pattern for [`Regex::captures_at`]. Fails as [`Regex::new`] does.
    pub fn with_captures(pattern: &str, options: &str) -> Result<Regex, Error> {
        Regex::compile(pattern, options, Purpose::Positions)
    }

    fn compile(pattern: &str, options: &str, purpose: Purpose) -> Result<Regex, Error> {
        if pattern.contains('\0') || options.contains('\0') {
            return Err(Error::bad_value(
                "Regular expression cannot contain an embedded null byte",
            ));
        }
        let flags = parse_options(options)?;
        let regex = windrow_regex::Regex::new(pattern, flags, purpose).map_err(invalid)?;
        // The compilation counts as work because a query may have a list of millions of patterns.
        count_work(256 + regex.memory_bytes() / COMPILED_BYTES_PER_UNIT)?;
        Ok(Regex(Arc::new(CompiledRegex {
            pattern: pattern.to_owned(),
            options: options.to_owned(),
            prefix: prefix(pattern, flags),
            regex,
        })))
    }

    /// Returns the pattern as written.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Returns the options as written.
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// Returns the prefix of every match of an anchored pattern, and `true` if every string with
    /// this prefix matches. Bounds of an index scan are made from it.
    pub fn prefix(&self) -> Option<(&str, bool)> {
        let prefix = self.0.prefix.as_ref();
        prefix.map(|(text, is_whole)| (text.as_str(), *is_whole))
    }

    /// Returns `true` if the text contains a match.
    ///
    /// # Errors
    ///
    /// - 51156: the search took too many steps or too much memory.
    /// - The error of the interrupt, if the evaluation must stop.
    pub fn is_match(&self, text: &str) -> Result<bool, Error> {
        count_search(text.len())?;
        self.0
            .regex
            .is_match(text, &interrupt::check)
            .map_err(failed)
    }

    /// Returns the first match at or after the byte offset `start`. Fails as [`Regex::is_match`]
    /// does.
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>, Error> {
        count_search(text.len().saturating_sub(start))?;
        let captures = self.0.regex.captures_at(text, start, &interrupt::check);
        captures.map_err(failed)
    }

    pub(super) fn as_compiled(&self) -> &windrow_regex::Regex {
        &self.0.regex
    }
}

/// Returns the error of a failed search.
pub(super) fn failed(error: MatchError) -> Error {
    match error {
        MatchError::Interrupted(interrupted) => interrupted.into(),
        MatchError::Bug(bug) => bug.into(),
        MatchError::TooManySteps | MatchError::TooMuchMemory => Error::new(
            51156,
            format!("Error occurred while executing the regular expression: {error}"),
        ),
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

fn invalid(reason: ParseError) -> Error {
    Error::new(51091, format!("Regular expression is invalid: {reason}"))
}

/// Equal if pattern and options are equal.
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
