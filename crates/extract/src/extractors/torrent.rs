//! Torrents: the name, the files and the comment. Source:
//! <https://www.bittorrent.org/beps/bep_0003.html>.

use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

const FORMAT: &str = "torrent";
/// The maximum length of a string. Longer ones are checksums.
const TEXT_BYTES_MAX: usize = 4096;
/// The number of tokens between two checks of the deadline.
const TOKENS_PER_CHECK: u32 = 4096;

/// Returns `true` if the file begins with a dictionary whose first key is that of a torrent.
pub(crate) fn is_torrent(input: &Input<'_>) -> bool {
    let starts: [&[u8]; 5] = [
        b"d8:announce",
        b"d13:announce-list",
        b"d10:created by",
        b"d7:comment",
        b"d4:info",
    ];
    starts.iter().any(|start| input.bytes.starts_with(start))
}

/// Extracts the texts of known keys. Tokens are read in order, because the nesting is irrelevant.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let mut reader = TorrentReader {
        text: TextBuilder::new(limits.text_bytes_max),
        document: ExtractedDocument::new(DocumentKind::Text, String::new()),
        key: String::new(),
        is_path: false,
    };
    let (mut rest, mut steps) = (input.bytes, 0u32);
    while let Some((first, after)) = rest.split_first() {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(TOKENS_PER_CHECK) {
            limits.check_deadline()?;
        }
        rest = match first {
            b'd' | b'l' => after,
            b'e' => {
                reader.end_list();
                after
            }
            b'i' => {
                let end = memchr::memchr(b'e', after).unwrap_or(after.len());
                reader.read_number(after.get(..end).unwrap_or_default());
                after.get(end + 1..).unwrap_or_default()
            }
            _ => {
                let (string, after) = split_string(rest)
                    .ok_or_else(|| ExtractError::malformed(FORMAT, "a string is cut"))?;
                reader.read_string(string);
                after
            }
        };
    }
    let text = reader.text.finish();
    Ok(ExtractedDocument {
        text: text.text,
        truncated: text.truncated,
        ..reader.document
    })
}

/// What was read so far.
struct TorrentReader {
    text: TextBuilder,
    document: ExtractedDocument,
    /// The last key, until its value was read.
    key: String,
    /// `true` in the list of the components of a path.
    is_path: bool,
}

impl TorrentReader {
    fn end_list(&mut self) {
        if std::mem::take(&mut self.is_path) {
            self.text.separate(Separator::Line);
        }
    }

    fn read_number(&mut self, digits: &[u8]) {
        if self.key == "creation date" {
            self.document.metadata.date_ms = parse_seconds(digits);
        }
        self.key.clear();
    }

    fn read_string(&mut self, string: &[u8]) {
        if string.len() > TEXT_BYTES_MAX {
            self.key.clear();
            return;
        }
        let value = encoding::decode(string, TEXT_BYTES_MAX).text;
        let has_text = matches!(self.key.as_str(), "name" | "comment" | "created by");
        if self.is_path || has_text {
            self.read_value(&value);
        } else {
            self.is_path = value == "path";
            if self.is_path {
                self.text.separate(Separator::Line);
            }
            self.key = value;
        }
    }

    fn read_value(&mut self, value: &str) {
        self.text.push_words(value);
        self.text.separate(if self.is_path {
            Separator::Space
        } else {
            Separator::Line
        });
        match self.key.as_str() {
            "name" => self.document.title = clean_property(value),
            "comment" => self.document.metadata.description = clean_property(value),
            _ => {}
        }
        self.key.clear();
    }
}

/// Parses a time in seconds. Returns milliseconds.
fn parse_seconds(digits: &[u8]) -> Option<i64> {
    let seconds: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    seconds.checked_mul(1000)
}

/// Splits a length-prefixed string: `4:name`.
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', bytes.get(..12).unwrap_or(bytes))?;
    let length: usize = std::str::from_utf8(bytes.get(..colon)?)
        .ok()?
        .parse()
        .ok()?;
    bytes.get(colon + 1..)?.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{extract_documents, extract_outputs};

    #[test]
    fn names_are_read() {
        let source = b"d8:announce10:http://x/y7:comment5:Words13:creation datei1714953600e4:infod5:filesld6:lengthi1e4:pathl3:dir5:a.txteee4:name6:A filme e";
        let source = &source[..source.len() - 2];
        let source = [source, b"ee"].concat();
        let documents = extract_documents("a.torrent", &source);
        assert_eq!(documents[0].text, "Words\ndir a.txt\nA film");
        assert_eq!(documents[0].title.as_deref(), Some("A film"));
        assert_eq!(documents[0].metadata.date_ms, Some(1_714_953_600_000));
        assert!(extract_outputs("a.torrent", b"d8:announce99:x").1.is_err());
    }
}
