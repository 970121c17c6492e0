//! The pages of aggregations and of query plans.

mod explain;
mod pipeline;
mod plan;
mod plan_tree;
mod stages;

use maud::html;
use windrow_document::{ValueRef, doc};

use crate::data_table::{Column, data_table};
use crate::error::PageError;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::route::{Route, Section};
use crate::shell::{Frame, page};
use crate::texts::queries as texts;

/// The section of queries.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: PATH,
    routes: &[
        Route::get(PATH, show),
        Route::get(
            "/collections/{database}/{collection}/pipeline",
            pipeline::show,
        ),
        Route::post(
            "/collections/{database}/{collection}/pipeline",
            pipeline::change,
        )
        .reading(),
        Route::post(
            "/collections/{database}/{collection}/pipeline/preview",
            pipeline::preview,
        )
        .reading(),
        Route::post(
            "/collections/{database}/{collection}/pipeline/run",
            pipeline::run,
        ),
        Route::get(
            "/collections/{database}/{collection}/explain",
            explain::show,
        ),
        Route::post(
            "/collections/{database}/{collection}/explain",
            explain::show_pipeline,
        )
        .reading(),
    ],
};

const PATH: &str = "/queries";
/// The maximum number of collections listed of a database.
const COLLECTIONS_MAX: usize = 1_000;

/// Lists the collections with links to their pages.
fn show(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let mut namespaces = Vec::new();
    for name in database.database_names()? {
        let command = doc! {
            "listCollections": 1, "nameOnly": true, "authorizedCollections": true, "$db": (name.as_str()),
        };
        let listed = database.documents(command, COLLECTIONS_MAX)?;
        let names = listed
            .iter()
            .filter_map(|it| it.get("name").and_then(ValueRef::as_str));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        namespaces.extend(names.into_iter().map(|collection| Namespace {
            database: name.clone(),
            collection: collection.to_owned(),
        }));
    }
    let content = html! {
        h1 { (texts::TITLE) }
        p .muted { (texts::LEAD) }
        p .row {
            a .button href="/state/operations" { (texts::RUNNING) }
            a .button href="/state/slow" { (texts::SLOW) }
        }
        @if namespaces.is_empty() {
            p .empty { (texts::NONE) }
        } @else {
            (data_table(
                texts::TITLE,
                "",
                &[
                    Column::text(texts::COLLECTION),
                    Column::text(texts::PIPELINE),
                    Column::text(texts::EXPLAIN),
                ],
                &html! {
                    @for namespace in &namespaces {
                        tr {
                            th scope="row" { bdi { (namespace) } }
                            td { a href=(namespace.page_address("pipeline")) aria-label=(format!("{}, {namespace}", texts::PIPELINE)) { (texts::PIPELINE) } }
                            td { a href=(namespace.page_address("explain")) aria-label=(format!("{}, {namespace}", texts::EXPLAIN)) { (texts::EXPLAIN) } }
                        }
                    }
                },
            ))
        }
    };
    let frame = Frame {
        title: texts::TITLE,
        section: PATH,
        scripts: &[],
        styles: &["data.css"],
    };
    Ok(page(request, frame, &content))
}
