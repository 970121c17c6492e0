//! Compiled patterns share a budget of memory.

use windrow_interrupt::{Interrupted, Uninterrupted};
use windrow_regex::{Options, Purpose, Regex, RegexSet};

/// The budget in bytes that all patterns of the process share.
const COMPILED_BYTES_MAX: usize = 256 << 20;

/// A list of 100,000 patterns with Unicode classes took 10 GB, because only the size of each
/// pattern was limited.
#[test]
fn patterns_beyond_the_budget_are_compiled_for_each_search() {
    let source = |number: usize| format!(r"^(\p{{L}}+)x{number}$");
    let count = 8_000;
    let all: Vec<Regex> = (0..count)
        .map(|number| Regex::new(&source(number), Options::default(), Purpose::Positions).unwrap())
        .collect();
    let bytes: usize = all.iter().map(Regex::memory_bytes).sum();
    assert!(bytes <= COMPILED_BYTES_MAX, "{bytes}");
    assert!(bytes > COMPILED_BYTES_MAX / 2, "{bytes}");
    let last = count - 1;
    assert!(all[0].memory_bytes() > 0);
    assert_eq!(all[last].memory_bytes(), 0, "the budget is used up");
    let text = |number: usize| format!("äöx{number}");
    for number in [0, last] {
        assert_eq!(
            all[number].is_match(&text(number), &Uninterrupted),
            Ok(true)
        );
        assert_eq!(all[number].is_match(&text(1), &Uninterrupted), Ok(false));
        let found = all[number].captures_at(&text(number), 0, &Uninterrupted);
        assert_eq!(found.unwrap().unwrap()[1], Some(0..4));
    }
    let stopped = || Interrupted::new("stopped");
    let found = all[last].is_match("", &|| Err(stopped()));
    assert_eq!(found, Err(stopped().into()));

    let (set, separate) =
        RegexSet::new(all.iter().enumerate().skip(count - 10), &Uninterrupted).unwrap();
    assert_eq!((set.count(), separate.len()), (1, 0));
    assert_eq!(set.is_match(&text(last), &Uninterrupted), Ok(true));
    assert_eq!(set.is_match(&text(1), &Uninterrupted), Ok(false));

    drop(all);
    let later = Regex::new(&source(last), Options::default(), Purpose::Existence).unwrap();
    assert!(later.memory_bytes() > 0, "the budget is free again");
}
