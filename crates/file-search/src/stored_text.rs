//! The text of an indexed document.

use windrow_document::{ValueRef, array};

use crate::source::DocumentSource;

/// The text of an indexed document.
#[derive(Debug)]
pub struct StoredText {
    /// The path, including the position inside the file.
    pub id: String,
    /// The title.
    pub title: String,
    /// The kind of document.
    pub kind: String,
    /// The complete text.
    pub text: String,
    /// The reason why the document has no text. `None` if it has one.
    pub unread: Option<String>,
}

/// Reads the text of a document by its `_id`. Returns `None` if the document does not exist.
///
/// # Errors
/// Fails as [`DocumentSource::aggregate`] does.
pub fn read_stored_text<S: DocumentSource>(
    source: &mut S,
    id: &str,
) -> Result<Option<StoredText>, S::Error> {
    let document = source.first(&array![{ "$match": { "_id": id } }])?;
    Ok(document.map(|document| {
        let field = |name: &str| {
            let text = document.as_document().get(name).and_then(ValueRef::as_str);
            text.unwrap_or_default().to_owned()
        };
        let title = Some(field("title")).filter(|title| !title.is_empty());
        StoredText {
            id: id.to_owned(),
            title: title.unwrap_or_else(|| field("filename")),
            kind: field("kind"),
            text: field("text"),
            unread: Some(field("unread")).filter(|reason| !reason.is_empty()),
        }
    }))
}
