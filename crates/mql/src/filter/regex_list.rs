//! The regular expressions of a `$in`: whether any of them matches a text.
//!
//! Many are not tried one after the other. What every string with a beginning matches is looked up in
//! a set; texts, and patterns of the linear engine, are put together as alternatives of few large
//! patterns, each of which reads the text once. What is too large for that, or needs the backtracking
//! engine, stays by itself.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::regex::Regex;
use crate::Error;

/// So few are tried one after the other.
const APART_MAX: usize = 8;

/// Alternatives of one pattern, where that is enough patterns.
const ALTERNATIVES: usize = 250;

/// Large patterns at most, each of at most so many bytes, and so many for the states that it meets.
const JOINED_MAX: usize = 32;
const JOINED_BYTES_MAX: usize = 1 << 20;
const STATES_BYTES_MAX: usize = 1 << 20;

/// Regular expressions of which one is to match. Cloning shares them.
#[derive(Clone)]
pub struct RegexList(Arc<Parts>);

struct Parts {
    all: Vec<Regex>,
    beginnings: Beginnings,
    joined: Vec<regex::Regex>,
    /// The places of those that are tried by themselves.
    apart: Vec<usize>,
}

/// Texts that a string may begin with.
#[derive(Default)]
struct Beginnings {
    texts: HashSet<String>,
    /// The lengths that there are, ascending.
    lengths: Vec<usize>,
}

impl Beginnings {
    fn add(&mut self, text: &str) {
        self.texts.insert(text.to_owned());
        if let Err(place) = self.lengths.binary_search(&text.len()) {
            self.lengths.insert(place, text.len());
        }
    }

    fn has_one_of(&self, text: &str) -> bool {
        let starts = self.lengths.iter().map_while(|length| {
            // Within a character nothing begins that is text.
            (*length <= text.len()).then(|| text.get(..*length).unwrap_or_default())
        });
        let mut starts = starts.zip(&self.lengths);
        starts.any(|(start, length)| start.len() == *length && self.texts.contains(start))
    }
}

impl RegexList {
    pub fn new(all: Vec<Regex>) -> RegexList {
        let mut parts = Parts {
            beginnings: Beginnings::default(),
            joined: Vec::new(),
            apart: Vec::new(),
            all: Vec::new(),
        };
        if all.len() <= APART_MAX {
            parts.apart = (0..all.len()).collect();
            parts.all = all;
            return RegexList(Arc::new(parts));
        }
        let mut joinable: Vec<(usize, String)> = Vec::new();
        for (place, regex) in all.iter().enumerate() {
            match (regex.prefix(), regex.linear()) {
                (Some((text, true)), _) => parts.beginnings.add(text),
                (_, Some(pattern)) => joinable.push((place, pattern)),
                _ => parts.apart.push(place),
            }
        }
        let size = ALTERNATIVES.max(joinable.len().div_ceil(JOINED_MAX));
        for some in joinable.chunks(size) {
            match join(some) {
                Some(joined) => parts.joined.push(joined),
                None => parts.apart.extend(some.iter().map(|(place, _)| *place)),
            }
        }
        parts.all = all;
        RegexList(Arc::new(parts))
    }

    /// Whether the text has a match of any. Error 51156 where the backtracking engine gave up.
    pub fn is_match(&self, text: &str) -> Result<bool, Error> {
        let Parts {
            all,
            beginnings,
            joined,
            apart,
        } = &*self.0;
        if beginnings.has_one_of(text) || joined.iter().any(|one| one.is_match(text)) {
            return Ok(true);
        }
        for regex in apart.iter().filter_map(|place| all.get(*place)) {
            if regex.is_match(text)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// One pattern that matches where one of these does; None where it would be too large.
fn join(some: &[(usize, String)]) -> Option<regex::Regex> {
    let mut pattern = String::new();
    for (_, one) in some {
        let bar = if pattern.is_empty() { "" } else { "|" };
        pattern.extend([bar, "(?:", one, ")"]);
    }
    let mut builder = regex::RegexBuilder::new(&pattern);
    builder.size_limit(JOINED_BYTES_MAX);
    builder.dfa_size_limit(STATES_BYTES_MAX);
    builder.build().ok()
}

impl Deref for RegexList {
    type Target = [Regex];

    fn deref(&self) -> &[Regex] {
        &self.0.all
    }
}

impl PartialEq for RegexList {
    fn eq(&self, other: &RegexList) -> bool {
        self.0.all == other.0.all
    }
}

impl fmt::Debug for RegexList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same of all together as of each by itself.
    fn check(patterns: &[(&str, &str)], texts: &[&str]) {
        let all = patterns
            .iter()
            .map(|(pattern, options)| Regex::new(pattern, options).unwrap());
        let mut all: Vec<Regex> = all.collect();
        let filler = (0..2 * APART_MAX).map(|number| format!("^never{number}$"));
        all.extend(filler.map(|pattern| Regex::new(&pattern, "").unwrap()));
        let list = RegexList::new(all.clone());
        assert_eq!(list.len(), all.len());
        for text in texts {
            let expected = all.iter().any(|regex| regex.is_match(text).unwrap());
            assert_eq!(
                list.is_match(text).unwrap(),
                expected,
                "{patterns:?} {text}"
            );
        }
    }

    #[test]
    fn any_of_many_matches_where_one_does() {
        let texts = [
            "", "a", "ab", "abc", "xabc", "ABC", "a\nb", "ä", "äb", "né", "never3", "a|b", "aa",
            "bb", "x.y", "a\nabc", "(?:",
        ];
        check(&[], &texts);
        check(&[("^ab", ""), ("^ä", ""), ("^x", "")], &texts);
        check(&[("bc", ""), ("a|b", "i")], &texts);
        check(&[("^abc$", "m"), ("B", "i"), ("a.b", "s")], &texts);
        check(&[("a b", "x"), ("(a)(?<n>b)", ""), ("(?<n>c)", "")], &texts);
        check(&[(r"(.)\1", ""), ("(?<=x)abc", "")], &texts);
        check(&[("a #comment", "x"), ("b", "")], &texts);
        check(&[(r"\Qx.y\E", ""), ("^", "")], &texts);
        check(&[("^$", "")], &texts);
        check(&[("", "")], &texts);
    }

    #[test]
    fn what_is_too_large_together_is_tried_apart() {
        let all =
            (0..600).map(|number| format!("[a-z]{{{}}}{number}[^\\w]{{40}}", 40 + number % 50));
        let all: Vec<Regex> = all.map(|one| Regex::new(&one, "").unwrap()).collect();
        let list = RegexList::new(all);
        assert!(!list.0.apart.is_empty());
        let text = format!("{}7{}", "q".repeat(47), "-".repeat(40));
        assert!(list.is_match(&text).unwrap());
        assert!(!list.is_match("nothing").unwrap());
    }
}
