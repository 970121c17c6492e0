//! Patterns return the results that were recorded from PCRE2 (`recorded/record.py`).

use std::ops::Range;

use windrow_interrupt::Uninterrupted;
use windrow_regex::{Options, Purpose, Regex};

const ANSWERS: &str = include_str!("recorded/answers.txt");

const BOUNDED: &str = "look-behinds of bounded length are accepted, as in PCRE2 10.43";
const RECURSION: &str = "recursion is not supported";
const BACK_REFERENCE: &str = "the length of a back-reference is not bounded";

/// Patterns with results that differ from PCRE2's, and the reasons.
const DIFFERENCES: &[(&str, &str)] = &[
    ("(?J)(?<n>a)|(?<n>b)", "two groups cannot have one name"),
    ("(?P", RECURSION),
    ("(?P>", RECURSION),
    ("(*a)", "verbs are not supported"),
    (r"x\Cy", "a byte may be part of a character"),
    (r"(?<=ab{1,3})", BOUNDED),
    (r"(?<=\R)b", BOUNDED),
    (r"(?<=(?:ab|c)d)", BOUNDED),
    (r"(?<=\1)(a)", BACK_REFERENCE),
    (r"(a)(?<=\1)", BACK_REFERENCE),
];

struct Case {
    letters: String,
    pattern: String,
    text: String,
    answer: String,
}

impl Case {
    fn parse(line: &str) -> Case {
        let fields: Vec<String> = line.split('\t').map(unescape).collect();
        let [letters, pattern, text, answer] = fields.try_into().unwrap();
        Case {
            letters,
            pattern,
            text,
            answer,
        }
    }

    fn options(&self) -> Options {
        Options {
            case_insensitive: self.letters.contains('i'),
            multiline: self.letters.contains('m'),
            dot_all: self.letters.contains('s'),
            extended: self.letters.contains('x'),
        }
    }

    /// Returns this crate's result in the notation of the recorded results.
    fn found(&self) -> String {
        let regex = match Regex::new(&self.pattern, self.options(), Purpose::Positions) {
            Ok(regex) => regex,
            Err(error) => return format!("error {error}"),
        };
        let found = regex.captures_at(&self.text, 0, &Uninterrupted).unwrap();
        let is_match = regex.is_match(&self.text, &Uninterrupted);
        assert_eq!(is_match, Ok(found.is_some()), "{}", self.story());
        let show = |range: &Option<Range<usize>>| match range {
            Some(range) => format!("{}-{}", range.start, range.end),
            None => "~".to_owned(),
        };
        match found {
            Some(ranges) => ranges.iter().map(show).collect::<Vec<_>>().join(" "),
            None => "none".to_owned(),
        }
    }

    fn story(&self) -> String {
        format!("/{}/{} on {:?}", self.pattern, self.letters, self.text)
    }
}

/// Replaces the escapes that the file uses.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        plain.push(match characters.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('\\') => '\\',
            Some('u') => {
                let digits = characters.by_ref().skip(1).take_while(|one| *one != '}');
                let code = u32::from_str_radix(&digits.collect::<String>(), 16);
                char::from_u32(code.unwrap()).unwrap()
            }
            other => panic!("unknown escape {other:?} in {text}"),
        });
    }
    plain
}

#[test]
fn patterns_have_the_recorded_answers() {
    let mut different = Vec::new();
    for line in ANSWERS.lines().filter(|line| !line.starts_with('#')) {
        let case = Case::parse(line);
        let found = case.found();
        let is_known = DIFFERENCES
            .iter()
            .any(|(pattern, _)| *pattern == case.pattern);
        if found != case.answer && !is_known {
            let expected = &case.answer;
            different.push(format!("{}: {found}\n    not {expected}", case.story()));
        }
    }
    assert!(
        different.is_empty(),
        "{} cases differ:\n{}",
        different.len(),
        different.join("\n")
    );
}
