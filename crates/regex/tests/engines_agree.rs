//! Random patterns have the same matches in this crate and in `fancy-regex`.

use windrow_interrupt::Uninterrupted;
use windrow_regex::{MatchError, Options, Purpose, Regex};

/// A small random generator. A test that fails can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Returns a random pattern of the syntax that means the same in both crates. `groups` is the
/// number of groups that are closed.
fn pattern(random: &mut Random, depth: u32, groups: &mut u32) -> String {
    let atom = match random.below(if depth == 0 { 4 } else { 12 }) {
        0 | 1 => random.pick(&["a", "b", "ab", "é"]).to_owned(),
        2 => random
            .pick(&["[ab]", "[^a]", ".", r"\d", "[b-é]"])
            .to_owned(),
        3 if *groups > 0 && depth > 0 => format!(r"(?:\{})", 1 + random.below(u64::from(*groups))),
        3 => random.pick(&["", r"\A", r"\z", "(?m:$)"]).to_owned(),
        4 | 5 => {
            let inner = pattern(random, depth - 1, groups);
            // The engines differ on a reference inside its own group.
            *groups += 1;
            format!("({inner})")
        }
        6 => format!(
            "(?:{}|{})",
            pattern(random, depth - 1, groups),
            pattern(random, depth - 1, groups)
        ),
        7 => format!("(?>{})", pattern(random, depth - 1, groups)),
        8 => format!("(?={})", pattern(random, depth - 1, groups)),
        9 => format!("(?!{})", pattern(random, depth - 1, groups)),
        10 => format!(
            "(?<{}{})",
            random.pick(&["=", "!"]),
            random.pick(&["a", "ab|b", "é|[ab]b"])
        ),
        _ => {
            let first = pattern(random, depth - 1, groups);
            format!("{first}{}", pattern(random, depth - 1, groups))
        }
    };
    match random.below(6) {
        // In iterations that match nothing, `fancy-regex` captures other groups than PCRE does.
        0 if !may_be_empty(&atom) => {
            let quantifier =
                random.pick(&["*", "+", "?", "{2}", "{1,3}", "*?", "+?", "??", "{0,2}?"]);
            format!("(?:{atom}){quantifier}")
        }
        _ => atom,
    }
}

fn may_be_empty(atom: &str) -> bool {
    let depends_on_context = ["(?=", "(?!", "(?<", r"(?:\"]
        .iter()
        .any(|one| atom.contains(one));
    let alone = Regex::new(
        &format!(r"\A(?:{atom})\z"),
        Options::default(),
        Purpose::Existence,
    );
    depends_on_context || alone.is_ok_and(|alone| alone.is_match("", &Uninterrupted) != Ok(false))
}

#[test]
fn random_patterns_find_what_another_engine_finds() {
    let (mut compared, mut found_some, mut backtracking) = (0, 0, 0);
    for seed in 1..6_000u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let source = pattern(&mut random, 4, &mut 0);
        let Ok(other) = fancy_regex::RegexBuilder::new(&source)
            .backtrack_limit(20_000)
            .build()
        else {
            continue;
        };
        let Ok(ours) = Regex::new(&source, Options::default(), Purpose::Positions) else {
            continue;
        };
        backtracking += u32::from(source.contains(r"(?:\") || source.contains("(?="));
        for _ in 0..6 {
            let length = random.below(9);
            let text: String = (0..length)
                .map(|_| random.pick(&["a", "b", "a", "b", "é", "1", "\n"]))
                .collect();
            let Ok(expected) = other.captures(&text) else {
                continue;
            };
            let expected = expected.map(|groups| {
                let ranges = groups.iter().map(|group| group.map(|group| group.range()));
                ranges.collect::<Vec<_>>()
            });
            let found = match ours.captures_at(&text, 0, &Uninterrupted) {
                Err(MatchError::TooManySteps) => continue,
                found => found.unwrap(),
            };
            assert_eq!(found, expected, "seed {seed}: /{source}/ on {text:?}");
            assert_eq!(
                ours.is_match(&text, &Uninterrupted),
                Ok(found.is_some()),
                "/{source}/ on {text:?}"
            );
            compared += 1;
            found_some += u32::from(found.is_some());
        }
    }
    // The test would be worthless if nearly all patterns were refused or had no match.
    assert!(compared > 20_000, "{compared}");
    assert!(found_some > 5_000, "{found_some}");
    assert!(backtracking > 500, "{backtracking}");
}
