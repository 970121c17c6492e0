//! Translations of gettext: sources (`.po`) and compiled catalogues (`.mo`). Source:
//! <https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html>.

use encoding_rs::Encoding;

use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::parse_language;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

const FORMAT: &str = "message catalogue";
const ENTRIES_PER_CHECK: u32 = 4096;

/// Extracts the messages and translations of a source.
pub(crate) fn extract_source(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let declared = find_charset(input.bytes);
    let source = encoding::decode_with(input.bytes, declared, limits.text_bytes_max);
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let mut language = None;
    let mut message = String::new();
    for (number, line) in (0u32..).zip(source.text.lines().chain([""])) {
        if number.is_multiple_of(ENTRIES_PER_CHECK) {
            limits.check_deadline()?;
        }
        let line = line.trim();
        let continues = line.starts_with('"');
        if !continues {
            push_message(&mut text, &mut language, &message);
            message.clear();
        }
        // Comments of translators stay, references and obsolete entries do not.
        if let Some(comment) = line.strip_prefix("# ").or_else(|| line.strip_prefix("#. ")) {
            push_message(&mut text, &mut language, comment);
        } else if continues || line.starts_with("msg") {
            message.push_str(&decode_quoted(line));
        }
    }
    let mut document = text.into_document(DocumentKind::Source, source.truncated);
    document.language = language;
    document.metadata.syntax = Some("gettext".into());
    Ok(document)
}

/// Extracts the messages and translations of a compiled catalogue.
pub(crate) fn extract_compiled(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let declared = find_charset(input.bytes);
    let is_little = input.bytes.starts_with(b"\xde\x12\x04\x95");
    let number = |at: usize| {
        let bytes = *input.bytes.get(at..)?.first_chunk::<4>()?;
        let value = if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        };
        Some(value as usize)
    };
    let header = number(8).zip(number(12)).zip(number(16));
    let ((count, originals), translations) =
        header.ok_or_else(|| ExtractError::malformed(FORMAT, "its header is cut"))?;
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let mut language = None;
    for entry in 0..count {
        if entry % ENTRIES_PER_CHECK as usize == 0 {
            limits.check_deadline()?;
        }
        for table in [originals, translations] {
            let place = table.saturating_add(entry.saturating_mul(8));
            let message = number(place).zip(number(place.saturating_add(4)));
            let bytes =
                message.and_then(|(length, at)| input.bytes.get(at..at.checked_add(length)?));
            let Some(bytes) = bytes else {
                return Err(ExtractError::malformed(
                    FORMAT,
                    "a message is outside the file",
                ));
            };
            // Plural forms are separated by NUL.
            let decoded =
                encoding::decode_with(bytes, declared.or(Some(encoding_rs::UTF_8)), bytes.len());
            push_message(&mut text, &mut language, &decoded.text);
        }
        if text.is_full() {
            break;
        }
    }
    let mut document = text.into_document(DocumentKind::Source, false);
    document.language = language;
    document.metadata.syntax = Some("gettext".into());
    Ok(document)
}

/// Appends a message. The first message is the header.
fn push_message(text: &mut TextBuilder, language: &mut Option<String>, message: &str) {
    if message.contains("Content-Type: text/plain") && message.contains("charset=") {
        let field = message
            .lines()
            .find_map(|line| line.strip_prefix("Language:"));
        *language = field.and_then(parse_language);
        return;
    }
    text.push_words(&message.replace(['&', '_'], ""));
    text.separate(Separator::Line);
}

fn find_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let key = b"charset=";
    let at = memchr::memmem::find(bytes, key)? + key.len();
    let rest = bytes.get(at..)?;
    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    Encoding::for_label(rest.split(is_end).next()?)
}

/// Returns the content of the quotes of a line: `msgid "text\n"`.
fn decode_quoted(line: &str) -> String {
    let content = line
        .split_once('"')
        .and_then(|(_, rest)| rest.rsplit_once('"'));
    let (mut text, mut is_escaped) = (String::new(), false);
    for character in content.map_or("", |(content, _)| content).chars() {
        match character {
            'n' | 't' if is_escaped => text.push('\n'),
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            other => text.push(other),
        }
        is_escaped = false;
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{extract_documents, extract_outputs};

    #[test]
    fn sources_are_read() {
        let source = "# A note\nmsgid \"\"\nmsgstr \"\"\n\"Language: de\\n\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\n\
            #: a.c:1\nmsgid \"&Open \\\"file\\\"\"\nmsgstr \"\"\n\"Datei \"\n\"öffnen\"\n";
        let documents = extract_documents("de.po", source.as_bytes());
        assert_eq!(documents[0].text, "A note\nOpen \"file\"\nDatei öffnen");
        assert_eq!(documents[0].language.as_deref(), Some("de"));
    }

    #[test]
    fn compiled_catalogues_are_read() {
        let mut bytes =
            b"\xde\x12\x04\x95\0\0\0\0\x01\0\0\0\x1c\0\0\0\x24\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend(b"\x04\0\0\0\x2c\0\0\0\x05\0\0\0\x31\0\0\0Open\0Datei\0");
        assert_eq!(extract_documents("de.mo", &bytes)[0].text, "Open\nDatei");
        bytes[40] = 0xff;
        assert_eq!(
            extract_outputs("de.mo", &bytes).1.map_err(|it| it.code()),
            Err("malformed")
        );
        assert_eq!(
            extract_outputs("de.mo", &bytes[..9])
                .1
                .map_err(|it| it.code()),
            Err("malformed")
        );
    }
}
