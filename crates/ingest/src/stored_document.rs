//! The documents that are stored for files, as plain structs. The module `document_batch` converts
//! them to BSON.
//!
//! ```text
//! files.documents                              files.failures
//! _id          path, or path/inner             _id          likewise
//! path         /home/ada/mail.mbox             path
//! inner        #17                             inner
//! title        Bread, or absent                class        malformed
//! filename     mail.mbox                       reason       damaged PDF: …
//! ext          mbox                            size
//! folders      /home/ada, /home, /             modified, modified_ns, changed_ns, inode
//! kind         mail                            failed
//! text         Flour and water …
//! language     en                              files.skipped
//! size         size of the file in bytes       _id          likewise
//! modified     date of the file                path
//! modified_ns, changed_ns, inode               inner
//!              with size, detect that the      format       ELF program
//!              file changed or was moved       reason       no text can be extracted …
//! signature    of path and stamp
//! indexed      date                            size
//! truncated    true, or absent                 modified, modified_ns, changed_ns, inode
//! syntax, author, keywords, description,       skipped
//! columns, pages, from, to, cc, subject,
//! date, message_id, bcc, reply_to,
//! in_reply_to, references, list_id,
//! album, camera, width, height,
//! duration_ms, converter:
//!              if known
//! attached_to  of an attachment: _id and
//!              message_id of its mail
//! unread       why there is no text, or
//!              absent
//! ```
//!
//! Each file has a document in `files.documents`, so that it can be found by its name. If nothing
//! of the file could be read, or if all its documents are members, that document has the field
//! `unread`, an empty text and no title. The same applies to members with a name. Files and members
//! that were not read also have a document in one of the other collections.
//!
//! Failures that may not recur although the file is unchanged (permissions) have no size and dates.
//! The next ingestion tries these files again.
//!
//! `_id` is unique: a path with something below it is a folder, and a folder has no members.
//! Deleting by `path` removes all documents of a file.

use std::time::{SystemTime, UNIX_EPOCH};

use windrow_extract::{DocumentKind, DocumentMetadata, ExtractedDocument, guess_kind};

use crate::failure::{Failure, FailureClass};
use crate::path_text::path_to_text;
use crate::walk::{FileEntry, FileStamp, WalkFailure};

/// A document of `files.documents`. Dates are in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct FileDocument {
    /// The `_id`.
    pub id: String,
    /// The file's path, see [`path_to_text`].
    pub path: String,
    /// The position inside the file, see [`ExtractedDocument::inner_path`].
    pub inner: Option<String>,
    /// The title of the document, or else the last component of its path or inner path. `None` for
    /// an `unread` document, because matches in titles are weighted more than its name deserves.
    pub title: Option<String>,
    /// The name of the file or, for a member with a name of its own, of the member.
    pub file_name: String,
    /// The kind of document.
    pub kind: DocumentKind,
    /// The text.
    pub text: String,
    /// The language of the document, as its lower-case primary subtag.
    pub language: Option<String>,
    /// The file's stamp when it was read.
    pub stamp: FileStamp,
    /// When the document was created.
    pub indexed_ms: i64,
    /// The text was truncated.
    pub truncated: bool,
    /// Other properties that the document declares.
    pub metadata: DocumentMetadata,
    /// The reason why there is no text, as a sentence. `None` for a document that was read.
    pub unread: Option<String>,
}

/// A document of `files.failures`. Dates are in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureDocument {
    /// The `_id`.
    pub id: String,
    /// The file's path, see [`path_to_text`].
    pub path: String,
    /// What failed.
    pub failure: Failure,
    /// The file's stamp when it was read. `None` if the failure can disappear without a change of
    /// the file.
    pub stamp: Option<FileStamp>,
    /// When the file failed.
    pub failed_ms: i64,
}

/// A document of `files.skipped`. Dates are in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedDocument {
    /// The `_id`.
    pub id: String,
    /// The file's path, see [`path_to_text`].
    pub path: String,
    /// The member, see [`ExtractedDocument::inner_path`]. `None` for the file itself.
    pub inner: Option<String>,
    /// The name of the format.
    pub format: String,
    /// The file's stamp when it was read.
    pub stamp: FileStamp,
    /// When the file was skipped.
    pub skipped_ms: i64,
}

impl FileStamp {
    /// The time of the last modification in milliseconds since 1970-01-01 UTC.
    pub fn modified_ms(&self) -> i64 {
        self.modified_ns.div_euclid(1_000_000)
    }
}

impl FileDocument {
    /// Creates the document for a part of `file`.
    pub fn new(file: &FileEntry, extracted: ExtractedDocument, now_ms: i64) -> Self {
        let path = file.path_text();
        let title = extracted.title.filter(|title| !title.is_empty());
        let whole = extracted.inner_path.as_deref().map(without_part);
        let whole = whole.filter(|inner| !inner.is_empty());
        let part_name = || take_last_component(whole.unwrap_or(&path));
        FileDocument {
            id: format_document_id(&path, extracted.inner_path.as_deref()),
            title: Some(title.unwrap_or_else(part_name)),
            file_name: file_name(&path, extracted.inner_path.as_deref()),
            kind: extracted.kind,
            text: extracted.text,
            language: extracted.language,
            stamp: file.stamp,
            indexed_ms: now_ms,
            truncated: extracted.truncated,
            metadata: extracted.metadata,
            unread: None,
            inner: extracted.inner_path,
            path,
        }
    }

    /// Creates the document of a file or member without text, by which its name can be found.
    pub fn new_unread(
        file: &FileEntry,
        inner: Option<String>,
        reason: String,
        now_ms: i64,
    ) -> Self {
        let path = file.path_text();
        let file_name = file_name(&path, inner.as_deref());
        FileDocument {
            id: format_document_id(&path, inner.as_deref()),
            title: None,
            kind: guess_kind(&file_name),
            file_name,
            text: String::new(),
            language: None,
            stamp: file.stamp,
            indexed_ms: now_ms,
            truncated: false,
            metadata: DocumentMetadata::default(),
            unread: Some(reason),
            inner,
            path,
        }
    }
}

impl FailureDocument {
    /// Creates the document for a file or folder that could not be walked.
    pub fn from_walk_failure(failure: &WalkFailure, now_ms: i64) -> Self {
        let path = path_to_text(&failure.path);
        FailureDocument {
            id: path.clone(),
            path,
            failure: Failure::new(FailureClass::Unreadable, &failure.reason),
            stamp: None,
            failed_ms: now_ms,
        }
    }

    /// Creates the document for a failure of `file` or one of its members.
    pub fn new(file: &FileEntry, failure: Failure, now_ms: i64) -> Self {
        let path = file.path_text();
        let is_permanent = failure.class != FailureClass::Unreadable;
        FailureDocument {
            id: format_document_id(&path, failure.inner.as_deref()),
            path,
            failure,
            stamp: is_permanent.then_some(file.stamp),
            failed_ms: now_ms,
        }
    }

    /// Creates the marker of a file whose documents are not completely stored, see the module
    /// `ingestion`.
    pub(crate) fn new_unfinished(file: &FileEntry, now_ms: i64) -> Self {
        FailureDocument {
            id: marker_id(&file.path_text()),
            path: file.path_text(),
            failure: Failure::new(
                FailureClass::Unfinished,
                "storing the file was interrupted; the next run reads it again",
            ),
            stamp: None,
            failed_ms: now_ms,
        }
    }

    /// Creates the marker of a file that must be read again because settings changed.
    pub(crate) fn new_outdated(path: String, now_ms: i64) -> Self {
        FailureDocument {
            id: marker_id(&path),
            path,
            failure: Failure::new(
                FailureClass::Unfinished,
                "the converters of the file changed; the next run reads it again",
            ),
            stamp: None,
            failed_ms: now_ms,
        }
    }

    /// The `_id` of the marker of a file.
    pub(crate) fn marker_id(file: &FileEntry) -> String {
        marker_id(&file.path_text())
    }
}

/// The `_id` of the marker of the file at a path. Paths never contain two consecutive slashes.
fn marker_id(path: &str) -> String {
    format!("{path}//unfinished")
}

impl SkippedDocument {
    /// Creates the document for `file` or one of its members.
    pub fn new(file: &FileEntry, inner: Option<String>, format: String, now_ms: i64) -> Self {
        let path = file.path_text();
        SkippedDocument {
            id: format_document_id(&path, inner.as_deref()),
            path,
            inner,
            format,
            stamp: file.stamp,
            skipped_ms: now_ms,
        }
    }

    /// Returns the reason why there is no text, as a sentence.
    pub fn reason(&self) -> String {
        format!("no text can be extracted from this format: {}", self.format)
    }
}

/// The current time in milliseconds since 1970-01-01 UTC.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn format_document_id(path: &str, inner: Option<&str>) -> String {
    match inner {
        Some(inner) => format!("{path}/{inner}"),
        None => path.to_string(),
    }
}

fn take_last_component(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// Returns the name of a member, or the name of the file if the member has only a number.
pub(crate) fn file_name(path: &str, inner: Option<&str>) -> String {
    let member = inner.and_then(member_name);
    member.unwrap_or_else(|| take_last_component(path))
}

/// Returns the name of a member. `None` if it has only a number.
pub(crate) fn member_name(inner: &str) -> Option<String> {
    let name = take_last_component(without_part(inner));
    (!name.is_empty() && !name.starts_with('#')).then_some(name)
}

/// Returns an inner path without the number of a part.
fn without_part(inner: &str) -> &str {
    match inner.rsplit_once('@') {
        Some((whole, number)) if number.parse::<u32>().is_ok() => whole,
        _ => inner,
    }
}

/// Returns the extension of a file name in lower case, without the dot.
pub(crate) fn extension(file_name: &str) -> Option<String> {
    let (stem, extension) = file_name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_lowercase())
}

/// Returns the folders of a path, the innermost first.
pub(crate) fn folders(path: &str) -> impl Iterator<Item = &str> {
    let parent = |path: &str| path.rfind('/').filter(|_| path.len() > 1);
    std::iter::successors(Some(path), move |path| {
        let slash = parent(path)?;
        path.get(..slash.max(1))
    })
    .skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> FileEntry {
        let stamp = FileStamp {
            size: 5,
            modified_ns: 1_500_000,
            changed_ns: 2,
            inode: 3,
        };
        FileEntry {
            languages: Default::default(),
            path: "/d/a.zip".into(),
            stamp,
        }
    }

    #[test]
    fn ids_and_default_titles_are_derived_from_the_path() {
        let cases = [
            (None, None, "/d/a.zip", "a.zip"),
            (Some("!/x/b.txt"), None, "/d/a.zip/!/x/b.txt", "b.txt"),
            (Some("#3"), Some("Hello"), "/d/a.zip/#3", "Hello"),
            (Some("@2"), None, "/d/a.zip/@2", "a.zip"),
        ];
        for (inner, title, id, expected) in cases {
            let mut extracted = ExtractedDocument::new(DocumentKind::Text, "words".into());
            extracted.inner_path = inner.map(str::to_string);
            extracted.title = title.map(str::to_string);
            let document = FileDocument::new(&file(), extracted, 7);
            assert_eq!(
                (document.id.as_str(), document.title.as_deref()),
                (id, Some(expected))
            );
            assert_eq!((document.stamp.modified_ms(), document.indexed_ms), (1, 7));
        }
    }

    #[test]
    fn names_and_folders_are_derived_from_the_path() {
        let cases = [
            ("/d/a.TXT", None, "a.TXT", Some("txt")),
            ("/d/mail", Some("#3"), "mail", None),
            ("/d/a.log", Some("@2"), "a.log", Some("log")),
            ("/d/a.zip", Some("!/b@x.log@2"), "b@x.log", Some("log")),
            ("/d/mail", Some("#3!/1/b.tar.gz"), "b.tar.gz", Some("gz")),
            ("/d/.profile", None, ".profile", None),
            ("/d/a.", None, "a.", None),
        ];
        for (path, inner, name, expected) in cases {
            assert_eq!(file_name(path, inner), name);
            assert_eq!(extension(name).as_deref(), expected, "{name}");
        }
        let found: Vec<&str> = folders("/home/ada/a.txt").collect();
        assert_eq!(found, ["/home/ada", "/home", "/"]);
        assert_eq!(folders("a.txt").count(), 0);
    }

    #[test]
    fn unread_files_have_a_name_and_a_kind() {
        let document = FileDocument::new_unread(&file(), None, "no".into(), 7);
        assert_eq!((document.id.as_str(), document.title), ("/d/a.zip", None));
        assert_eq!(
            (document.file_name.as_str(), document.kind),
            ("a.zip", DocumentKind::Archive)
        );
        let member = FileDocument::new_unread(&file(), Some("!/x/b.PNG".into()), "no".into(), 7);
        assert_eq!(
            (member.file_name.as_str(), member.kind),
            ("b.PNG", DocumentKind::Image)
        );
        assert_eq!(member_name("#3"), None);
    }

    #[test]
    fn failures_have_the_ids_of_documents() {
        let mut failure = Failure::new(FailureClass::Malformed, "bad");
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
        let document = FailureDocument::from_walk_failure(&unwalked, 1);
        assert_eq!(
            (document.id.as_str(), document.failure.reason.as_str()),
            ("/d/locked", "denied")
        );
    }
}
