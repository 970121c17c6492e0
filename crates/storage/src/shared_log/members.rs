//! The servers of a database: `servers/{server id}`, each with the address that clients connect to.

use bytes::Bytes;

use crate::bucket::Bucket;
use crate::error::StorageError;
use crate::local_state::{Id, hex};

const FOLDER: &str = "servers";

/// Makes the address of a server known to the others.
pub(crate) fn register(bucket: &dyn Bucket, server: Id, address: &str) -> Result<(), StorageError> {
    let name = format!("{FOLDER}/{}", hex(server));
    let known = bucket.get(&name)?;
    if known.as_deref() == Some(address.as_bytes()) {
        return Ok(());
    }
    // A server with a new data folder replaces the one that had its address.
    for other in bucket.list(FOLDER, "")? {
        let other = format!("{FOLDER}/{other}");
        if other != name && bucket.get(&other)?.as_deref() == Some(address.as_bytes()) {
            bucket.delete(&other)?;
        }
    }
    bucket.put(&name, Bytes::copy_from_slice(address.as_bytes()))
}

/// Returns the addresses of all servers, in ascending order.
pub(crate) fn addresses(bucket: &dyn Bucket) -> Result<Vec<String>, StorageError> {
    let mut found = Vec::new();
    for name in bucket.list(FOLDER, "")? {
        if let Some(bytes) = bucket.get(&format!("{FOLDER}/{name}"))? {
            found.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
