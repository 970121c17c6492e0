//! Patterns match what PCRE2's manual page pcre2pattern says.

use std::ops::Range;

use windrow_interrupt::Uninterrupted;
use windrow_regex::{Options, Purpose, Regex};

fn options(letters: &str) -> Options {
    Options {
        case_insensitive: letters.contains('i'),
        multiline: letters.contains('m'),
        dot_all: letters.contains('s'),
        extended: letters.contains('x'),
    }
}

/// `expected` is the matched text followed by the text of each group, or `~` for a group that took
/// no part in the match.
fn check(pattern: &str, letters: &str, text: &str, expected: Option<&[&str]>) {
    let story = format!("/{pattern}/{letters} on {text:?}");
    let positions = Regex::new(pattern, options(letters), Purpose::Positions);
    let positions = positions.unwrap_or_else(|error| panic!("{story}: {error}"));
    let found = positions.captures_at(text, 0, &Uninterrupted).unwrap();
    let shown = |range: &Option<Range<usize>>| match range {
        Some(range) => text[range.clone()].to_owned(),
        None => "~".to_owned(),
    };
    let found = found.map(|found| found.iter().map(shown).collect::<Vec<_>>());
    let expected = expected.map(|texts| texts.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(found, expected, "{story}");
    let existence = Regex::new(pattern, options(letters), Purpose::Existence).unwrap();
    for regex in [&existence, &positions] {
        assert_eq!(
            regex.is_match(text, &Uninterrupted),
            Ok(expected.is_some()),
            "{story}"
        );
    }
}

#[test]
fn characters_and_classes() {
    check("b", "", "abc", Some(&["b"]));
    check("B", "i", "abc", Some(&["b"]));
    check("Ä.", "i", "xäy", Some(&["äy"]));
    check("[b-d]+", "", "abcde", Some(&["bcd"]));
    check("[^b-d]+", "", "bcdx\ny", Some(&["x\ny"]));
    check("[]a]+", "", "x]a]", Some(&["]a]"]));
    check(r"[\]\-a]+", "", "x]-a", Some(&["]-a"]));
    check("[k]", "i", "\u{212A}", Some(&["\u{212A}"]));
    check(r"\d\w\s\D\W\S", "", "1_ a-b", Some(&["1_ a-b"]));
    check(r"\w", "", "é", None);
    check(r"(*UCP)\w", "", "é", Some(&["é"]));
    check(r"(*UCP)[[:upper:]]", "", "aÉ", Some(&["É"]));
    check(r"[[:^alpha:]]+", "", "ab12", Some(&["12"]));
    check(r"\p{Lu}\P{Lu}\p{^Lu}", "", "aBcd", Some(&["Bcd"]));
    check(r"\x41\x{42}\103\o{104}\t", "", "ABCD\t", Some(&["ABCD\t"]));
    check(r"a.c", "", "a\nc", None);
    check(r"a.c", "s", "a\nc", Some(&["a\nc"]));
    check(r"a\Nc", "s", "a\nc", None);
    check(r"\Qa.b\E+", "", "xa.bbb", Some(&["a.bbb"]));
    check(r"a\Rb", "", "a\r\nb", Some(&["a\r\nb"]));
    check(r"\R\n", "", "\r\n", None);
    check(r"\X", "", "e\u{301}x", Some(&["e\u{301}"]));
    check(r"\X\n", "", "\r\n", None);
    check(r"\X", "", "\u{301}\u{302}x", Some(&["\u{301}\u{302}"]));
    check(r"a b # comment", "x", "ab", Some(&["ab"]));
    check(r"a\ b", "x", "a b", Some(&["a b"]));
    check(r"a{,3}", "", "a{,3}", Some(&["a{,3}"]));
    check(r"x{y", "", "x{y", Some(&["x{y"]));
    check("", "", "abc", Some(&[""]));
}

/// Option `i` also added the other cases to escapes and POSIX classes. `[\p{Lu}]` matched lower
/// case letters, and `[\w]` the long s.
#[test]
fn cases_are_ignored_in_characters_and_ranges_only() {
    check(r"[\p{Lu}]", "i", "a", None);
    check(r"[^\p{Ll}]", "i", "A", Some(&["A"]));
    check(r"[\w]+", "i", "aſ", Some(&["a"]));
    check(r"[\p{Lu}b]+", "i", "aABb", Some(&["ABb"]));
    check(r"[[:upper:]]", "i", "a", Some(&["a"]));
    check(r"(*UCP)[[:upper:]]", "i", "a", None);
    check(r"[r-t]", "i", "ſ", Some(&["ſ"]));
}

/// Back-references compared the lower case of letters. The long s and the final sigma are lower
/// case letters themselves, so they did not match `S` and `Σ`.
#[test]
fn back_references_ignore_case_as_characters_do() {
    check(r"(s)\1", "i", "sſ", Some(&["sſ", "s"]));
    check(r"(σ)\1\1", "i", "σςΣ", Some(&["σςΣ", "σ"]));
    check(r"(k)\1", "i", "k\u{212A}", Some(&["k\u{212A}", "k"]));
    check(r"(ß)\1", "i", "ßss", None);
}

/// These patterns were refused.
#[test]
fn settings_and_references_of_later_versions() {
    check("(?^)a|A", "i", "A", Some(&["A"]));
    check("(?^:a)", "i", "A", None);
    check("(?n)(a)(?<b>b)", "", "ab", Some(&["ab", "b"]));
    check("(?xx)[a b] c", "", " c", None);
    check("(?xx)[a b] c", "", "ac", Some(&["ac"]));
    check(r"(?:\g{+1}b|(a))+", "", "aab", Some(&["aab", "a"]));
    check(r"\p{L&}+", "", "ªaǅ", Some(&["aǅ"]));
    check(r"\N{U+41}", "", "A", Some(&["A"]));
}

#[test]
fn positions() {
    check("^b", "", "a\nb", None);
    check("^b", "m", "a\nb", Some(&["b"]));
    check("^$", "m", "a\n", None);
    check("^", "m", "a\n", Some(&[""]));
    check(r"\n^", "m", "a\n", None);
    check(r"\n^a?", "m", "a\n", None);
    check(r"^(?!a)", "m", "a\n", None);
    check(r"\Gb", "", "ab", None);
    check(r"\Ga", "", "ab", Some(&["a"]));
    check("a$", "", "a\n", Some(&["a"]));
    check("a$", "", "a\nb", None);
    check("a$", "m", "a\nb", Some(&["a"]));
    check("a$\n", "", "a\n", Some(&["a\n"]));
    check(r"a\Z", "", "a\n", Some(&["a"]));
    check(r"a\z", "", "a\n", None);
    check("(a$|b$)", "", "xb\n", Some(&["b", "b"]));
    check("(?:a$)*", "", "a", Some(&["a"]));
    check("^$", "", "", Some(&[""]));
    check(r"\bcat\b", "", "concat cat", Some(&["cat"]));
    check(r"\Bcat", "", "cat concat", Some(&["cat"]));
    check(r"\B", "", "aéb", None);
    check(r"(*UCP)\bé", "", "aé é", Some(&["é"]));
    check(r"foo\Kbar", "", "foobar", Some(&["bar"]));
}

#[test]
fn groups_and_repetition() {
    check("(a)|(b)", "", "b", Some(&["b", "~", "b"]));
    check(
        "(?<year>[0-9]{4})-(?P<m>..)",
        "",
        "2024-05",
        Some(&["2024-05", "2024", "05"]),
    );
    check("(a(?i)b|c)d", "", "Cd", Some(&["Cd", "C"]));
    check("(a(?i)b|C)d", "", "cd", Some(&["cd", "c"]));
    check("a(?i:b)c", "", "aBc", Some(&["aBc"]));
    check("(?U)a+b*", "", "aab", Some(&["a"]));
    check("a+?b??", "", "aab", Some(&["a"]));
    check(
        "(a|ab)(c|bcd)(d*)",
        "",
        "abcd",
        Some(&["abcd", "a", "bcd", ""]),
    );
    check("(?:ab){2,3}", "", "abababab", Some(&["ababab"]));
    check("(?:ab){2,3}?", "", "abababab", Some(&["abab"]));
    check(r"(\p{L}{500}){1,500}", "", "é", None);
    check("(a*)*", "", "b", Some(&["", ""]));
    check("(a*)*", "", "aa", Some(&["aa", ""]));
    check("(a|)+", "", "aa", Some(&["aa", ""]));
    check("((a?)(b?))*", "", "abab", Some(&["abab", "", "", ""]));
    check("((?:|a)(b)?)*c", "", "abc", Some(&["abc", "", "b"]));
    check("(a){0}b", "", "ab", Some(&["b", "~"]));
    check("(a|b)*c", "", "abac", Some(&["abac", "a"]));
    check("a(?#comment)b", "", "ab", Some(&["ab"]));
}

#[test]
fn conditions_on_the_text_around() {
    check("q(?!u)", "", "qu qa", Some(&["q"]));
    check("(?=(a+))a*b\\1", "", "baaabac", Some(&["aba", "a"]));
    check("(?<=foo)bar", "", "bar foobar", Some(&["bar"]));
    check("(?<!foo)bar", "", "foobar bar", Some(&["bar"]));
    check("(?<=a|bcd)x", "", "cdx bcdx", Some(&["x"]));
    check("(?<=ab?)x", "", "abx", Some(&["x"]));
    check("^(?=.*a)(?=.*b).{3}", "", "xba", Some(&["xba"]));
    check("(?>a+)ab", "", "aaab", None);
    check("a++b", "", "aab", Some(&["aab"]));
    check("(?:ab|a)++b", "", "aab", None);
    check(r"(\w)\1", "", "hello", Some(&["ll", "l"]));
    check(r"(a)\1", "i", "aA", Some(&["aA", "a"]));
    check(
        r"(?<n>.)\k<n>\g{n}(?P=n)",
        "",
        "baaaa",
        Some(&["aaaa", "a"]),
    );
    check(r"(a)(b)\g{-1}\g1", "", "abba", Some(&["abba", "a", "b"]));
    check(r"(?:\2b|(a)(c))+", "", "accb", Some(&["accb", "a", "c"]));
    check(r"(a)?\1b", "", "b", None);
    check(r"(a\1?){3}", "", "aaaa", Some(&["aaaa", "a"]));
    check(r"((?:.*,)\K)b", "", "a,b", Some(&["b", "a,"]));
    check(r"(?:(?!x).)+", "", "abxc", Some(&["ab"]));
    check(r"(?:(?=(b)).)*?c", "", "bbc", Some(&["bbc", "b"]));
    check(r"(?:(?!(a)b)a)+", "", "aaab", Some(&["aa", "~"]));
}

#[test]
fn malformed_patterns_are_refused() {
    let cases = [
        ("(", "missing closing parenthesis"),
        (")", "unmatched closing parenthesis"),
        ("*a", "quantifier does not follow a repeatable item"),
        ("a**", "quantifier does not follow a repeatable item"),
        ("[a", "missing terminating ] for character class"),
        ("a{3,2}", "numbers out of order in {} quantifier"),
        ("a{70000}", "number too big in {} quantifier"),
        (r"\1", "reference to non-existent subpattern"),
        (r"\k<n>", "reference to non-existent subpattern"),
        (
            r"(?<n>a)(?<n>b)",
            "two named subpatterns have the same name",
        ),
        (r"(?<=a+)b", "lookbehind assertion is not fixed length"),
        (r"(?=a\K)", r"\K is not allowed in lookarounds"),
        ("(*FAIL)", "verbs are not supported"),
        ("a(*UCP)", "verbs are not supported"),
        ("(*CR)a", "verbs are not supported"),
        ("(?y)", "unrecognized character after (? or (?-"),
        (r"a\y", r"unrecognized character follows \"),
        (r"[\j]", r"unrecognized character follows \"),
        (
            r"\u0041",
            r"PCRE2 does not support \F, \L, \l, \N{name}, \U, or \u",
        ),
        (r"\b*", "quantifier does not follow a repeatable item"),
        (r"a\", r"\ at end of pattern"),
        (r"\p{Nonsense}", r"unknown property after \P or \p"),
    ];
    for (pattern, expected) in cases {
        let error = Regex::new(pattern, Options::default(), Purpose::Positions).unwrap_err();
        assert!(error.to_string().contains(expected), "{pattern}: {error}");
    }
    let nested = ["(".repeat(251), ")".repeat(251)].concat();
    let long = "a".repeat(32_765);
    for pattern in [nested, long] {
        assert!(Regex::new(&pattern, Options::default(), Purpose::Existence).is_err());
    }
    let longest = "a".repeat(32_764);
    assert!(Regex::new(&longest, Options::default(), Purpose::Existence).is_ok());
}
