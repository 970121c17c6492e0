//! What comes out: documents, failures of members, and their counts.

use crate::error::ExtractError;

/// One thing that [`crate::extract`] found.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    Document(Box<Extracted>),
    /// One member of a container could not be read; the others go on.
    Failure(MemberFailure),
}

/// The text of one document and what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Extracted {
    /// Where inside the file, appended to the file's path to name the place: `#17` for the 17th
    /// message of an mbox, `!/docs/a.html` for a member of a zip, `!/2/report.pdf` for the second
    /// attachment of a mail, and all of them after one another (`#17!/2/report.pdf`). `None` if the
    /// file is the document, also inside gzip. Unique within one file.
    pub inner_path: Option<String>,
    /// The title that the document gives itself: HTML title, first Markdown heading, mail subject,
    /// PDF title.
    pub title: Option<String>,
    pub text: String,
    pub kind: Kind,
    /// The natural language that the document declares, as its primary subtag in lower case
    /// (`de`, `en`). Never a programming language: see [`Fields::syntax`].
    pub language: Option<String>,
    pub fields: Fields,
    /// The text goes on, but a limit cut it.
    pub truncated: bool,
}

impl Extracted {
    /// A document of `kind` with `text` and nothing else known.
    pub fn new(kind: Kind, text: String) -> Self {
        Extracted {
            inner_path: None,
            title: None,
            text,
            kind,
            language: None,
            fields: Fields::default(),
            truncated: false,
        }
    }
}

/// What a document declares about itself. Absent fields are `None` or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields {
    /// Mail: `Ada Lovelace <ada@example.org>`, in the order of the header.
    pub from: Vec<String>,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    /// Mail subject, or the subject of a PDF.
    pub subject: Option<String>,
    /// Mail date or PDF creation date, in milliseconds since 1970 UTC.
    pub date_ms: Option<i64>,
    /// Author of an HTML page or a PDF.
    pub author: Option<String>,
    /// Mail, without the angle brackets.
    pub message_id: Option<String>,
    /// The programming or markup language of source code: `rust`, `c`, `shell`.
    pub syntax: Option<String>,
    /// PDF.
    pub pages: Option<u32>,
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Text,
    Markdown,
    Html,
    Source,
    Mail,
    Pdf,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::Text,
        Kind::Markdown,
        Kind::Html,
        Kind::Source,
        Kind::Mail,
        Kind::Pdf,
    ];

    /// The word that documents carry: `text`, `markdown`, `html`, `source`, `mail`, `pdf`.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Markdown => "markdown",
            Kind::Html => "html",
            Kind::Source => "source",
            Kind::Mail => "mail",
            Kind::Pdf => "pdf",
        }
    }

    /// The kind that [`Kind::as_str`] calls `word`.
    pub fn from_word(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A member of a container that could not be read, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberFailure {
    /// As [`Extracted::inner_path`].
    pub inner_path: String,
    pub error: ExtractError,
}

/// How much came out of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub documents: u64,
    /// Members that failed, each reported as an [`Output::Failure`].
    pub failures: u64,
    /// Members of a kind without text, such as pictures.
    pub skipped: u64,
}
