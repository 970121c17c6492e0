//! The lines of vCard and iCalendar: `NAME;PARAMETER=value:value`.

/// A line.
pub(super) struct ContentLine {
    /// The name in upper case, without its group.
    pub(super) name: String,
    parameters: String,
    pub(super) value: String,
}

/// Joins folded lines: a continuation begins with a space. In quoted-printable, a continued line
/// ends with `=`.
pub(super) fn unfold(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let is_quoted = |last: &String| {
            last.ends_with('=') && last.to_ascii_uppercase().contains("QUOTED-PRINTABLE")
        };
        match lines.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => {
                last.push_str(line.get(1..).unwrap_or_default());
            }
            Some(last) if is_quoted(last) => {
                last.pop();
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

impl ContentLine {
    pub(super) fn parse(line: &str) -> Option<Self> {
        // A colon within quotes belongs to a parameter.
        let mut is_quoted = false;
        let (at, _) = line.char_indices().find(|(_, character)| {
            is_quoted ^= *character == '"';
            *character == ':' && !is_quoted
        })?;
        let (start, value) = line.split_at(at);
        let (name, parameters) = start.split_once(';').unwrap_or((start, ""));
        let name = name.rsplit('.').next().unwrap_or(name);
        Some(ContentLine {
            name: name.trim().to_ascii_uppercase(),
            parameters: parameters.to_owned(),
            value: value.get(1..).unwrap_or_default().trim().to_owned(),
        })
    }

    /// Returns the value as text. The components of a value are separated by spaces.
    pub(super) fn text(&self) -> String {
        let is_quoted = self
            .parameters
            .to_ascii_uppercase()
            .contains("QUOTED-PRINTABLE");
        let decoded = if is_quoted {
            decode_quoted(&self.value)
        } else {
            self.value.clone()
        };
        let (mut text, mut characters) = (String::new(), decoded.chars());
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some('n' | 'N') => text.push('\n'),
                    Some(other) => text.push(other),
                    None => {}
                },
                ';' => {
                    if !text.ends_with(' ') {
                        text.push(' ');
                    }
                }
                other => text.push(other),
            }
        }
        text.trim().to_owned()
    }

    /// Returns a calendar user with name and address: `Ada <ada@example.org>`.
    pub(super) fn person(&self) -> String {
        let value = self.text();
        let has_scheme = value
            .get(..7)
            .is_some_and(|it| it.eq_ignore_ascii_case("mailto:"));
        let address = if has_scheme {
            value.get(7..).unwrap_or_default()
        } else {
            &value
        };
        match self.parameter("CN") {
            Some(name) if name != address => format!("{name} <{address}>"),
            _ => address.to_owned(),
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self
            .parameters
            .split(';')
            .filter_map(|pair| pair.split_once('='));
        let found = pairs
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found
            .map(|(_, value)| value.trim_matches('"'))
            .filter(|value| !value.is_empty())
    }
}

/// Decodes quoted-printable: `=C3=B6`.
fn decode_quoted(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(|_| *first == b'=') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    crate::encoding::decode(&bytes, usize::MAX).text
}
