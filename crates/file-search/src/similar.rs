//! Finds documents that are similar to a file, by its most significant words.

use windrow_document::{DocumentBuf, Value, array, doc};

use crate::pipeline::Target;
use crate::source::DocumentSource;

/// The number of characters of a document that are compared. The significant words of a long
/// document occur within them.
const CHARACTERS_MAX: i32 = 100_000;

/// The fields that are compared.
const FIELDS: [&str; 4] = ["title", "subject", "keywords", "text"];

/// Returns the target of the documents that are similar to the document with this `_id` or path,
/// restricted to an operator. Documents of the same file are excluded. Returns `None` if the
/// document does not exist or has no text.
///
/// # Errors
/// Fails as [`DocumentSource::aggregate`] does.
pub fn similar_target<S: DocumentSource>(
    source: &mut S,
    id: &str,
    restriction: Option<DocumentBuf>,
) -> Result<Option<Target>, S::Error> {
    let pipeline = array![
        { "$match": { "$or": [{ "_id": id }, { "path": id }], "unread": { "$exists": false } } },
        { "$limit": 1 },
        { "$project": {
            "path": 1, "title": 1, "subject": 1, "keywords": 1,
            "text": { "$substrCP": ["$text", 0, CHARACTERS_MAX] }
        } }
    ];
    let Some(document) = source.first(&pipeline)? else {
        return Ok(None);
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
    Ok(Some(Target {
        operator: match restriction {
            None => operator,
            Some(other) => doc! { "compound": { "must": [(operator)], "filter": [(other)] } },
        },
        excluded_path: match path {
            Some(Value::String(path)) => Some(path),
            _ => None,
        },
    }))
}
