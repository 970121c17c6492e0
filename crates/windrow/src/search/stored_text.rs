//! The text of an indexed document.

use std::path::Path;

use windrow_document::{ValueRef, array};
use windrow_file_search::{DocumentSource as _, StoredText};

use super::searcher::Searcher;
use super::similar::document_id;
use crate::command_line::Failure;

/// The maximum number of members listed in a message.
const MEMBERS_SHOWN: i64 = 20;

/// Reads the text of a document by its path. Fails with the paths of the members if the file has
/// several documents.
pub fn read_stored_text(searcher: &mut Searcher, path: &Path) -> Result<StoredText, Failure> {
    let id = document_id(path);
    let document = windrow_file_search::read_stored_text(searcher, &id)?;
    // An archive itself is a document without text.
    let unread = match document {
        Some(document) if document.unread.is_none() => return Ok(document),
        unread => unread,
    };
    let members = array![
        { "$match": { "path": (id.as_str()), "_id": { "$ne": (id.as_str()) } } },
        { "$limit": MEMBERS_SHOWN },
        { "$project": { "_id": 1 } }
    ];
    let mut ids = Vec::new();
    searcher.aggregate(&members, &mut |document| {
        let id = document.get("_id").and_then(ValueRef::as_str);
        ids.extend(id.map(str::to_owned));
        true
    })?;
    match (unread, ids.is_empty()) {
        (Some(unread), true) => Ok(unread),
        (None, true) => Err(Failure::Runtime(format!("{id} is not indexed"))),
        (_, false) => {
            let ids = ids.join(", ");
            let reason = format!("{id} has several documents; read one of {ids}");
            Err(Failure::Runtime(reason))
        }
    }
}
