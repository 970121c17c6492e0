//! The rows that operators pass on, and how often they check the interrupt.

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf};
use windrow_interrupt::Interrupt;
use windrow_mql::reshape::RemovedFields;
use windrow_mql::{Meta, Origin, SearchDetails};

use crate::{Error, RecordId};

/// The bytes of a document.
#[derive(Clone, Debug)]
pub enum Content {
    /// Shared with the storage engine.
    Shared(Bytes),
    /// Computed by the query.
    Owned(DocumentBuf),
}

impl Content {
    /// The content as a document.
    pub fn as_document(&self) -> Document<'_> {
        Document::from_validated(self.as_bytes())
    }

    /// The content as BSON bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Content::Shared(bytes) => bytes,
            Content::Owned(document) => document.as_bytes(),
        }
    }

    /// Converts the content to the variant that is cheap to clone.
    pub fn into_shared(self) -> Content {
        match self {
            Content::Owned(document) => Content::Shared(Bytes::from(document.into_bytes())),
            shared => shared,
        }
    }

    /// Returns the content as an owned document.
    pub fn into_buf(self) -> DocumentBuf {
        match self {
            Content::Shared(bytes) => DocumentBuf::from_validated(bytes.to_vec()),
            Content::Owned(document) => document,
        }
    }
}

/// The size limit of documents in replies, in bytes.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// Fails with 10334 if a document is too large for a reply.
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
    /// The empty document.
    pub const EMPTY: Content = Content::Shared(Bytes::from_static(&[5, 0, 0, 0, 0]));

    /// Returns `true` if the document has no fields.
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

/// A row that operators pass on.
#[derive(Clone, Debug)]
pub struct Row {
    /// The record id. Zero if the row is not a record of a collection.
    pub id: RecordId,
    /// The document. Before the fetch it is empty, or contains the values of the index key.
    pub content: Content,
    /// The metadata of the document, for `$meta`.
    pub meta: Meta,
    /// The index key by which the row was found, if `returnKey` asks for it.
    pub key: Option<Box<DocumentBuf>>,
    /// The positions of fields that stages removed from the document.
    pub removed_fields: RemovedFields,
}

impl Row {
    /// Returns the row of a record.
    pub fn from_record(id: RecordId, content: impl Into<Content>) -> Row {
        Row {
            id,
            ..Row::new(content)
        }
    }

    /// Returns a row that was computed by a stage.
    pub fn new(content: impl Into<Content>) -> Row {
        Row {
            id: RecordId(0),
            content: content.into(),
            meta: Meta::default(),
            key: None,
            removed_fields: RemovedFields::default(),
        }
    }

    /// Replaces the content of the row. The record id and the metadata stay.
    pub fn with(self, content: impl Into<Content>) -> Row {
        Row {
            content: content.into(),
            removed_fields: RemovedFields::default(),
            ..self
        }
    }

    /// Converts the row so that it is cheap to clone.
    pub fn into_shared(self) -> Row {
        Row {
            content: self.content.into_shared(),
            ..self
        }
    }

    /// The content as a document.
    pub fn document(&self) -> Document<'_> {
        self.content.as_document()
    }

    /// Returns the memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        let origin = self.meta.origin.as_deref().map_or(0, Origin::bytes);
        let search = self.meta.search.as_deref();
        let search = search.map_or(0, SearchDetails::bytes);
        let token = self.meta.sequence_token.as_deref().map_or(0, <[u8]>::len);
        let key = self.key.as_deref().map_or(0, |key| key.as_bytes().len());
        self.content.as_bytes().len() + origin + search + token + key + self.removed_fields.bytes()
    }
}

/// The number of rows between two checks of an [`Interrupt`].
const ROWS_PER_CHECK: u32 = 256;

/// A document counts as one more row for each of these bytes.
const BYTES_PER_ROW: usize = 4096;

/// Counts rows, and checks the interrupt once in [`ROWS_PER_CHECK`] rows.
#[derive(Debug, Default)]
pub(crate) struct Pace(u32);

impl Pace {
    /// Counts a row.
    #[inline]
    pub fn step(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        self.step_over(0, interrupt)
    }

    /// Counts a row of this many bytes. A large document takes as long as many small ones.
    #[inline]
    pub fn step_over(&mut self, bytes: usize, interrupt: &dyn Interrupt) -> Result<(), Error> {
        // Documents have at most 16 MB, so the cast does not truncate.
        self.0 += 1 + (bytes / BYTES_PER_ROW) as u32;
        if self.0 < ROWS_PER_CHECK {
            return Ok(());
        }
        self.0 = 0;
        Ok(interrupt.check()?)
    }
}
