//! Automata accept what slow definitions accept, and walks find the same terms as a test of each
//! term.

mod common;

use common::Random;
use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder};
use windrow_search::automaton::{Automaton, Dfa, Fuzzy, PatternError, Prefix, Walk};
use windrow_search::memory::MemoryTerms;

fn accepts<A: Automaton>(automaton: &A, term: &[u8]) -> bool {
    let mut state = automaton.start();
    for byte in term {
        let next = automaton.step(&state, *byte);
        let is_next = automaton.next_byte(&state, *byte) == Some(*byte);
        assert_eq!(is_next, automaton.can_match(&next), "{term:?}");
        state = next;
    }
    let is_match = automaton.is_match(&state);
    assert!(!is_match || automaton.can_match(&state), "{term:?}");
    is_match
}

/// Returns the distance of optimal string alignment, by its definition.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            let mut least = if i == 0 || j == 0 { i + j } else { usize::MAX };
            if i > 0 && j > 0 {
                least = (table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                least = least.min(table[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]));
            }
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(table[i - 2][j - 2] + 1);
            }
            table[i][j] = least;
        }
    }
    table[one.len()][other.len()]
}

/// Returns a random word. Some letters have the same first byte.
fn word(random: &mut Random, length_max: u64) -> String {
    const LETTERS: [char; 7] = ['a', 'b', 'c', 'é', 'è', '水', '𝄞'];
    let length = random.below(length_max + 1);
    (0..length)
        .map(|_| LETTERS[random.below(7).min(random.below(7)) as usize])
        .collect()
}

#[test]
fn similar_words_are_those_within_the_distance() {
    let random = &mut Random(11);
    let builders = [0, 1, 2].map(|edits| LevenshteinAutomatonBuilder::new(edits, true));
    for round in 0..20_000 {
        let (query, term) = (word(random, 7), word(random, 7));
        let exact = distance(&query, &term);
        for edits in 0..=2_u8 {
            let fuzzy = Fuzzy::new(&query, edits, 0).unwrap();
            let expected = exact <= usize::from(edits);
            assert_eq!(
                accepts(&fuzzy, term.as_bytes()),
                expected,
                "{query} {term} {edits}"
            );
            let end = term
                .bytes()
                .fold(fuzzy.start(), |state, byte| fuzzy.step(&state, byte));
            let found = fuzzy.distance(&end);
            assert_eq!(found, expected.then_some(exact as u8), "{query} {term}");
            if round % 40 == 0 {
                let other = builders[usize::from(edits)].build_dfa(&query);
                let other = matches!(other.eval(&term), Distance::Exact(_));
                assert_eq!(other, expected, "{query} {term}");
            }
        }
    }
    let fuzzy = Fuzzy::new("coffee", 1, 3).unwrap();
    assert!(accepts(&fuzzy, b"coffe") && accepts(&fuzzy, b"coflfee"));
    assert!(!accepts(&fuzzy, b"toffee") && !accepts(&fuzzy, b"coofee"));
    let whole = Fuzzy::new("tea", 2, 9).unwrap();
    assert!(accepts(&whole, b"tea") && accepts(&whole, b"tear") && !accepts(&whole, b"te"));
    assert!(Fuzzy::new("tea", 3, 0).is_none());
}

/// Returns `true` if a wildcard matches, by its definition.
fn matches_wildcard(pattern: &[char], text: &[char]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some('*'), _) => {
            matches_wildcard(&pattern[1..], text)
                || !text.is_empty() && matches_wildcard(pattern, &text[1..])
        }
        (Some('?'), Some(_)) => matches_wildcard(&pattern[1..], &text[1..]),
        (Some(one), Some(other)) => one == other && matches_wildcard(&pattern[1..], &text[1..]),
        _ => false,
    }
}

#[test]
fn wildcards_match_whole_terms() {
    let random = &mut Random(12);
    for _ in 0..2_000 {
        let mut pattern: Vec<char> = word(random, 5).chars().collect();
        for letter in &mut pattern {
            match random.below(4) {
                0 => *letter = '*',
                1 => *letter = '?',
                _ => {}
            }
        }
        let dfa = Dfa::wildcard(&pattern.iter().collect::<String>()).unwrap();
        for _ in 0..20 {
            let term = word(random, 6);
            let letters: Vec<char> = term.chars().collect();
            let expected = matches_wildcard(&pattern, &letters);
            assert_eq!(
                accepts(&dfa, term.as_bytes()),
                expected,
                "{pattern:?} {term}"
            );
        }
    }
    let escaped = Dfa::wildcard(r"a\*\?\\b\").unwrap();
    assert!(accepts(&escaped, br"a*?\b\"));
    assert!(!accepts(&escaped, br"axx\b\"));
}

fn check_regex(pattern: &str, matching: &[&str], others: &[&str]) {
    let dfa = Dfa::regex(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    for term in matching {
        assert!(accepts(&dfa, term.as_bytes()), "{pattern} {term:?}");
    }
    for term in others {
        assert!(!accepts(&dfa, term.as_bytes()), "{pattern} {term:?}");
    }
}

#[test]
fn regular_expressions_have_the_syntax_of_lucene() {
    check_regex("a.c", &["abc", "a水c", "a\nc"], &["ac", "abcd", "xabc"]);
    check_regex("a|ab", &["a", "ab"], &["b", "abb", ""]);
    check_regex("(ab)+c?", &["ab", "ababc"], &["abcc", "c"]);
    check_regex(
        "a{2}|b{2,}|c{1,2}",
        &["aa", "bbbb", "c", "cc"],
        &["a", "b", "ccc", "aaa"],
    );
    check_regex("[a-cx]*", &["", "abcx"], &["d"]);
    check_regex("[^a-c]", &["d", "水"], &["a", ""]);
    check_regex("[]a-]", &["]", "-", "a"], &["b"]);
    check_regex(r"\d+\.\w", &["12.x"], &["12xx", "a.x"]);
    check_regex(r"[\d_]\S", &["1x", "_x"], &["ax", "1 "]);
    check_regex("\"a.b*\"c", &["a.b*c"], &["axbc"]);
    check_regex("x@y#", &["xy", "xabcy"], &["x"]);
    check_regex("^a$", &["^a$"], &["a"]);
    check_regex("", &[""], &["a"]);
    check_regex("a||b", &["a", "", "b"], &["ab"]);
}

#[test]
fn wrong_and_large_patterns_are_refused() {
    let deep = "(".repeat(10_000);
    let patterns = [
        "(a", "a)", "[a", "*a", "a{", "a{2", "a{3,2}", "a{1001}", "\"a", "a\\", "~a", "a&b",
        "<1-5>", "[z-a]", "[\\", &deep,
    ];
    for pattern in patterns {
        let error = Dfa::regex(pattern).unwrap_err();
        assert!(
            matches!(error, PatternError::Syntax { .. }),
            "{pattern}: {error}"
        );
    }
    let doubling = format!("*a{}", "?".repeat(1_000));
    assert_eq!(
        Dfa::wildcard(&doubling).unwrap_err(),
        PatternError::TooLarge
    );
    assert!(Dfa::wildcard(&"*".repeat(10_000)).is_ok());
    assert_eq!(
        Dfa::regex("((a{1000}){1000}){1000}").unwrap_err(),
        PatternError::TooLarge
    );
}

#[test]
fn random_patterns_are_compiled_or_refused() {
    let random = &mut Random(14);
    let parts = [
        "a", "水", ".", "*", "+", "?", "|", "(", ")", "[", "]", "^", "-", "\\", "\"", "{", "}",
        ",", "1", "3", "@", "#", "~", "d", "W",
    ];
    let mut compiled = 0;
    for _ in 0..20_000 {
        let length = random.below(9);
        let pattern: String = (0..length)
            .map(|_| parts[random.below(parts.len() as u64) as usize])
            .collect();
        if let Ok(dfa) = Dfa::regex(&pattern) {
            accepts(&dfa, word(random, 5).as_bytes());
            compiled += 1;
        }
        accepts(
            &Dfa::wildcard(&pattern).unwrap(),
            word(random, 5).as_bytes(),
        );
    }
    assert!(compiled > 1_000, "{compiled}");
}

fn check_walk<A: Automaton>(automaton: &A, terms: &[String], cursor: &MemoryTerms) -> u64 {
    let expected: Vec<&str> = terms
        .iter()
        .map(String::as_str)
        .filter(|term| accepts(automaton, term.as_bytes()))
        .collect();
    let mut walk = Walk::new(automaton, cursor.clone());
    let mut found = Vec::new();
    while let Some(term) = walk.next() {
        found.push(String::from_utf8(term.to_vec()).unwrap());
    }
    assert_eq!(found, expected);
    walk.visited()
}

#[test]
fn walks_find_what_filters_find() {
    let random = &mut Random(13);
    for round in 0..40 {
        let mut terms: Vec<String> = (0..800).map(|_| word(random, 6)).collect();
        terms.sort();
        terms.dedup();
        let cursor = MemoryTerms::new(terms.iter().map(|term| (term, 1)));
        for _ in 0..5 {
            let query = word(random, 5);
            check_walk(&Fuzzy::new(&query, 1, 0).unwrap(), &terms, &cursor);
            check_walk(&Fuzzy::new(&query, 2, round % 3).unwrap(), &terms, &cursor);
            check_walk(&Prefix::new(query.as_bytes()), &terms, &cursor);
            let wildcard = query.replace('a', "*").replace('b', "?");
            check_walk(&Dfa::wildcard(&wildcard).unwrap(), &terms, &cursor);
            let regex = query
                .replace('a', "(c|é)*")
                .replace('b', ".")
                .replace('水', "[^c]");
            check_walk(&Dfa::regex(&regex).unwrap(), &terms, &cursor);
        }
    }
}

#[test]
fn walks_visit_few_of_many_terms() {
    let mut terms: Vec<String> = (0..200_000_u64)
        .map(|number| {
            let mut random = Random(number);
            let length = 3 + random.below(9);
            (0..length)
                .map(|_| (b'a' + random.below(26) as u8) as char)
                .collect()
        })
        .collect();
    terms.sort();
    terms.dedup();
    let cursor = MemoryTerms::new(terms.iter().map(|term| (term, 1)));
    let query = &terms[terms.len() / 2];
    for (edits, visited_max) in [(0, 2), (1, 2_000), (2, 40_000)] {
        let visited = check_walk(&Fuzzy::new(query, edits, 0).unwrap(), &terms, &cursor);
        assert!(visited <= visited_max, "{query} {edits}: {visited}");
    }
    let visited = check_walk(&Dfa::wildcard("ab?d*f").unwrap(), &terms, &cursor);
    assert!(visited < 500, "{visited}");
    let visited = check_walk(&Dfa::regex("(que|qui).*(a|b)").unwrap(), &terms, &cursor);
    assert!(visited < 500, "{visited}");
}

#[test]
fn a_word_of_a_thousand_letters_is_compared() {
    let long = "水a".repeat(500);
    let terms = MemoryTerms::new([
        (long.replacen("a水", "水a", 1), 1),
        (long.clone() + "xyz", 1),
    ]);
    let fuzzy = Fuzzy::new(&long, 2, 0).unwrap();
    let mut walk = Walk::new(&fuzzy, terms);
    assert!(walk.next().is_some());
    assert!(walk.next().is_none());
}
