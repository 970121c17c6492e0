//! Tables of search indexes.

use maud::{Markup, html};
use windrow_client::server_status::section;
use windrow_document::ValueRef;

use crate::data_table::{Column, data_table};
use crate::literals::shell_text;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::show::bytes;
use crate::texts::indexes as texts;

use super::dropping::DropForm;
use super::read::{CollectionIndexes, SearchIndexState};

const COLUMNS: [Column<'_>; 4] = [
    Column::text(texts::INDEX),
    Column::text(texts::STATUS),
    Column::number(texts::SIZE),
    Column::text(texts::DEFINITION),
];

/// Shows the search indexes of all collections.
pub fn overview(all: &[CollectionIndexes]) -> Markup {
    let columns: Vec<_> = [Column::text(texts::COLLECTION)]
        .into_iter()
        .chain(COLUMNS)
        .collect();
    let rows = html! {
        @for collection in all {
            @for index in &collection.search_indexes {
                tr {
                    td { a href=(collection.namespace.page_address("indexes")) { bdi { (collection.namespace) } } }
                    (cells(index))
                }
            }
        }
    };
    data_table(texts::SEARCH_INDEXES, "indexes", &columns, &rows)
}

/// Shows the search indexes of a collection, with buttons to drop them.
pub fn collection_table(request: &Request, collection: &CollectionIndexes) -> Markup {
    let action = request.can_write().then_some(Column::text(texts::ACTION));
    let columns: Vec<_> = COLUMNS.into_iter().chain(action).collect();
    let rows = html! {
        @for index in &collection.search_indexes {
            tr {
                (cells(index))
                @if request.can_write() {
                    td { (drop_form(request, &collection.namespace, &index.name)) }
                }
            }
        }
    };
    data_table(texts::SEARCH_INDEXES, "indexes", &columns, &rows)
}

fn cells(index: &SearchIndexState) -> Markup {
    let (class, status) = if index.is_ready {
        ("badge good", texts::SEARCH_READY)
    } else if index.is_queryable {
        ("badge warning", texts::SEARCH_UPDATING)
    } else {
        ("badge warning", texts::SEARCH_BUILDING)
    };
    let definition = index.definition.as_document();
    let is_dynamic = section(definition, &["mappings", "dynamic"]).is_some_and(ValueRef::is_truthy);
    html! {
        td { bdi .name { (index.name) } }
        td { span class=(class) { (status) } }
        td .number { (index.bytes.map_or(texts::UNKNOWN.to_owned(), |it| bytes(it as f64))) }
        td {
            details {
                summary { (if is_dynamic { texts::ALL_FIELDS } else { texts::SOME_FIELDS }) }
                pre .code .small tabindex="0" { bdi { (shell_text(ValueRef::Document(definition))) } }
            }
        }
    }
}

fn drop_form(request: &Request, namespace: &Namespace, name: &str) -> Markup {
    let form = DropForm {
        address: namespace.page_address("search-indexes/drop"),
        name,
        question: texts::confirm_drop_search(name),
        label: texts::drop_search(name),
    };
    form.markup(request)
}
