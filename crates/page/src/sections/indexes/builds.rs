//! Running index builds: phase, rate and remaining time.

use std::time::{Duration, Instant};

use maud::{Markup, html};
use windrow_client::server_status::{number, section};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::request::Request;
use crate::route::{EventStream, PollFunction};
use crate::show::{duration, grouped};
use crate::texts::indexes as texts;

/// The event stream with the table of builds.
pub const LIVE: EventStream = EventStream {
    interval: Duration::from_secs(1),
    start: start_polling,
};

/// Reads the running builds.
pub fn read(database: &mut Database) -> Result<Vec<DocumentBuf>, PageError> {
    let status = database.run(doc! { "serverStatus": 1, "$db": "admin" })?;
    let builds = section(status.as_document(), &["indexBuilds", "inProgress"]);
    let builds = builds.and_then(ValueRef::as_array);
    let builds = builds
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document);
    Ok(builds.map(Document::to_buf).collect())
}

fn start_polling(_: &Request) -> Result<PollFunction, PageError> {
    let mut before: Option<BuildsSnapshot> = None;
    Ok(Box::new(move |request| {
        let builds = read(&mut request.database()?)?;
        let markup = table(&builds, before.as_ref());
        before = Some(BuildsSnapshot {
            at: Instant::now(),
            builds,
        });
        Ok(markup.into_string())
    }))
}

/// An earlier state of the builds, from which the rate is computed.
pub struct BuildsSnapshot {
    at: Instant,
    builds: Vec<DocumentBuf>,
}

/// Shows the builds as a table.
pub fn table(builds: &[DocumentBuf], before: Option<&BuildsSnapshot>) -> Markup {
    html! {
        @if builds.is_empty() {
            p .muted { (texts::NO_BUILDS) }
        } @else {
            (data_table(
                texts::BUILDS,
                "",
                &[
                    Column::text(texts::COLLECTION),
                    Column::text(texts::INDEX),
                    Column::text(texts::PHASE),
                    Column::text(texts::PROGRESS),
                    Column::number(texts::RATE),
                    Column::number(texts::LEFT),
                ],
                &html! { @for build in builds { (row(build.as_document(), before)) } },
            ))
        }
    }
}

fn row(build: Document<'_>, before: Option<&BuildsSnapshot>) -> Markup {
    let text = |path: &[&str]| section(build, path).and_then(ValueRef::as_str);
    let names = build.get("indexes").and_then(ValueRef::as_array);
    let names: Vec<&str> = names
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_str)
        .collect();
    let count = |name: &str| number(build, &["indexBuild", name]);
    let (done, total) = (count("documents"), count("documentsTotal"));
    let left = section(build, &["indexBuild", "secondsLeft"]).and_then(ValueRef::as_f64);
    let rate = before.and_then(|it| rate(it, build));
    html! {
        tr {
            td { bdi { (text(&["namespace"]).unwrap_or_default()) } }
            td { bdi { (names.join(", ")) } }
            td { (text(&["indexBuild", "phase"]).unwrap_or(texts::STARTING)) }
            td {
                @if total > 0.0 {
                    progress max="100" value=((done * 100.0 / total) as i64) aria-label=(texts::PROGRESS) {}
                    span .small .muted { (texts::documents_of(done as i64, total as i64)) }
                }
            }
            td .number { (rate.map_or(texts::UNKNOWN.to_owned(), |it| grouped(it as i64))) }
            td .number { (left.map_or(texts::UNKNOWN.to_owned(), duration)) }
        }
    }
}

/// Returns the documents per second since an earlier state.
fn rate(before: &BuildsSnapshot, build: Document<'_>) -> Option<f64> {
    let is_same = |it: &&DocumentBuf| {
        let (one, other) = (it.get("namespace"), build.get("namespace"));
        one == other && it.get("indexes") == build.get("indexes")
    };
    let known = before.builds.iter().find(is_same)?;
    let done = |it: Document<'_>| number(it, &["indexBuild", "documents"]);
    let grown = (done(build) - done(known.as_document())).max(0.0);
    Some(grown / before.at.elapsed().as_secs_f64().max(1e-3))
}
