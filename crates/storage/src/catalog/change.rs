//! A change of several rows, its checks, and its encoding. For each row:
//!
//! ```text
//! 0  2  length of the key
//! 2  2  length of the value; 0xffff: the row is deleted and has no value
//! 4  n  key, then value
//! ```

use windrow_invariant::Bug;

use super::{CatalogError, KEY_BYTES_MAX, ROW_BYTES_MAX, Rows};
use crate::error::StorageError;
use crate::fields::u16_at;

/// The condition for the change of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// No condition.
    Any,
    /// The row must not exist.
    Absent,
    /// The row must exist and have this value.
    Value(Vec<u8>),
}

/// The change of one row. The keys of one [`Catalog::change`](crate::Catalog::change) must be
/// different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The key, at most 1,024 bytes.
    pub key: Vec<u8>,
    /// The condition. If it does not hold, no row of the change is changed.
    pub expected: Expectation,
    /// The new value, at most [`ROW_BYTES_MAX`] bytes. `None` deletes the row.
    pub value: Option<Vec<u8>>,
}

impl RowChange {
    /// Returns a change that inserts or replaces a row, without a condition.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self {
            key: key.into(),
            expected: Expectation::Any,
            value: Some(value.into()),
        }
    }

    /// Returns a change that deletes a row if it exists, without a condition.
    pub fn delete(key: impl Into<Vec<u8>>) -> Self {
        Self {
            key: key.into(),
            expected: Expectation::Any,
            value: None,
        }
    }

    /// Returns the same change with a condition.
    pub fn expecting(self, expected: Expectation) -> Self {
        Self { expected, ..self }
    }
}

/// The length of the value that marks a deleted row.
const DELETED: u16 = u16::MAX;

/// Fails with `TooLarge` if a key or a value exceeds its limit.
pub(crate) fn check_sizes(changes: &[RowChange]) -> Result<(), StorageError> {
    let check = |what: &str, bytes: usize, bytes_max: usize| {
        if bytes <= bytes_max {
            return Ok(());
        }
        let what = format!("the {what} of a catalog row");
        Err(StorageError::TooLarge {
            what,
            bytes: bytes as u64,
            bytes_max: bytes_max as u64,
        })
    };
    changes.iter().try_for_each(|change| {
        check("key", change.key.len(), KEY_BYTES_MAX)?;
        check(
            "value",
            change.value.as_ref().map_or(0, Vec::len),
            ROW_BYTES_MAX,
        )
    })
}

/// Fails if two rows have the same key: the result would depend on their order.
pub(crate) fn check_keys(changes: &[RowChange]) -> Result<(), Bug> {
    let mut keys: Vec<&[u8]> = changes.iter().map(|change| &*change.key).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair.first() == pair.last()) {
        None => Ok(()),
        Some(pair) => {
            let key = pair.concat().escape_ascii().to_string();
            Err(Bug::new(format!(
                "a change of the catalog has a row twice: {key}"
            )))
        }
    }
}

/// Fails with `Conflict` if a row is not as its change expects.
pub(crate) fn check_expectations(rows: &Rows, changes: &[RowChange]) -> Result<(), CatalogError> {
    let holds = |change: &&RowChange| {
        let row = rows.get(&change.key).map(|value| value.as_ref());
        match &change.expected {
            Expectation::Any => true,
            Expectation::Absent => row.is_none(),
            Expectation::Value(value) => row == Some(value.as_slice()),
        }
    };
    match changes.iter().find(|change| !holds(change)) {
        Some(change) => Err(CatalogError::Conflict(change.key.clone())),
        None => Ok(()),
    }
}

pub(crate) fn apply(rows: &mut Rows, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => rows.insert(key, value.into()),
        None => rows.remove(&key),
    };
}

pub(crate) fn encode(changes: &[RowChange]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for change in changes {
        put_row(&mut bytes, &change.key, change.value.as_deref());
    }
    bytes
}

pub(crate) fn put_row(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    debug_assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
    debug_assert!(value.is_none_or(|value| value.len() <= ROW_BYTES_MAX));
    let value_length = value.map_or(DELETED, |value| value.len() as u16);
    bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&value_length.to_le_bytes());
    bytes.extend_from_slice(key);
    // A deleted row has no bytes of a value.
    bytes.extend_from_slice(value.unwrap_or_default());
}

/// A row that a catalog record of the log changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRow {
    /// The key of the row.
    pub key: Vec<u8>,
    /// The new value. `None` if the row was deleted.
    pub value: Option<Vec<u8>>,
}

/// Reads the rows of a change. Returns `None` if the bytes do not end at the end of a row.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<ChangedRow>> {
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        let key_length = usize::from(u16_at(bytes, 0)?);
        let value_length = u16_at(bytes, 2)?;
        let (key, rest) = bytes.get(4..)?.split_at_checked(key_length)?;
        let (value, rest) = match value_length {
            DELETED => (None, rest),
            length => {
                let (value, rest) = rest.split_at_checked(usize::from(length))?;
                (Some(value.to_vec()), rest)
            }
        };
        rows.push(ChangedRow {
            key: key.to_vec(),
            value,
        });
        bytes = rest;
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_rows_equal_encoded_changes() {
        let changes = [
            RowChange::put("key", "value"),
            RowChange::delete("gone"),
            RowChange::put("", ""),
            RowChange::put(vec![0xff; KEY_BYTES_MAX], vec![0xff; ROW_BYTES_MAX]),
        ];
        let expected: Vec<ChangedRow> = changes
            .iter()
            .map(|change| ChangedRow {
                key: change.key.clone(),
                value: change.value.clone(),
            })
            .collect();
        let bytes = encode(&changes);
        assert_eq!(decode(&bytes), Some(expected));
        let whole: Vec<usize> = (0..bytes.len())
            .filter(|&end| decode(&bytes[..end]).is_some())
            .collect();
        assert_eq!(whole, [0, 12, 20, 24], "only between rows");
    }
}
