//! PCRE's pattern syntax in the syntax of the crates `regex` and `fancy-regex`.
//!
//! The differences that matter: `\d \w \s \b` are ASCII unless the pattern begins with `(*UCP)`, `$` also
//! stands before a newline at the end, `{` and `[` are literal where they begin nothing, `\Q…\E` quotes, and the options m and x
//! are resolved here (so that none of our own text is subject to them).

mod class;
mod prefix;

use std::fmt::Write;

use class::Member;
pub(super) use prefix::prefix;

/// A pattern in the other syntax.
pub(super) struct Translated {
    pub(super) pattern: String,
    /// Look-around, back-references, atomic groups: what needs the backtracking engine.
    pub(super) backtracking: bool,
}

/// The options of a pattern that its translation depends on.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) case_insensitive: bool,
    pub(super) multiline: bool,
    pub(super) dot_all: bool,
    pub(super) extended: bool,
    /// Positions of matches count, not only whether there is one.
    pub(super) positions: bool,
}

/// What a pattern may begin with that asks for what is so anyway: text of UTF-8, lines that end with a line
/// feed, `\R` for all ends of lines, and less work for another engine.
const VERBS: [&str; 8] = [
    "(*UTF8)",
    "(*UTF)",
    "(*NO_START_OPT)",
    "(*NO_AUTO_POSSESS)",
    "(*NO_DOTSTAR_ANCHOR)",
    "(*NO_JIT)",
    "(*LF)",
    "(*BSR_UNICODE)",
];

/// Translates; the error is a sentence. What one engine writes as an assertion the other spells
/// out, so a pattern that turns out to need backtracking is translated again for that engine.
pub(super) fn translate(pattern: &str, options: Options) -> Result<Translated, String> {
    let translated = translate_for(pattern, options, false)?;
    if translated.backtracking {
        return translate_for(pattern, options, true);
    }
    Ok(translated)
}

fn translate_for(
    pattern: &str,
    options: Options,
    backtracking: bool,
) -> Result<Translated, String> {
    let mut translator = Translator {
        input: pattern.chars().collect(),
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        scope: Scope {
            multiline: options.multiline,
            extended: options.extended,
        },
        scopes: Vec::new(),
        positions: options.positions,
        backtracking,
        unicode: false,
        groups: 0,
        highest_reference: 0,
    };
    let flags = [(options.case_insensitive, 'i'), (options.dot_all, 's')];
    let flags: String = flags
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, flag)| *flag)
        .collect();
    if !flags.is_empty() {
        let _ = write!(translator.out, "(?{flags})");
    }
    translator.run()?;
    if translator.highest_reference > translator.groups {
        return Err("reference to non-existent subpattern".into());
    }
    Ok(Translated {
        pattern: translator.out,
        backtracking: translator.backtracking,
    })
}

/// The options that a group may change and that end with it.
#[derive(Clone, Copy)]
struct Scope {
    multiline: bool,
    extended: bool,
}

struct Translator {
    input: Vec<char>,
    at: usize,
    out: String,
    scope: Scope,
    scopes: Vec<Scope>,
    positions: bool,
    backtracking: bool,
    /// What letters, digits, spaces and words are Unicode says, not ASCII.
    unicode: bool,
    groups: usize,
    highest_reference: usize,
}

impl Translator {
    fn peek(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.input.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = text
            .chars()
            .enumerate()
            .all(|(ahead, one)| self.peek_at(ahead) == Some(one));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// What stands before `end`, which is taken too.
    fn until(&mut self, end: char) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some(one) if one == end => return Ok(text),
                Some(one) => text.push(one),
                None => return Err(format!("missing terminating '{end}'")),
            }
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.verbs();
        while let Some(character) = self.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.scope = self.scopes.pop().ok_or("unmatched parentheses")?;
                    self.out.push(')');
                }
                '^' => self.out.push_str(if self.scope.multiline {
                    "(?m:^)"
                } else {
                    r"\A"
                }),
                '$' => self.dollar(),
                '*' | '+' | '?' => self.quantifier(character),
                '{' => self.brace(),
                '#' if self.scope.extended => self.comment(),
                space if self.scope.extended && space.is_ascii_whitespace() => {}
                '.' | '|' => self.out.push(character),
                literal => self.literal(literal),
            }
        }
        match self.scopes.is_empty() {
            true => Ok(()),
            false => Err("missing closing parenthesis".into()),
        }
    }

    /// `(*UCP)` and the like at the front.
    fn verbs(&mut self) {
        loop {
            if self.take("(*UCP)") {
                self.unicode = true;
            } else if !VERBS.iter().any(|verb| self.take(verb)) {
                return;
            }
        }
    }

    fn comment(&mut self) {
        while self.next().is_some_and(|character| character != '\n') {}
    }

    fn literal(&mut self, character: char) {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            self.out.push('\\');
        }
        self.out.push(character);
    }

    fn quantifier(&mut self, sign: char) {
        self.out.push(sign);
        match self.peek() {
            Some('+') => {
                self.backtracking = true;
                self.at += 1;
                self.out.push('+');
            }
            Some('?') => {
                self.at += 1;
                self.out.push('?');
            }
            _ => {}
        }
    }

    /// `{2}`, `{2,}`, `{2,3}`; any other brace is itself.
    fn brace(&mut self) {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let inner: String = rest.iter().take_while(|one| **one != '}').collect();
        let (low, high) = inner.split_once(',').unwrap_or((&inner, "0"));
        let digits = |text: &str| text.chars().all(|one| one.is_ascii_digit());
        let closed = inner.len() < rest.len();
        if closed && !low.is_empty() && digits(low) && digits(high) {
            self.at += inner.len() + 1;
            let _ = write!(self.out, "{{{inner}");
            self.quantifier('}');
        } else {
            self.out.push_str(r"\{");
        }
    }

    /// `$` without m stands at the end and before a newline there. Where nothing follows it, that
    /// newline may be eaten; otherwise it takes a look-ahead.
    fn dollar(&mut self) {
        if self.scope.multiline {
            self.out.push_str("(?m:$)");
        } else {
            self.end_of_text();
        }
    }

    fn end_of_text(&mut self) {
        if !self.positions && self.nothing_follows() {
            self.out.push_str(r"(?:\n?\z)");
        } else {
            self.backtracking = true;
            self.out.push_str(r"(?=\n?\z)");
        }
    }

    /// Whether the pattern goes on with the ends of groups and other branches only.
    fn nothing_follows(&self) -> bool {
        let mut rest = self.input.get(self.at..).unwrap_or_default();
        loop {
            match rest.first() {
                None => return true,
                Some(')') => rest = rest.get(1..).unwrap_or_default(),
                Some('|') => rest = after_branches(rest),
                Some(_) => return false,
            }
        }
    }

    fn group(&mut self) -> Result<(), String> {
        let outer = self.scope;
        if !self.take("?") {
            if self.peek() == Some('*') {
                return Err("verbs are not supported".into());
            }
            self.groups += 1;
            self.out.push('(');
        } else if self.take("#") {
            return self.until(')').map(drop);
        } else if self.take("P=") {
            let name = self.until(')')?;
            self.named_reference(&name);
            return Ok(());
        } else if self.named_group()? || self.look_around() {
        } else if self.flags()? {
            return Ok(());
        }
        self.scopes.push(outer);
        Ok(())
    }

    /// `(?P<name>`, `(?<name>`, `(?'name'`.
    fn named_group(&mut self) -> Result<bool, String> {
        let looks_behind = matches!(self.peek_at(1), Some('=' | '!'));
        let end = if self.take("P<") || (!looks_behind && self.take("<")) {
            '>'
        } else if self.take("'") {
            '\''
        } else {
            return Ok(false);
        };
        let name = self.until(end)?;
        self.groups += 1;
        let _ = write!(self.out, "(?P<{name}>");
        Ok(true)
    }

    fn look_around(&mut self) -> bool {
        let signs = ["=", "!", "<=", "<!", ">"];
        let Some(sign) = signs.into_iter().find(|sign| self.take(sign)) else {
            return false;
        };
        self.backtracking = true;
        let _ = write!(self.out, "(?{sign}");
        true
    }

    /// `(?i)`, `(?im-sx)`, `(?i:`, `(?:`. True where no group was opened.
    fn flags(&mut self) -> Result<bool, String> {
        let (mut on, mut emitted) = (true, String::new());
        loop {
            let flag = self.next().ok_or("missing closing parenthesis")?;
            match flag {
                '-' => {
                    on = false;
                    emitted.push('-');
                }
                'm' => self.scope.multiline = on,
                'x' => self.scope.extended = on,
                'i' | 's' | 'U' => emitted.push(flag),
                ')' | ':' => {
                    let emitted = emitted.trim_end_matches('-');
                    let opens = flag == ':';
                    if opens || !emitted.is_empty() {
                        let _ = write!(self.out, "(?{emitted}{flag}");
                    }
                    return Ok(!opens);
                }
                other => return Err(format!("unrecognized character '{other}' after (?")),
            }
        }
    }

    fn reference(&mut self, number: usize) {
        self.backtracking = true;
        self.highest_reference = self.highest_reference.max(number);
        let _ = write!(self.out, r"(?:\{number})");
    }

    fn named_reference(&mut self, name: &str) {
        self.backtracking = true;
        let _ = write!(self.out, r"(?:\k<{name}>)");
    }

    fn escape(&mut self) -> Result<(), String> {
        let character = self.next().ok_or("\\ at end of pattern")?;
        match character {
            'Q' => self.quoted(),
            'E' | 'G' => {}
            'b' if !self.backtracking && !self.unicode => self.out.push_str(r"(?-u:\b)"),
            'b' | 'B' => self.word_boundary(character == 'b'),
            'A' => self.out.push_str(r"\A"),
            'z' => self.out.push_str(r"\z"),
            'Z' => self.end_of_text(),
            'K' => {
                self.backtracking = true;
                self.out.push_str(r"\K");
            }
            'R' => self
                .out
                .push_str(r"(?:\r\n|[\x0A-\x0D\x{85}\x{2028}\x{2029}])"),
            'N' => self.out.push_str(r"[^\n]"),
            'X' => self.out.push_str(r"(?:\P{M}\p{M}*)"),
            'g' => self.g_reference()?,
            'k' => {
                let end = match self.next() {
                    Some('<') => '>',
                    Some('{') => '}',
                    Some('\'') => '\'',
                    _ => return Err("\\k is not followed by a name".into()),
                };
                let name = self.until(end)?;
                self.named_reference(&name);
            }
            '1'..='9' => self.digits(character),
            other => match self.escaped_member(other)? {
                Member::Character(literal) => self.hexadecimal(literal),
                Member::Set(set) => {
                    let _ = write!(self.out, "(?-i:[{set}])");
                }
            },
        }
        Ok(())
    }

    /// Between what is of a word and what is not, or not there.
    fn word_boundary(&mut self, is_there: bool) {
        self.backtracking = true;
        let word = self.sets().word;
        let (of_word, of_none) = match is_there {
            true => ("?!", "?="),
            false => ("?=", "?!"),
        };
        let _ = write!(
            self.out,
            "(?:(?<=[{word}])({of_word}[{word}])|(?<![{word}])({of_none}[{word}]))"
        );
    }

    /// `\g1`, `\g{1}`, `\g{-1}`, `\g{name}`.
    fn g_reference(&mut self) -> Result<(), String> {
        let text = if self.take("{") {
            self.until('}')?
        } else {
            let mut text = String::new();
            while let Some(one) = self
                .peek()
                .filter(|one| *one == '-' || one.is_ascii_digit())
            {
                text.push(one);
                self.at += 1;
            }
            text
        };
        match text.parse::<i64>() {
            Ok(back) if back < 0 => {
                let number = (self.groups as i64 + 1 + back).max(1);
                self.reference(number as usize);
            }
            Ok(number) => self.reference(number as usize),
            Err(_) => self.named_reference(&text),
        }
        Ok(())
    }

    /// A back-reference; from 10 on an octal number where there are not so many groups.
    fn digits(&mut self, first: char) {
        let mut text = String::from(first);
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            text.push(digit);
            self.at += 1;
        }
        let number = text.parse().unwrap_or(usize::MAX);
        if number < 10 || number <= self.groups {
            self.reference(number);
            return;
        }
        let octal: String = text
            .chars()
            .take(3)
            .take_while(|one| ('0'..'8').contains(one))
            .collect();
        self.at -= text.len() - octal.len();
        let code = u32::from_str_radix(&octal, 8).ok().and_then(char::from_u32);
        code.into_iter()
            .for_each(|literal| self.hexadecimal(literal));
    }

    fn quoted(&mut self) {
        while self.peek().is_some() && !self.take("\\E") {
            if let Some(character) = self.next() {
                self.literal(character);
            }
        }
    }

    fn hexadecimal(&mut self, character: char) {
        if character.is_ascii_alphanumeric() {
            self.out.push(character);
        } else {
            let _ = write!(self.out, r"\x{{{:X}}}", character as u32);
        }
    }
}

/// What follows the group that the branches at the front belong to.
fn after_branches(rest: &[char]) -> &[char] {
    let (mut depth, mut at, mut in_class) = (0usize, 0, false);
    while let Some(character) = rest.get(at) {
        match character {
            '\\' => at += 1,
            '[' if !in_class => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class && depth == 0 => break,
            ')' if !in_class => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    rest.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, expected: &str) {
        let translated = translate(pattern, Options::default()).unwrap();
        assert_eq!(translated.pattern, expected, "{pattern}");
    }

    #[test]
    fn patterns_are_translated() {
        check("^ab$", r"\Aab(?:\n?\z)");
        check("(a$|b$)", r"(a(?:\n?\z)|b(?:\n?\z))");
        check("a$b", r"a(?=\n?\z)b");
        check(r"\d[\w-]", r"(?-i:[0-9])[0-9A-Za-z_\x{2D}]");
        check("a{2}{,3}{x", r"a{2}\{,3\}\{x");
        check(r"\Qa.b\E.", r"a\.b.");
        check("[]a]", r"[\x{5D}a]");
        check("(?i)a(?m:^)", r"(?i)a(?:(?m:^))");
        check(r"\w\b", r"(?-i:[0-9A-Za-z_])(?-u:\b)");
        check(
            r"\B",
            "(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))",
        );
    }

    #[test]
    fn what_a_pattern_begins_with_is_taken() {
        check("(*UTF)(*NO_JIT)(*LF)(*BSR_UNICODE)a", "a");
        check(
            r"(*UCP)\d[\w-]\S",
            r"(?-i:[\p{Nd}])[\p{L}\p{N}_\x{2D}](?-i:[[^\p{Z}\x09-\x0D\x{85}\x{180E}]])",
        );
        check(
            "(*UTF)(*UCP)[[:upper:][:^digit:][:xdigit:]]",
            r"[\p{Lu}[^\p{Nd}][:xdigit:]]",
        );
        check(
            r"(*UCP)\b",
            r"(?:(?<=[\p{L}\p{N}_])(?![\p{L}\p{N}_])|(?<![\p{L}\p{N}_])(?=[\p{L}\p{N}_]))",
        );
        for refused in [
            "(*CR)a",
            "(*LIMIT_MATCH=1)a",
            "a(*UCP)",
            "(*FAIL)",
            "(*ucp)a",
        ] {
            assert!(translate(refused, Options::default()).is_err(), "{refused}");
        }
    }

    #[test]
    fn prefixes_are_found() {
        let cases = [
            ("^abc", Some(("abc", true))),
            ("^ab*", Some(("a", false))),
            ("^ab+", Some(("ab", false))),
            (r"^a\.b.", Some(("a.b", false))),
            ("abc", None),
            ("^a|b", None),
        ];
        for (pattern, expected) in cases {
            let expected = expected.map(|(text, whole)| (text.to_owned(), whole));
            assert_eq!(prefix(pattern, Options::default()), expected, "{pattern}");
        }
    }
}
