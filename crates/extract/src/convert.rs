//! The entry points: detect the format, call its reader, emit the documents.

use std::io::BufRead;

use crate::detect::{Format, detect};
use crate::document::{Extracted, Kind, Output, Tally};
use crate::error::ExtractError;
use crate::extraction::{Extraction, Place, guarded};
use crate::limits::Limits;
use crate::{encoding, gzip, html, mail, markdown, mbox, pdf, zip_archive};

/// Emits every document in `bytes`, in the order of the file, and counts them.
///
/// `name` is the file's name or path, which helps to detect the format. Documents that were emitted
/// before an error are valid.
///
/// # Errors
/// Fails with [`ExtractError::Unsupported`] if the file's format has no readable text, and with
/// another error if the file as a whole is invalid. Errors of single members of a container are
/// emitted as [`Output::Failure`].
pub fn extract(
    name: &str,
    bytes: &[u8],
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<Tally, ExtractError> {
    limits.check_input(bytes.len())?;
    let mut extraction = Extraction::new(limits, convert, emit);
    convert(&mut extraction, &Place::file(name), bytes)?;
    Ok(extraction.tally)
}

/// Like [`extract`], for an mbox of any size. Only one message is in memory at a time.
/// [`Limits::input_bytes_max`] limits a message instead of the file.
///
/// # Errors
/// Fails with [`ExtractError::Deadline`], and with [`ExtractError::Malformed`] if `reader` fails.
pub fn extract_mbox(
    reader: &mut dyn BufRead,
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<Tally, ExtractError> {
    let mut extraction = Extraction::new(limits, convert, emit);
    mbox::read(&mut extraction, &Place::file(""), reader)?;
    Ok(extraction.tally)
}

/// How to read a file, depending on its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstLook {
    /// Do not read it. Contains the name of its format, as [`ExtractError::Unsupported`] does.
    Unsupported(&'static str),
    /// Stream it through [`extract_mbox`].
    Mbox,
    /// Read it into memory and call [`extract`].
    Whole,
}

/// Returns how to read the file `name`. `head` are its first bytes; 8 KB are enough.
pub fn first_look(name: &str, head: &[u8]) -> FirstLook {
    match detect(name, head) {
        Format::Unsupported(what) => FirstLook::Unsupported(what),
        Format::Mbox => FirstLook::Mbox,
        _ => FirstLook::Whole,
    }
}

/// Detects the format of bytes and extracts from them. Container readers call it for their members.
fn convert(
    extraction: &mut Extraction<'_>,
    place: &Place,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    extraction.limits.check_deadline()?;
    extraction.limits.check_depth(place.depth)?;
    let limits = &extraction.limits;
    let document = match detect(&place.name, bytes) {
        Format::Unsupported(what) => return Err(ExtractError::Unsupported(what)),
        Format::Gzip => {
            let (inner, bytes) = gzip::unpack(extraction, place, bytes)?;
            return convert(extraction, &inner, &bytes);
        }
        Format::Zip => return zip_archive::read(extraction, place, bytes),
        Format::Mbox => return mbox::read(extraction, place, &mut { bytes }),
        Format::Mail => return mail::read(extraction, place, bytes),
        Format::Pdf => guarded("PDF", || pdf::read(bytes, limits))?,
        Format::Html => guarded("HTML", || html::read(bytes, limits))?,
        Format::Markdown => guarded("Markdown", || markdown::read(bytes, limits))?,
        Format::Source(language) => source(language, bytes, limits),
        Format::Text => plain(Kind::Text, bytes, limits),
    };
    extraction.document(place, document);
    Ok(())
}

fn plain(kind: Kind, bytes: &[u8], limits: &Limits) -> Extracted {
    let (text, truncated) = encoding::decode(bytes, limits.text_bytes_max);
    Extracted {
        truncated,
        ..Extracted::new(kind, text)
    }
}

fn source(language: &str, bytes: &[u8], limits: &Limits) -> Extracted {
    let mut document = plain(Kind::Source, bytes, limits);
    document.fields.syntax = Some(language.to_string());
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{documents, gzip, zip};
    use std::time::{Duration, Instant};

    #[test]
    fn a_plain_file_is_one_document_without_an_inner_path() {
        let all = documents("a.txt", b"words");
        assert_eq!(all, [Extracted::new(Kind::Text, "words".into())]);
        let [code] = &documents("a.rs", b"fn main() {}")[..] else {
            panic!("one document")
        };
        assert_eq!(
            (code.kind, code.fields.syntax.as_deref()),
            (Kind::Source, Some("rust"))
        );
    }

    fn error(name: &str, bytes: &[u8], limits: &Limits) -> ExtractError {
        extract(name, bytes, limits, &mut |_| ()).expect_err(name)
    }

    #[test]
    fn limits_are_errors_that_name_what_and_how_much() {
        let limits = Limits {
            input_bytes_max: 4,
            ..Limits::default()
        };
        let text = error("a.txt", b"12345", &limits).to_string();
        assert_eq!(text, "the size exceeds the limit of 4 bytes");

        let limits = Limits {
            deadline: Some(Instant::now()),
            ..Limits::default()
        };
        assert_eq!(error("a.txt", b"1", &limits), ExtractError::Deadline);
        let later = Some(Instant::now() + Duration::from_secs(60));
        let limits = Limits {
            deadline: later,
            ..Limits::default()
        };
        assert!(extract("a.txt", b"1", &limits, &mut |_| ()).is_ok());
    }

    #[test]
    fn a_slow_receiver_does_not_use_up_the_time_of_the_file() {
        let members = zip(&[("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")]);
        let deadline = Some(Instant::now() + Duration::from_millis(300));
        let limits = Limits {
            deadline,
            ..Limits::default()
        };
        let tally = extract("a.zip", &members, &limits, &mut |_| {
            std::thread::sleep(Duration::from_millis(150));
        });
        assert_eq!(tally.map(|tally| tally.documents), Ok(4));
    }

    #[test]
    fn containers_nest_no_deeper_than_the_limit() {
        let mut bytes = b"words".to_vec();
        for _ in 0..6 {
            bytes = gzip(&bytes);
        }
        assert_eq!(error("a.gz.gz", &bytes, &Limits::default()).code(), "limit");
        assert_eq!(documents("a", &gzip(&gzip(b"words")))[0].text, "words");
    }

    #[test]
    fn a_zip_bomb_ends_at_the_budget_for_the_whole_file() {
        let zeros = vec![b'a'; 3 << 20];
        let layer = zip(&[("1", &zeros), ("2", &zeros), ("3", &zeros)]);
        let bomb = zip(&[("1.zip", &layer), ("2.zip", &layer), ("3.zip", &layer)]);
        let limits = Limits {
            expanded_bytes_max: 10 << 20,
            ..Limits::default()
        };
        let error = error("bomb.zip", &bomb, &limits);
        assert_eq!(
            error.to_string(),
            "all that the file unpacks to exceeds the limit of 10485760 bytes"
        );

        let limits = Limits {
            members_max: 3,
            ..Limits::default()
        };
        assert_eq!(
            extract("b.zip", &bomb, &limits, &mut |_| ()).map_err(|e| e.code()),
            Err("limit")
        );
    }

    #[test]
    fn text_is_cut_at_the_limit_on_a_character() {
        let limits = Limits {
            text_bytes_max: 4,
            ..Limits::default()
        };
        let mut all = Vec::new();
        extract("a.txt", "aé€x".as_bytes(), &limits, &mut |output| {
            all.push(output)
        })
        .unwrap();
        let cut = Extracted {
            truncated: true,
            ..Extracted::new(Kind::Text, "aé".into())
        };
        assert_eq!(all, [Output::Document(Box::new(cut))]);
    }
}
