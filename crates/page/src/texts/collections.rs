//! Databases, collections and documents.

pub const NAME: &str = "Collections";
pub const TITLE: &str = "Databases and collections";
pub const PARTS: &str = "Parts of the collection";
pub const PATH: &str = "Path";
pub const DOCUMENTS: &str = "Documents";
pub const SCHEMA: &str = "Schema";
pub const INDEXES: &str = "Indexes";
pub const PIPELINE: &str = "Aggregation";
pub const EXPLAIN: &str = "Explain";
pub const TRANSFER: &str = "Import and export";

pub const COLLECTION: &str = "Collection";
pub const DATABASE: &str = "Database";
pub const COUNT: &str = "Documents";
pub const AVERAGE_SIZE: &str = "Average size";
pub const DATA_SIZE: &str = "Data";
pub const INDEX_COUNT: &str = "Indexes";
pub const INDEX_SIZE: &str = "Size of indexes";
pub const NONE: &str = "There are no collections yet.";
pub const VIEW: &str = "view";
pub const CAPPED: &str = "capped";
pub const CLUSTERED: &str = "clustered";
pub const NOT_SHOWN: &str = "Sizes are shown for the first collections only.";
pub const CREATE: &str = "Create a collection";
pub const CREATE_SUBMIT: &str = "Create";
pub const IS_CLUSTERED: &str = "Clustered: documents in the order of _id";
pub const DROP_DATABASE: &str = "Drop the database";
pub const DROP_COLLECTION: &str = "Drop the collection";
pub const DROP_WARNING: &str =
    "All of its documents and indexes are lost. Type its name to confirm.";
pub const DROP_NAME: &str = "Name";
pub const DROP_MISMATCH: &str = "The name does not match. Nothing was dropped.";
pub const DROPPED: &str = "Dropped.";

pub const FILTER: &str = "Filter";
pub const FILTER_EXAMPLE: &str = "{ name: /^a/i, at: { $gte: ISODate(\"2026-01-01\") } }";
pub const PROJECTION: &str = "Projection";
pub const SORT: &str = "Sort";
pub const FIND: &str = "Find";
pub const RESET: &str = "Reset";
pub const MORE_OPTIONS: &str = "Projection and sort";
pub const PAGE_SIZE: &str = "Per page";
pub const VIEW_AS: &str = "Show as";
pub const TREE: &str = "Tree";
pub const TABLE: &str = "Table";
pub const PREVIOUS: &str = "Previous";
pub const NEXT: &str = "Next";
pub const PAGES: &str = "Pages";
pub const NO_DOCUMENTS: &str = "No document matches.";
pub const OPEN: &str = "Open";
pub const INSERT: &str = "Insert documents";
pub const EMPTY_FIELD: &str = "–";
pub const FIELDS_LEFT: &str = "more are not shown";

/// Says which field of the form is invalid.
pub fn field_error(field: &str, message: &str) -> String {
    format!("{field}: {message}.")
}

/// Says which documents are shown.
pub fn shown(first: u64, last: u64, total: Option<i64>) -> String {
    match total {
        Some(total) => format!("{first}–{last} of {}", crate::show::grouped(total)),
        None => format!("{first}–{last} of many"),
    }
}

/// Says how long a truncated string is.
pub fn long_text(characters: usize) -> String {
    let characters = i64::try_from(characters).unwrap_or(i64::MAX);
    format!("… {} bytes", crate::show::grouped(characters))
}

pub const DOCUMENT: &str = "Document";
pub const EDIT: &str = "Edit";
pub const SAVE: &str = "Save";
pub const SAVED: &str = "Saved.";
pub const DELETE: &str = "Delete the document";
pub const DELETE_WARNING: &str = "It cannot be brought back.";
pub const DELETE_SUBMIT: &str = "Delete";
pub const DELETED: &str = "Deleted.";
pub const CHANGED: &str = "The document was changed or deleted meanwhile. Nothing was saved. Load it again to see how it is now.";
pub const NO_DOCUMENT: &str = "This document does not exist.";
pub const TOO_LONG_TO_EDIT: &str =
    "The document is too large to be edited here. The export has all of it.";
pub const SYNTAX: &str = "Extended JSON and the syntax of mongosh: ObjectId(\"…\"), ISODate(\"…\"), \
    NumberLong(\"…\"), /expression/, 'quotes', names without quotes. Whole numbers are int or long, 1.0 is double.";
pub const INSERT_LEAD: &str = "One document, or several one after the other or as an array.";
pub const INSERT_SUBMIT: &str = "Insert";
pub const NOTHING_TO_INSERT: &str = "There is no document in the text.";
pub const ID_CHANGED: &str = "The _id of a document cannot be changed.";

/// Says how many documents were inserted.
pub fn inserted(count: i64) -> String {
    format!(
        "{} inserted.",
        plural(count, "document was", "documents were")
    )
}

fn plural(count: i64, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{} {noun}", crate::show::grouped(count))
}

pub const EXPORT: &str = "Export";
pub const EXPORT_LEAD: &str = "All documents that match the filter, in natural order or as sorted.";
pub const FORMAT: &str = "Format";
pub const FORMATS: [(&str, &str); 4] = [
    ("lines", "JSON, a document a line"),
    ("array", "JSON, an array"),
    ("canonical", "JSON with all types, a document a line"),
    ("csv", "CSV"),
];
pub const CSV_FIELDS: &str = "Fields of CSV";
pub const CSV_FIELDS_HINT: &str =
    "Paths with commas, such as name, address.city. Empty: the fields of the first 100 documents.";
pub const EXPORT_SUBMIT: &str = "Download";
pub const IMPORT: &str = "Import";
pub const IMPORT_LEAD: &str = "JSON (documents one after the other, or an array) or CSV with the names of fields in its first line.";
pub const IMPORT_FILE: &str = "File";
pub const IMPORT_TEXT: &str = "Or a text, up to 16 MiB";
pub const IMPORT_SUBMIT: &str = "Import";
pub const IMPORT_FORMATS: [(&str, &str); 2] = [("json", "JSON"), ("csv", "CSV")];
pub const IMPORT_BOTH: &str = "Choose a file, or write a text.";
pub const IMPORT_CANCEL: &str = "Cancel";
pub const IMPORT_PROGRESS: &str = "Progress of the import";
pub const IMPORT_UNKNOWN: &str = "The server does not know this import any more.";
pub const IMPORT_CANCELLED: &str = "The import was cancelled.";

/// Says how much of an import is done.
pub fn imported(bytes: u64, total: u64, documents: u64) -> String {
    let bytes = crate::show::bytes(bytes as f64);
    let total = crate::show::bytes(total as f64);
    let count = i64::try_from(documents).unwrap_or(i64::MAX);
    format!(
        "{bytes} of {total}, {} inserted",
        plural(count, "document", "documents")
    )
}

/// Says how many documents of a stopped import were inserted, and why it stopped.
pub fn import_ended(documents: u64, reason: &str) -> String {
    let count = i64::try_from(documents).unwrap_or(i64::MAX);
    format!("{} {reason}", inserted(count))
}

pub const SCHEMA_LEAD: &str = "From a sample of documents that were drawn at random.";
pub const FIELD: &str = "Field";
pub const PRESENT: &str = "Present";
pub const TYPES: &str = "Types";
pub const VALUES: &str = "Values";
pub const NO_SCHEMA: &str = "The collection has no documents.";
pub const FIELDS_MAX: &str = "Only the first fields are shown.";

/// Says how many documents were sampled.
pub fn sampled(count: usize) -> String {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    format!(
        "{} looked at.",
        plural(count, "document was", "documents were")
    )
}

/// Describes a histogram to a screen reader.
pub fn histogram(low: &str, high: &str) -> String {
    format!("Distribution from {low} to {high}")
}
