//! Every search ends: by itself in bounded time, or at an interrupt.

use std::cell::Cell;
use std::time::{Duration, Instant};

use windrow_interrupt::{Interrupt, Interrupted, Uninterrupted};
use windrow_regex::{MatchError, Options, Purpose, Regex, RegexSet};

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern, Options::default(), Purpose::Positions).unwrap()
}

/// A `$regexFind` with 3,999 groups on 100 KB of text took more than ten minutes and 1.5 GB,
/// because the engine copied the positions of all groups at every step and checked no interrupt.
#[test]
fn thousands_of_groups_do_not_multiply_with_the_text() {
    let regex = regex(&format!("{}e", "(d)".repeat(3_999)));
    let (miss, hit) = ("c".repeat(50_000), "d".repeat(50_000));
    assert_eq!(
        regex.captures_at(&[&miss, &hit[..]].concat(), 0, &Uninterrupted),
        Ok(None)
    );
    let text = [&miss, &hit, "e"].concat();
    let found = regex
        .captures_at(&text, 0, &Uninterrupted)
        .unwrap()
        .unwrap();
    assert_eq!(found.len(), 4_000);
    assert_eq!(found[0], Some(text.len() - 4_000..text.len()));
    assert_eq!(found[3_999], Some(text.len() - 2..text.len() - 1));
}

#[test]
fn exponential_patterns_fail_after_a_number_of_steps() {
    let text = "a".repeat(60);
    // Without the back-reference the linear engine runs the pattern.
    assert_eq!(regex("^(a+)+$b").is_match(&text, &Uninterrupted), Ok(false));
    let found = regex(r"^(a+)+(b)\2").is_match(&text, &Uninterrupted);
    assert_eq!(found, Ok(false), "no text without b has a match");
    let text = format!("{text}b");
    let found = regex(r"^(a+)+c?(b)\2").is_match(&text, &Uninterrupted);
    assert_eq!(found, Err(MatchError::TooManySteps));
}

#[test]
fn waiting_alternatives_are_bounded() {
    let text = "a".repeat(10_000_000);
    let found = regex(r"(?:(a)(?!b)|\1c)*x").is_match(&text, &Uninterrupted);
    assert!(
        matches!(
            found,
            Err(MatchError::TooMuchMemory | MatchError::TooManySteps) | Ok(false)
        ),
        "{found:?}"
    );
}

/// Counts the checks, and stops the search at the hundredth.
fn check_stops(search: impl Fn(&dyn Interrupt) -> Result<bool, MatchError>) {
    let (checks, longest) = (Cell::new(0), Cell::new(Duration::ZERO));
    let last = Cell::new(Instant::now());
    let stopped = || Interrupted::new("stopped");
    let found = search(&|| {
        longest.set(longest.get().max(last.replace(Instant::now()).elapsed()));
        checks.set(checks.get() + 1);
        if checks.get() < 100 {
            Ok(())
        } else {
            Err(stopped())
        }
    });
    assert_eq!(found, Err(stopped().into()));
    // The limit allows for busy machines. Without checks these searches take minutes to hours.
    assert!(longest.get() < Duration::from_secs(2), "{longest:?}");
}

#[test]
fn a_search_stops_when_it_is_told_to() {
    let text = "ab ".repeat(5_000_000);
    let patterns = [
        // The linear engine: many states, and a new set of them after each character.
        r"(?:[ab ]{3}|a.{300}){40}c",
        r"\p{L}{1,2000}[0-9]",
        // From each start position the search reads to the end of the text.
        r"(?=[^x]*+y)(?<!q)z*",
        r"(a|b| )*\1x",
        r"(?:a(?=.*x)|b| )*$z",
    ];
    for pattern in patterns {
        let regex = regex(pattern);
        check_stops(|interrupt| {
            let found = regex.captures_at(&text, 0, interrupt)?;
            Ok(found.is_some())
        });
    }
    let all: Vec<Regex> = (0..200)
        .map(|number| regex(&format!("[a-z ]{{50}}{number}")))
        .collect();
    let (set, apart) = RegexSet::new(all.iter().enumerate(), &Uninterrupted).unwrap();
    assert_eq!(apart, Vec::<usize>::new());
    check_stops(|interrupt| set.is_match(&text, interrupt));
}

#[test]
fn long_texts_and_short_ones_have_the_same_matches() {
    let patterns = [
        "needle",
        "n(e+)dle",
        "needle$",
        "^x",
        r"(?m)^needle$",
        r"\bneedle\b",
        "(?i)NEEDLE[^x]",
        "e*d",
        "(?:ne|need)(le)?",
        "d.{0,40}?e",
        r"\Aab",
        r"le\z",
        "(n)|(l)",
    ];
    let short = " ab needle\nneedle";
    let padding = "ab ".repeat(2_000_000);
    let long = format!("{padding}{short}");
    for pattern in patterns
        .iter()
        .filter(|pattern| !pattern.starts_with(r"\A"))
    {
        let regex = regex(pattern);
        let shifted = |range: Option<std::ops::Range<usize>>| {
            range.map(|range| range.start + padding.len()..range.end + padding.len())
        };
        let expected = regex.captures_at(short, 0, &Uninterrupted).unwrap();
        let expected = expected.map(|groups| groups.into_iter().map(shifted).collect::<Vec<_>>());
        let found = regex
            .captures_at(&long, padding.len(), &Uninterrupted)
            .unwrap();
        // A search that starts in the middle also uses the text before it.
        if *pattern != "^x" {
            assert_eq!(found, expected, "{pattern}");
        }
        let is_match = regex.is_match(&long, &Uninterrupted).unwrap();
        assert_eq!(is_match, expected.is_some(), "{pattern}");
        let first = regex.captures_at(&long, 0, &Uninterrupted).unwrap();
        assert_eq!(first.is_some(), is_match, "{pattern}");
    }
}

/// The filter of the backtracking engine searched for the next start position without a check. A
/// pattern of many states on 60 KB of text took 23 s between two checks, and minutes in all.
#[test]
fn a_filter_that_reads_the_text_again_and_again_is_dropped() {
    let text = ["abbabaaabbab".repeat(5_000), "cx".into()].concat();
    let found = regex("(?!a|b)(?:[ab]*a[ab]{20})[cd][^q]").is_match(&text, &Uninterrupted);
    assert_eq!(found, Ok(false));
    let found =
        regex("(?!a)[ab]+c").is_match(&["a".repeat(50_000), "c".into()].concat(), &Uninterrupted);
    assert_eq!(found, Ok(false));
}

/// A set of 96,100 literals was below its limit of bytes and failed at the first search.
#[test]
fn a_set_of_many_literals_is_bounded() {
    let long = (0..100).map(|number| format!("{number}{}", "y".repeat(4_000)));
    let all: Vec<Regex> = long
        .chain((1..5_000).map(|number| format!("z{number}")))
        .map(|one| regex(&one))
        .collect();
    let (set, separate) = RegexSet::new(all.iter().enumerate(), &Uninterrupted).unwrap();
    assert!(!separate.is_empty());
    let text = format!("{}z4999x", "a ".repeat(3_000_000));
    let apart = separate
        .iter()
        .any(|place| all[*place].is_match(&text, &Uninterrupted).unwrap());
    assert!(set.is_match(&text, &Uninterrupted).unwrap() || apart);
}
