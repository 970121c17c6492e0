//! Inserts documents in batches.

use windrow_document::{DocumentBuf, Value, ValueRef, doc};

use crate::database::Database;
use crate::error::PageError;
use crate::literals::DocumentReader;
use crate::namespace::Namespace;
use crate::texts::collections as texts;

/// The maximum number of documents in an `insert` command.
const BATCH_COUNT_MAX: usize = 1_000;
/// The maximum number of bytes of the documents in an `insert` command.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// Parses all documents of a text.
///
/// # Errors
/// Fails with a message if the syntax is wrong, or if there are no documents.
pub fn read_documents(text: &str) -> Result<Vec<DocumentBuf>, PageError> {
    let read: Result<Vec<_>, _> = DocumentReader::new(text).collect();
    let documents = read.map_err(|error| reading_error(&error.to_string()))?;
    check_count(documents)
}

/// Fails if there are no documents.
///
/// # Errors
/// Fails with a message.
pub fn check_count(documents: Vec<DocumentBuf>) -> Result<Vec<DocumentBuf>, PageError> {
    if documents.is_empty() {
        Err(PageError::bad_request(texts::NOTHING_TO_INSERT))
    } else {
        Ok(documents)
    }
}

/// Returns the error for a text that cannot be parsed.
pub fn reading_error(message: &str) -> PageError {
    PageError::bad_request(texts::field_error(texts::DOCUMENTS, message))
}

/// Inserts documents. Returns their number.
///
/// # Errors
/// Fails with the number of inserted documents and the server's message.
pub fn insert_all(
    database: &mut Database,
    namespace: &Namespace,
    documents: Vec<DocumentBuf>,
) -> Result<usize, PageError> {
    let mut inserted = 0;
    let documents = &mut documents.into_iter().map(Ok);
    let result = insert_batches(database, namespace, documents, &mut |count| {
        inserted += count;
        true
    });
    match result {
        Ok(_) => Ok(inserted),
        Err(error) => {
            let message = format!("{} {}", texts::inserted(inserted as i64), error.message);
            Err(PageError::new(error.status, message))
        }
    }
}

/// Inserts documents while they are read. After each batch, `inserted` receives the number of its
/// documents, and returns `false` to stop. Returns `true` if all documents were inserted.
///
/// # Errors
/// Fails if a document cannot be read or inserted. The documents before it are inserted.
pub fn insert_batches(
    database: &mut Database,
    namespace: &Namespace,
    documents: &mut dyn Iterator<Item = Result<DocumentBuf, PageError>>,
    inserted: &mut dyn FnMut(usize) -> bool,
) -> Result<bool, PageError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut end = Ok(());
    loop {
        let next = documents.next();
        let is_full = batch.len() >= BATCH_COUNT_MAX
            || matches!(&next, Some(Ok(it)) if bytes + it.as_bytes().len() > BATCH_BYTES_MAX);
        let is_over = !matches!(next, Some(Ok(_)));
        if (is_full || is_over) && !batch.is_empty() {
            let (count, error) = insert_batch(database, namespace, std::mem::take(&mut batch))?;
            bytes = 0;
            let should_continue = inserted(count);
            error?;
            if !should_continue {
                return Ok(false);
            }
        }
        match next {
            Some(Ok(document)) => {
                bytes += document.as_bytes().len();
                batch.push(Value::Document(document));
            }
            Some(Err(error)) => end = Err(error),
            None => {}
        }
        if is_over {
            return end.map(|()| true);
        }
    }
}

/// Inserts a batch. Returns the number of inserted documents, and the error of the next document if
/// it failed.
fn insert_batch(
    database: &mut Database,
    namespace: &Namespace,
    batch: Vec<Value>,
) -> Result<(usize, Result<(), PageError>), PageError> {
    let count = batch.len();
    let command = doc! {
        "insert": (namespace.collection.as_str()), "documents": batch,
        "$db": (namespace.database.as_str()),
    };
    let reply = database.run(command)?;
    let inserted = reply.get("n").and_then(ValueRef::as_whole);
    let inserted = inserted.and_then(|it| usize::try_from(it).ok());
    Ok((inserted.unwrap_or(count), check_write(&reply)))
}

/// Fails with the first write error of a reply.
///
/// # Errors
/// Fails with the server's message.
pub fn check_write(reply: &DocumentBuf) -> Result<(), PageError> {
    let errors = reply.get("writeErrors").and_then(ValueRef::as_array);
    let error = errors
        .and_then(|it| it.get(0))
        .and_then(ValueRef::as_document);
    match error
        .and_then(|it| it.get("errmsg"))
        .and_then(ValueRef::as_str)
    {
        Some(message) => Err(PageError::bad_request(message)),
        None => Ok(()),
    }
}
