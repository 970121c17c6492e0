//! Subtitles: SubRip, WebVTT, SubStation Alpha and MicroDVD, without times and styles. Sources:
//! <https://www.w3.org/TR/webvtt1/>, <https://wiki.videolan.org/SubStation_Alpha/>.

use crate::encoding;
use crate::error::ExtractError;
use crate::format::{Input, split_extension, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

/// Returns `true` for MicroDVD, and for WebVTT with any name.
pub(crate) fn is_subtitles(input: &Input<'_>) -> bool {
    // The extension is ambiguous: it is also that of pictures.
    let is_named = split_extension(input.name).is_some_and(|it| it.eq_ignore_ascii_case("sub"));
    let head = take_prefix(input.bytes, 64);
    let is_frame = matches!(head, [b'{', digit, ..] if digit.is_ascii_digit());
    (is_named && is_frame) || head.starts_with(b"WEBVTT")
}

/// Extracts the spoken lines.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let source = encoding::decode(input.bytes, limits.text_bytes_max);
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let is_script = source.text.contains("[Script Info]");
    let (mut title, mut is_hidden, mut last) = (None, false, String::new());
    let mut lines = source.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        limits.check_deadline_at_line(number)?;
        let line = line.trim().trim_start_matches('\u{feff}');
        let is_cue_name = lines.peek().is_some_and(|(_, next)| next.contains(" --> "));
        let shown = if is_script {
            if let Some(value) = line.strip_prefix("Title:") {
                title = clean_property(value);
            }
            // Nine fields precede the text.
            let event = line.strip_prefix("Dialogue:");
            event
                .and_then(|event| event.splitn(10, ',').nth(9))
                .unwrap_or_default()
        } else if line.is_empty() {
            is_hidden = false;
            continue;
        } else if line.contains(" --> ") || is_cue_name || line.starts_with("WEBVTT") {
            continue;
        } else {
            is_hidden |= ["NOTE", "STYLE", "REGION"].contains(&line) || line.starts_with("NOTE ");
            if is_hidden { "" } else { line }
        };
        let shown = remove_styles(shown);
        // Captions that appear word by word repeat the preceding line.
        if !shown.is_empty() && shown != last {
            text.push_words(&shown);
            text.separate(Separator::Line);
            last = shown;
        }
    }
    let mut document = text.into_document(DocumentKind::Text, source.truncated);
    document.title = title;
    Ok(document)
}

/// Removes tags, and codes in braces. `\N` and `|` are line breaks.
fn remove_styles(line: &str) -> String {
    let (mut shown, mut close) = (String::new(), None);
    let line = line
        .replace("\\N", " ")
        .replace("\\n", " ")
        .replace("\\h", " ");
    for character in line.chars() {
        match (close, character) {
            (Some(end), it) if it == end => close = None,
            (Some(_), _) => {}
            (None, '<') => close = Some('>'),
            (None, '{') => close = Some('}'),
            (None, '|') => shown.push(' '),
            (None, it) => shown.push(it),
        }
    }
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use crate::fixtures::extract_documents;

    #[test]
    fn spoken_lines_are_read() {
        let check = |name: &str, source: &str, text: &str| {
            assert_eq!(
                extract_documents(name, source.as_bytes())[0].text,
                text,
                "{name}"
            );
        };
        check(
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\nthere\n\n2\n00:00:03,000 --> 00:00:04,000\n42\n",
            "Hello\nthere\n42",
        );
        check(
            "a.vtt",
            "WEBVTT\n\nNOTE hidden\nmore\n\nname\n00:01.000 --> 00:02.000\n<v Ada>Hello\n",
            "Hello",
        );
        check(
            "a.ass",
            "[Script Info]\nTitle: Film\n[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\i1}Hello{\\i0}, you\\Nthere",
            "Hello, you there",
        );
        check("a.sub", "{10}{20}Hello|there", "Hello there");
    }
}
