//! Header fields with parameters (RFC 2045, 2231).

use std::borrow::Cow;

use super::{charset, encoded_words};

/// The maximum number of parameters of a field.
const PARAMETERS_MAX: usize = 200;

/// A header field with parameters: `Content-Type` or `Content-Disposition`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParameterizedField {
    /// The lower-case value before the parameters, for example `text/plain`.
    pub(crate) value: String,
    /// The parameters with lower-case names, in order, decoded.
    parameters: Vec<(String, String)>,
}

impl ParameterizedField {
    /// Parses a value. Decodes continuations and encodings of RFC 2231, and encoded words, which
    /// many programs write although the standard forbids them here.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = split_unquoted(text, ';').into_iter();
        let value = parts.next().unwrap_or_default();
        let value = value.split_whitespace().next().unwrap_or_default();
        let raw = parts.filter_map(|part| RawParameter::parse(&part));
        let raw: Vec<RawParameter> = raw.take(PARAMETERS_MAX).collect();
        ParameterizedField {
            value: value.to_ascii_lowercase(),
            parameters: join_continuations(raw),
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn main_type(&self) -> &str {
        self.value.split('/').next().unwrap_or_default()
    }
}

/// A parameter as written: `filename*1*=%20b`.
struct RawParameter {
    name: String,
    /// The number of the continuation.
    section: Option<u32>,
    /// The value is percent-encoded.
    extended: bool,
    value: String,
}

impl RawParameter {
    fn parse(part: &str) -> Option<Self> {
        let (name, value) = part.split_once('=')?;
        let mut name = name.trim().to_ascii_lowercase();
        let extended = name.ends_with('*');
        if extended {
            name.pop();
        }
        let mut section = None;
        if let Some((base, number)) = name.split_once('*') {
            section = number.parse().ok();
            name = base.to_string();
        }
        Some(RawParameter {
            name,
            section,
            extended,
            value: unquote(value.trim()).into_owned(),
        })
    }
}

/// Joins the continuations of parameters. The encoded form of a parameter replaces its plain form,
/// which exists for old programs.
fn join_continuations(raw: Vec<RawParameter>) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for parameter in &raw {
        if !names.contains(&parameter.name.as_str()) {
            names.push(&parameter.name);
        }
    }
    for name in names {
        let same = || raw.iter().filter(|parameter| parameter.name == name);
        let mut sections: Vec<&RawParameter> = same().filter(|it| it.section.is_some()).collect();
        sections.sort_by_key(|it| it.section);
        let whole = same().find(|it| it.section.is_none() && it.extended);
        let plain = same().find(|it| it.section.is_none() && !it.extended);
        let value = match (whole, sections.is_empty(), plain) {
            (Some(whole), ..) => decode_extended(&[whole]),
            (None, false, _) => decode_extended(&sections),
            (None, true, Some(plain)) => encoded_words::decode(&plain.value),
            (None, true, None) => continue,
        };
        joined.push((name.to_string(), value));
    }
    joined
}

/// Decodes `charset'language'percent-encoded`. Each section may be encoded or plain.
fn decode_extended(sections: &[&RawParameter]) -> String {
    let mut bytes = Vec::new();
    let mut label = String::new();
    for (number, section) in sections.iter().enumerate() {
        let mut value = section.value.as_str();
        if !section.extended {
            bytes.extend_from_slice(value.as_bytes());
            continue;
        }
        let mut quoted = value.splitn(3, '\'');
        if number == 0
            && let (Some(charset), Some(_), Some(rest)) =
                (quoted.next(), quoted.next(), quoted.next())
        {
            label = charset.to_string();
            value = rest;
        }
        append_percent_decoded(&mut bytes, value);
    }
    let text = charset::decode_label(&bytes, &label);
    // Some programs split encoded words over the sections.
    encoded_words::decode(&text)
}

fn append_percent_decoded(bytes: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = (byte == b'%').then(|| after.split_at_checked(2)).flatten();
        let decoded = digits.and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = decoded.unwrap_or((byte, after));
        bytes.push(byte);
        rest = after;
    }
}

/// Splits at a separator outside of quoted strings.
pub(crate) fn split_unquoted(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for character in text.chars() {
        if character == separator && !quoted {
            parts.push(String::new());
            continue;
        }
        if escaped {
            escaped = false;
        } else {
            quoted ^= character == '"';
            escaped = quoted && character == '\\';
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    parts
}

/// Returns the content of a quoted string. An unquoted value is returned unchanged.
fn unquote(value: &str) -> Cow<'_, str> {
    let Some(quoted) = value.strip_prefix('"') else {
        return Cow::Borrowed(value);
    };
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            // Only escaped quotes and backslashes are decoded, because Windows paths contain
            // backslashes.
            '\\' => match characters.clone().next() {
                Some(next @ ('"' | '\\')) => {
                    text.push(next);
                    characters.next();
                }
                _ => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let check = |text: &str, name: &str, expected: &str| {
            let parsed = ParameterizedField::parse(text);
            assert_eq!(parsed.parameter(name), Some(expected), "{text}");
        };
        check("a/b; name=x.txt", "name", "x.txt");
        check(r#"a/b; Name="a;\"b\".txt" ; c=d"#, "name", r#"a;"b".txt"#);
        check(r#"a; filename="C:\dir\x""#, "filename", r"C:\dir\x");
        check(
            "a; filename*=utf-8''gr%C3%BC%C3%9Fe.txt",
            "filename",
            "grüße.txt",
        );
        check(
            "a; filename=x; filename*=iso-8859-1'de'%FC",
            "filename",
            "ü",
        );
        check(
            "a; filename*1*=%A4.txt; filename*0*=utf-8''a%C3; filename*2=\"b\"",
            "filename",
            "aä.txtb",
        );
        check("a; name=\"=?utf-8?B?w6Q=?=.txt\"", "name", "ä.txt");
        check("a; name=%zz; x", "name", "%zz");
        assert_eq!(
            ParameterizedField::parse(" Text/Plain ; x").value,
            "text/plain"
        );
        assert_eq!(ParameterizedField::parse(""), ParameterizedField::default());
    }
}
