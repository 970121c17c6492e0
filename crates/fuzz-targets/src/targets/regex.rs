//! The target `regex`: patterns and searches.

use std::cell::Cell;

use windrow_interrupt::{Interrupt, Interrupted};
use windrow_regex::{MatchError, Options, Purpose, Regex, RegexSet, prefix};

/// Checks of the interrupt before a search is stopped: it must not need more.
const CHECKS_MAX: u32 = 200;

/// The input is a byte of options, a pattern up to the first zero byte, and a text.
pub fn run(bytes: &[u8]) {
    let (flags, rest) = bytes.split_at(bytes.len().min(1));
    let flags = flags.first().copied().unwrap_or(0);
    let options = Options {
        case_insensitive: flags & 1 != 0,
        multiline: flags & 2 != 0,
        dot_all: flags & 4 != 0,
        extended: flags & 8 != 0,
    };
    let rest = String::from_utf8_lossy(rest);
    let (pattern, text) = rest.split_once('\0').unwrap_or((&rest, &rest));
    let (existence, positions) = (
        Regex::new(pattern, options, Purpose::Existence),
        Regex::new(pattern, options, Purpose::Positions),
    );
    let (Ok(existence), Ok(positions)) = (&existence, &positions) else {
        assert_eq!(existence.is_ok(), positions.is_ok(), "{pattern:?}");
        return;
    };
    let checks = Cell::new(0);
    let interrupt: &dyn Interrupt = &|| {
        checks.set(checks.get() + 1);
        if checks.get() > CHECKS_MAX {
            return Err(Interrupted::new("the search exceeded its number of checks"));
        }
        Ok(())
    };
    let found = positions.captures_at(text, 0, interrupt);
    let answers = [
        existence.is_match(text, interrupt),
        positions.is_match(text, interrupt),
        joined(existence, text, interrupt),
    ];
    let Some(is_match) = finished(found.as_ref().map(Option::is_some)) else {
        return;
    };
    for answer in answers
        .iter()
        .filter_map(|answer| finished(answer.as_ref().copied()))
    {
        assert_eq!(answer, is_match, "{pattern:?} {text:?}");
    }
    for range in found.iter().flatten().flatten().flatten() {
        assert!(
            text.get(range.clone()).is_some(),
            "{pattern:?} {text:?}: {range:?}"
        );
    }
    if let Some((start, is_whole)) = prefix(pattern, options) {
        let starts = text.starts_with(&start);
        assert!(starts || !is_match, "{pattern:?} {text:?}");
        assert!(!is_whole || starts == is_match, "{pattern:?} {text:?}");
    }
}

/// The answer of a set with this pattern alone.
fn joined(regex: &Regex, text: &str, interrupt: &dyn Interrupt) -> Result<bool, MatchError> {
    let (set, separate) = RegexSet::new([(0, regex)].into_iter(), interrupt)?;
    if separate.is_empty() {
        set.is_match(text, interrupt)
    } else {
        regex.is_match(text, interrupt)
    }
}

/// The answer of a search that was not stopped. Panics for a broken invariant.
fn finished(answer: Result<bool, &MatchError>) -> Option<bool> {
    match answer {
        Ok(answer) => Some(answer),
        Err(MatchError::Bug(bug)) => panic!("{bug}"),
        Err(_) => None,
    }
}
