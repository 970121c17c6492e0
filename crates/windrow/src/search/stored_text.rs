//! The text of an indexed document.

use std::path::Path;

use windrow_document::{ValueRef, array};

use super::searcher::Searcher;
use super::similar::document_id;
use crate::command_line::Failure;

/// The text of an indexed document.
#[derive(Debug)]
pub struct StoredText {
    /// The path, with that inside of a file.
    pub id: String,
    pub title: String,
    pub kind: String,
    pub text: String,
}

/// A message lists so many documents of a file.
const MEMBERS_SHOWN: i64 = 20;

/// Reads the text of a document by its path. A file of several documents is refused with their paths.
pub fn read_stored_text(searcher: &mut Searcher, path: &Path) -> Result<StoredText, Failure> {
    let id = document_id(path);
    if let Some(document) = read_stored_text_by_id(searcher, &id)? {
        return Ok(document);
    }
    let members = array![
        { "$match": { "path": (id.as_str()) } }, { "$limit": MEMBERS_SHOWN },
        { "$project": { "_id": 1 } }
    ];
    let mut ids = Vec::new();
    searcher.aggregate(&members, &mut |document| {
        let id = document.get("_id").and_then(ValueRef::as_str);
        ids.extend(id.map(str::to_owned));
        true
    })?;
    Err(Failure::Runtime(match ids.is_empty() {
        true => format!("{id} is not indexed"),
        false => format!("{id} has several documents; read one of {}", ids.join(", ")),
    }))
}

/// Reads the text of a document by its `_id`.
pub fn read_stored_text_by_id(
    searcher: &mut Searcher,
    id: &str,
) -> Result<Option<StoredText>, Failure> {
    let document = searcher.first(&array![{ "$match": { "_id": (id) } }])?;
    Ok(document.map(|document| {
        let field = |name: &str| {
            let text = document.as_document().get(name).and_then(ValueRef::as_str);
            text.unwrap_or_default().to_owned()
        };
        StoredText {
            id: id.to_owned(),
            title: field("title"),
            kind: field("kind"),
            text: field("text"),
        }
    }))
}
