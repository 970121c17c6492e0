//! PCRE's pattern syntax in the syntax of the crates `regex` and `fancy-regex`.
//!
//! The differences that matter: `\d \w \s \b` are ASCII, `$` also stands before a newline at the
//! end, `{` and `[` are literal where they begin nothing, `\Q…\E` quotes, and the options m and x
//! are resolved here (so that none of our own text is subject to them).

use std::fmt::Write;

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

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\x09-\x0D\x20";
const WORD_BOUNDARY: &str =
    "(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))";
const NO_WORD_BOUNDARY: &str =
    "(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))";
const HORIZONTAL: &str = r"\x09\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\x0A-\x0D\x{85}\x{2028}\x{2029}";

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
    groups: usize,
    highest_reference: usize,
}

/// One member of a class: a character, which may begin a range, or a set.
enum Member {
    Character(char),
    Set(String),
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

    /// `(*UTF8)` and the like at the front: what they ask for is so anyway.
    fn verbs(&mut self) {
        while ["(*UTF8)", "(*UTF)", "(*UCP)", "(*NO_START_OPT)"]
            .iter()
            .any(|verb| self.take(verb))
        {}
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
            'b' if self.backtracking => self.out.push_str(WORD_BOUNDARY),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => {
                self.backtracking = true;
                self.out.push_str(NO_WORD_BOUNDARY);
            }
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

    /// An escape that may stand in a class too.
    fn escaped_member(&mut self, character: char) -> Result<Member, String> {
        let set = |set: &str| Member::Set(set.to_owned());
        let complement = |set: &str| Member::Set(format!("[^{set}]"));
        Ok(match character {
            'd' => set(DIGIT),
            'D' => complement(DIGIT),
            'w' => set(WORD),
            'W' => complement(WORD),
            's' => set(SPACE),
            'S' => complement(SPACE),
            'h' => set(HORIZONTAL),
            'H' => complement(HORIZONTAL),
            'v' => set(VERTICAL),
            'V' => complement(VERTICAL),
            'p' | 'P' => Member::Set(self.property(character)?),
            'a' => Member::Character('\u{7}'),
            'e' => Member::Character('\u{1B}'),
            'f' => Member::Character('\u{C}'),
            'n' => Member::Character('\n'),
            'r' => Member::Character('\r'),
            't' => Member::Character('\t'),
            'c' => {
                let control = self.next().ok_or("\\c at end of pattern")?;
                let upper = control.to_ascii_uppercase() as u32;
                Member::Character(char::from_u32(upper ^ 0x40).unwrap_or(control))
            }
            'x' => Member::Character(self.hex()?),
            'o' => {
                let text = if self.take("{") {
                    self.until('}')?
                } else {
                    String::new()
                };
                Member::Character(code_point(&text, 8)?)
            }
            '0' => {
                let mut text = String::from('0');
                while let Some(digit) = self.peek().filter(|one| ('0'..'8').contains(one))
                    && text.len() < 3
                {
                    text.push(digit);
                    self.at += 1;
                }
                Member::Character(code_point(&text, 8)?)
            }
            other => Member::Character(other),
        })
    }

    fn hex(&mut self) -> Result<char, String> {
        if self.take("{") {
            let text = self.until('}')?;
            return code_point(&text, 16);
        }
        let mut text = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_hexdigit)
            && text.len() < 2
        {
            text.push(digit);
            self.at += 1;
        }
        code_point(if text.is_empty() { "0" } else { &text }, 16)
    }

    /// `\p{L}`, `\pL`, `\p{^L}`.
    fn property(&mut self, sign: char) -> Result<String, String> {
        let name = match self.next().ok_or("malformed \\P or \\p sequence")? {
            '{' => self.until('}')?,
            letter => letter.to_string(),
        };
        Ok(match (name.strip_prefix('^'), sign) {
            (Some(name), 'p') => format!(r"\P{{{name}}}"),
            (Some(name), _) => format!(r"\p{{{name}}}"),
            (None, sign) => format!(r"\{sign}{{{name}}}"),
        })
    }

    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            if !std::mem::take(&mut first) && self.take("]") {
                self.out.push(']');
                return Ok(());
            }
            if self.take(r"\E") {
                continue;
            }
            if self.take(r"\Q") {
                while self.peek().is_some() && !self.take(r"\E") {
                    let character = self.next().unwrap_or_default();
                    self.hexadecimal(character);
                }
                continue;
            }
            match self.member()? {
                Member::Set(set) => self.out.push_str(&set),
                Member::Character(low) => self.range(low)?,
            }
        }
    }

    fn range(&mut self, low: char) -> Result<(), String> {
        self.hexadecimal(low);
        if self.peek() != Some('-') || matches!(self.peek_at(1), Some(']') | None) {
            return Ok(());
        }
        self.at += 1;
        match self.member()? {
            Member::Character(high) => {
                self.out.push('-');
                self.hexadecimal(high);
            }
            Member::Set(set) => {
                self.hexadecimal('-');
                self.out.push_str(&set);
            }
        }
        Ok(())
    }

    fn member(&mut self) -> Result<Member, String> {
        match self
            .next()
            .ok_or("missing terminating ] for character class")?
        {
            '[' if self.peek() == Some(':') => match self.posix() {
                Some(name) => Ok(Member::Set(name)),
                None => Ok(Member::Character('[')),
            },
            '\\' => match self.next().ok_or("\\ at end of pattern")? {
                'b' => Ok(Member::Character('\u{8}')),
                digit @ '1'..='7' => {
                    let mut text = String::from(digit);
                    while let Some(digit) = self.peek().filter(|one| ('0'..'8').contains(one))
                        && text.len() < 3
                    {
                        text.push(digit);
                        self.at += 1;
                    }
                    code_point(&text, 8).map(Member::Character)
                }
                other => self.escaped_member(other),
            },
            literal => Ok(Member::Character(literal)),
        }
    }

    /// `[:alpha:]`, `[:^alpha:]`; None where the bracket begins no such name.
    fn posix(&mut self) -> Option<String> {
        let rest = self.input.get(self.at..)?;
        let name: String = rest
            .iter()
            .skip(1)
            .take_while(|one| one.is_ascii_lowercase() || **one == '^')
            .collect();
        let end = 1 + name.len();
        if rest.get(end..end + 2) != Some(&[':', ']']) {
            return None;
        }
        self.at += end + 2;
        Some(format!("[:{name}:]"))
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

fn code_point(digits: &str, radix: u32) -> Result<char, String> {
    u32::from_str_radix(digits, radix)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| format!("character value '{digits}' is out of range"))
}

/// The literal text that every match of an anchored pattern begins with, and whether the pattern
/// is no more than that. None where the pattern is not anchored or has branches.
pub(super) fn prefix(pattern: &str, options: Options) -> Option<(String, bool)> {
    if options.case_insensitive || options.extended || pattern.contains('|') {
        return None;
    }
    let rest = match pattern.strip_prefix(r"\A") {
        Some(rest) => rest,
        None if options.multiline => return None,
        None => pattern.strip_prefix('^')?,
    };
    let (mut text, mut characters) = (String::new(), rest.chars().peekable());
    while let Some(character) = characters.next() {
        let literal = match character {
            '\\' => match characters.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                _ => return Some((text, false)),
            },
            meta if ".[(^$)+*?{".contains(meta) => {
                if "*?{".contains(meta) {
                    text.pop();
                }
                return Some((text, false));
            }
            literal => literal,
        };
        text.push(literal);
    }
    Some((text, true))
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
