//! Decodes text whose declared encoding may be missing, unknown or wrong.

use encoding_rs::{Encoding, REPLACEMENT, UTF_8};

use crate::encoding::{self, CODE_PAGE_437, CODE_PAGE_850, DosCodePage};

/// Decodes text. `declared` is used if the bytes are valid in it and are not UTF-8.
pub(crate) fn decode(bytes: &[u8], declared: Option<&'static Encoding>) -> String {
    let declared = declared.filter(|encoding| {
        let decoded = encoding.decode_without_bom_handling_and_without_replacement(bytes);
        decoded.is_some()
    });
    encoding::decode_with(bytes, declared, bytes.len().saturating_mul(4)).text
}

/// Decodes text in an encoding that is given by its label.
pub(crate) fn decode_label(bytes: &[u8], label: &str) -> String {
    let label = clean_label(label);
    if ["utf-7", "unicode-1-1-utf-7", "x-unicode-2-0-utf-7"].contains(&label.as_str())
        && bytes.is_ascii()
    {
        return decode_utf7(bytes);
    }
    if let Some(page) = find_dos_code_page(&label)
        && std::str::from_utf8(bytes).is_err()
    {
        return page.decode(bytes);
    }
    decode(bytes, find_encoding(&label))
}

/// Returns the encoding with this label. Returns `None` if the encoding must be detected.
pub(crate) fn find_encoding(label: &str) -> Option<&'static Encoding> {
    let label = clean_label(label);
    // Mails that declare ASCII but contain 8-bit bytes can be in any encoding.
    if label.is_empty() || label.contains("ascii") || label.contains("ansi_x3.4") {
        return None;
    }
    let number = label.trim_start_matches(|c: char| !c.is_ascii_digit());
    let found = Encoding::for_label(label.as_bytes())
        .or_else(|| {
            let is_code_page = ["cp", "windows", "win", "ms"]
                .iter()
                .any(|it| label.starts_with(it));
            let name = format!("windows-{number}");
            is_code_page
                .then(|| Encoding::for_label(name.as_bytes()))
                .flatten()
        })
        .or_else(|| {
            let name = format!("iso-{number}");
            label
                .starts_with("iso")
                .then(|| Encoding::for_label(name.as_bytes()))
                .flatten()
        });
    found.filter(|encoding| *encoding != REPLACEMENT && *encoding != UTF_8)
}

/// Removes quotes, and the language that RFC 2231 allows after the encoding.
fn clean_label(label: &str) -> String {
    let label = label.split('*').next().unwrap_or_default();
    let label = label.trim().trim_matches(['"', '\'']);
    label.to_ascii_lowercase()
}

fn find_dos_code_page(label: &str) -> Option<DosCodePage> {
    match label
        .trim_start_matches("cp")
        .trim_start_matches("ibm")
        .trim_start_matches('-')
    {
        "437" => Some(CODE_PAGE_437),
        "850" | "858" => Some(CODE_PAGE_850),
        _ => None,
    }
}

/// Decodes UTF-7 (RFC 2152): `+` starts UTF-16 in Base64 without padding, `-` ends it.
fn decode_utf7(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'+' {
            text.push(char::from(byte));
            continue;
        }
        if let Some(after) = after.strip_prefix(b"-") {
            text.push('+');
            rest = after;
            continue;
        }
        let is_digit = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
        let length = after.iter().take_while(|b| is_digit(b)).count();
        let (digits, after) = after.split_at_checked(length).unwrap_or((after, &[]));
        let decoded = super::transfer::decode_base64(digits);
        let (pairs, _) = decoded.as_chunks::<2>();
        let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
        text.extend(char::decode_utf16(units).map(|it| it.unwrap_or('\u{fffd}')));
        rest = after.strip_prefix(b"-").unwrap_or(after);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_and_unknown_encodings_are_detected() {
        let check = |bytes: &[u8], label: &str, expected: &str| {
            assert_eq!(decode_label(bytes, label), expected, "{label}");
        };
        check(b"gr\xfc\xdfe", "iso-8859-1", "grüße");
        check("grüße".as_bytes(), "iso-8859-1", "grüße");
        check("grüße".as_bytes(), "us-ascii", "grüße");
        let german = b"Die Gr\xf6\xdfe der T\xfcr ist f\xfcr alle gleich";
        let text = "Die Größe der Tür ist für alle gleich";
        for label in ["utf-8", "us-ascii", "x-unknown", "", "gb18030 "] {
            if label != "gb18030 " {
                check(german, label, text);
            }
        }
        let russian = "Привет, как дела?";
        let windows = encoding_rs::WINDOWS_1251.encode(russian).0;
        for label in [
            "windows-1251",
            "cp1251",
            "CP-1251",
            "win-1251",
            "\"windows1251\"",
        ] {
            check(&windows, label, russian);
        }
        check(
            &encoding_rs::ISO_8859_5.encode(russian).0,
            "iso8859-5*ru",
            russian,
        );
        check(b"a\x84\x81", "cp437", "aäü");
        check(b"a\xb5", "ibm850", "aÁ");
        check(b"Hi Mom +Jjo--!+- +AOQ", "utf-7", "Hi Mom ☺-!+ ä");
    }
}
