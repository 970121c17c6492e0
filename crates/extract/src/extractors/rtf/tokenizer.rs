//! Splits RTF into tokens.

/// The longest control word in the specification has 32 letters.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    GroupStart,
    GroupEnd,
    /// `\*`
    Optional,
    /// `\name` or `\name123`
    Word {
        name: &'a str,
        parameter: Option<i32>,
    },
    /// `\'hh`: a byte in the current encoding.
    Byte(u8),
    /// A control symbol that stands for a character: `\~`, `\{`.
    Character(&'static str),
    /// Bytes in the current encoding.
    Text(&'a [u8]),
}

pub(super) struct Tokenizer<'a> {
    rest: &'a [u8],
}

impl<'a> Tokenizer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Tokenizer { rest: bytes }
    }

    fn advance(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// Reads a token after its backslash. Returns `None` for symbols without a meaning.
    fn read_control(&mut self) -> Option<Token<'a>> {
        let first = *self.rest.first()?;
        if first.is_ascii_alphabetic() {
            return Some(self.read_word());
        }
        self.advance(1);
        Some(match first {
            b'\'' => {
                let digits = std::str::from_utf8(self.rest.get(..2)?).ok()?;
                let byte = u8::from_str_radix(digits, 16).ok()?;
                self.advance(2);
                Token::Byte(byte)
            }
            b'*' => Token::Optional,
            b'\\' => Token::Character("\\"),
            b'{' => Token::Character("{"),
            b'}' => Token::Character("}"),
            b'~' => Token::Character("\u{a0}"),
            b'_' => Token::Character("\u{2011}"),
            b'\n' | b'\r' => Token::Word {
                name: "par",
                parameter: None,
            },
            b'\t' => Token::Word {
                name: "tab",
                parameter: None,
            },
            // An optional hyphen, or a symbol of an index.
            _ => return None,
        })
    }

    fn read_word(&mut self) -> Token<'a> {
        let name = self.advance(count_while(self.rest, u8::is_ascii_alphabetic));
        let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
        let sign = usize::from(self.rest.first() == Some(&b'-'));
        let digits = count_while(
            self.rest.get(sign..).unwrap_or_default(),
            u8::is_ascii_digit,
        );
        let parameter = if digits > 0 {
            self.advance(sign + digits)
        } else {
            &[]
        };
        let parameter = std::str::from_utf8(parameter).unwrap_or_default();
        let parameter = parameter.parse().ok();
        if self.rest.first() == Some(&b' ') {
            self.advance(1);
        }
        let name = std::str::from_utf8(name).unwrap_or_default();
        // Binary data, for example a picture.
        if name == "bin" {
            let bytes = parameter.and_then(|count: i32| usize::try_from(count).ok());
            self.advance(bytes.unwrap_or(0));
        }
        Token::Word { name, parameter }
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            match *self.rest.first()? {
                b'{' => {
                    self.advance(1);
                    return Some(Token::GroupStart);
                }
                b'}' => {
                    self.advance(1);
                    return Some(Token::GroupEnd);
                }
                b'\\' => {
                    self.advance(1);
                    if let Some(token) = self.read_control() {
                        return Some(token);
                    }
                }
                // Line breaks in the source are ignored.
                b'\r' | b'\n' | b'\0' => {
                    self.advance(1);
                }
                _ => {
                    let is_text = |byte: &u8| !b"{}\\\r\n\0".contains(byte);
                    return Some(Token::Text(self.advance(count_while(self.rest, is_text))));
                }
            }
        }
    }
}

fn count_while(bytes: &[u8], test: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| test(byte)).count()
}
