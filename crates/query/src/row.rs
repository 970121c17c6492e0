//! What operators hand to each other, and how they are told to stop.

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf};
use windrow_mql::reshape::RemovedFields;
use windrow_mql::{Meta, Origin, SearchDetails};

use crate::{Error, RecordId};

/// The bytes of a document: shared with the collection, or made by the query.
#[derive(Clone, Debug)]
pub enum Content {
    Shared(Bytes),
    Owned(DocumentBuf),
}

impl Content {
    pub fn as_document(&self) -> Document<'_> {
        Document::from_validated(self.as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Content::Shared(bytes) => bytes,
            Content::Owned(document) => document.as_bytes(),
        }
    }

    /// In the form that is cheap to copy.
    pub fn into_shared(self) -> Content {
        match self {
            Content::Owned(document) => Content::Shared(Bytes::from(document.into_bytes())),
            shared => shared,
        }
    }

    pub fn into_buf(self) -> DocumentBuf {
        match self {
            Content::Shared(bytes) => DocumentBuf::from_validated(bytes.to_vec()),
            Content::Owned(document) => document,
        }
    }
}

/// No document is longer than this when it leaves.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// Refuses a document that is too long for a reply. Error 10334.
pub fn check_size(document: Document<'_>) -> Result<(), Error> {
    match document.as_bytes().len() {
        bytes if bytes > DOCUMENT_BYTES_MAX => Err(Error::new(
            10334,
            format!("BSONObj size: {bytes} is invalid. Size must be between 0 and 16793600(16MB)"),
        )),
        _ => Ok(()),
    }
}

impl Content {
    /// The document without fields.
    pub const EMPTY: Content = Content::Shared(Bytes::from_static(&[5, 0, 0, 0, 0]));

    /// Whether the document has no fields.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().len() == Content::EMPTY.as_bytes().len()
    }
}

impl From<DocumentBuf> for Content {
    fn from(document: DocumentBuf) -> Content {
        Content::Owned(document)
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Content {
        Content::Shared(bytes)
    }
}

/// A row on its way through the operators.
#[derive(Clone, Debug)]
pub struct Row {
    /// Zero where the row is no record of a collection.
    pub id: RecordId,
    /// The document; before it is fetched, the empty one, or a document made of the index key.
    pub content: Content,
    pub meta: Meta,
    /// The index key by which it was found, where `returnKey` asks for it.
    pub key: Option<Box<DocumentBuf>>,
    /// The places of fields that stages removed from the document.
    pub removed_fields: RemovedFields,
}

impl Row {
    /// A record's row.
    pub fn of_record(id: RecordId, content: impl Into<Content>) -> Row {
        Row {
            id,
            ..Row::of(content)
        }
    }

    /// A row that a stage made.
    pub fn of(content: impl Into<Content>) -> Row {
        Row {
            id: RecordId(0),
            content: content.into(),
            meta: Meta::default(),
            key: None,
            removed_fields: RemovedFields::default(),
        }
    }

    /// The same row with other content.
    pub fn with(self, content: impl Into<Content>) -> Row {
        Row {
            content: content.into(),
            removed_fields: RemovedFields::default(),
            ..self
        }
    }

    pub fn document(&self) -> Document<'_> {
        self.content.as_document()
    }

    /// Memory that is in use, in bytes.
    pub fn bytes(&self) -> usize {
        let origin = self.meta.origin.as_deref().map_or(0, Origin::bytes);
        let search = self.meta.search.as_deref();
        let search = search.map_or(0, SearchDetails::bytes);
        let token = self.meta.sequence_token.as_deref().map_or(0, str::len);
        let key = self.key.as_deref().map_or(0, |key| key.as_bytes().len());
        self.content.as_bytes().len() + origin + search + token + key + self.removed_fields.bytes()
    }
}

/// Asked every so many rows whether to go on.
pub trait Interrupt {
    /// An error to stop: mostly [`Error::Interrupted`] with 11601 or 50.
    fn check(&self) -> Result<(), Error>;

    /// The same for other threads; None where only one may ask.
    fn across_threads(&self) -> Option<&(dyn Interrupt + Sync)> {
        None
    }
}

/// Never stops.
#[derive(Clone, Copy, Debug)]
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn across_threads(&self) -> Option<&(dyn Interrupt + Sync)> {
        Some(self)
    }
}

/// Rows between two questions to an [`Interrupt`].
const ROWS_PER_CHECK: u32 = 256;

/// Bytes of documents that take as long as a small row.
const BYTES_PER_ROW: usize = 4096;

/// Counts rows, and checks the interrupt once for many.
#[derive(Debug, Default)]
pub(crate) struct Pace(u32);

impl Pace {
    /// Counts a row.
    #[inline]
    pub fn step(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        self.step_over(0, interrupt)
    }

    /// Counts a row of so many bytes: few large documents take as long as many small ones.
    #[inline]
    pub fn step_over(&mut self, bytes: usize, interrupt: &dyn Interrupt) -> Result<(), Error> {
        // No document has more than 16 MB.
        self.0 += 1 + (bytes / BYTES_PER_ROW) as u32;
        if self.0 < ROWS_PER_CHECK {
            return Ok(());
        }
        self.0 = 0;
        interrupt.check()
    }
}
