//! Character classes, and the escapes that may stand in them.

use super::Translator;

/// What stands for what, within a class.
pub(super) struct Sets {
    digit: &'static str,
    pub(super) word: &'static str,
    space: &'static str,
}

const OF_ASCII: Sets = Sets {
    digit: "0-9",
    word: "0-9A-Za-z_",
    space: r"\x09-\x0D\x20",
};
const OF_UNICODE: Sets = Sets {
    digit: r"\p{Nd}",
    word: r"\p{L}\p{N}_",
    space: r"\p{Z}\x09-\x0D\x{85}\x{180E}",
};

/// Some that say how text runs have no glyph.
const GRAPH: &str = r"\p{L}\p{M}\p{N}\p{P}\p{S}[\p{Cf}--[\x{61C}\x{180E}\x{2066}-\x{2069}]]";
const PRINT: &str = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}[\p{Cf}--[\x{61C}\x{180E}\x{2066}-\x{2069}]]";
/// The POSIX classes that are others in Unicode; source: PCRE2's manual, pcre2pattern, "POSIX character
/// classes".
const POSIX_OF_UNICODE: [(&str, &str); 12] = [
    ("alnum", r"\p{L}\p{N}"),
    ("alpha", r"\p{L}"),
    ("blank", HORIZONTAL),
    ("cntrl", r"\p{Cc}"),
    ("digit", OF_UNICODE.digit),
    ("graph", GRAPH),
    ("lower", r"\p{Ll}"),
    ("print", PRINT),
    ("punct", PUNCTUATION),
    ("space", OF_UNICODE.space),
    ("upper", r"\p{Lu}"),
    ("word", OF_UNICODE.word),
];
/// Symbols up to 255 count as punctuation.
const PUNCTUATION: &str =
    r"\p{P}$+<=>\^`|\x{7E}\x{A2}-\x{A6}\x{A8}\x{A9}\x{AC}\x{AE}-\x{B1}\x{B4}\x{B8}\x{D7}\x{F7}";
const HORIZONTAL: &str = r"\x09\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\x0A-\x0D\x{85}\x{2028}\x{2029}";

/// One member of a class: a character, which may begin a range, or a set.
pub(super) enum Member {
    Character(char),
    Set(String),
}

impl Translator {
    pub(super) fn sets(&self) -> Sets {
        match self.unicode {
            true => OF_UNICODE,
            false => OF_ASCII,
        }
    }

    /// An escape that may stand in a class too.
    pub(super) fn escaped_member(&mut self, character: char) -> Result<Member, String> {
        let Sets { digit, word, space } = self.sets();
        let set = |set: &str| Member::Set(set.to_owned());
        let complement = |set: &str| Member::Set(format!("[^{set}]"));
        Ok(match character {
            'd' => set(digit),
            'D' => complement(digit),
            'w' => set(word),
            'W' => complement(word),
            's' => set(space),
            'S' => complement(space),
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

    pub(super) fn class(&mut self) -> Result<(), String> {
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
        Some(self.posix_set(&name))
    }

    fn posix_set(&self, name: &str) -> String {
        let (plain, is_without) = match name.strip_prefix('^') {
            Some(plain) => (plain, true),
            None => (name, false),
        };
        let mut known = POSIX_OF_UNICODE.iter();
        match known.find(|(one, _)| self.unicode && *one == plain) {
            Some((_, set)) if is_without => format!("[^{set}]"),
            Some((_, set)) => (*set).to_owned(),
            None => format!("[:{name}:]"),
        }
    }
}

fn code_point(digits: &str, radix: u32) -> Result<char, String> {
    u32::from_str_radix(digits, radix)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| format!("character value '{digits}' is out of range"))
}
