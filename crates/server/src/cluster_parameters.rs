//! Parameters of the whole deployment, which `setClusterParameter` changes and which survive a
//! restart. They are stored in a collection, as in MongoDB.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use windrow_collection::{Change, Collection, Engine, InsertOrder, Namespace};
use windrow_document::{Document, DocumentBuf, Timestamp, Value, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_query::{Error, Find, Snapshot, Uninterrupted};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::clock;
use crate::errors::OrCommandError;
use crate::sync::lock;

/// The only parameter: the default time limit of reads.
pub const DEFAULT_TIME_LIMIT: &str = "defaultMaxTimeMS";

/// Its only field.
const READ_OPERATIONS: &str = "readOperations";

/// The values of all cluster parameters.
#[derive(Debug)]
pub struct ClusterParameters {
    /// The time limit in milliseconds. 0 is no limit.
    read_limit: AtomicI64,
    /// The time of the last change. The lock is held while a parameter is changed.
    set_at: Mutex<Timestamp>,
}

impl Default for ClusterParameters {
    fn default() -> ClusterParameters {
        ClusterParameters {
            read_limit: AtomicI64::new(0),
            set_at: Mutex::new(Timestamp::from_bits(0)),
        }
    }
}

impl ClusterParameters {
    /// Loads the stored values. Fails if they cannot be read.
    pub fn load(engine: &Engine) -> Result<ClusterParameters, CommandError> {
        let Some(collection) = engine.collection(&namespace()) else {
            return Ok(ClusterParameters::default());
        };
        let Some(stored) = find(&collection).or_command_error()? else {
            return Ok(ClusterParameters::default());
        };
        let millis = read(stored.as_document(), &[READ_OPERATIONS, "_id", SET_AT])?;
        let set_at = match stored.get(SET_AT) {
            Some(ValueRef::Timestamp(time)) => time,
            _ => Timestamp::from_bits(0),
        };
        Ok(ClusterParameters {
            read_limit: AtomicI64::new(millis),
            set_at: Mutex::new(set_at),
        })
    }

    /// Returns the time limit of a read that sets none.
    pub fn read_limit(&self) -> Option<Duration> {
        let millis = self.read_limit.load(Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis.unsigned_abs()))
    }

    /// Returns the parameter for `getClusterParameter`. `None` if there is none with this name.
    pub fn describe(&self, name: &str) -> Option<DocumentBuf> {
        (name == DEFAULT_TIME_LIMIT).then(|| self.document(&lock(&self.set_at)))
    }

    /// Returns all parameters, for the audit log.
    pub fn describe_all(&self) -> Vec<DocumentBuf> {
        self.describe(DEFAULT_TIME_LIMIT).into_iter().collect()
    }

    fn document(&self, set_at: &MutexGuard<'_, Timestamp>) -> DocumentBuf {
        document(**set_at, self.read_limit.load(Relaxed))
    }

    /// Sets the parameter to the value of a client and stores it.
    pub fn set_default_time_limit(
        &self,
        engine: &Engine,
        value: Document<'_>,
    ) -> Result<(), CommandError> {
        let millis = read(value, &[READ_OPERATIONS])?;
        let mut set_at = lock(&self.set_at);
        let time = clock::timestamp();
        store(engine, document(time, millis)).or_command_error()?;
        engine.sync().or_command_error()?;
        *set_at = time;
        self.read_limit.store(millis, Relaxed);
        Ok(())
    }
}

/// The field with the time at which a parameter was set.
const SET_AT: &str = "clusterParameterTime";

fn document(set_at: Timestamp, millis: i64) -> DocumentBuf {
    doc! {
        "_id": DEFAULT_TIME_LIMIT, SET_AT: (Value::Timestamp(set_at)), READ_OPERATIONS: millis,
    }
}

/// Parses the milliseconds of the parameter. A null or missing value is 0.
fn read(value: Document<'_>, fields: &[&str]) -> Result<i64, CommandError> {
    let arguments = Arguments::within(DEFAULT_TIME_LIMIT, value);
    arguments.only(fields)?;
    let millis = arguments.count(READ_OPERATIONS)?.unwrap_or(0);
    i64::try_from(millis).map_err(|_| {
        let message = format!("{READ_OPERATIONS} is out of range: {millis}");
        CommandError::new(ErrorCode::BadValue, message)
    })
}

fn namespace() -> Namespace {
    Namespace {
        database: "config".to_owned(),
        collection: "clusterParameters".to_owned(),
    }
}

fn query_by_name() -> Result<Find, Error> {
    let filter = doc! { "_id": DEFAULT_TIME_LIMIT };
    Ok(Find::new(Filter::parse(filter.as_document())?))
}

fn find(collection: &Collection) -> Result<Option<DocumentBuf>, Error> {
    let row = query_by_name()?
        .open(&Snapshot::open(collection)?)?
        .next_row(&Uninterrupted)?;
    Ok(row.map(|row| row.document().to_buf()))
}

/// Stores the parameter in place of the old value.
fn store(engine: &Engine, document: DocumentBuf) -> Result<(), Error> {
    let collection: Arc<Collection> = engine.collection_or_create(&namespace())?;
    let row = query_by_name()?
        .open(&Snapshot::open(&collection)?)?
        .next_row(&Uninterrupted)?;
    match row {
        None => {
            let inserted =
                collection.insert(Bytes::from(document.into_bytes()), InsertOrder::Ordered)?;
            Ok(inserted.check_all_inserted()?)
        }
        Some(row) => {
            let mut batch = collection.batch();
            batch.change_seen(row.id, row.document(), |_| {
                Ok::<_, Error>(Change::Replace(document.clone()))
            })?;
            Ok(batch.commit()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_collection::EngineOptions;
    use windrow_storage::MemoryDisk;

    use super::*;

    /// A value that could not be read had counted as unset, without an error.
    #[test]
    fn an_invalid_stored_value_is_an_error() {
        let options = EngineOptions::with_memory(1 << 30);
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).unwrap();
        store(
            &engine,
            doc! { "_id": DEFAULT_TIME_LIMIT, READ_OPERATIONS: "x" },
        )
        .unwrap();
        let error = ClusterParameters::load(&engine).unwrap_err();
        assert_eq!(error.code, ErrorCode::TypeMismatch);
    }

    #[test]
    fn the_read_time_limit_is_stored() {
        let disk = Arc::new(MemoryDisk::new());
        let open = || Engine::open(disk.clone(), EngineOptions::with_memory(1 << 30)).unwrap();
        let check = |value: DocumentBuf, expected: Result<Option<u64>, i32>| {
            let engine = open();
            let parameters = ClusterParameters::load(&engine).unwrap();
            let set = parameters.set_default_time_limit(&engine, value.as_document());
            let found = set.map(|()| parameters.read_limit());
            drop(engine);
            let limit = expected.map(|millis| millis.map(Duration::from_millis));
            assert_eq!(found.map_err(|error| error.code.number()), limit, "{value}");
            if let Ok(limit) = limit {
                let loaded = ClusterParameters::load(&open()).unwrap();
                assert_eq!(loaded.read_limit(), limit);
            }
        };
        check(doc! { "readOperations": 5000 }, Ok(Some(5000)));
        check(doc! { "readOperations": 7.0 }, Ok(Some(7)));
        check(doc! { "readOperations": null }, Ok(None));
        check(doc! {}, Ok(None));
        check(doc! { "readOperations": (-1) }, Err(2));
        check(doc! { "readOperations": "x" }, Err(14));
        check(doc! { "readOperations": true }, Err(14));
        check(doc! { "other": 1 }, Err(40_415));
    }
}
