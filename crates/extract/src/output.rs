//! The output of an extraction: documents, failures of members, and counts.

use crate::error::ExtractError;

/// One result of [`crate::extract()`].
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A document.
    Document(Box<ExtractedDocument>),
    /// A member of a container that could not be read. The other members are still read.
    Failure(MemberFailure),
    /// A member of a container whose format has no extractor.
    Skipped(SkippedMember),
}

/// The text and metadata of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractedDocument {
    /// The position inside the file, which is appended to the file's path: `#17` for message 17 of
    /// an mbox, `!/docs/a.html` for a member of a zip archive, `!/2/report.pdf` for the second
    /// attachment of a mail. Those of nested containers are concatenated (`#17!/2/report.pdf`).
    /// `None` if the file itself is the document, compressed or not. If a text is longer than
    /// [`crate::Limits::part_bytes_max`], its parts from the second one on have the suffixes `@2`,
    /// `@3` and so on. Unique within a file.
    pub inner_path: Option<String>,
    /// The document's own title: HTML title, first Markdown heading, mail subject, or
    /// the title among the properties of a PDF, Office document or book.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// The kind of the document.
    pub kind: DocumentKind,
    /// The natural language, declared or detected, as its lower-case primary subtag (`de`, `en`).
    /// Programming languages are in [`DocumentMetadata::syntax`].
    pub language: Option<String>,
    /// Other metadata.
    pub metadata: DocumentMetadata,
    /// The text exceeded [`crate::Limits::text_bytes_max`] and was truncated.
    pub truncated: bool,
}

impl ExtractedDocument {
    /// Creates a document without metadata.
    pub fn new(kind: DocumentKind, text: String) -> Self {
        ExtractedDocument {
            inner_path: None,
            title: None,
            text,
            kind,
            language: None,
            metadata: DocumentMetadata::default(),
            truncated: false,
        }
    }
}

/// Metadata that a document declares. Missing properties are `None` or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentMetadata {
    /// The senders of a mail, as `Ada Lovelace <ada@example.org>`, in the order of the header.
    pub from: Vec<String>,
    /// The recipients of a mail.
    pub to: Vec<String>,
    /// The carbon-copy recipients of a mail.
    pub cc: Vec<String>,
    /// The subject of a mail, PDF or Office document.
    pub subject: Option<String>,
    /// The date of a mail or book, or the creation date of a PDF or Office document, in
    /// milliseconds since 1970-01-01 UTC.
    pub date_ms: Option<i64>,
    /// The author of an HTML page, PDF, Office document or book. Several are separated by commas.
    pub author: Option<String>,
    /// The keywords of an Office document, or the subjects of a book.
    pub keywords: Vec<String>,
    /// The comment on an Office document as a whole, or the description of a book.
    pub description: Option<String>,
    /// The names of the columns of a table, from its first row.
    pub columns: Vec<String>,
    /// The Message-ID of a mail, without angle brackets.
    pub message_id: Option<String>,
    /// The blind carbon-copy recipients of a mail. Only drafts and sent mails have them.
    pub bcc: Vec<String>,
    /// The addresses for replies to a mail.
    pub reply_to: Vec<String>,
    /// The Message-IDs of the mails that a mail replies to.
    pub in_reply_to: Vec<String>,
    /// The Message-IDs of the earlier mails of the conversation, the oldest first.
    pub references: Vec<String>,
    /// The mailing list of a mail, as `Words about bread <bread.example.org>`.
    pub list_id: Option<String>,
    /// The mail to which the document is attached.
    pub attached_to: Option<MailReference>,
    /// The programming or markup language of source code, for example `rust`, `c` or `shell`.
    pub syntax: Option<String>,
    /// The media type of the converter that the text is from, or `ocr` if text was recognized in a
    /// picture.
    pub converter: Option<String>,
    /// The number of pages of a PDF.
    pub pages: Option<u32>,
    /// The album of a piece of music, or the series of an episode.
    pub album: Option<String>,
    /// The camera of a picture.
    pub camera: Option<String>,
    /// The length of sound or video in milliseconds.
    pub duration_ms: Option<u64>,
    /// The width of a picture or video in pixels.
    pub width: Option<u32>,
    /// The height of a picture or video in pixels.
    pub height: Option<u32>,
}

/// The mail to which a document is attached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailReference {
    /// The position of the mail inside the file, see [`ExtractedDocument::inner_path`].
    pub inner_path: Option<String>,
    /// The Message-ID of the mail, without angle brackets.
    pub message_id: Option<String>,
}

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// Source code, see [`DocumentMetadata::syntax`].
    Source,
    /// A mail message.
    Mail,
    /// PDF.
    Pdf,
    /// DjVu, scanned pages.
    Djvu,
    /// A document of a word processor: Word, OpenDocument text, RTF.
    Document,
    /// A spreadsheet.
    Spreadsheet,
    /// A presentation.
    Presentation,
    /// An OpenDocument drawing.
    Drawing,
    /// An e-book.
    Book,
    /// A table as text: CSV, see [`DocumentMetadata::columns`].
    Table,
    /// A page of a manual: man, Info, POD, Texinfo.
    Manual,
    /// A notebook with code and its output.
    Notebook,
    /// A news feed: RSS, Atom.
    Feed,
    /// A picture. Its text consists of its metadata and of recognized text.
    Image,
    /// Sound.
    Audio,
    /// Video.
    Video,
    /// A person or organization in an address book.
    Contact,
    /// An event or task in a calendar.
    Event,
    /// An archive of files. It has no text of its own.
    Archive,
    /// A file of another kind, of which only the name is known.
    Other,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [DocumentKind; 23] = [
        DocumentKind::Text,
        DocumentKind::Markdown,
        DocumentKind::Html,
        DocumentKind::Source,
        DocumentKind::Mail,
        DocumentKind::Pdf,
        DocumentKind::Djvu,
        DocumentKind::Document,
        DocumentKind::Spreadsheet,
        DocumentKind::Presentation,
        DocumentKind::Drawing,
        DocumentKind::Book,
        DocumentKind::Table,
        DocumentKind::Manual,
        DocumentKind::Notebook,
        DocumentKind::Feed,
        DocumentKind::Image,
        DocumentKind::Audio,
        DocumentKind::Video,
        DocumentKind::Contact,
        DocumentKind::Event,
        DocumentKind::Archive,
        DocumentKind::Other,
    ];

    /// Returns the kind as a lower-case word, for example `text` or `mail`.
    pub fn as_str(self) -> &'static str {
        match self {
            DocumentKind::Text => "text",
            DocumentKind::Markdown => "markdown",
            DocumentKind::Html => "html",
            DocumentKind::Source => "source",
            DocumentKind::Mail => "mail",
            DocumentKind::Pdf => "pdf",
            DocumentKind::Djvu => "djvu",
            DocumentKind::Document => "document",
            DocumentKind::Spreadsheet => "spreadsheet",
            DocumentKind::Presentation => "presentation",
            DocumentKind::Drawing => "drawing",
            DocumentKind::Book => "book",
            DocumentKind::Table => "table",
            DocumentKind::Manual => "manual",
            DocumentKind::Notebook => "notebook",
            DocumentKind::Feed => "feed",
            DocumentKind::Image => "image",
            DocumentKind::Audio => "audio",
            DocumentKind::Video => "video",
            DocumentKind::Contact => "contact",
            DocumentKind::Event => "event",
            DocumentKind::Archive => "archive",
            DocumentKind::Other => "other",
        }
    }

    /// Returns the kind with this [`DocumentKind::as_str`].
    pub fn from_name(name: &str) -> Option<DocumentKind> {
        DocumentKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// A member of a container that could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberFailure {
    /// The member's position, see [`ExtractedDocument::inner_path`].
    pub inner_path: String,
    /// The error.
    pub error: ExtractError,
    /// The mail to which the member is attached.
    pub attached_to: Option<MailReference>,
}

/// A member of a container whose format has no extractor, for example an image.
#[derive(Debug, Clone, PartialEq)]
pub struct SkippedMember {
    /// The member's position, see [`ExtractedDocument::inner_path`].
    pub inner_path: String,
    /// The name of the format.
    pub format: &'static str,
    /// The mail to which the member is attached.
    pub attached_to: Option<MailReference>,
}

/// The numbers of documents and members of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtractionCounts {
    /// The number of documents.
    pub documents: u64,
    /// The number of members that failed. Each was emitted as [`Output::Failure`].
    pub failures: u64,
    /// The number of members whose format has no extractor, for example images. Each was emitted as
    /// [`Output::Skipped`].
    pub skipped: u64,
}
