//! The regular expressions of a `$in`: tests if any of them matches a text.
//!
//! A long list is not tested one by one. Patterns that match every string with some prefix become
//! entries of a prefix set. The others are joined into a few large patterns, each of which reads
//! the text once. A pattern that cannot be joined is tested separately.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use windrow_regex::RegexSet;

use super::regex::{self, Regex};
use crate::Error;
use crate::interrupt::{self, count_bytes, count_work};

/// A list of up to this many patterns is tested one by one.
const SEPARATE_MAX: usize = 8;

/// A disjunction of regular expressions. Clones share it.
#[derive(Clone)]
pub struct RegexList(Arc<Parts>);

struct Parts {
    all: Vec<Regex>,
    prefixes: Prefixes,
    joined: RegexSet,
    /// The indexes of the patterns that are tested separately.
    separate: Vec<usize>,
}

/// A set of prefixes.
#[derive(Default)]
struct Prefixes {
    texts: HashSet<String>,
    /// The lengths of the prefixes in bytes, ascending and distinct.
    lengths: Vec<usize>,
}

impl Prefixes {
    fn add(&mut self, text: &str) {
        self.texts.insert(text.to_owned());
        if let Err(index) = self.lengths.binary_search(&text.len()) {
            self.lengths.insert(index, text.len());
        }
    }

    /// Returns `true` if the text starts with one of the prefixes.
    fn match_start(&self, text: &str) -> Result<bool, Error> {
        let lengths = self.lengths.iter();
        for length in lengths.take_while(|length| **length <= text.len()) {
            count_work(1)?;
            count_bytes(*length)?;
            // A length that ends within a character is not the length of a prefix of this text.
            let start = text.get(..*length);
            if start.is_some_and(|start| self.texts.contains(start)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl RegexList {
    /// Joins the patterns. Returns the error of the interrupt if the evaluation must stop.
    pub fn new(all: Vec<Regex>) -> Result<RegexList, Error> {
        let mut prefixes = Prefixes::default();
        let mut others = Vec::new();
        let has_few = all.len() <= SEPARATE_MAX;
        for (index, regex) in all.iter().enumerate() {
            match regex.prefix() {
                Some((text, true)) if !has_few => prefixes.add(text),
                _ => others.push((index, regex.as_compiled())),
            }
        }
        let (joined, separate) = if has_few {
            (RegexSet::default(), (0..all.len()).collect())
        } else {
            RegexSet::new(others.into_iter(), &interrupt::check).map_err(regex::failed)?
        };
        Ok(RegexList(Arc::new(Parts {
            all,
            prefixes,
            joined,
            separate,
        })))
    }

    /// Returns `true` if the text contains a match of any pattern. Fails as [`Regex::is_match`]
    /// does.
    pub fn is_match(&self, text: &str) -> Result<bool, Error> {
        let Parts {
            all,
            prefixes,
            joined,
            separate,
        } = &*self.0;
        if prefixes.match_start(text)? {
            return Ok(true);
        }
        regex::count_search(text.len() * joined.count())?;
        let found = joined.is_match(text, &interrupt::check);
        if found.map_err(regex::failed)? {
            return Ok(true);
        }
        for regex in separate.iter().filter_map(|index| all.get(*index)) {
            if regex.is_match(text)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
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

    /// A list matches exactly the texts that its patterns match separately.
    fn check(patterns: &[(&str, &str)], texts: &[&str]) {
        let all = patterns
            .iter()
            .map(|(pattern, options)| Regex::new(pattern, options).unwrap());
        let mut all: Vec<Regex> = all.collect();
        let filler = (0..2 * SEPARATE_MAX).map(|number| format!("^never{number}$"));
        all.extend(filler.map(|pattern| Regex::new(&pattern, "").unwrap()));
        let list = RegexList::new(all.clone()).unwrap();
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
    fn a_list_matches_if_one_pattern_does() {
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
    fn patterns_too_large_to_join_are_tried_separately() {
        let all =
            (0..600).map(|number| format!("[a-z]{{{}}}{number}[^\\w]{{40}}", 40 + number % 50));
        let all: Vec<Regex> = all.map(|one| Regex::new(&one, "").unwrap()).collect();
        let list = RegexList::new(all).unwrap();
        assert!(!list.0.separate.is_empty());
        let text = format!("{}7{}", "q".repeat(47), "-".repeat(40));
        assert!(list.is_match(&text).unwrap());
        assert!(!list.is_match("nothing").unwrap());
    }
}
