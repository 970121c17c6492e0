//! The object `database`: the id of the database and the version of its layout in the object store.

use bytes::Bytes;

use crate::bucket::Bucket;

use crate::error::StorageError;
use crate::local_state::{Id, hex, parse_hex, random_id};

const NAME: &str = "database";
const TITLE: &str = "windrow object store format 1, draft 2";
/// The title of an encrypted database.
const TITLE_ENCRYPTED: &str = "windrow object store format 1, draft 2, encrypted";

/// A database in an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Database {
    pub id: Id,
    pub is_encrypted: bool,
}

/// Returns the database below a prefix. If there is none, begins a new one. The keys of an
/// encrypted one exist already.
///
/// # Errors
/// Fails with `UnknownFormat` if the layout is not that of this version, with `NotADataFolder` if
/// the prefix has other objects, and if the object store fails.
pub(crate) fn open(bucket: &dyn Bucket, is_encrypted: bool) -> Result<Database, StorageError> {
    if let Some(database) = find(bucket)? {
        return Ok(database);
    }
    if let Some(found) = bucket.list("log", "")?.first() {
        // Another server has begun the database between the two requests, or the object was
        // deleted.
        if let Some(database) = find(bucket)? {
            return Ok(database);
        }
        let place = bucket.place(NAME);
        let what = format!("it is missing, though log/{found} stands beside it");
        return Err(StorageError::damaged(place, what));
    }
    let title = if is_encrypted { TITLE_ENCRYPTED } else { TITLE };
    let text = format!("{title}\nid {}\n", hex(random_id()?));
    // Another server may create it at the same time, so the object decides.
    bucket.create(NAME, Bytes::from(text))?;
    match bucket.get(NAME)? {
        Some(bytes) => read(bucket, &bytes),
        None => Err(StorageError::Unsuitable {
            place: bucket.place(NAME),
            what: "an object that was created cannot be read".to_owned(),
        }),
    }
}

/// Returns the database below a prefix, or `None` if there is none.
///
/// # Errors
/// Fails as [`open`] does.
pub(crate) fn find(bucket: &dyn Bucket) -> Result<Option<Database>, StorageError> {
    let bytes = bucket.get(NAME)?;
    bytes.map(|bytes| read(bucket, &bytes)).transpose()
}

fn read(bucket: &dyn Bucket, bytes: &[u8]) -> Result<Database, StorageError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let title = lines.next().unwrap_or_default();
    let is_encrypted = title == TITLE_ENCRYPTED;
    if title != TITLE && !is_encrypted {
        return Err(StorageError::UnknownFormat {
            place: bucket.place(NAME),
            found: title.chars().take(60).collect(),
        });
    }
    let digits = lines.next().and_then(|line| line.strip_prefix("id "));
    let id = digits.and_then(parse_hex).ok_or_else(|| {
        StorageError::damaged(bucket.place(NAME), "it does not have the id of a database")
    })?;
    Ok(Database { id, is_encrypted })
}
