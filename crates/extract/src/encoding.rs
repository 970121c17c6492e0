//! Detection and decoding of character encodings.

mod dos;
mod unicode;
mod western;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

pub(crate) use dos::{CODE_PAGE_437, CODE_PAGE_850, DosCodePage};
use unicode::{decode_utf32, detect_utf16, detect_utf32};

/// Length of the sample that distinguishes text from binary data.
const SAMPLE_BYTES: usize = 8192;
/// Length of the sample for the encoding detector. It starts shortly before the first byte that is
/// not ASCII, because ASCII bytes carry no information about the encoding.
const DETECTOR_BYTES: usize = 32 << 10;
const DETECTOR_CONTEXT_BYTES: usize = 512;

/// Bytes that are searched for a declared encoding. The HTML standard requires it within 1,024
/// bytes, but many pages do not comply.
const DECLARATION_BYTES: usize = 4096;

/// The number of bytes that are searched for an editor's declaration of the encoding.
const CODING_BYTES: usize = 512;

/// A text with a limited length.
#[derive(Debug, PartialEq)]
pub(crate) struct BoundedText {
    pub(crate) text: String,
    /// The text exceeded the limit and was truncated.
    pub(crate) truncated: bool,
}

impl BoundedText {
    /// Creates a text without trailing white space.
    pub(crate) fn from_trimmed(mut text: String, truncated: bool) -> Self {
        text.truncate(text.trim_end().len());
        BoundedText { text, truncated }
    }
}

/// Returns `true` if `label` is the name of a character encoding in the WHATWG standard.
///
/// ```
/// assert!(windrow_extract::is_charset("latin1"));
/// assert!(!windrow_extract::is_charset("latin"));
/// ```
pub fn is_charset(label: &str) -> bool {
    Encoding::for_label(label.as_bytes()).is_some()
}

/// Decodes at most `bytes_max` bytes.
pub(crate) fn decode(bytes: &[u8], bytes_max: usize) -> BoundedText {
    decode_with(bytes, None, bytes_max)
}

/// Like [`decode`]. `declared` is the encoding that the document declares. It is used if the bytes
/// have no byte order mark and are not UTF-8.
pub(crate) fn decode_with(
    bytes: &[u8],
    declared: Option<&'static Encoding>,
    bytes_max: usize,
) -> BoundedText {
    let prefix = bytes.get(..bytes_max).unwrap_or(bytes);
    let cut = prefix.len() < bytes.len();
    let mut text = decode_prefix(prefix, declared, cut);
    let too_long = truncate(&mut text, bytes_max);
    BoundedText {
        text,
        truncated: cut || too_long,
    }
}

/// Returns the encoding that a `meta` element or XML declaration declares.
pub(crate) fn find_declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes
        .get(..DECLARATION_BYTES)
        .unwrap_or(bytes)
        .to_ascii_lowercase();
    ["charset=", "encoding="].iter().find_map(|key| {
        let at = memchr::memmem::find(&head, key.as_bytes())? + key.len();
        let rest = head.get(at..)?.trim_ascii_start();
        let label = rest
            .split(|byte| matches!(byte, b'"' | b'\'' | b'>' | b';' | b'/' | b'?' | b' '))
            .find(|part| !part.is_empty())?;
        Encoding::for_label(label)
    })
}

/// Returns the encoding that an editor's comment declares: `-*- coding: latin-1 -*-` or `%!TEX
/// encoding = latin1`.
pub(crate) fn find_coding_comment(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..CODING_BYTES).unwrap_or(bytes);
    let at = memchr::memmem::find(head, b"coding")? + b"coding".len();
    let rest = head.get(at..)?.trim_ascii_start();
    let value = rest
        .strip_prefix(b":")
        .or_else(|| rest.strip_prefix(b"="))?;
    let label = value
        .trim_ascii_start()
        .split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')))
        .next()?;
    Encoding::for_label(label)
}

/// Decodes bytes. NUL bytes become spaces: they come from damaged disks and from fixed-length
/// fields.
fn decode_prefix(bytes: &[u8], declared: Option<&'static Encoding>, cut: bool) -> String {
    let text = decode_characters(bytes, declared, cut);
    match memchr::memchr(0, text.as_bytes()) {
        Some(_) => text.replace('\0', " "),
        None => text,
    }
}

fn decode_characters(bytes: &[u8], declared: Option<&'static Encoding>, cut: bool) -> String {
    if let Some(order) = detect_utf32(bytes) {
        return decode_utf32(bytes, order);
    }
    if let Some((encoding, bom_bytes)) = Encoding::for_bom(bytes) {
        let rest = bytes.get(bom_bytes..).unwrap_or_default();
        return encoding.decode_without_bom_handling(rest).0.into_owned();
    }
    let declared = declared.filter(|encoding| *encoding != UTF_8);
    // ISO-2022-JP consists of ASCII bytes, so only its escape sequences distinguish it from UTF-8.
    let is_iso_2022 = memchr::memmem::find(bytes, b"\x1b$").is_some();
    if !is_iso_2022 && let Some(text) = decode_utf8(bytes, cut) {
        return text.to_string();
    }
    let known = declared.or_else(|| detect_utf16(bytes));
    match known.unwrap_or_else(|| detect_encoding(bytes)) {
        encoding if encoding == WINDOWS_1252 && known.is_none() => {
            western::decode(bytes).into_owned()
        }
        encoding => encoding.decode_without_bom_handling(bytes).0.into_owned(),
    }
}

/// Returns the bytes as UTF-8, without an incomplete character at the cut.
fn decode_utf8(bytes: &[u8], cut: bool) -> Option<&str> {
    let is_not_utf16 = detect_utf16(bytes).is_none();
    match std::str::from_utf8(bytes) {
        Ok(text) if is_not_utf16 => Some(text),
        Err(error) if cut && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()
        }
        _ => None,
    }
}

fn detect_encoding(bytes: &[u8]) -> &'static Encoding {
    let not_ascii = bytes
        .iter()
        .position(|byte| !byte.is_ascii() || *byte == b'\x1b');
    let start = not_ascii
        .unwrap_or(0)
        .saturating_sub(DETECTOR_CONTEXT_BYTES);
    let rest = bytes.get(start..).unwrap_or_default();
    let sample = rest.get(..DETECTOR_BYTES).unwrap_or(rest);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, sample.len() == rest.len());
    detector.guess(None, Utf8Detection::Allow)
}

/// Returns `true` if the bytes are not text in any encoding, because many are control characters.
/// Single NUL bytes do not make a file binary.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let is_unicode = Encoding::for_bom(sample).is_some()
        || detect_utf32(sample).is_some()
        || detect_utf16(sample).is_some();
    // Formatted manual pages use backspace for bold, terminal output uses escape for colors.
    let is_control = |byte: &u8| matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127);
    let controls = sample.iter().filter(|byte| is_control(byte)).count();
    // Every tenth byte of compressed data is a control character.
    !is_unicode && controls * 20 > sample.len()
}

/// Returns `true` if the beginning of a text is in UTF-16 or UTF-32, whose code units have several
/// bytes.
pub(crate) fn is_utf16_or_utf32(bytes: &[u8]) -> bool {
    let mark = Encoding::for_bom(bytes).filter(|(encoding, _)| *encoding != UTF_8);
    mark.is_some() || detect_utf32(bytes).is_some() || detect_utf16(bytes).is_some()
}

/// Truncates `text` to at most `bytes_max` bytes at a character boundary. Returns `true` if it was
/// longer.
pub(crate) fn truncate(text: &mut String, bytes_max: usize) -> bool {
    if text.len() <= bytes_max {
        return false;
    }
    text.truncate(text.floor_char_boundary(bytes_max));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        let expected_text = BoundedText {
            text: expected.to_string(),
            truncated: false,
        };
        assert_eq!(decode(bytes, 1 << 20), expected_text);
        assert!(!is_binary(bytes), "{expected}");
    }

    #[test]
    fn encodings_are_detected() {
        let text = "Größe: 20 µm, naïve café";
        check(text.as_bytes(), text);
        check(&[b"\xef\xbb\xbf", text.as_bytes()].concat(), text);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&[b"\xff\xfe", &little[..]].concat(), text);
        check(&[b"\xfe\xff", &big[..]].concat(), text);
        check(&little, text);
        check(&big, text);
        check(
            b"Die Gr\xf6\xdfe der T\xfcr ist f\xfcr alle gleich",
            "Die Größe der Tür ist für alle gleich",
        );
        let russian = "Привет, как дела? Всё хорошо, спасибо за вопрос.";
        check(&encoding_rs::WINDOWS_1251.encode(russian).0, russian);
        let japanese = "日本語の文章はここにあります。とても長いです。";
        check(&encoding_rs::SHIFT_JIS.encode(japanese).0, japanese);
        check(&encoding_rs::ISO_2022_JP.encode(japanese).0, japanese);
        for text in [
            "Привет, как дела?\n",
            "日本語の文章。\n",
            "Ελλάδα και άλλα. \n",
            "中文，没有标记。\n第二行",
        ] {
            let units = || text.encode_utf16();
            check(
                &units().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
                text,
            );
            check(
                &units().flat_map(u16::to_be_bytes).collect::<Vec<u8>>(),
                text,
            );
        }
        for text in [text, japanese] {
            let marked = format!("\u{feff}{text}");
            for text_bytes in [&marked, text] {
                let units = || text_bytes.chars().map(u32::from);
                check(
                    &units().flat_map(u32::to_le_bytes).collect::<Vec<u8>>(),
                    text,
                );
                check(
                    &units().flat_map(u32::to_be_bytes).collect::<Vec<u8>>(),
                    text,
                );
            }
        }
        let korean = "한국어로 쓴 문장입니다. 길이는 충분합니다.";
        check(&encoding_rs::EUC_KR.encode(korean).0, korean);
        let chinese = "这是用简体中文写的一个句子，长度足够检测。";
        check(&encoding_rs::GBK.encode(chinese).0, chinese);
        let polish = "Zażółć gęślą jaźń, proszę bardzo i dziękuję.";
        check(&encoding_rs::WINDOWS_1250.encode(polish).0, polish);
        check(
            b"this was\0written by a program",
            "this was written by a program",
        );
        check(b"", "");
        let late = format!(
            "{}Die Größe der Tür ist für alle gleich",
            "ascii only ".repeat(20_000)
        );
        check(&encoding_rs::WINDOWS_1252.encode(&late).0, &late);
    }

    #[test]
    fn encodings_of_western_europe_are_told_apart() {
        let text = "Die Größe der Tür ist für alle gleich";
        check(b"Die Gr\x94\xe1e der T\x81r ist f\x81r alle gleich", text);
        check(b"Die Gr\x9a\xa7e der T\x9fr ist f\x9fr alle gleich", text);
        let text = "c’est l’été à la “fête” – où ?";
        check(&encoding_rs::WINDOWS_1252.encode(text).0, text);
        let text = "Le cœur et l'œuvre déjà";
        check(b"Le c\xbdur et l'\xbduvre d\xe9j\xe0", text);
        check(b"Le c\x9cur et l'\x9cuvre d\xe9j\xe0", text);
        let quoted = "it’s “only” punctuation…";
        check(&encoding_rs::WINDOWS_1252.encode(quoted).0, quoted);
    }

    #[test]
    fn binary_data_is_detected() {
        assert!(is_binary(b"abc\0def"));
        assert!(!is_binary(b"a line of a log that was cut\0by a crash"));
        assert!(is_binary(b"\x01\x02abc\x03"));
        assert!(!is_binary(b"N\x08NA\x08AM\x08ME\x08E"));
        assert!(!is_binary(b"\x1b[1mbold\x1b[0m"));
    }
}
