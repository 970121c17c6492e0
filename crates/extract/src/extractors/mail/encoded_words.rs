//! Encoded words in headers (RFC 2047): `=?utf-8?Q?Gr=C3=BC=C3=9Fe?=`.

use super::{charset, transfer};

/// The standard allows 75 bytes, but some programs write the whole field as one word.
const WORD_BYTES_MAX: usize = 8192;
const LABEL_BYTES_MAX: usize = 40;

/// An encoded word whose bytes are not yet decoded to characters.
struct EncodedWord {
    label: String,
    bytes: Vec<u8>,
}

/// Decodes all encoded words in a text, including those in quotes and next to other characters.
/// White space between two encoded words is removed. A character can be split between them.
pub(crate) fn decode(text: &str) -> String {
    if !text.contains("=?") {
        return text.to_string();
    }
    let mut decoded = String::new();
    let mut pending: Option<EncodedWord> = None;
    let mut rest = text;
    while let Some(at) = rest.find("=?") {
        let (before, from) = rest.split_at(at);
        let parsed = parse_word(from);
        let (literal, after) = match &parsed {
            Some((_, after)) => (before, *after),
            None => rest.split_at(at + 2),
        };
        if parsed.is_none() || !literal.trim().is_empty() || pending.is_none() {
            flush(&mut decoded, pending.take());
            decoded.push_str(literal);
        }
        rest = after;
        let Some((word, _)) = parsed else {
            continue;
        };
        match &mut pending {
            Some(previous) if previous.label.eq_ignore_ascii_case(&word.label) => {
                previous.bytes.extend_from_slice(&word.bytes);
            }
            _ => {
                flush(&mut decoded, pending.take());
                pending = Some(word);
            }
        }
    }
    flush(&mut decoded, pending);
    decoded.push_str(rest);
    decoded
}

fn flush(decoded: &mut String, word: Option<EncodedWord>) {
    if let Some(word) = word {
        decoded.push_str(&charset::decode_label(&word.bytes, &word.label));
    }
}

/// Parses the encoded word at the start of a text. Returns the rest of the text. The terminator can
/// be missing at the end of the text.
fn parse_word(text: &str) -> Option<(EncodedWord, &str)> {
    let text = text.strip_prefix("=?")?;
    let head = text.get(..text.floor_char_boundary(LABEL_BYTES_MAX + 1))?;
    let (label, rest) = text.split_at(head.find('?')?);
    let rest = rest.get(1..)?;
    let valid = |c: char| c.is_ascii_graphic() && !matches!(c, '=' | '<' | '>' | '"');
    if label.is_empty() || !label.chars().all(valid) {
        return None;
    }
    let (encoding, rest) = rest.split_once('?')?;
    let is_base64 = match encoding {
        "B" | "b" => true,
        "Q" | "q" => false,
        _ => return None,
    };
    let end = rest.floor_char_boundary(WORD_BYTES_MAX);
    let (content, after) = match rest.get(..end)?.find("?=") {
        // `=?utf-8?Q?=41?=`: the first `?=` can be the start of the content.
        Some(0) if !is_base64 => match rest.get(2..).and_then(|rest| rest.find("?=")) {
            Some(at) if !rest.get(2..2 + at)?.contains(' ') => rest.split_at(at + 2),
            _ => rest.split_at(0),
        },
        Some(at) => rest.split_at(at),
        None if rest.len() == end && !rest.contains(' ') => (rest, ""),
        None => return None,
    };
    let bytes = if is_base64 {
        transfer::decode_base64(content.as_bytes())
    } else {
        transfer::decode_quoted_printable(content.replace('_', " ").as_bytes())
    };
    let label = label.split('*').next().unwrap_or_default().to_string();
    Some((
        EncodedWord { label, bytes },
        after.strip_prefix("?=").unwrap_or(after),
    ))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn encoded_words_are_decoded() {
        let check = |text: &str, expected: &str| assert_eq!(decode(text), expected, "{text}");
        check("a =?iso-8859-1?Q?Gr=FC=DFe?= b", "a Grüße b");
        check("=?UTF-8?q?a_b=5F?=", "a b_");
        check("=?utf-8*de?B?w6Q?=", "ä");
        // Words next to each other, and a character that is split between two.
        check("=?utf-8?Q?a?= =?utf-8?Q?b?=", "ab");
        check("=?utf-8?B?4pw=?=\t =?utf-8?B?kw==?=", "✓");
        check("=?utf-8?Q?=E2=9C?= =?utf-8?Q?=93?=", "✓");
        check("=?utf-8?Q?a?= =?iso-8859-1?Q?=FC?=", "aü");
        check("=?utf-8?Q?a?= b =?utf-8?Q?c?=", "a b c");
        // Damaged words.
        check("=?utf-8?Q?=41?=", "A");
        check("=?utf-8?Q?a b?=", "a b");
        check("=?utf-8?Q?cut=C3=A4", "cutä");
        check("=?utf-8?X?a?=", "=?utf-8?X?a?=");
        check("=?utf-8?Q?", "");
        check("a =? b", "a =? b");
        check("=?unknown-8bit?Q?=C3=A4?=", "ä");
        check("\"=?utf-8?Q?=C3=A4?=\"<x>", "\"ä\"<x>");
        check("=?utf-8?Q??= x", " x");
    }
}
