//! The page with the documents of a collection that match a filter.

use hyper::StatusCode;
use maud::{Markup, html};
use windrow_document::{DocumentBuf, ValueRef, doc};

use crate::database::Database;
use crate::document_tree::{table, tree};
use crate::error::PageError;
use crate::form::FormFields;
use crate::literals::shell_line;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::texts::collections as texts;

use super::find_form::{Find, find_form};
use super::list::drop_form;
use crate::collection_frame::{collection_page, notice};

/// The time limit of counting the documents.
const COUNT_MILLIS_MAX: i64 = 2_000;

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let form = request.query();
    let found = find(request, &namespace, form);
    let (result, status) = match found {
        Ok(markup) => (markup, StatusCode::OK),
        // Errors in the form are shown next to it.
        Err(error) if error.status == StatusCode::BAD_REQUEST => {
            (notice("error", &error.message), error.status)
        }
        Err(error) => return Err(error),
    };
    let content = html! {
        @match form.get("done") {
            Some("deleted") => { (notice("good", texts::DELETED)) }
            Some(count) if count.parse::<i64>().is_ok() => {
                (notice("good", &texts::inserted(count.parse().unwrap_or(0))))
            }
            _ => {}
        }
        (find_form(&namespace, form))
        (result)
        @if request.can_write() {
            (drop_form(request, texts::DROP_COLLECTION, &namespace.page_address("drop")))
        }
    };
    let response = collection_page(request, &namespace, "", &[], &content);
    Ok(response.with_status(status))
}

fn find(request: &Request, namespace: &Namespace, form: &FormFields) -> Result<Markup, PageError> {
    let find = Find::parse(form).map_err(PageError::bad_request)?;
    let mut database = request.database()?;
    let page_size = find.page_size as usize;
    let mut documents = database.documents(find.page_command(namespace), page_size + 1)?;
    let has_next = documents.len() > page_size;
    documents.truncate(page_size);
    let total = if !has_next && (find.skip == 0 || !documents.is_empty()) {
        i64::try_from(find.skip + documents.len() as u64).ok()
    } else {
        count(&mut database, namespace, &find)
    };
    let open = |document: &DocumentBuf| document_address(namespace, document);
    Ok(html! {
        div .row .spread .result-head {
            (pages(namespace, form, &find, documents.len(), total, has_next))
            @if request.can_write() {
                a .button href=(namespace.page_address("insert")) { (texts::INSERT) }
            }
        }
        @if documents.is_empty() {
            p .empty { (texts::NO_DOCUMENTS) }
        } @else if find.is_table {
            (table(&documents, open))
        } @else {
            ol .documents {
                @for document in &documents {
                    li .panel {
                        (tree(document.as_document()))
                        @if let Some(address) = open(document) {
                            a .open .small href=(address) aria-label=(label(document)) { (texts::OPEN) }
                        }
                    }
                }
            }
        }
    })
}

fn label(document: &DocumentBuf) -> String {
    let id = document.get("_id").map(shell_line).unwrap_or_default();
    format!("{} {id}", texts::OPEN)
}

/// Returns the number of documents. `None` if counting takes too long.
fn count(database: &mut Database, namespace: &Namespace, find: &Find) -> Option<i64> {
    let command = doc! {
        "count": (namespace.collection.as_str()), "query": (find.filter.clone()),
        "maxTimeMS": COUNT_MILLIS_MAX, "$db": (namespace.database.as_str()),
    };
    database.run(command).ok()?.get("n")?.as_whole()
}

/// Returns the address of a document. `None` if it has no `_id`.
pub fn document_address(namespace: &Namespace, document: &DocumentBuf) -> Option<String> {
    let id = shell_line(document.get("_id")?);
    let address = namespace.page_address("document");
    Some(FormFields::default().and("id", &id).address(&address))
}

/// Shows the range of documents and the links to the previous and the next page.
fn pages(
    namespace: &Namespace,
    form: &FormFields,
    find: &Find,
    count: usize,
    total: Option<i64>,
    has_next: bool,
) -> Markup {
    let page = find.skip / u64::from(find.page_size);
    let address = |page: u64| {
        let form = form
            .with("page", Some(&page.to_string()))
            .with("done", None);
        form.address(&namespace.address())
    };
    html! {
        nav .row aria-label=(texts::PAGES) {
            @if count > 0 {
                span .muted { (texts::shown(find.skip + 1, find.skip + count as u64, total)) }
            }
            @if page > 0 { a .button rel="prev" href=(address(page - 1)) { (texts::PREVIOUS) } }
            @if has_next { a .button rel="next" href=(address(page + 1)) { (texts::NEXT) } }
        }
    }
}

/// Reads the document with an `_id`.
pub fn read_document(
    database: &mut Database,
    namespace: &Namespace,
    id: ValueRef<'_>,
) -> Result<DocumentBuf, PageError> {
    let command = doc! {
        "find": (namespace.collection.as_str()), "filter": { "_id": { "$eq": (id.to_value()) } },
        "limit": 1, "$db": (namespace.database.as_str()),
    };
    let found = database.documents(command, 1)?;
    let found = found.into_iter().next();
    found.ok_or_else(|| PageError::not_found(texts::NO_DOCUMENT))
}
