//! The texts of the search.

pub const NAME: &str = "Search";
pub const TITLE: &str = "Search";
pub const RESULT_NAME: &str = "Name";
pub const PLACEHOLDER: &str = "Search your files";
pub const FIELD: &str = "Query";
pub const COMPLETIONS: &str = "Completions";
pub const SUBMIT: &str = "Search";
pub const ORDER: &str = "Order";
pub const RELEVANCE: &str = "Best match";
pub const NEWEST: &str = "Newest";
pub const OLDEST: &str = "Oldest";
pub const LARGEST: &str = "Largest";
pub const RESULTS: &str = "Results";
pub const RESULT_TABLE: &str = "Table of results";
pub const FACETS: &str = "Narrow down";
pub const FILTERS: &str = "Filters";
pub const VIEW: &str = "View";
pub const LIST: &str = "List";
pub const TABLE: &str = "Table";
pub const NOTHING: &str = "No documents found.";
pub const NOT_INDEXED: &str = "This document is not indexed.";
pub const NO_FILES: &str = "No files are indexed yet.";
pub const HOW_TO_INDEX: &str = "Make the files of a folder searchable with this command:";
pub const DID_YOU_MEAN: &str = "Did you mean";
pub const MANY_DOCUMENTS: &str = "Counting documents …";
pub const SIMILAR: &str = "Similar";
pub const TO: &str = "to";
pub const SIMILAR_TO: &str = "similar to";
pub const REMOVE: &str = "Remove";
pub const PAGES: &str = "Pages";
pub const PREVIOUS: &str = "Previous";
pub const NEXT: &str = "Next";
pub const KIND: &str = "Type";
pub const EXTENSION: &str = "Extension";
pub const FOLDER: &str = "Folder";
pub const CHANGED: &str = "Changed";
pub const AUTHOR: &str = "Author";
pub const LANGUAGE: &str = "Language";
pub const SIZE: &str = "Size";
pub const HISTOGRAM: &str = "Documents by the time of their last change";
pub const ALL_TIMES: &str = "All times";
pub const PREVIEW: &str = "Preview";
pub const CLOSE: &str = "Close";
pub const OPEN_FILE: &str = "Open the file";
pub const DOWNLOAD: &str = "Download";
pub const NEXT_HIT: &str = "Next match";
pub const PREVIOUS_HIT: &str = "Previous match";
pub const CUT: &str = "The text is longer. This is its beginning.";
pub const EMPTY_TEXT: &str = "This document has no text.";
pub const AS_TEXT: &str = "Text";
pub const AS_PAGE: &str = "Formatted";
pub const MEMBERS: &str = "In this file";
pub const ATTACHMENTS: &str = "Attachments";
pub const ATTACHED_TO: &str = "Attached to";
pub const FROM: &str = "From";
pub const RECIPIENTS: &str = "To";
pub const COPIES: &str = "Cc";
pub const DATE: &str = "Date";
pub const SUBJECT: &str = "Subject";
pub const PAGE_COUNT: &str = "Pages";
pub const DIMENSIONS: &str = "Dimensions";
pub const FILE_GONE: &str =
    "The file is not there any more, or it was changed since it was indexed.";
pub const BACK: &str = "Back to the results";
pub const HELP: &str = "Query help";
pub const HELP_SHORT: &str = "?";
pub const KEYS: &str = "Keys";
pub const LANGUAGE_OF_QUERIES: &str = "Words";
/// Examples of the query language with explanations.
pub const QUERY_HELP: [(&str, &str); 16] = [
    ("annual report", "both words, in any of their forms"),
    ("\"annual report\"", "the words beside each other"),
    ("\"annual report\"p5", "the words near each other"),
    ("cake OR bread", "one of the words"),
    ("report -draft", "without a word"),
    ("Word", "this form of the word only"),
    ("~wrod", "also words that are spelled like it"),
    ("rep*", "any letters"),
    (
        "title:report",
        "a word of the title; also subject: tag: path:",
    ),
    ("from:ada to:bob", "people of a mail; also author:"),
    ("ext:pdf,docx", "extensions"),
    ("kind:mail", "types"),
    ("dir:projects", "files in a folder or below it"),
    ("date:2024-03..2024-05", "dates, also today, P7D"),
    ("size>1M", "sizes of files"),
    ("@name", "a saved search"),
];
/// Keyboard shortcuts with explanations.
pub const KEY_HELP: [(&str, &str); 6] = [
    ("/", "to the query"),
    ("↓ ↑", "through the results"),
    ("Enter", "open the preview"),
    ("n p", "next and previous match in the preview"),
    ("o", "open the file"),
    ("Esc", "back"),
];

/// Kinds of documents with their labels.
const KINDS: [(&str, &str); 23] = [
    ("text", "Text"),
    ("markdown", "Markdown"),
    ("html", "Web page"),
    ("source", "Source code"),
    ("mail", "Mail"),
    ("pdf", "PDF"),
    ("djvu", "DjVu"),
    ("document", "Document"),
    ("spreadsheet", "Spreadsheet"),
    ("presentation", "Presentation"),
    ("book", "Book"),
    ("table", "Table"),
    ("image", "Picture"),
    ("audio", "Sound"),
    ("video", "Video"),
    ("contact", "Contact"),
    ("event", "Event"),
    ("drawing", "Drawing"),
    ("manual", "Manual page"),
    ("notebook", "Notebook"),
    ("feed", "Feed"),
    ("archive", "Archive"),
    ("other", "Other file"),
];

/// Returns the kinds of documents with their labels.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.into_iter()
}

/// Explanations of query fields whose names are not clear.
const FIELDS: [(&str, &str); 12] = [
    ("ext", "extension of the file"),
    ("lang", "language, such as en"),
    ("dir", "folder"),
    ("kind", "type of document"),
    ("type", "type of document"),
    ("mime", "media type"),
    ("mimetype", "media type"),
    ("from", "sender of a mail"),
    ("to", "recipient of a mail"),
    ("list", "mailing list"),
    ("date", "such as 2024-03..2024-05"),
    ("size", "such as >1M"),
];

/// Returns the explanation of a query field.
pub fn field(name: &str) -> &'static str {
    let known = FIELDS.iter().find(|(known, _)| *known == name);
    known.map_or("", |(_, meaning)| meaning)
}

/// Returns the label of a document kind.
pub fn kind(name: &str) -> &str {
    let known = KINDS.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, shown)| shown)
}

/// The detected languages with their labels.
const LANGUAGES: [(&str, &str); 18] = [
    ("ar", "Arabic"),
    ("da", "Danish"),
    ("de", "German"),
    ("el", "Greek"),
    ("en", "English"),
    ("es", "Spanish"),
    ("fi", "Finnish"),
    ("fr", "French"),
    ("hu", "Hungarian"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("nl", "Dutch"),
    ("no", "Norwegian"),
    ("pt", "Portuguese"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("sv", "Swedish"),
    ("tr", "Turkish"),
];

/// Returns the label of a language.
pub fn language(code: &str) -> &str {
    let known = LANGUAGES.iter().find(|(known, _)| *known == code);
    known.map_or(code, |(_, shown)| shown)
}

/// Returns the label of a range of sizes.
pub fn size(name: &str) -> &str {
    match name {
        "tiny" => "Up to 10 kB",
        "small" => "10 to 100 kB",
        "medium" => "100 kB to 1 MB",
        "large" => "1 to 10 MB",
        "huge" => "Over 10 MB",
        other => other,
    }
}

/// Returns the label of a filter value.
pub fn filter_value<'v>(filter: &str, value: &'v str) -> &'v str {
    match filter {
        "kind" => kind(value),
        "lang" => language(value),
        "size" => size(value),
        _ => value,
    }
}

/// Returns the number of documents in words.
pub fn documents(count: i64, shown: &str) -> String {
    match count {
        1 => "1 document".to_owned(),
        _ => format!("{shown} documents"),
    }
}

/// Describes the image of a page to a screen reader.
pub fn drawn_page(number: u32) -> String {
    format!("Page {number} as it is drawn; its text follows")
}

/// Returns the label of a page.
pub fn page(number: u32) -> String {
    format!("Page {number}")
}

/// Returns the label of a line.
pub fn line(number: usize) -> String {
    format!("Line {number}")
}

/// Says that a filter value is invalid.
pub fn bad_filter(label: &str, value: &str) -> String {
    format!("{label} does not take \"{value}\".")
}

/// Says that no document contains all words.
pub fn some_words(words: usize) -> String {
    format!("No document has all words. These have at least {words} of them.")
}

/// Says how many values are not shown.
pub fn more_values(count: usize) -> String {
    format!("{count} more")
}

/// Says how many folders are not shown.
pub fn more_folders(count: usize) -> String {
    format!("and {count} more folders")
}

/// Labels the link to the subfolders of a folder.
pub fn folders_of(folder: &str) -> String {
    format!("Folders in {folder}")
}

/// Describes a bar of the histogram.
pub fn bar(value: &str, count: &str) -> String {
    format!("{value}: {count}")
}

/// Says which match is shown.
pub fn hit(count: usize) -> String {
    match count {
        1 => "1 match".to_owned(),
        _ => format!("{count} matches"),
    }
}

/// Returns the dimensions of an image.
pub fn dimensions(width: i64, height: i64) -> String {
    format!("{width} × {height}")
}
