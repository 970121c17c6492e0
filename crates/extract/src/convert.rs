//! The way through: detect, read, hand out; containers come back here for each member.

use std::collections::HashSet;
use std::io::BufRead;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::detect::{Format, detect};
use crate::document::{Extracted, Kind, MemberFailure, Output, Tally};
use crate::error::ExtractError;
use crate::limits::{Limits, Spent};
use crate::{encoding, gzip, html, mail, markdown, mbox, pdf, zip_archive};

/// Hands every document in `bytes` to `emit`, in the order of the file, and counts them.
///
/// `name` is the file's name or path; only its last component and extension matter. Documents that
/// were handed out before an error stay valid.
///
/// # Errors
/// [`ExtractError::Unsupported`] if the file is of a kind without text: skip it. Others say what is
/// wrong with the file as a whole; what is wrong with one member of a container is an
/// [`Output::Failure`] instead.
pub fn extract(
    name: &str,
    bytes: &[u8],
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<Tally, ExtractError> {
    limits.check_input(bytes.len())?;
    let mut extraction = Extraction::new(limits, emit);
    extraction.convert(&Place::file(name), bytes)?;
    Ok(extraction.tally)
}

/// As [`extract`] for an mbox of any size, of which only one message at a time is in memory.
/// [`Limits::input_bytes_max`] bounds a message instead of the file.
///
/// # Errors
/// [`ExtractError::Deadline`], and [`ExtractError::Malformed`] if `reader` fails.
pub fn extract_mbox(
    reader: &mut dyn BufRead,
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<Tally, ExtractError> {
    let mut extraction = Extraction::new(limits, emit);
    mbox::read(&mut extraction, &Place::file(""), reader)?;
    Ok(extraction.tally)
}

/// How a file is best read, judged by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstLook {
    /// Not at all: the kind by name, as in [`ExtractError::Unsupported`].
    Unsupported(&'static str),
    /// With [`extract_mbox`], in pieces.
    Mbox,
    /// With [`extract`], as a whole.
    Whole,
}

/// Looks at `head`, the first bytes of the file `name`. 8 KB are enough.
pub fn first_look(name: &str, head: &[u8]) -> FirstLook {
    match detect(name, head) {
        Format::Unsupported(what) => FirstLook::Unsupported(what),
        Format::Mbox => FirstLook::Mbox,
        _ => FirstLook::Whole,
    }
}

/// Where the bytes at hand come from.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The name that helps to tell the kind.
    pub(crate) name: String,
    /// See [`Extracted::inner_path`].
    pub(crate) inner_path: Option<String>,
    /// How many containers are around it.
    pub(crate) depth: u32,
}

impl Place {
    fn file(name: &str) -> Self {
        Place {
            name: name.to_string(),
            inner_path: None,
            depth: 0,
        }
    }

    /// The same document under another name, one container deeper: what gzip holds.
    pub(crate) fn unpacked(&self, name: &str) -> Self {
        Place {
            name: name.to_string(),
            inner_path: self.inner_path.clone(),
            depth: self.depth + 1,
        }
    }

    /// The message with this number, from 1, of an mbox.
    pub(crate) fn message(&self, number: u64) -> Self {
        let outer = self.inner_path.as_deref().unwrap_or("");
        Place {
            name: String::new(),
            inner_path: Some(format!("{outer}#{number}")),
            depth: self.depth + 1,
        }
    }
}

/// One call of [`extract`]: its limits, what it has used of them, and where its output goes.
pub(crate) struct Extraction<'a> {
    /// The deadline moves while the receiver of the output keeps us waiting.
    pub(crate) limits: Limits,
    pub(crate) spent: Spent,
    pub(crate) tally: Tally,
    member_paths: HashSet<String>,
    emit: &'a mut dyn FnMut(Output),
}

impl<'a> Extraction<'a> {
    fn new(limits: &Limits, emit: &'a mut dyn FnMut(Output)) -> Self {
        Extraction {
            limits: limits.clone(),
            spent: Spent::default(),
            tally: Tally::default(),
            member_paths: HashSet::new(),
            emit,
        }
    }

    fn convert(&mut self, place: &Place, bytes: &[u8]) -> Result<(), ExtractError> {
        self.limits.check_deadline()?;
        self.limits.check_depth(place.depth)?;
        let limits = &self.limits;
        match detect(&place.name, bytes) {
            Format::Unsupported(what) => Err(ExtractError::Unsupported(what)),
            Format::Gzip => {
                let (inner, bytes) = gzip::unpack(self, place, bytes)?;
                self.convert(&inner, &bytes)
            }
            Format::Zip => zip_archive::read(self, place, bytes),
            Format::Mbox => mbox::read(self, place, &mut { bytes }),
            Format::Mail => mail::read(self, place, bytes),
            Format::Pdf => self.leaf(place, guarded("PDF", || pdf::read(bytes, limits))),
            Format::Html => self.leaf(place, guarded("HTML", || html::read(bytes, limits))),
            Format::Markdown => {
                self.leaf(place, guarded("Markdown", || markdown::read(bytes, limits)))
            }
            Format::Source(language) => self.leaf(place, Ok(source(language, bytes, limits))),
            Format::Text => self.leaf(place, Ok(plain(Kind::Text, bytes, limits))),
        }
    }

    fn leaf(
        &mut self,
        place: &Place,
        read: Result<Extracted, ExtractError>,
    ) -> Result<(), ExtractError> {
        self.document(place, read?);
        Ok(())
    }

    /// Hands out `document` as the one at `place`.
    pub(crate) fn document(&mut self, place: &Place, mut document: Extracted) {
        document.inner_path.clone_from(&place.inner_path);
        self.tally.documents += 1;
        self.hand_out(Output::Document(Box::new(document)));
    }

    fn hand_out(&mut self, output: Output) {
        let begun = Instant::now();
        (self.emit)(output);
        if let Some(deadline) = &mut self.limits.deadline {
            *deadline += begun.elapsed();
        }
    }

    /// The place of a member called `member` of the container at `place`.
    pub(crate) fn member_place(&mut self, place: &Place, member: &str) -> Place {
        let outer = place.inner_path.as_deref().unwrap_or("");
        let path = format!("{outer}!/{member}");
        let numbered = (2u64..).map(|number| format!("{path}~{number}"));
        // Names can repeat in damaged or malicious archives, but paths name one document each.
        let unique = std::iter::once(path.clone())
            .chain(numbered)
            .find(|candidate| !self.member_paths.contains(candidate))
            .unwrap_or(path);
        self.member_paths.insert(unique.clone());
        Place {
            name: member.to_string(),
            inner_path: Some(unique),
            depth: place.depth + 1,
        }
    }

    /// Reads the bytes of a member; its failure is reported and does not end the file.
    ///
    /// # Errors
    /// Those that end the file.
    pub(crate) fn member(&mut self, place: &Place, bytes: &[u8]) -> Result<(), ExtractError> {
        let result = self.convert(place, bytes);
        self.settle(place, result)
    }

    /// Counts what became of the member at `place`.
    ///
    /// # Errors
    /// Those that end the file.
    pub(crate) fn settle(
        &mut self,
        place: &Place,
        result: Result<(), ExtractError>,
    ) -> Result<(), ExtractError> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.ends_file() => Err(error),
            Err(ExtractError::Unsupported(_)) => {
                self.tally.skipped += 1;
                Ok(())
            }
            Err(error) => {
                self.tally.failures += 1;
                let inner_path = place.inner_path.clone().unwrap_or_default();
                self.hand_out(Output::Failure(MemberFailure { inner_path, error }));
                Ok(())
            }
        }
    }
}

/// Turns a library's panic on these bytes into an error.
pub(crate) fn guarded<T>(
    format: &'static str,
    read: impl FnOnce() -> Result<T, ExtractError>,
) -> Result<T, ExtractError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ExtractError::malformed(format, "its reader gave up")))
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
    use std::time::Duration;

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
