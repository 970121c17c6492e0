//! Escape sequences in the strings of JSON, YAML, TOML and Java properties.

/// Decodes the escape sequences of a source, including `\"` and `\\`: the text is not parsed again.
pub(super) fn decode_escapes(source: String) -> String {
    if !source.contains('\\') {
        return source;
    }
    let (mut decoded, mut rest) = (String::with_capacity(source.len()), source.as_str());
    while let Some((before, escape)) = rest.split_once('\\') {
        decoded.push_str(before);
        rest = decode_escape(escape, &mut decoded);
    }
    decoded.push_str(rest);
    decoded
}

/// Appends the decoded escape sequence. Returns the rest of the text.
fn decode_escape<'t>(text: &'t str, decoded: &mut String) -> &'t str {
    let Some(kind) = text.chars().next() else {
        decoded.push('\\');
        return text;
    };
    let rest = text.get(kind.len_utf8()..).unwrap_or_default();
    match kind {
        'n' | 'r' => decoded.push('\n'),
        't' => decoded.push('\t'),
        '"' | '\\' | '/' => decoded.push(kind),
        'u' => {
            if let Some((character, rest)) = decode_utf16(rest) {
                decoded.push(character);
                return rest;
            }
            decoded.push_str("\\u");
        }
        'x' | 'U' => {
            let length = if kind == 'x' { 2 } else { 8 };
            let code = rest
                .get(..length)
                .and_then(|digits| u32::from_str_radix(digits, 16).ok());
            if let Some(character) = code.and_then(char::from_u32) {
                decoded.push(character);
                return rest.get(length..).unwrap_or_default();
            }
            decoded.push('\\');
            decoded.push(kind);
        }
        other => {
            decoded.push('\\');
            decoded.push(other);
        }
    }
    rest
}

/// Decodes the code units at the start of the text. Returns the character and the rest of the text.
fn decode_utf16(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let (first, rest) = (unit(text)?, text.get(4..)?);
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, rest));
    }
    let low = rest.strip_prefix("\\u")?;
    let units = [first, unit(low)?];
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((character, low.get(4..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        let check = |text: &str, decoded: &str| assert_eq!(decode_escapes(text.into()), decoded);
        check(r#"{"a": "caf\u00e9 \ud83d\ude00"}"#, r#"{"a": "café 😀"}"#);
        check(r#""one\ntwo\t\"x\" \\ \/""#, "\"one\ntwo\t\"x\" \\ /\"");
        check(r"\xe4\U0001F600", "ä😀");
        for same in [r"\ud83d", r"\u12", r"\uzzzz", r"\", r"\d+", r"\é", r"\xé"] {
            check(same, same);
        }
    }
}
