//! `--similar`: the documents that are like a file, by the words that tell most of it.

use std::path::Path;

use windrow_document::{DocumentBuf, Value, array, doc};
use windrow_ingest::path_to_text;

use super::pipeline::Target;
use super::searcher::Searcher;
use crate::command_line::Failure;

/// So many characters of a document are compared. The words of a long one are known by then.
const CHARACTERS_MAX: i32 = 100_000;

/// The fields that are compared.
const FIELDS: [&str; 4] = ["title", "subject", "keywords", "text"];

/// Returns what is like an indexed file, among the documents of an operator. The file itself is left out.
pub fn similar_target(
    searcher: &mut Searcher,
    file: &Path,
    restriction: Option<DocumentBuf>,
) -> Result<Target, Failure> {
    let id = document_id(file);
    let pipeline = array![
        { "$match": { "$or": [{ "_id": (id.as_str()) }, { "path": (id.as_str()) }] } },
        { "$limit": 1 },
        { "$project": {
            "path": 1, "title": 1, "subject": 1, "keywords": 1,
            "text": { "$substrCP": ["$text", 0, CHARACTERS_MAX] }
        } }
    ];
    let Some(document) = searcher.first(&pipeline)? else {
        let message = format!(
            "--similar {}: the file is not indexed; run `windrow index` on it first",
            file.display()
        );
        return Err(Failure::Runtime(message));
    };
    let document = document.as_document();
    let mut like = DocumentBuf::new();
    for name in FIELDS {
        if let Some(value) = document.get(name) {
            like.push(name, value.to_value());
        }
    }
    let operator = doc! { "moreLikeThis": { "like": (like) } };
    let path = document.get("path").map(|path| path.to_value());
    Ok(Target {
        operator: match restriction {
            None => operator,
            Some(other) => doc! { "compound": { "must": [(operator)], "filter": [(other)] } },
        },
        excluded_path: match path {
            Some(Value::String(path)) => Some(path),
            _ => None,
        },
    })
}

/// Returns the `_id` of a file, or of a member of one as results show it.
pub fn document_id(file: &Path) -> String {
    match file.canonicalize() {
        Ok(path) => path_to_text(&path),
        Err(_) => match std::path::absolute(file) {
            Ok(path) => path_to_text(&path),
            Err(_) => path_to_text(file),
        },
    }
}
