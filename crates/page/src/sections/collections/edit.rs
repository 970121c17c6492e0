//! Shows, replaces, deletes and inserts documents.

use hyper::StatusCode;
use maud::{Markup, html};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};

use crate::database::Database;
use crate::document_tree::tree;
use crate::error::PageError;
use crate::literals::{JsonFormat, extended_json, parse_document, parse_value, shell_text};
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::collections as texts;

use super::documents::read_document;
use super::insert::{check_write, insert_all, read_documents};
use crate::collection_frame::{collection_page, notice};

/// Larger documents cannot be edited.
const EDIT_BYTES_MAX: usize = 1 << 20;
/// Shows a document as a tree, with a form to replace it.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let id = parse_id(request.query().text("id"))?;
    let document = read_document(&mut request.database()?, &namespace, id.as_ref())?;
    let content = html! {
        @if request.query().get("done").is_some() { (notice("good", texts::SAVED)) }
        h2 .first { (texts::DOCUMENT) }
        div .panel { (tree(document.as_document())) }
        @if request.can_write() {
            @if document.as_bytes().len() > EDIT_BYTES_MAX {
                p .notice { (texts::TOO_LONG_TO_EDIT) }
            } @else {
                h2 #edit { (texts::EDIT) }
                (edit_form(request, &namespace, &EditForm::new(&document)))
            }
            (delete_form(request, &namespace, id.as_ref()))
        }
    };
    Ok(collection_page(request, &namespace, "", &[], &content))
}

fn parse_id(text: &str) -> Result<Value, PageError> {
    parse_value(text)
        .map_err(|error| PageError::bad_request(texts::field_error("_id", &error.to_string())))
}

/// The content of an edit form: the new text, and the previous version of the document.
struct EditForm {
    text: String,
    original: String,
}

impl EditForm {
    fn new(document: &DocumentBuf) -> EditForm {
        let value = ValueRef::Document(document.as_document());
        EditForm {
            text: shell_text(value),
            original: extended_json(value, JsonFormat::Canonical),
        }
    }
}

fn edit_form(request: &Request, namespace: &Namespace, edited: &EditForm) -> Markup {
    let rows = edited.text.lines().count().clamp(6, 30);
    html! {
        form .stack method="post" action=(namespace.page_address("document")) {
            (form_token(request))
            input type="hidden" name="original" value=(edited.original);
            label .visually-hidden for="text" { (texts::DOCUMENT) }
            textarea #text name="text" rows=(rows) spellcheck="false" aria-describedby="syntax" {
                "\n" (edited.text)
            }
            p #syntax .muted .small { (texts::SYNTAX) }
            div { button .primary type="submit" { (texts::SAVE) } }
        }
    }
}

fn delete_form(request: &Request, namespace: &Namespace, id: ValueRef<'_>) -> Markup {
    html! {
        details .below {
            summary .danger-text { (texts::DELETE) }
            form .panel .form method="post" action=(namespace.page_address("delete")) {
                (form_token(request))
                input type="hidden" name="id" value=(extended_json(id, JsonFormat::Canonical));
                p { (texts::DELETE_WARNING) }
                button .danger type="submit" { (texts::DELETE_SUBMIT) }
            }
        }
    }
}

/// Replaces a document if it has not changed since the form was loaded.
pub fn save(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let form = request.form();
    let edited = EditForm {
        text: form.text("text").to_owned(),
        original: form.text("original").to_owned(),
    };
    match replace(&mut request.database()?, &namespace, &edited) {
        Ok(id) => {
            let address = namespace.page_address("document");
            let form = crate::form::FormFields::default()
                .and("id", &id)
                .and("done", "saved");
            Ok(Response::redirect(&form.address(&address)))
        }
        Err(error) => {
            let content = html! {
                (notice("error", &error.message))
                h2 { (texts::EDIT) }
                (edit_form(request, &namespace, &edited))
            };
            let response = collection_page(request, &namespace, "", &[], &content);
            Ok(response.with_status(error.status))
        }
    }
}

/// Replaces a document. Returns its `_id` as text.
fn replace(
    database: &mut Database,
    namespace: &Namespace,
    edited: &EditForm,
) -> Result<String, PageError> {
    let parse = |text: &str| {
        let parsed = parse_document(text);
        parsed.map_err(|error| {
            PageError::bad_request(texts::field_error(texts::DOCUMENT, &error.to_string()))
        })
    };
    let (original, document) = (parse(&edited.original)?, parse(&edited.text)?);
    let id = original.get("_id").map(ValueRef::to_value);
    let id = id.ok_or_else(|| PageError::bad_request(texts::NO_DOCUMENT))?;
    let is_same = document.get("_id").is_none_or(|it| it.equals(id.as_ref()));
    if !is_same {
        return Err(PageError::bad_request(texts::ID_CHANGED));
    }
    // The update filters on the previous version, so comparison and replacement are atomic.
    let query = doc! {
        "_id": { "$eq": (id.clone()) },
        "$expr": { "$eq": ["$$ROOT", { "$literal": original }] },
    };
    let update = doc! { "q": query, "u": document };
    let command = doc! {
        "update": (namespace.collection.as_str()), "updates": [update],
        "$db": (namespace.database.as_str()),
    };
    let reply = database.run(command)?;
    check_write(&reply)?;
    match reply.get("n").and_then(ValueRef::as_whole) {
        Some(1) => Ok(crate::literals::shell_line(id.as_ref())),
        _ => Err(PageError::new(StatusCode::CONFLICT, texts::CHANGED)),
    }
}

/// Deletes a document.
pub fn delete(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let id = parse_id(request.form().text("id"))?;
    let delete = doc! { "q": { "_id": { "$eq": id } }, "limit": 1 };
    let command = doc! {
        "delete": (namespace.collection.as_str()), "deletes": [delete],
        "$db": (namespace.database.as_str()),
    };
    let reply = request.database()?.run(command)?;
    check_write(&reply)?;
    if reply.get("n").and_then(ValueRef::as_whole) != Some(1) {
        return Err(PageError::not_found(texts::NO_DOCUMENT));
    }
    Ok(Response::redirect(&format!(
        "{}?done=deleted",
        namespace.address()
    )))
}

/// Shows the form for new documents.
pub fn insert_form(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let content = new_documents_form(request, &namespace, "{\n  \n}");
    Ok(collection_page(request, &namespace, "", &[], &content))
}

fn new_documents_form(request: &Request, namespace: &Namespace, text: &str) -> Markup {
    html! {
        h2 .first { (texts::INSERT) }
        p .muted { (texts::INSERT_LEAD) }
        form .stack method="post" action=(namespace.page_address("insert")) {
            (form_token(request))
            label .visually-hidden for="text" { (texts::DOCUMENTS) }
            textarea #text name="text" rows="16" spellcheck="false" aria-describedby="syntax" { "\n" (text) }
            p #syntax .muted .small { (texts::SYNTAX) }
            div { button .primary type="submit" { (texts::INSERT_SUBMIT) } }
        }
    }
}

/// Inserts the documents of a form.
pub fn insert(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let text = request.form().text("text");
    let inserted = read_documents(text)
        .and_then(|documents| insert_all(&mut request.database()?, &namespace, documents));
    match inserted {
        Ok(count) => Ok(Response::redirect(&format!(
            "{}?done={count}",
            namespace.address()
        ))),
        Err(error) => {
            let content = html! {
                (notice("error", &error.message))
                (new_documents_form(request, &namespace, text))
            };
            let response = collection_page(request, &namespace, "", &[], &content);
            Ok(response.with_status(error.status))
        }
    }
}
