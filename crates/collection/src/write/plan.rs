//! The documents of an insert that are actually inserted.

use bytes::Bytes;
use windrow_document::{Document, ValueRef};
use windrow_index::Definition;
use windrow_invariant::Bug;

use super::{InsertError, InsertOrder};
use crate::error::Error;
use crate::record::KeyHashes;

/// Which documents of a buffer are inserted.
#[derive(Debug, Default)]
pub(crate) struct InsertPlan {
    pub accepted: Vec<AcceptedDocument>,
    /// The index of the next document in the request.
    next_index: usize,
    /// The number of documents to insert.
    pub count: usize,
    /// The documents that cannot be inserted.
    pub errors: Vec<InsertError>,
    /// The hashes of all claimed keys, including those of documents that are left out.
    pub hashes: Vec<KeyHashes>,
}

/// A document to insert: its position in the buffer, and its index in the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptedDocument {
    pub offset: usize,
    pub length: usize,
    pub index: usize,
}

impl AcceptedDocument {
    /// Returns its bytes in the buffer.
    pub fn bytes(self, documents: &[u8]) -> Result<&[u8], Bug> {
        let AcceptedDocument { offset, length, .. } = self;
        documents.get(offset..offset + length).ok_or_else(|| {
            let bytes = documents.len();
            Bug::new(format!(
                "an insert of {bytes} bytes has no document of {length} bytes at byte {offset}"
            ))
        })
    }
}

impl InsertPlan {
    pub fn add(&mut self, offset: usize, length: usize, fits: Result<(), Error>) {
        match fits {
            Ok(()) => {
                self.accepted.push(AcceptedDocument {
                    offset,
                    length,
                    index: self.next_index,
                });
                self.count += 1;
            }
            Err(error) => self.errors.push(InsertError {
                index: self.next_index,
                error,
            }),
        }
        self.next_index += 1;
    }

    /// Returns `true` if an error ends the insert.
    pub fn ends_with_error(&self, order: InsertOrder) -> bool {
        order.is_ordered() && !self.errors.is_empty()
    }

    pub fn last_is_accepted(&self) -> bool {
        self.accepted
            .last()
            .is_some_and(|document| document.index + 1 == self.next_index)
    }

    /// Returns the documents to insert, one after the other. This is the same buffer if none is
    /// left out.
    pub fn accepted_bytes(&self, documents: &Bytes) -> Result<Bytes, Bug> {
        if self.accepted.len() != self.count {
            let (accepted, count) = (self.accepted.len(), self.count);
            let what =
                format!("{accepted} documents of an insert are accepted, and {count} counted");
            return Err(Bug::new(what));
        }
        let length: usize = self.accepted.iter().map(|document| document.length).sum();
        if length == documents.len() {
            return Ok(documents.clone());
        }
        let mut bytes = Vec::with_capacity(length);
        for document in &self.accepted {
            bytes.extend_from_slice(document.bytes(documents)?);
        }
        Ok(Bytes::from(bytes))
    }
}

/// The `_id` keys of a batch, to find out whether they increase.
#[derive(Debug, Default)]
pub(crate) struct IdKeys {
    first: Vec<u8>,
    last: Vec<u8>,
    next: Vec<u8>,
    count: usize,
    unordered: bool,
}

impl IdKeys {
    pub fn push(&mut self, id_index: &Definition, document: Document<'_>) {
        if self.unordered {
            return;
        }
        self.next.clear();
        // A missing `_id` is indexed as null, as in all indexes.
        let id = document.get("_id").unwrap_or(ValueRef::Null);
        id_index.append_only_value(&mut self.next, id);
        if self.count == 0 {
            self.first.clone_from(&self.next);
        } else if self.next <= self.last {
            self.unordered = true;
        }
        std::mem::swap(&mut self.last, &mut self.next);
        self.count += 1;
    }

    pub fn are_increasing(&self) -> bool {
        self.count > 0 && !self.unordered
    }

    pub fn first(&self) -> &[u8] {
        &self.first
    }

    pub fn last(&self) -> &[u8] {
        &self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;
    use windrow_invariant::tolerate_bugs;

    fn plan(accepted: &[AcceptedDocument], count: usize) -> InsertPlan {
        InsertPlan {
            accepted: accepted.to_vec(),
            count,
            ..InsertPlan::default()
        }
    }

    /// A document outside the buffer used to be left out of the log, but counted, so the
    /// collection's count was too high.
    #[test]
    fn accepted_documents_match_their_count() {
        let one = doc! { "_id": 1 }.into_bytes();
        let length = one.len();
        let documents = Bytes::from([one.clone(), one.clone(), one.clone()].concat());
        let document = |offset: usize, index: usize| AcceptedDocument {
            offset,
            length,
            index,
        };
        let both = [document(0, 0), document(2 * length, 2)];
        let accepted = plan(&both, 2).accepted_bytes(&documents).unwrap();
        assert_eq!(accepted, [one.clone(), one].concat());
        let outside = [document(0, 0), document(3 * length, 2)];
        for broken in [plan(&outside, 2), plan(&both, 1), plan(&both, 3)] {
            tolerate_bugs(|| broken.accepted_bytes(&documents)).unwrap_err();
        }
    }
}
