//! Lists all databases and collections. Creates and drops them.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use windrow_client::server_status::number;
use windrow_document::{DocumentBuf, ValueRef, doc};

use crate::collection_frame::{PATH, notice};
use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::{Frame, form_token, page};
use crate::show::{bytes, grouped};
use crate::texts::collections as texts;

/// The maximum number of collections whose sizes are shown.
const SIZES_MAX: usize = 200;
/// The maximum number of collections shown of a database.
const COLLECTIONS_MAX: usize = 2_000;

/// A collection in the list.
struct Entry {
    namespace: Namespace,
    badges: Vec<&'static str>,
    is_view: bool,
    /// The reply of `collStats`. Only for the first collections.
    sizes: Option<DocumentBuf>,
}

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let names = database.database_names()?;
    let mut sizes_left = SIZES_MAX;
    let mut databases = Vec::new();
    for name in names {
        let entries = read_entries(&mut database, &name, &mut sizes_left)?;
        databases.push((name, entries));
    }
    let content = html! {
        h1 { (texts::TITLE) }
        @if request.query().get("done").is_some() { (notice("good", texts::DROPPED)) }
        @if databases.is_empty() { p .empty { (texts::NONE) } }
        @for (name, entries) in &databases { (database_part(request, name, entries)) }
        @if sizes_left == 0 { p .muted { (texts::NOT_SHOWN) } }
        @if request.can_write() { (create_form(request)) }
    };
    let frame = Frame {
        title: texts::TITLE,
        section: PATH,
        scripts: &[],
        styles: &["data.css"],
    };
    Ok(page(request, frame, &content))
}

fn read_entries(
    database: &mut Database,
    name: &str,
    sizes_left: &mut usize,
) -> Result<Vec<Entry>, PageError> {
    let list = doc! {
        "listCollections": 1, "authorizedCollections": true, "nameOnly": false, "$db": name,
    };
    let only_names = doc! {
        "listCollections": 1, "authorizedCollections": true, "nameOnly": true, "$db": name,
    };
    // Users without a privilege on the whole database can list only the names.
    let listed = database.documents(list, COLLECTIONS_MAX);
    let listed = match listed {
        Err(error) if error.status == hyper::StatusCode::FORBIDDEN => {
            database.documents(only_names, COLLECTIONS_MAX)?
        }
        other => other?,
    };
    let mut entries: Vec<Entry> = listed.iter().filter_map(|it| entry(name, it)).collect();
    entries.sort_by(|one, other| one.namespace.collection.cmp(&other.namespace.collection));
    for entry in entries.iter_mut().filter(|entry| !entry.is_view) {
        if *sizes_left == 0 {
            break;
        }
        *sizes_left -= 1;
        let command = doc! { "collStats": (entry.namespace.collection.as_str()), "$db": name };
        // The user may lack the privilege for `collStats`. The sizes are then omitted.
        entry.sizes = database.run(command).ok();
    }
    Ok(entries)
}

fn entry(database: &str, listed: &DocumentBuf) -> Option<Entry> {
    let options = listed.get("options").and_then(ValueRef::as_document);
    let has = |name: &str| {
        let value = options.and_then(|it| it.get(name));
        value.is_some_and(ValueRef::is_truthy)
    };
    let is_view = listed.get("type").and_then(ValueRef::as_str) == Some("view");
    let badges = [
        (is_view, texts::VIEW),
        (has("capped"), texts::CAPPED),
        (has("clusteredIndex"), texts::CLUSTERED),
    ];
    Some(Entry {
        namespace: Namespace {
            database: database.to_owned(),
            collection: listed.get("name")?.as_str()?.to_owned(),
        },
        badges: badges
            .iter()
            .filter(|(has, _)| *has)
            .map(|(_, name)| *name)
            .collect(),
        is_view,
        sizes: None,
    })
}

fn database_part(request: &Request, name: &str, entries: &[Entry]) -> Markup {
    html! {
        section .database {
            h2 { bdi { (name) } }
            @if entries.is_empty() {
                p .muted { (texts::NONE) }
            } @else {
                (data_table(
                    name,
                    "",
                    &[
                        Column::text(texts::COLLECTION),
                        Column::number(texts::COUNT),
                        Column::number(texts::AVERAGE_SIZE),
                        Column::number(texts::DATA_SIZE),
                        Column::number(texts::INDEX_COUNT),
                        Column::number(texts::INDEX_SIZE),
                    ],
                    &html! { @for entry in entries { (row(entry)) } },
                ))
            }
            @if request.can_write() { (drop_form(request, texts::DROP_DATABASE, &database_address(name, "drop"))) }
        }
    }
}

fn database_address(name: &str, page: &str) -> String {
    format!(
        "{PATH}/{}/{page}",
        utf8_percent_encode(name, NON_ALPHANUMERIC)
    )
}

fn row(entry: &Entry) -> Markup {
    let value = |name: &str, show: fn(f64) -> String| match &entry.sizes {
        Some(sizes) => show(number(sizes.as_document(), &[name])),
        None => texts::EMPTY_FIELD.to_owned(),
    };
    let count = |number: f64| grouped(number as i64);
    html! {
        tr {
            th scope="row" {
                a href=(entry.namespace.address()) { bdi { (entry.namespace.collection) } }
                @for badge in &entry.badges { " " span .badge { (badge) } }
            }
            td .number { (value("count", count)) }
            td .number { (value("avgObjSize", bytes)) }
            td .number { (value("size", bytes)) }
            td .number { (value("nindexes", count)) }
            td .number { (value("totalIndexSize", bytes)) }
        }
    }
}

fn create_form(request: &Request) -> Markup {
    html! {
        details .below {
            summary { (texts::CREATE) }
            form .panel .stack .form method="post" action="/collections/create" {
                (form_token(request))
                label for="new-database" { (texts::DATABASE) }
                input #new-database name="database" required autocomplete="off";
                label for="new-collection" { (texts::COLLECTION) }
                input #new-collection name="collection" required autocomplete="off";
                label .row .check { input type="checkbox" name="clustered" value="1"; (texts::IS_CLUSTERED) }
                button .primary type="submit" { (texts::CREATE_SUBMIT) }
            }
        }
    }
}

/// Shows a form that drops a collection or a database after its name was typed.
pub fn drop_form(request: &Request, title: &str, action: &str) -> Markup {
    let id = format!("drop-{}", action.len())
        + &action.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
    html! {
        details .below {
            summary .danger-text { (title) }
            form .panel .stack .form method="post" action=(action) {
                (form_token(request))
                p { (texts::DROP_WARNING) }
                label for=(id) { (texts::DROP_NAME) }
                input #(id) name="name" required autocomplete="off";
                button .danger type="submit" { (title) }
            }
        }
    }
}

/// Creates a collection.
pub fn create(request: &Request) -> Result<Response, PageError> {
    let form = request.form();
    let namespace = Namespace {
        database: form.text("database").trim().to_owned(),
        collection: form.text("collection").trim().to_owned(),
    };
    let mut command = doc! { "create": (namespace.collection.as_str()) };
    if form.get("clustered").is_some() {
        command.push(
            "clusteredIndex",
            doc! { "key": { "_id": 1 }, "unique": true },
        );
    }
    command.push("$db", namespace.database.as_str());
    request.database()?.run(command)?;
    Ok(Response::redirect(&namespace.address()))
}

fn check_name(request: &Request, name: &str) -> Result<(), PageError> {
    if request.form().text("name") == name {
        Ok(())
    } else {
        Err(PageError::bad_request(texts::DROP_MISMATCH))
    }
}

/// Drops a database.
pub fn drop_database(request: &Request) -> Result<Response, PageError> {
    let name = request.parameter("database");
    check_name(request, name)?;
    request
        .database()?
        .run(doc! { "dropDatabase": 1, "$db": name })?;
    Ok(Response::redirect("/collections?done=dropped"))
}

/// Drops a collection.
pub fn drop_collection(request: &Request) -> Result<Response, PageError> {
    let Namespace {
        database,
        collection,
    } = Namespace::from_request(request);
    check_name(request, &collection)?;
    let command = doc! { "drop": (collection.as_str()), "$db": (database.as_str()) };
    request.database()?.run(command)?;
    Ok(Response::redirect("/collections?done=dropped"))
}
