//! The part of an update or deletion in the log that only change events need.
//!
//! ```text
//! of an update     flags u8: 1 has a description, 2 has the old version
//!                  | old version | description
//! of a deletion    flags u8: 2 the old version is complete, 4 not reported
//!                  | old version, or its {_id}
//! description      updated count varint, paths | removed count varint, paths
//!                  | truncated count varint, per array: path, new element count varint
//! path             byte count varint | names, separated by NUL
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use windrow_document::{Document, DocumentBuf};
use windrow_fold::varint;
use windrow_mql::update::{FieldPath, UpdateDescription};

const DESCRIBED: u8 = 1;
const WITH_OLD: u8 = 2;
const SILENT: u8 = 4;

/// The detail of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateDetail {
    /// `None` if the document was replaced.
    pub description: Option<UpdateDescription>,
    pub old: Option<DocumentBuf>,
}

/// The detail of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionDetail {
    /// `{_id}`.
    pub key: DocumentBuf,
    pub old: Option<DocumentBuf>,
    pub cause: DeletionCause,
}

/// Why a document was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionCause {
    Request,
    /// To make room in a capped collection. Change events and statements do not report it.
    Trim,
}

/// The part of a deleted document that the log records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedVersion {
    Id,
    Whole,
}

/// Encodes an update.
pub fn encode_update(
    description: Option<&UpdateDescription>,
    old: Option<Document<'_>>,
) -> Vec<u8> {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let mut detail = vec![flag(description.is_some(), DESCRIBED) | flag(old.is_some(), WITH_OLD)];
    detail.extend_from_slice(old.map_or(&[], |old| old.as_bytes()));
    if let Some(description) = description {
        put_paths(&mut detail, &description.updated);
        put_paths(&mut detail, &description.removed);
        varint::put(&mut detail, description.truncated.len() as u64);
        for (path, length) in &description.truncated {
            put_path(&mut detail, path);
            varint::put(&mut detail, u64::from(*length));
        }
    }
    detail
}

/// Encodes a deletion of `old`.
pub fn encode_deletion(
    old: Document<'_>,
    recorded: RecordedVersion,
    cause: DeletionCause,
) -> Vec<u8> {
    let silent = match cause {
        DeletionCause::Request => 0,
        DeletionCause::Trim => SILENT,
    };
    match recorded {
        RecordedVersion::Id => [&[silent], key_of(old).as_bytes()].concat(),
        RecordedVersion::Whole => [&[WITH_OLD | silent], old.as_bytes()].concat(),
    }
}

/// Returns `{_id}` of a document.
pub fn key_of(document: Document<'_>) -> DocumentBuf {
    document
        .iter()
        .filter(|(name, _)| *name == "_id")
        .take(1)
        .collect()
}

/// Decodes an update. Returns `None` if this module did not write the bytes.
pub fn decode_update(detail: &[u8]) -> Option<UpdateDetail> {
    let (flags, mut rest) = detail.split_first()?;
    let old = match flags & WITH_OLD {
        0 => None,
        _ => Some(take_document(&mut rest)?),
    };
    let description = match flags & DESCRIBED {
        0 => None,
        _ => Some(UpdateDescription {
            updated: take_paths(&mut rest)?,
            removed: take_paths(&mut rest)?,
            truncated: take_truncated(&mut rest)?,
        }),
    };
    Some(UpdateDetail { description, old })
}

/// Decodes a deletion. Returns `None` if this module did not write the bytes.
pub fn decode_deletion(detail: &[u8]) -> Option<DeletionDetail> {
    let (flags, mut rest) = detail.split_first()?;
    let document = take_document(&mut rest)?;
    Some(DeletionDetail {
        key: key_of(document.as_document()),
        old: (flags & WITH_OLD != 0).then_some(document),
        cause: if flags & SILENT == 0 {
            DeletionCause::Request
        } else {
            DeletionCause::Trim
        },
    })
}

fn put_paths(detail: &mut Vec<u8>, paths: &[FieldPath]) {
    varint::put(detail, paths.len() as u64);
    paths.iter().for_each(|path| put_path(detail, path));
}

fn put_path(detail: &mut Vec<u8>, path: &FieldPath) {
    varint::put(detail, path.as_str().len() as u64);
    detail.extend_from_slice(path.as_str().as_bytes());
}

fn take_document(rest: &mut &[u8]) -> Option<DocumentBuf> {
    let length = usize::try_from(i32::from_le_bytes(*rest.first_chunk()?)).ok()?;
    let (document, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Document::from_bytes(document).ok()?.to_buf())
}

fn take_paths(rest: &mut &[u8]) -> Option<Vec<FieldPath>> {
    let mut paths = Vec::new();
    for _ in 0..varint::take(rest)? {
        paths.push(take_path(rest)?);
    }
    Some(paths)
}

fn take_path(rest: &mut &[u8]) -> Option<FieldPath> {
    let length = usize::try_from(varint::take(rest)?).ok()?;
    let (path, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(FieldPath::new(std::str::from_utf8(path).ok()?))
}

fn take_truncated(rest: &mut &[u8]) -> Option<Vec<(FieldPath, u32)>> {
    let mut truncated = Vec::new();
    for _ in 0..varint::take(rest)? {
        let path = take_path(rest)?;
        truncated.push((path, u32::try_from(varint::take(rest)?).ok()?));
    }
    Some(truncated)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn updates_round_trip() {
        let path = FieldPath::new;
        let description = UpdateDescription {
            updated: vec![path("a\0b.c"), path("")],
            removed: vec![path("x")],
            truncated: vec![(path("l"), 300)],
        };
        let old = doc! { "_id": 1, "l": [1, 2] };
        for description in [None, Some(description)] {
            for old in [None, Some(old.clone())] {
                let written = old.as_ref().map(DocumentBuf::as_document);
                let detail = encode_update(description.as_ref(), written);
                let expected = UpdateDetail {
                    description: description.clone(),
                    old,
                };
                assert_eq!(decode_update(&detail), Some(expected));
                for end in 0..detail.len() {
                    let _ = decode_update(&detail[..end]);
                }
            }
        }
    }

    #[test]
    fn deletions_round_trip() {
        let old = doc! { "a": 1, "_id": { "x": 2 } };
        for recorded in [RecordedVersion::Id, RecordedVersion::Whole] {
            for cause in [DeletionCause::Request, DeletionCause::Trim] {
                let detail = encode_deletion(old.as_document(), recorded, cause);
                let expected = DeletionDetail {
                    key: doc! { "_id": { "x": 2 } },
                    old: (recorded == RecordedVersion::Whole).then(|| old.clone()),
                    cause,
                };
                assert_eq!(decode_deletion(&detail), Some(expected));
            }
        }
    }
}
