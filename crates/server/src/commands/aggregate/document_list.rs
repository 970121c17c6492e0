//! Documents in memory as the source of a pipeline.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_index::{Definition, Multikey};
use windrow_query::{
    Direction, EntryCursor, Error as QueryError, NoCollection, RecordCursor, RecordId, Source,
};
use windrow_wire::CommandError;

/// Creates the documents.
pub type Describe<'c> = Box<dyn FnOnce() -> Result<Vec<DocumentBuf>, CommandError> + 'c>;

/// Documents in memory, which are read like a collection without indexes.
pub struct DocumentList {
    namespace: String,
    documents: Vec<Bytes>,
}

impl DocumentList {
    /// Returns the documents as a source.
    pub fn source(namespace: String, documents: Vec<DocumentBuf>) -> Arc<dyn Source> {
        let bytes = |document: DocumentBuf| Bytes::from(document.into_bytes());
        Arc::new(DocumentList {
            namespace,
            documents: documents.into_iter().map(bytes).collect(),
        })
    }

    fn nothing(&self) -> NoCollection {
        NoCollection {
            namespace: self.namespace.clone(),
        }
    }
}

impl Source for DocumentList {
    fn namespace(&self) -> String {
        self.namespace.clone()
    }

    fn count(&self) -> u64 {
        self.documents.len() as u64
    }

    fn indexes(&self) -> Vec<Arc<Definition>> {
        Vec::new()
    }

    fn multikey(&self, index: usize) -> Result<Multikey, QueryError> {
        self.nothing().multikey(index)
    }

    fn get(&self, id: RecordId) -> Result<Option<Bytes>, QueryError> {
        let place = usize::try_from(id.0).unwrap_or(usize::MAX);
        Ok(self.documents.get(place).cloned())
    }

    fn find(&self, id: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, QueryError> {
        let has_id = |bytes: &Bytes| Document::from_validated(bytes).get("_id") == Some(id);
        let mut places = (0..).zip(&self.documents);
        let found = places.find(|(_, bytes)| has_id(bytes));
        Ok(found.map(|(place, bytes)| (RecordId(place), bytes.clone())))
    }

    fn records(&self, direction: Direction) -> Result<Box<dyn RecordCursor>, QueryError> {
        let numbered = self.documents.iter().cloned().enumerate();
        let mut left: Vec<(usize, Bytes)> = numbered.collect();
        // They are popped from the end.
        if direction == Direction::Forward {
            left.reverse();
        }
        Ok(Box::new(DocumentListCursor {
            left,
            current: (0, Bytes::new()),
        }))
    }

    fn entries(
        &self,
        index: usize,
        direction: Direction,
    ) -> Result<Box<dyn EntryCursor>, QueryError> {
        self.nothing().entries(index, direction)
    }

    fn approximate_count(&self, _: usize, _: &[u8], _: &[u8]) -> Result<u64, QueryError> {
        Ok(0)
    }
}

struct DocumentListCursor {
    left: Vec<(usize, Bytes)>,
    current: (usize, Bytes),
}

impl RecordCursor for DocumentListCursor {
    fn next(&mut self) -> Result<bool, QueryError> {
        match self.left.pop() {
            Some(next) => {
                self.current = next;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn id(&self) -> RecordId {
        RecordId(self.current.0 as u64)
    }

    fn document(&self) -> &[u8] {
        &self.current.1
    }

    fn document_bytes(&mut self) -> Bytes {
        self.current.1.clone()
    }
}
