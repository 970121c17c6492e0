//! The check of an object store at a start: it must create an object once only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use crate::bucket::{Bucket, Creation};

use crate::error::StorageError;
use crate::local_state::{hex, random_id};

const FOLDER: &str = "probe";
/// The number of concurrent creations of one name.
const RACERS: u32 = 32;

/// Creates a name twice, and another name from many threads at once. Removes both afterwards.
///
/// # Errors
/// Fails with `Unsuitable` if more or less than one creation succeeds, and with `Unavailable` if
/// the object store fails.
pub(crate) fn probe(bucket: &Arc<dyn Bucket>) -> Result<(), StorageError> {
    let id = hex(random_id()?);
    let twice = format!("{FOLDER}/{id}-twice");
    let race = format!("{FOLDER}/{id}-race");
    let checked = check_twice(bucket.as_ref(), &twice).and_then(|()| check_race(bucket, &race));
    // What remains after a failure is small and has a name of its own.
    let _ = bucket.delete(&twice);
    let _ = bucket.delete(&race);
    checked
}

fn check_twice(bucket: &dyn Bucket, name: &str) -> Result<(), StorageError> {
    let first = bucket.create(name, Bytes::from_static(b"first"))?;
    let second = bucket.create(name, Bytes::from_static(b"second"))?;
    let content = bucket.get(name)?;
    if first == Creation::Created
        && second == Creation::Exists
        && content.as_deref() == Some(b"first")
    {
        return Ok(());
    }
    Err(unsuitable(
        bucket,
        "it lets a second conditional write (If-None-Match: *) replace an object".to_owned(),
    ))
}

fn check_race(bucket: &Arc<dyn Bucket>, name: &str) -> Result<(), StorageError> {
    let winners = AtomicU32::new(0);
    let race = |racer: u32| -> Result<(), StorageError> {
        let bytes = Bytes::copy_from_slice(&racer.to_le_bytes());
        if bucket.create(name, bytes)? == Creation::Created {
            winners.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| scope.spawn(move || race(racer)))
            .collect();
        racers
            .into_iter()
            .filter_map(|racer| racer.join().ok())
            .collect::<Result<(), StorageError>>()
    })?;
    match winners.into_inner() {
        1 => Ok(()),
        winners => Err(unsuitable(
            bucket.as_ref(),
            format!("{winners} of {RACERS} concurrent creations of one object succeeded"),
        )),
    }
}

fn unsuitable(bucket: &dyn Bucket, what: String) -> StorageError {
    StorageError::Unsuitable {
        place: bucket.place(""),
        what,
    }
}
