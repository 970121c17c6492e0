//! The overview of the server.

use std::time::Duration;

use hyper::StatusCode;
use maud::{Markup, html};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::data_table::{Column, data_table};
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::route::{EventStream, PollFunction, Route, Section};
use crate::sections::search;
use crate::shell::{Frame, page};
use crate::show::{bytes, duration, grouped};
use crate::texts::home as texts;

/// The section of the overview.
pub const SECTION: Section = Section {
    name: texts::NAME,
    path: PATH,
    routes: &[
        Route::get("/", first),
        Route::get(PATH, show),
        Route::live(
            "/overview/live",
            EventStream {
                interval: Duration::from_secs(1),
                start: start_polling,
            },
        ),
    ],
};

const PATH: &str = "/overview";

/// Shows the start page: the search if files are indexed, otherwise the overview.
fn first(request: &Request) -> Result<Response, PageError> {
    if search::has_files(request)? {
        search::show(request)
    } else {
        show(request)
    }
}

fn show(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    // The user may lack the privilege for `serverStatus`.
    let status = match database.run(doc! { "serverStatus": 1, "$db": "admin" }) {
        Ok(status) => Some(status),
        Err(error) if error.status == StatusCode::FORBIDDEN => None,
        Err(error) => return Err(error),
    };
    let listed = database.run(doc! { "listDatabases": 1, "$db": "admin" })?;
    let content = html! {
        h1 { (texts::TITLE) }
        @if let Some(status) = &status {
            div #numbers data-live="/overview/live" { (numbers(status.as_document())) }
        }
        h2 { (texts::DATABASES) }
        (databases(&listed))
    };
    let frame = Frame {
        title: texts::TITLE,
        section: PATH,
        ..Frame::default()
    };
    Ok(page(request, frame, &content))
}

/// Creates the polling function for the counters.
fn start_polling(_: &Request) -> Result<PollFunction, PageError> {
    Ok(Box::new(|request| {
        let status = doc! { "serverStatus": 1, "$db": "admin" };
        let status = request.database()?.run(status)?;
        Ok(numbers(status.as_document()).into_string())
    }))
}

fn numbers(status: Document<'_>) -> Markup {
    let text = |name: &str| {
        status
            .get(name)
            .and_then(ValueRef::as_str)
            .unwrap_or_default()
    };
    let number = |section: &str, name: &str| {
        let section = status.get(section).and_then(ValueRef::as_document);
        let value = section
            .and_then(|it| it.get(name))
            .and_then(ValueRef::as_f64);
        value.unwrap_or(0.0) as i64
    };
    let uptime = status
        .get("uptime")
        .and_then(ValueRef::as_f64)
        .unwrap_or(0.0);
    let operations = ["insert", "query", "update", "delete", "getmore", "command"];
    let operations = operations
        .iter()
        .map(|kind| number("opcounters", kind))
        .sum::<i64>();
    let shown = [
        (texts::HOST, text("host").to_owned()),
        (texts::UPTIME, duration(uptime)),
        (
            texts::CONNECTIONS,
            grouped(number("connections", "current")),
        ),
        (texts::OPERATIONS, grouped(operations)),
    ];
    html! {
        dl .cards {
            @for (name, value) in shown { div { dt { (name) } dd { (value) } } }
        }
    }
}

fn databases(listed: &DocumentBuf) -> Markup {
    let all = listed.get("databases").and_then(ValueRef::as_array);
    let all: Vec<_> = all
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document)
        .collect();
    html! {
        @if all.is_empty() {
            p .muted { (texts::NO_DATABASES) }
        } @else {
            (data_table(
                texts::DATABASES,
                "",
                &[Column::text(texts::DATABASE), Column::number(texts::SIZE)],
                &html! {
                    @for one in all {
                        tr {
                            td { (one.get("name").and_then(ValueRef::as_str).unwrap_or_default()) }
                            td .number { (bytes(one.get("sizeOnDisk").and_then(ValueRef::as_f64).unwrap_or(0.0))) }
                        }
                    }
                },
            ))
        }
    }
}
