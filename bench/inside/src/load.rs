//! The documents: their bodies on standard input, one a line.

use std::io::BufRead;

use bytes::Bytes;
use windrow_collection::{Collection, InsertOrder};
use windrow_document::DocumentBuf;

/// Why a program ends without figures.
pub type Failure = Box<dyn std::error::Error>;

const BATCH: usize = 1_000;

/// Reads all bodies.
pub fn bodies() -> Result<Vec<String>, Failure> {
    let lines = std::io::stdin().lock().lines();
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Inserts a document for each body.
pub fn insert(collection: &Collection, bodies: &[String]) -> Result<(), Failure> {
    for (batch, bodies) in bodies.chunks(BATCH).enumerate() {
        let mut documents = Vec::new();
        for (number, body) in bodies.iter().enumerate() {
            let mut document = DocumentBuf::new();
            document.push("_id", (batch * BATCH + number) as i64);
            document.push("body", body.as_str());
            documents.extend_from_slice(document.as_bytes());
        }
        let inserted = collection.insert(Bytes::from(documents), InsertOrder::Ordered)?;
        if let Some(failed) = inserted.errors.into_iter().next() {
            return Err(format!("document {}: {}", failed.index, failed.error).into());
        }
    }
    Ok(())
}
