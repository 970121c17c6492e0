//! Renders documents as trees and as table rows.

use maud::{Markup, html};
use windrow_document::json::display_prefix;
use windrow_document::{Document, DocumentBuf, ValueRef};

use crate::data_table::table_frame;
use crate::literals::shell_line;
use crate::texts::collections as texts;

/// The maximum number of bytes shown of a string in a tree.
const TEXT_BYTES_MAX: usize = 1_000;
/// The maximum number of bytes shown of a value in a table.
const CELL_BYTES_MAX: usize = 100;
/// The maximum number of fields or elements shown of a document or an array.
const FIELDS_MAX: usize = 200;
/// The maximum number of values shown of a document in total.
const VALUES_MAX: usize = 2_000;
/// The maximum number of columns of a table.
const COLUMNS_MAX: usize = 30;

/// Renders a document as a tree.
pub fn tree(document: Document<'_>) -> Markup {
    let mut values_left = VALUES_MAX;
    fields(document.iter(), document.count(), &mut values_left)
}

fn fields<'d>(
    fields: impl Iterator<Item = (&'d str, ValueRef<'d>)>,
    count: usize,
    values_left: &mut usize,
) -> Markup {
    html! {
        ul .tree {
            @for (name, value) in fields.take(FIELDS_MAX.min(*values_left)) { (node(name, value, values_left)) }
            @if count > FIELDS_MAX || *values_left == 0 { li .muted { (texts::FIELDS_LEFT) } }
        }
    }
}

fn node(name: &str, value: ValueRef<'_>, values_left: &mut usize) -> Markup {
    *values_left = values_left.saturating_sub(1);
    let (inner, signs) = match value {
        ValueRef::Document(document) => (document, ["{", "}"]),
        ValueRef::Array(array) => (array.as_document(), ["[", "]"]),
        _ => return html! { li { bdi .key { (name) } ": " (scalar(value)) } },
    };
    let [open, close] = signs;
    let count = inner.count();
    html! {
        li {
            details {
                summary { bdi .key { (name) } ": " span .muted { (open) " " (count) " " (close) } }
                (fields(inner.iter(), count, values_left))
            }
        }
    }
}

/// Renders a scalar value in the colour of its type.
fn scalar(value: ValueRef<'_>) -> Markup {
    let class = match value {
        ValueRef::String(_) => "v-text",
        it if it.is_number() => "v-number",
        ValueRef::Null | ValueRef::Undefined | ValueRef::Bool(_) => "v-word",
        _ => "v-other",
    };
    let (text, left) = preview(value, TEXT_BYTES_MAX);
    html! {
        bdi class=(format!("value {class}")) title=(value.type_of().name()) { (text) }
        @if let Some(left) = left { " " span .muted .small { (left) } }
    }
}

/// Returns the beginning of a value, and a note about the rest if it was truncated.
fn preview(value: ValueRef<'_>, bytes_max: usize) -> (String, Option<String>) {
    let (text, length) = match value {
        ValueRef::String(text) if text.len() > bytes_max => {
            let (start, _) = text.split_at(text.floor_char_boundary(bytes_max));
            (shell_line(ValueRef::String(start)), text.len())
        }
        ValueRef::Binary { bytes, .. } if bytes.len() > bytes_max => {
            (display_prefix(&value, bytes_max), bytes.len())
        }
        other => return (shell_line(other), None),
    };
    (text, Some(texts::long_text(length)))
}

/// Renders documents as a table. `open` returns the address of a document.
pub fn table(documents: &[DocumentBuf], open: impl Fn(&DocumentBuf) -> Option<String>) -> Markup {
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in documents.iter().flat_map(DocumentBuf::iter) {
        if columns.len() < COLUMNS_MAX && !columns.contains(&name) {
            columns.push(name);
        }
    }
    table_frame(
        texts::DOCUMENTS,
        &html! {
            table .documents-table {
                thead { tr {
                    th scope="col" { span .visually-hidden { (texts::OPEN) } }
                    @for name in &columns { th scope="col" { bdi { (name) } } }
                } }
                tbody {
                    @for document in documents {
                        tr {
                            td { @if let Some(address) = open(document) { a href=(address) { (texts::OPEN) } } }
                            @for name in &columns { td { (cell(document.get(name))) } }
                        }
                    }
                }
            }
        },
    )
}

fn cell(value: Option<ValueRef<'_>>) -> Markup {
    let Some(value) = value else {
        return html! { span .muted { (texts::EMPTY_FIELD) } };
    };
    match value {
        ValueRef::Document(_) | ValueRef::Array(_) => {
            html! { bdi .value { (display_prefix(&value, CELL_BYTES_MAX)) } }
        }
        _ => {
            let (text, left) = preview(value, CELL_BYTES_MAX);
            html! { bdi .value { (text) @if left.is_some() { "…" } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn hostile_texts_stay_texts() {
        let document = doc! { "<b>": "<script>alert(1)</script>", "a": { "b": "\u{202e}x" } };
        let markup = tree(document.as_document()).into_string();
        assert!(
            !markup.contains("<script>") && !markup.contains("<b>"),
            "{markup}"
        );
        assert!(!markup.contains('\u{202e}'));
    }

    #[test]
    fn large_documents_are_cut() {
        let numbers: Vec<i32> = (0..1000).collect();
        let lists: Vec<windrow_document::Value> =
            (0..100).map(|_| numbers.clone().into()).collect();
        let document = doc! { "text": ("x".repeat(10 << 20)), "lists": lists };
        let markup = tree(document.as_document()).into_string();
        assert!(markup.contains("10,485,760 bytes"));
        assert!(markup.len() < 500_000, "{}", markup.len());
        let row = table(&[document], |_| None).into_string();
        assert!(row.len() < 5_000, "{}", row.len());
    }
}
