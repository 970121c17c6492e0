//! The log record of a transaction: the commits to all its collections.
//!
//! ```text
//! payload      0 u64 LE (no collection has this id) | session id, 16 bytes | number i64 LE | part*
//! part         byte count u32 LE | the payload of a commit of one collection
//! ```
//! Each collection has at most one part. Session and number identify the client's transaction. In a
//! transaction of the server itself they are 0 and -1. If a retryable write ran as a transaction,
//! the results of its statements are in the first part.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{PayloadReader, collection_of};
use crate::ids::CollectionId;

/// Takes the place of the collection id of other records.
const NO_COLLECTION: CollectionId = CollectionId(0);
/// Bytes before the first part.
pub const HEADER_BYTES: usize = 32;
/// Bytes of a part before its operations.
pub const PART_HEADER_BYTES: usize = 12;

/// Identifies a session of a client in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct SessionKey(pub [u8; 16]);

/// Identifies a transaction or a retryable write of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The client's session.
    pub session: SessionKey,
    /// The number that the session gave the transaction.
    pub number: i64,
}

/// A transaction, decoded from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    pub origin: Origin,
    /// One commit payload per collection.
    pub parts: Vec<Bytes>,
}

impl Origin {
    /// The origin of transactions of the server itself, which are not recorded for any session.
    /// Clients number theirs from 0.
    pub const NO_SESSION: Origin = Origin {
        session: SessionKey([0; 16]),
        number: -1,
    };
}

/// A log record with changes of documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataRecord {
    /// A commit to one collection: its payload, which [`record::decode`](super::decode) decodes.
    Commit(Bytes),
    /// A transaction.
    Transaction(TransactionRecord),
}

impl DataRecord {
    /// Reads the payload of a log record. Returns `None` if it is neither a commit nor a
    /// transaction.
    pub fn read(payload: Bytes) -> Option<DataRecord> {
        match collection_of(&payload)? {
            NO_COLLECTION => decode(payload).map(DataRecord::Transaction),
            _ => Some(DataRecord::Commit(payload)),
        }
    }
}

/// The changes of a transaction in one collection.
pub struct TransactionPart {
    pub collection: CollectionId,
    /// The encoded operations, as byte strings one after the other.
    pub operations: Vec<Bytes>,
}

/// Encodes a transaction as a list of byte strings, which together are the payload.
pub fn encode(origin: Origin, parts: Vec<TransactionPart>) -> Vec<Bytes> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(&NO_COLLECTION.0.to_le_bytes());
    header.extend_from_slice(&origin.session.0);
    header.extend_from_slice(&origin.number.to_le_bytes());
    let mut payload = vec![Bytes::from(header)];
    for TransactionPart {
        collection,
        operations,
    } in parts
    {
        let bytes: usize = operations.iter().map(Bytes::len).sum();
        let mut header = Vec::with_capacity(PART_HEADER_BYTES);
        header.extend_from_slice(&((bytes + size_of::<u64>()) as u32).to_le_bytes());
        header.extend_from_slice(&collection.0.to_le_bytes());
        payload.push(Bytes::from(header));
        payload.extend(operations);
    }
    payload
}

fn decode(payload: Bytes) -> Option<TransactionRecord> {
    let length = payload.len();
    let mut reader = PayloadReader { payload, at: 8 };
    let origin = Origin {
        session: SessionKey(*reader.take(16)?.first_chunk()?),
        number: reader.u64()?.cast_signed(),
    };
    let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
    while reader.at < length {
        let bytes = reader.u32()? as usize;
        let part = reader.take(bytes)?;
        let collection = collection_of(&part)?;
        if collection == NO_COLLECTION || !seen.insert(collection) {
            return None;
        }
        parts.push(part);
    }
    Some(TransactionRecord { origin, parts })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use windrow_fold::{Position, RecordId};

    use crate::record::{decode as decode_commit, push_delete};

    fn payload(origin: Origin, collections: &[u64]) -> Bytes {
        let part = |collection: &u64| {
            let mut operations = Vec::new();
            push_delete(&mut operations, RecordId(6), 10, &[], &[]);
            let (one, other) = operations.split_at(5);
            let pieces = [one, other].map(Bytes::copy_from_slice);
            TransactionPart {
                collection: CollectionId(*collection),
                operations: pieces.to_vec(),
            }
        };
        let pieces = encode(origin, collections.iter().map(part).collect());
        Bytes::from(pieces.concat())
    }

    #[test]
    fn transactions_round_trip() {
        let origin = Origin {
            session: SessionKey([7; 16]),
            number: -3,
        };
        let several = payload(origin, &[5, 4]);
        let Some(DataRecord::Transaction(found)) = DataRecord::read(several.clone()) else {
            panic!("{several:?}");
        };
        assert_eq!(found.origin, origin);
        let collections: Vec<CollectionId> = found
            .parts
            .iter()
            .filter_map(|it| collection_of(it))
            .collect();
        assert_eq!(collections, [5, 4].map(CollectionId));
        for part in found.parts {
            assert_eq!(
                decode_commit(Position(9), part.clone())
                    .unwrap()
                    .1
                    .documents,
                -1
            );
            assert_eq!(
                DataRecord::read(part.clone()),
                Some(DataRecord::Commit(part))
            );
        }
    }

    #[test]
    fn damaged_payloads_are_rejected() {
        let check = |collections: &[u64], cut: usize| {
            let payload = payload(Origin::default(), collections);
            let payload = payload.slice(..payload.len() - cut);
            assert_eq!(DataRecord::read(payload), None, "{collections:?} {cut}");
        };
        check(&[5], 1);
        check(&[5, 5], 0);
        check(&[0], 0);
        check(&[5, 4], 20);
        check(&[], 1);
        check(&[], 30);
    }
}
