//! The boundaries of garbage collection: `boundary/{index, 20 digits}`. A boundary says which log
//! objects can be gone, and where a server without local data begins. The layout is drawn in
//! docs/format.md.
//!
//! Boundaries are a chain: the next one is created only after the newest one was read, so each says
//! at least as much as the one before. Log objects are deleted only after a boundary covers them. A
//! few old boundaries remain, so that a reader with an old list finds the newest one by counting
//! up.

use bytes::Bytes;

use crate::bucket::{Bucket, Creation, RetryPolicy, retry};
use crate::checksum::checksum;
use crate::error::StorageError;
use crate::fields::{put, u64_at};
use crate::position::Position;

const FOLDER: &str = "boundary";
const MAGIC: &[u8; 8] = b"WRbnd-01";
const BYTES: usize = 56;
/// The number of old boundaries that are kept.
const OLD_BOUNDARIES_MAX: u64 = 64;

/// The content of a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Boundary {
    /// Log objects up to this number can be deleted, except takeover objects.
    pub collected: u64,
    /// The first log object that a server without local data reads.
    pub start: u64,
    /// The checkpoint of the catalog that such a server loads. `None`: it needs none.
    pub checkpoint: Option<CheckpointName>,
}

/// The name of a checkpoint of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckpointName {
    pub position: Position,
    /// The epoch of the server that wrote it.
    pub epoch: u64,
}

pub(crate) const CHECKPOINTS: &str = "catalog";

impl CheckpointName {
    pub fn path(self) -> String {
        format!("{CHECKPOINTS}/{:020}-{:010}", self.position.0, self.epoch)
    }

    /// Reads the name of a checkpoint without its folder.
    pub fn parse(name: &str) -> Option<Self> {
        let (position, epoch) = name.split_once('-')?;
        Some(Self {
            position: Position(position.parse().ok()?),
            epoch: epoch.parse().ok()?,
        })
    }
}

fn name(index: u64) -> String {
    format!("{FOLDER}/{index:020}")
}

fn encode(index: u64, boundary: &Boundary) -> Bytes {
    let mut bytes = vec![0; BYTES];
    let checkpoint = boundary.checkpoint;
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, &index.to_le_bytes());
    put(&mut bytes, 16, &boundary.collected.to_le_bytes());
    put(&mut bytes, 24, &boundary.start.to_le_bytes());
    let position = checkpoint.map_or(0, |name| name.position.0);
    put(&mut bytes, 32, &position.to_le_bytes());
    let epoch = checkpoint.map_or(0, |name| name.epoch);
    put(&mut bytes, 40, &epoch.to_le_bytes());
    let sum = checksum(index, bytes.split_at(BYTES - 8).0);
    put(&mut bytes, BYTES - 8, &sum.to_le_bytes());
    bytes.into()
}

fn decode(bytes: &[u8], index: u64) -> Option<Boundary> {
    let covered = bytes.get(..BYTES - 8)?;
    let is_whole = bytes.len() == BYTES && covered.get(..8) == Some(MAGIC.as_slice());
    if !is_whole || u64_at(bytes, BYTES - 8)? != checksum(index, covered) {
        return None;
    }
    let name = CheckpointName {
        position: Position(u64_at(bytes, 32)?),
        epoch: u64_at(bytes, 40)?,
    };
    Some(Boundary {
        collected: u64_at(bytes, 16)?,
        start: u64_at(bytes, 24)?,
        checkpoint: (name.position > Position::ZERO).then_some(name),
    })
}

/// Returns the newest boundary and its index. Returns index 0 if there is none.
///
/// # Errors
/// Fails with `Damaged` if the boundary cannot be read, and if the object store fails.
pub(crate) fn newest(bucket: &dyn Bucket) -> Result<(u64, Boundary), StorageError> {
    let names = bucket.list(FOLDER, "")?;
    let listed = names.iter().filter_map(|name| name.parse().ok()).max();
    let mut index: u64 = listed.unwrap_or(0);
    let mut newest = Boundary::default();
    let mut read = 0;
    loop {
        let at = if read == 0 { index.max(1) } else { index + 1 };
        let Some(bytes) = bucket.get(&name(at))? else {
            // The listed one can only be missing if newer ones exist: it was deleted since.
            return match (read, listed) {
                (0, Some(_)) => self::newest(bucket),
                (0, None) => Ok((0, newest)),
                _ => Ok((index, newest)),
            };
        };
        newest = decode(&bytes, at).ok_or_else(|| {
            StorageError::damaged(bucket.place(&name(at)), "it is not a boundary")
        })?;
        index = at;
        read += 1;
    }
}

/// Checks that there is a newer boundary than `used`, after which what `used` names can be deleted.
///
/// # Errors
/// Fails with `Damaged` if there is none: the object store has lost `what`.
pub(crate) fn check_replaced(
    bucket: &dyn Bucket,
    retry_policy: &dyn RetryPolicy,
    used: Boundary,
    what: &str,
) -> Result<(), StorageError> {
    let (_, newest) = retry(retry_policy, || newest(bucket))?;
    if newest != used {
        return Ok(());
    }
    let what = format!("the database names {what}, which is missing");
    Err(StorageError::damaged(bucket.place(""), what))
}

/// Adds a boundary to the chain, unless the newest one says as much. Deletes boundaries that are no
/// longer kept. Returns the newest boundary afterwards.
///
/// # Errors
/// Fails if the object store fails.
pub(crate) fn advance(bucket: &dyn Bucket, to: Boundary) -> Result<Boundary, StorageError> {
    loop {
        let (index, newest) = newest(bucket)?;
        if newest.collected >= to.collected && newest.start >= to.start {
            return Ok(newest);
        }
        let next = Boundary {
            collected: newest.collected.max(to.collected),
            ..if newest.start >= to.start { newest } else { to }
        };
        match bucket.create(&name(index + 1), encode(index + 1, &next))? {
            Creation::Exists => continue,
            Creation::Created => {}
        }
        for old in (1..=index.saturating_sub(OLD_BOUNDARIES_MAX)).rev().take(4) {
            bucket.delete(&name(old))?;
        }
        return Ok(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::memory::MemoryBucket;

    #[test]
    fn boundaries_only_advance() {
        let bucket = MemoryBucket::new();
        assert_eq!(newest(&bucket).unwrap(), (0, Boundary::default()));
        let name = |position, epoch| CheckpointName {
            position: Position(position),
            epoch,
        };
        let far = Boundary {
            collected: 10,
            start: 12,
            checkpoint: Some(name(500, 2)),
        };
        assert_eq!(advance(&bucket, far).unwrap(), far);
        let near = Boundary {
            collected: 4,
            start: 5,
            checkpoint: Some(name(100, 1)),
        };
        assert_eq!(
            advance(&bucket, near).unwrap(),
            far,
            "an older primary is late"
        );
        assert_eq!(newest(&bucket).unwrap(), (1, far));
        for step in 11..200 {
            let next = Boundary {
                collected: step,
                start: step + 2,
                ..far
            };
            assert_eq!(advance(&bucket, next).unwrap(), next);
        }
        let (index, boundary) = newest(&bucket).unwrap();
        assert_eq!((index, boundary.collected), (190, 199));
        let kept = bucket.list(FOLDER, "").unwrap().len() as u64;
        assert!(
            (OLD_BOUNDARIES_MAX..=OLD_BOUNDARIES_MAX + 2).contains(&kept),
            "{kept}"
        );
    }

    #[test]
    fn names_of_checkpoints_are_read_back() {
        let name = CheckpointName {
            position: Position(u64::MAX),
            epoch: 7,
        };
        let path = name.path();
        let read = CheckpointName::parse(path.strip_prefix("catalog/").unwrap());
        assert_eq!(read, Some(name));
    }
}
