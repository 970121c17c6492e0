//! Tables of indexes.

use maud::{Markup, html};
use windrow_document::ValueRef;

use crate::data_table::table_frame;
use crate::literals::{format_date, shell_line};
use crate::namespace::Namespace;
use crate::request::Request;
use crate::show::{bytes, grouped};
use crate::texts::indexes as texts;

use super::advice::advice;
use super::dropping::DropForm;
use super::read::{CollectionIndexes, IndexState};

/// The indexes in the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownIndexes {
    /// All indexes.
    All,
    /// Only those that may be unnecessary.
    WithAdvice,
}

impl ShownIndexes {
    /// Returns the selection in the address of a request.
    pub fn from_request(request: &Request) -> ShownIndexes {
        match request.query().text("show") {
            "advice" => ShownIndexes::WithAdvice,
            _ => ShownIndexes::All,
        }
    }
}

/// Shows the indexes of all collections.
pub fn overview(all: &[CollectionIndexes], shown: ShownIndexes) -> Markup {
    let mut rows = Vec::new();
    for collection in all {
        for index in &collection.indexes {
            let sentences = advice(index, &collection.indexes);
            if shown == ShownIndexes::All || !sentences.is_empty() {
                rows.push((collection, index, sentences));
            }
        }
    }
    html! {
        @if rows.is_empty() {
            p .empty { (texts::NONE) }
        } @else {
            div .table-frame tabindex="0" role="region" aria-labelledby="all" {
                table .indexes {
                    thead { tr {
                        th scope="col" { (texts::COLLECTION) }
                        (headings())
                    } }
                    tbody {
                        @for (collection, index, sentences) in &rows {
                            tr {
                                td { a href=(collection.namespace.page_address("indexes")) { bdi { (collection.namespace) } } }
                                (cells(collection, index, sentences))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Shows the indexes of a collection, with buttons to drop them.
pub fn collection_table(request: &Request, collection: &CollectionIndexes) -> Markup {
    table_frame(
        texts::OF_COLLECTION,
        &html! {
            table .indexes {
                thead { tr {
                    (headings())
                    @if request.can_write() { th scope="col" { (texts::ACTION) } }
                } }
                tbody {
                    @for index in &collection.indexes {
                        tr {
                            (cells(collection, index, &advice(index, &collection.indexes)))
                            @if request.can_write() {
                                td { @if index.name != "_id_" { (drop_form(request, &collection.namespace, &index.name)) } }
                            }
                        }
                    }
                }
            }
        },
    )
}

fn headings() -> Markup {
    html! {
        th scope="col" { (texts::INDEX) }
        th scope="col" .number { (texts::SIZE) }
        th scope="col" .number title=(texts::ENTRIES_HINT) { (texts::ENTRIES) }
        th scope="col" .number title=(texts::COST_HINT) { (texts::COST) }
        th scope="col" .number { (texts::USES) }
        th scope="col" { (texts::ADVICE) }
    }
}

fn cells(collection: &CollectionIndexes, index: &IndexState, sentences: &[String]) -> Markup {
    let count = |number: Option<i64>| number.map_or(texts::UNKNOWN.to_owned(), grouped);
    let size = index
        .bytes
        .map_or(texts::UNKNOWN.to_owned(), |it| bytes(it as f64));
    html! {
        td {
            bdi .name { (index.name) } " " (badges(index))
            br; code .small .muted { bdi { (shell_line(ValueRef::Document(index.key()))) } }
        }
        td .number { (size) }
        td .number { (count(index.entries)) }
        td .number { (cost(collection, index)) }
        td .number {
            (count(index.uses))
            @if let Some(date) = index.uses_since.and_then(format_date) {
                br; span .small .muted { (texts::since(date.get(..10).unwrap_or_default())) }
            }
        }
        td .advice { @for sentence in sentences { p .small { (sentence) } } }
    }
}

/// Returns the number of index entries for each document.
fn cost(collection: &CollectionIndexes, index: &IndexState) -> String {
    match index.entries {
        Some(entries) if collection.documents > 0 && entries > 0 => {
            format!("{:.2}", entries as f64 / collection.documents as f64)
        }
        _ => texts::UNKNOWN.to_owned(),
    }
}

fn badges(index: &IndexState) -> Markup {
    let expires = index.definition.get("expireAfterSeconds");
    html! {
        @if index.is_building { span .badge .warning { (texts::BUILDING) } " " }
        @for (option, name) in texts::OPTIONS {
            @if index.has(option) { span .badge { (name) } " " }
        }
        @if let Some(seconds) = expires.and_then(ValueRef::as_f64) {
            span .badge { (texts::expires(seconds as i64)) }
        }
    }
}

fn drop_form(request: &Request, namespace: &Namespace, name: &str) -> Markup {
    let form = DropForm {
        address: namespace.page_address("indexes/drop"),
        name,
        question: texts::confirm_drop(name),
        label: texts::drop(name),
    };
    form.markup(request)
}
