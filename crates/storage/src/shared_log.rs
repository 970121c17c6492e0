//! The shared log: reading its objects, taking it over, and extending it.
//!
//! Rules that keep acknowledged records:
//!
//! 1. The next object is created under the next number, and only after the object before it exists.
//!    The creation is the commit of its records, and proves that no other server has taken over.
//! 2. A server takes over by creating a takeover object at the first free number. Then it reads the
//!    boundary of garbage collection: if the number is not after the boundary, the number was free
//!    because its object was deleted, and the server is far behind. Its takeover object remains and
//!    means nothing: readers that find records missing after it begin again at the newest boundary.
//! 3. A takeover object is never deleted. The next number of a writer that slept is therefore
//!    occupied forever.
//! 4. If the number is occupied, the writer reads the object. If it has the writer's own put id,
//!    the reply of an earlier attempt was lost.

pub(crate) mod boundary;
pub(crate) mod database;
pub(crate) mod log_object;
pub(crate) mod members;
pub(crate) mod probe;
pub(crate) mod read_ahead;
pub(crate) mod shared_keys;
#[cfg(test)]
mod simulation;
pub(crate) mod uploader;

use std::sync::Arc;

use bytes::Bytes;

use crate::bucket::{Bucket, Creation, RetryPolicy, retry};
use crate::error::StorageError;
use crate::local_state::{Id, random_id};
use crate::log::StoredPayload;
use crate::position::Position;

use boundary::{Boundary, CHECKPOINTS, CheckpointName};
use log_object::{LogObject, LogObjectEncoder, LogObjectHeader, ObjectKind, decode};

/// The end of the shared log as one server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// The number of the next object.
    pub number: u64,
    /// The position of the next record.
    pub position: Position,
    /// The newest epoch.
    pub epoch: u64,
    /// The writer of the newest object.
    pub writer: Id,
    /// The time of the newest record, in milliseconds since 1970.
    pub millis: u64,
    /// True if the writer has ended.
    pub is_released: bool,
}

impl LogEnd {
    /// The end of an empty log.
    pub const EMPTY: LogEnd = LogEnd {
        number: 1,
        position: Position(1),
        epoch: 0,
        writer: [0; 16],
        millis: 0,
        is_released: true,
    };

    /// Returns the end after `object`.
    pub fn after(object: &LogObject) -> LogEnd {
        let newest = object.records.last();
        LogEnd {
            number: object.header.number + 1,
            position: object.next_position(),
            epoch: object.header.epoch,
            writer: object.header.writer,
            millis: newest.map_or(object.header.millis, |record| record.payload.millis),
            is_released: object.header.kind == ObjectKind::Release,
        }
    }
}

/// Returns the log object `number`. `None`: it does not exist, because it was not created yet or
/// was deleted.
///
/// # Errors
/// Fails with `Damaged` if the object cannot be read, and if the object store fails.
pub(crate) fn read(bucket: &dyn Bucket, number: u64) -> Result<Option<LogObject>, StorageError> {
    let name = log_object::name(number);
    let Some(bytes) = bucket.get(&name)? else {
        return Ok(None);
    };
    let damaged = |what| StorageError::damaged(bucket.place(&name), what);
    decode(&bytes, number).map(Some).map_err(damaged)
}

/// Returns whether an object continues the log at `expected`, the position after the objects that
/// the caller has read before. `false`: some of these objects were deleted, and the caller has read
/// takeover objects of servers that were far behind in their place. It has to begin again.
///
/// # Errors
/// Fails with `Damaged` if the log has lost records, and if the object store fails.
pub(crate) fn follows(
    bucket: &dyn Bucket,
    object: &LogObject,
    expected: Position,
) -> Result<bool, StorageError> {
    let LogObjectHeader { number, first, .. } = object.header;
    if first == expected {
        return Ok(true);
    }
    let (_, boundary) = boundary::newest(bucket)?;
    if number <= boundary.collected + 1 {
        return Ok(false);
    }
    let what = format!("it begins with record {first}, but record {expected} should follow");
    let place = bucket.place(&log_object::name(number));
    Err(StorageError::damaged(place, what))
}

/// Returns the header of the log object `number`, or `None` if there is no such object.
///
/// # Errors
/// Fails as [`read`] does.
pub(crate) fn read_header(
    bucket: &dyn Bucket,
    number: u64,
) -> Result<Option<LogObjectHeader>, StorageError> {
    let name = log_object::name(number);
    let range = 0..log_object::HEADER_BYTES as u64;
    let Some(bytes) = bucket.get_range(&name, range)? else {
        return Ok(None);
    };
    let damaged = |what| StorageError::damaged(bucket.place(&name), what);
    log_object::decode_header(&bytes).map(Some).map_err(damaged)
}

/// The result of [`take_over`].
pub(crate) enum Takeover {
    /// The caller is the only server that can extend the log.
    Won(LogWriter),
    /// There is an object after the end that the caller knows.
    Behind,
    /// Objects after the end that the caller knows were deleted.
    Collected,
}

/// Tries to take over the log. `end` is the end of the log as the caller has read it. `address` is
/// where clients connect to this server.
///
/// # Errors
/// Fails if the object store fails and `retry_policy` refuses another attempt. A takeover object
/// may exist then: the log has a new epoch, and the caller has to read on.
pub(crate) fn take_over(
    bucket: &Arc<dyn Bucket>,
    end: LogEnd,
    server: Id,
    address: &str,
    retry_policy: &dyn RetryPolicy,
) -> Result<Takeover, StorageError> {
    let header = LogObjectHeader {
        number: end.number,
        epoch: end.epoch + 1,
        writer: server,
        put: random_id()?,
        first: end.position,
        millis: end.millis,
        kind: ObjectKind::Takeover,
    };
    let bytes = LogObjectEncoder::new(&header, address).finish();
    if let ObjectCreation::Another(_) = create(bucket.as_ref(), &header, bytes, retry_policy)? {
        return Ok(Takeover::Behind);
    }
    let (_, boundary) = retry(retry_policy, || boundary::newest(bucket.as_ref()))?;
    if end.number <= boundary.collected {
        return Ok(Takeover::Collected);
    }
    Ok(Takeover::Won(LogWriter {
        bucket: bucket.clone(),
        end: LogEnd {
            number: end.number + 1,
            epoch: header.epoch,
            writer: server,
            is_released: false,
            ..end
        },
    }))
}

/// Extends the shared log. Only the server that has taken it over has one.
pub(crate) struct LogWriter {
    bucket: Arc<dyn Bucket>,
    end: LogEnd,
}

impl LogWriter {
    /// Returns the end of the log.
    pub fn end(&self) -> LogEnd {
        self.end
    }

    /// Returns an encoder for the next object.
    ///
    /// # Errors
    /// Fails if the operating system gives no random numbers.
    pub fn begin(&self, kind: ObjectKind) -> Result<NextObject, StorageError> {
        let header = LogObjectHeader {
            number: self.end.number,
            epoch: self.end.epoch,
            writer: self.end.writer,
            put: random_id()?,
            first: self.end.position,
            millis: self.end.millis,
            kind,
        };
        Ok(NextObject {
            encoder: LogObjectEncoder::new(&header, ""),
            end: LogEnd {
                number: header.number + 1,
                ..self.end
            },
            header,
        })
    }

    /// Creates the next object. Returns after its records are part of the log.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log: none of the records is in it,
    /// and the writer cannot be used any more. Fails with the error of the object store if
    /// `retry_policy` refuses another attempt: the object may have been created.
    pub fn append(
        &mut self,
        object: NextObject,
        retry_policy: &dyn RetryPolicy,
    ) -> Result<(), StorageError> {
        let NextObject {
            encoder,
            header,
            end,
        } = object;
        match create(
            self.bucket.as_ref(),
            &header,
            encoder.finish(),
            retry_policy,
        )? {
            ObjectCreation::Own => {
                self.end = end;
                Ok(())
            }
            ObjectCreation::Another(found) => Err(StorageError::Fenced {
                by: found.address,
                epoch: found.header.epoch,
            }),
        }
    }
}

/// The next object of the log while records are added.
pub(crate) struct NextObject {
    encoder: LogObjectEncoder,
    header: LogObjectHeader,
    /// The end of the log after this object.
    end: LogEnd,
}

impl NextObject {
    /// Returns the size of the object so far.
    pub fn bytes(&self) -> usize {
        self.encoder.len()
    }

    /// Adds the record that follows those before.
    pub fn add(&mut self, record: &StoredPayload) {
        self.encoder.add(record);
        self.end.position = self.end.position.next();
        self.end.millis = record.millis;
    }
}

enum ObjectCreation {
    /// The object is the caller's.
    Own,
    /// Another server's object has the number.
    Another(LogObject),
}

/// Creates a log object, and finds out whose it is if it exists.
fn create(
    bucket: &dyn Bucket,
    header: &LogObjectHeader,
    bytes: Bytes,
    retry_policy: &dyn RetryPolicy,
) -> Result<ObjectCreation, StorageError> {
    let name = log_object::name(header.number);
    loop {
        let creation = retry(retry_policy, || bucket.create(&name, bytes.clone()))?;
        if creation == Creation::Created {
            return Ok(ObjectCreation::Own);
        }
        match retry(retry_policy, || read(bucket, header.number))? {
            Some(found) if found.header.put == header.put => return Ok(ObjectCreation::Own),
            Some(found) => return Ok(ObjectCreation::Another(found)),
            // It was deleted between the two calls.
            None => {}
        }
    }
}

/// Deletes the log objects that a boundary covers, except takeover objects, and the checkpoints
/// before the one that it names.
pub(crate) fn delete_covered(
    bucket: &dyn Bucket,
    boundary: &Boundary,
    retry_policy: &dyn RetryPolicy,
) -> Result<(), StorageError> {
    let names = retry(retry_policy, || bucket.list(log_object::FOLDER, ""))?;
    let numbers = names
        .iter()
        .filter_map(|it| log_object::number_from_name(it));
    for number in numbers.filter(|number| *number <= boundary.collected) {
        let header = retry(retry_policy, || read_header(bucket, number))?;
        if header.is_some_and(|header| header.kind != ObjectKind::Takeover) {
            retry(retry_policy, || bucket.delete(&log_object::name(number)))?;
        }
    }
    let names = retry(retry_policy, || bucket.list(CHECKPOINTS, ""))?;
    let checkpoints = names.iter().filter_map(|name| CheckpointName::parse(name));
    let newest = boundary.checkpoint;
    for name in checkpoints.filter(|name| newest.is_some_and(|newest| *name < newest)) {
        retry(retry_policy, || bucket.delete(&name.path()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBucket;

    #[test]
    fn gap_is_damage_unless_garbage_collection_has_made_it() {
        let bucket = MemoryBucket::new();
        let header = LogObjectHeader {
            number: 7,
            epoch: 1,
            writer: [1; 16],
            put: [2; 16],
            first: Position(40),
            millis: 1,
            kind: ObjectKind::Segment,
        };
        let object = decode(&LogObjectEncoder::new(&header, "").finish(), 7).unwrap();
        let collect = |collected| {
            let to = Boundary {
                collected,
                start: 7,
                checkpoint: None,
            };
            boundary::advance(&bucket, to).unwrap();
        };
        assert!(follows(&bucket, &object, Position(40)).unwrap());
        for collected in [0, 5] {
            collect(collected);
            let gap = follows(&bucket, &object, Position(39)).unwrap_err();
            let what = "it begins with record 40, but record 39 should follow";
            assert!(gap.to_string().contains(what), "{gap}");
        }
        // The object 6 was deleted: what the caller has read there is a takeover object.
        collect(6);
        assert!(!follows(&bucket, &object, Position(39)).unwrap());
    }
}
