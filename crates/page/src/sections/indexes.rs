//! Indexes: sizes, usage and builds.

mod advice;
mod build;
mod builds;
mod change;
mod dropping;
mod read;
mod search_change;
mod search_indexes;
mod table;

use hyper::StatusCode;
use maud::html;

use crate::collection_frame::{collection_page, notice};
use crate::database::Database;
use crate::error::PageError;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::route::{Route, Section};
use crate::shell::{Frame, page};
use crate::texts::indexes as texts;

use read::{CollectionIndexes, read_indexes};
use table::ShownIndexes;

/// The section of indexes.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: PATH,
    routes: &[
        Route::get(PATH, show_all),
        Route::live("/indexes/live", builds::LIVE),
        Route::get("/collections/{database}/{collection}/indexes", show),
        Route::post(
            "/collections/{database}/{collection}/indexes",
            change::create,
        ),
        Route::post(
            "/collections/{database}/{collection}/indexes/drop",
            change::drop_index,
        ),
        Route::post(
            "/collections/{database}/{collection}/search-indexes",
            search_change::create,
        ),
        Route::post(
            "/collections/{database}/{collection}/search-indexes/drop",
            search_change::drop_index,
        ),
    ],
};

const PATH: &str = "/indexes";
/// The maximum number of collections whose indexes are shown.
const COLLECTIONS_MAX: usize = 300;

/// Shows the indexes of all collections and the running builds.
fn show_all(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let IndexOverview { all, is_complete } = read_all(&mut database)?;
    let shown = ShownIndexes::from_request(request);
    let only_advice = shown == ShownIndexes::WithAdvice;
    let builds = builds::read(&mut database).ok();
    let content = html! {
        h1 { (texts::TITLE) }
        @if let Some(builds) = builds {
            h2 .first { (texts::BUILDS) }
            div #builds data-live="/indexes/live" data-live-event="table" { (builds::table(&builds, None)) }
        }
        div .row .spread .heading {
            h2 #all { (texts::ALL_INDEXES) }
            nav .choices aria-label=(texts::SHOW) {
                a href=(PATH) aria-current=[(!only_advice).then_some("true")] { (texts::ALL) }
                a href=(format!("{PATH}?show=advice")) aria-current=[only_advice.then_some("true")] { (texts::ADVICE_ONLY) }
            }
        }
        (table::overview(&all, shown))
        @if !only_advice && all.iter().any(|it| !it.search_indexes.is_empty()) {
            h2 #search-indexes { (texts::SEARCH_INDEXES) }
            (search_indexes::overview(&all))
        }
        @if !is_complete { p .muted { (texts::NOT_ALL) } }
    };
    let frame = Frame {
        title: texts::TITLE,
        section: PATH,
        scripts: &["live_table.js"],
        styles: &["data.css"],
    };
    Ok(page(request, frame, &content))
}

/// The indexes of the first [`COLLECTIONS_MAX`] collections.
struct IndexOverview {
    all: Vec<CollectionIndexes>,
    /// There are no further collections.
    is_complete: bool,
}

fn read_all(database: &mut Database) -> Result<IndexOverview, PageError> {
    let mut all = Vec::new();
    for name in database.database_names()? {
        for namespace in read::collections(database, &name)? {
            if all.len() >= COLLECTIONS_MAX {
                return Ok(IndexOverview {
                    all,
                    is_complete: false,
                });
            }
            // Skips collections that were dropped meanwhile or whose indexes the user may not see.
            all.extend(read_indexes(database, namespace).ok());
        }
    }
    Ok(IndexOverview {
        all,
        is_complete: true,
    })
}

/// Shows the indexes of a collection.
fn show(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let done = match request.query().text("done") {
        "created" => Some(texts::CREATED),
        "started" => Some(texts::BUILD_STARTED),
        "dropped" => Some(texts::DROPPED),
        _ => None,
    };
    show_collection(request, &namespace, done.map(|text| notice("good", text)))
}

/// Redirects to the page of a collection after a build was started. Shows the form with the error
/// message if the definition is invalid.
fn show_build(
    request: &Request,
    namespace: &Namespace,
    built: Result<&'static str, PageError>,
) -> Result<Response, PageError> {
    match built {
        Ok(done) => {
            let address = namespace.page_address("indexes");
            Ok(Response::redirect(&format!("{address}?done={done}")))
        }
        Err(error) if error.status == StatusCode::BAD_REQUEST => {
            let message = Some(notice("error", &error.message));
            let response = show_collection(request, namespace, message)?;
            Ok(response.with_status(error.status))
        }
        Err(error) => Err(error),
    }
}

/// Returns the page of a collection with a message.
fn show_collection(
    request: &Request,
    namespace: &Namespace,
    notice: Option<maud::Markup>,
) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let indexes = read_indexes(&mut database, namespace.clone())?;
    let builds = builds::read(&mut database).ok();
    let content = html! {
        @if let Some(notice) = notice { (notice) }
        (table::collection_table(request, &indexes))
        @if !indexes.search_indexes.is_empty() {
            h2 #search-indexes { (texts::SEARCH_INDEXES) }
            (search_indexes::collection_table(request, &indexes))
        }
        @if let Some(builds) = builds {
            h2 { (texts::BUILDS) }
            div #builds data-live="/indexes/live" data-live-event="table" { (builds::table(&builds, None)) }
        }
        @if request.can_write() {
            (change::create_form(request, namespace))
            (search_change::create_form(request, namespace))
        }
    };
    let scripts = &["live_table.js", "confirm.js"];
    Ok(collection_page(
        request, namespace, "indexes", scripts, &content,
    ))
}
