//! Reads all results of a cursor.

use crate::bson::{Document, Value};
use crate::client::{Connection, message};
use crate::error::BenchError;
use crate::load::{COLLECTION, DATABASE};

/// Sends `message`, reads all batches, and returns the number of documents.
pub fn drain(connection: &mut Connection, message_bytes: &[u8]) -> Result<u64, BenchError> {
    let first = connection.succeed(message_bytes)?;
    let mut count = elements(first, "cursor.firstBatch")?;
    let mut id = cursor_id(first)?;
    while id != 0 {
        let more = message(DATABASE, |writer| {
            writer.int64("getMore", id);
            writer.string("collection", COLLECTION);
        });
        let next = connection.succeed(&more)?;
        count += elements(next, "cursor.nextBatch")?;
        id = cursor_id(next)?;
    }
    Ok(count)
}

/// Returns the number of elements of the array at `path`.
pub fn elements(reply: Document, path: &str) -> Result<u64, BenchError> {
    match reply.get(path) {
        Some(Value::Array(batch)) => Ok(batch.iter().count() as u64),
        _ => Err(BenchError::Server(format!("a reply without {path}"))),
    }
}

fn cursor_id(reply: Document) -> Result<i64, BenchError> {
    match reply.get("cursor.id") {
        Some(Value::Int64(id)) => Ok(id),
        _ => Err(BenchError::Server("a reply without a cursor".into())),
    }
}
