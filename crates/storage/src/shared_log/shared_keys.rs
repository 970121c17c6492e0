//! The object `keys`: the data keys of an encrypted database, wrapped by the master key that all of
//! its servers have. It has the text of the file KEYS of an encrypted data folder.

use std::sync::Arc;

use bytes::Bytes;

use super::database::{self, Database};
use crate::bucket::Bucket;
use crate::bucket::encrypted::EncryptedBucket;
use crate::encryption::{DataKeys, MasterKey, first_keys_text, read_keys_text};
use crate::error::StorageError;

const NAME: &str = "keys";

/// Returns the database below a prefix, and its data keys if it is encrypted. If there is no
/// database, begins one, which is encrypted if there is a master key.
///
/// # Errors
/// Fails as [`database::open`] and [`keys_of`] do.
pub(crate) fn open(
    bucket: &dyn Bucket,
    master: Option<&MasterKey>,
) -> Result<(Database, Option<Arc<DataKeys>>), StorageError> {
    let database = match database::find(bucket)? {
        Some(database) => database,
        None => {
            if let Some(master) = master {
                let text = first_keys_text(master);
                let text =
                    text.map_err(|error| StorageError::from_io(bucket.place(NAME), error))?;
                // If the object exists, another server begins the database, or has begun it and
                // crashed.
                bucket.create(NAME, Bytes::from(text))?;
            }
            database::open(bucket, master.is_some())?
        }
    };
    let keys = keys_of(bucket, database, master)?;
    Ok((database, keys))
}

/// Returns the data keys of a database. `None` if it is not encrypted.
///
/// # Errors
/// Fails with `Unsuitable` if the database is encrypted and there is no master key, or the other
/// way round, and with `WrongKey` if the master key is another one.
pub(crate) fn keys_of(
    bucket: &dyn Bucket,
    database: Database,
    master: Option<&MasterKey>,
) -> Result<Option<Arc<DataKeys>>, StorageError> {
    let unsuitable = |what: &str| StorageError::Unsuitable {
        place: bucket.place(""),
        what: what.to_owned(),
    };
    match (database.is_encrypted, master) {
        (false, None) => Ok(None),
        (true, None) => Err(unsuitable(
            "the database is encrypted: its encryption key file is needed",
        )),
        (false, Some(_)) => Err(unsuitable(
            "the database is not encrypted, so it cannot be opened with an encryption key; a new one \
             can be encrypted",
        )),
        (true, Some(master)) => {
            let place = bucket.place(NAME);
            let Some(text) = bucket.get(NAME)? else {
                return Err(StorageError::damaged(place, "the object is missing"));
            };
            read_keys_text(&text, master, &place).map(|keys| Some(Arc::new(keys)))
        }
    }
}

/// Returns the object store as servers with the keys read and write it.
pub(crate) fn with_keys(bucket: Arc<dyn Bucket>, keys: Option<&Arc<DataKeys>>) -> Arc<dyn Bucket> {
    match keys {
        Some(keys) => Arc::new(EncryptedBucket::new(bucket, keys.clone())),
        None => bucket,
    }
}
