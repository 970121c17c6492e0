//! The documents that files become: plain structs, which the writer turns into BSON.
//!
//! ```text
//! files.documents                              files.failures
//! _id          path, or path/inner             _id          as there
//! path         /home/ada/mail.mbox             path
//! inner        #17                             inner
//! title        Bread                           class        malformed
//! kind         mail                            reason       damaged PDF: …
//! text         Flour and water …               size
//! language     en, if MongoDB knows it         modified, modified_ns
//! size         file's size in bytes            failed
//! modified     date of the file
//! modified_ns  the same, exactly; with size it tells whether the file changed
//! indexed      date
//! truncated    true, only if so
//! syntax, author, pages, from, to, cc, subject, date, message_id: only if known
//! ```
//!
//! The size and dates of a failure's file are left out where the file is to be tried again every
//! time: permissions may change while the file does not.
//!
//! `_id` is unique: a path with something below it is a folder, and a folder is no file with
//! members. Deleting by `path` removes all that a file became.

use std::time::{SystemTime, UNIX_EPOCH};

use windrow_extract::{DocumentKind, DocumentMetadata, ExtractedDocument};

use crate::failure::{Failure, FailureClass};
use crate::path_text::path_to_text;
use crate::walk::{Candidate, Stamp, WalkFailure};

/// One document of `files.documents`. Dates are in milliseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct FileDocument {
    pub id: String,
    /// See [`path_to_text`].
    pub path: String,
    pub inner: Option<String>,
    /// Its own title, else the last component of its path or inner path.
    pub title: String,
    pub kind: DocumentKind,
    pub text: String,
    /// A language code that a text index accepts: others would make it refuse the document.
    pub language: Option<String>,
    pub stamp: Stamp,
    pub indexed_ms: i64,
    pub truncated: bool,
    pub fields: DocumentMetadata,
}

/// One document of `files.failures`. Dates are in milliseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureDocument {
    pub id: String,
    pub path: String,
    pub failure: Failure,
    /// None where it may be read next time though nothing of the file has changed.
    pub stamp: Option<Stamp>,
    pub failed_ms: i64,
}

impl Stamp {
    /// The time of the last change in milliseconds, as a date in a document has it.
    pub fn modified_ms(&self) -> i64 {
        self.modified_ns.div_euclid(1_000_000)
    }
}

impl FileDocument {
    /// The document for what was extracted from `file`, at the time `now_ms`.
    pub fn new(file: &Candidate, extracted: ExtractedDocument, now_ms: i64) -> Self {
        let path = file.path_text();
        let title = extracted.title.filter(|title| !title.is_empty());
        let name = || last_component(extracted.inner_path.as_deref().unwrap_or(&path));
        FileDocument {
            id: id(&path, extracted.inner_path.as_deref()),
            title: title.unwrap_or_else(name),
            kind: extracted.kind,
            text: extracted.text,
            language: extracted
                .language
                .filter(|code| is_text_index_language(code)),
            stamp: file.stamp,
            indexed_ms: now_ms,
            truncated: extracted.truncated,
            fields: extracted.metadata,
            inner: extracted.inner_path,
            path,
        }
    }
}

impl FailureDocument {
    /// The document for a file or folder that could not be walked. It has no stamp to compare, so
    /// the walk tries again every time.
    pub fn of_walk(failure: &WalkFailure, now_ms: i64) -> Self {
        let path = path_to_text(&failure.path);
        FailureDocument {
            id: path.clone(),
            path,
            failure: Failure::of_file(FailureClass::Unreadable, &failure.reason),
            stamp: None,
            failed_ms: now_ms,
        }
    }

    /// The document for a failure of `file`, at the time `now_ms`.
    pub fn new(file: &Candidate, failure: Failure, now_ms: i64) -> Self {
        let path = file.path_text();
        let is_lasting = failure.class != FailureClass::Unreadable;
        FailureDocument {
            id: id(&path, failure.inner.as_deref()),
            path,
            failure,
            stamp: is_lasting.then_some(file.stamp),
            failed_ms: now_ms,
        }
    }

    /// The marker of a file of which not all has been stored.
    pub(crate) fn unfinished(file: &Candidate, now_ms: i64) -> Self {
        FailureDocument {
            id: Self::unfinished_id(file),
            path: file.path_text(),
            failure: Failure::of_file(
                FailureClass::Unfinished,
                "storing it was interrupted; the next run reads it again",
            ),
            stamp: None,
            failed_ms: now_ms,
        }
    }

    /// The `_id` of [`FailureDocument::unfinished`]. No path has two slashes in a row.
    pub(crate) fn unfinished_id(file: &Candidate) -> String {
        format!("{}//unfinished", file.path_text())
    }
}

/// The time, as documents have it.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn id(path: &str, inner: Option<&str>) -> String {
    match inner {
        Some(inner) => format!("{path}/{inner}"),
        None => path.to_string(),
    }
}

fn last_component(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// The two-letter codes of the 15 languages of MongoDB's text index, version 3.
fn is_text_index_language(code: &str) -> bool {
    const CODES: [&str; 15] = [
        "da", "de", "en", "es", "fi", "fr", "hu", "it", "nb", "nl", "pt", "ro", "ru", "sv", "tr",
    ];
    CODES.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Identity;

    fn file() -> Candidate {
        let stamp = Stamp {
            size: 5,
            modified_ns: 1_500_000,
        };
        Candidate {
            path: "/d/a.zip".into(),
            stamp,
            identity: Identity {
                device: 1,
                inode: 2,
            },
        }
    }

    #[test]
    fn ids_and_titles_come_from_the_path_unless_the_document_has_a_title() {
        let cases = [
            (None, None, "/d/a.zip", "a.zip"),
            (Some("!/x/b.txt"), None, "/d/a.zip/!/x/b.txt", "b.txt"),
            (Some("#3"), Some("Hello"), "/d/a.zip/#3", "Hello"),
        ];
        for (inner, title, id, expected) in cases {
            let mut extracted = ExtractedDocument::new(DocumentKind::Text, "words".into());
            extracted.inner_path = inner.map(str::to_string);
            extracted.title = title.map(str::to_string);
            let document = FileDocument::new(&file(), extracted, 7);
            assert_eq!(
                (document.id.as_str(), document.title.as_str()),
                (id, expected)
            );
            assert_eq!((document.stamp.modified_ms(), document.indexed_ms), (1, 7));
        }
    }

    #[test]
    fn only_languages_of_text_indexes_are_kept() {
        for (code, expected) in [("de", Some("de")), ("ja", None), ("none", None)] {
            let mut extracted = ExtractedDocument::new(DocumentKind::Html, String::new());
            extracted.language = Some(code.into());
            let document = FileDocument::new(&file(), extracted, 0);
            assert_eq!(document.language.as_deref(), expected);
        }
    }

    #[test]
    fn failures_have_the_same_ids() {
        let mut failure = Failure::of_file(FailureClass::Malformed, "bad");
        assert_eq!(
            FailureDocument::new(&file(), failure.clone(), 1).id,
            "/d/a.zip"
        );
        failure.inner = Some("!/x".into());
        assert_eq!(FailureDocument::new(&file(), failure, 1).id, "/d/a.zip/!/x");
        let unwalked = WalkFailure {
            path: "/d/locked".into(),
            reason: "denied".into(),
        };
        let document = FailureDocument::of_walk(&unwalked, 1);
        assert_eq!(
            (document.id.as_str(), document.failure.reason.as_str()),
            ("/d/locked", "denied")
        );
    }
}
