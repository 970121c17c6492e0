//! The page with the files that could not be read.

use maud::{Markup, html};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_file_search::ValueCount;

use super::counts::{DATABASE, failures_by_class, missing_converters};
use super::frame::{FRAME, PATH as OVERVIEW_PATH, RunForm, run_form};
use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::form::FormFields;
use crate::request::Request;
use crate::response::Response;
use crate::shell::page;
use crate::show::{grouped, visible};
use crate::texts::folders as texts;

/// The path of the page.
pub const PATH: &str = "/folders/failures";
/// The number of failures on a page.
const PAGE_SIZE: usize = 50;
/// The maximum page number.
const PAGES_MAX: u32 = 1_000;

/// The form that retries the failed files.
const RETRY: RunForm = RunForm {
    retries: true,
    label: texts::RETRY,
    is_hidden: false,
};

/// Shows the page.
///
/// # Errors
/// Fails if the database fails.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    if !database.has_collection(DATABASE, "failures")? {
        return Ok(Response::redirect(OVERVIEW_PATH));
    }
    let class = request.query().get("class");
    let number = request
        .query()
        .number("page")
        .unwrap_or(1)
        .clamp(1, PAGES_MAX);
    let classes = failures_by_class(&mut database)?;
    let missing = missing_converters(&mut database)?;
    let mut rows = rows(&mut database, class, number)?;
    let has_more = rows.len() > PAGE_SIZE;
    rows.truncate(PAGE_SIZE);
    let content = html! {
        p .back { a href=(OVERVIEW_PATH) { "← " (texts::TITLE) } }
        div .row .spread {
            h1 { (texts::FAILURES) }
            @if !rows.is_empty() { (run_form(request, RETRY)) }
        }
        nav .row .classes aria-label=(texts::BY_REASON) {
            a href=(PATH) aria-current=[class.is_none().then_some("true")] { (texts::ALL) }
            @for ValueCount { value: name, count } in &classes {
                a href=(FormFields::default().and("class", name).address(PATH))
                    aria-current=[(class == Some(name)).then_some("true")] {
                    (texts::class(name)) " " span .muted { (grouped(*count)) }
                }
            }
        }
        @if !missing.is_empty() && class.is_none_or(|class| class == "missing_converter") {
            (missing_list(&missing))
        }
        @if rows.is_empty() {
            p .empty { (texts::NO_FAILURES) }
        } @else {
            (table(&rows))
        }
        (pages(request.query(), number, has_more))
    };
    let frame = crate::shell::Frame {
        title: texts::FAILURES,
        ..FRAME
    };
    Ok(page(request, frame, &content))
}

fn rows(
    database: &mut Database,
    class: Option<&str>,
    page: u32,
) -> Result<Vec<DocumentBuf>, PageError> {
    let mut filter = DocumentBuf::new();
    if let Some(class) = class {
        filter.push("class", class);
    }
    let skip = (i64::from(page) - 1) * PAGE_SIZE as i64;
    let command = doc! {
        "find": "failures", "filter": (filter), "sort": { "_id": 1 }, "skip": skip,
        "limit": (PAGE_SIZE as i64 + 1), "$db": DATABASE,
    };
    database.documents(command, PAGE_SIZE + 1)
}

fn missing_list(missing: &[ValueCount]) -> Markup {
    html! {
        section .panel .missing {
            h2 { (texts::MISSING) }
            p .muted { (texts::MISSING_LEAD) }
            ul { @for ValueCount { value: reason, count } in missing {
                li { (visible(reason)) " " span .badge { (grouped(*count)) } }
            } }
        }
    }
}

fn table(rows: &[DocumentBuf]) -> Markup {
    let text = |row: &DocumentBuf, name: &str| {
        visible(row.get(name).and_then(ValueRef::as_str).unwrap_or_default())
    };
    data_table(
        texts::FAILURES,
        "",
        &[Column::text(texts::PATH), Column::text(texts::REASON)],
        &html! {
            @for row in rows {
                @let class = text(row, "class");
                tr {
                    td .file { bdi { (text(row, "_id")) } }
                    td { span .badge .warning { (texts::class(&class)) } " " (text(row, "reason")) }
                }
            }
        },
    )
}

fn pages(query: &FormFields, page: u32, has_more: bool) -> Markup {
    let at = |page: u32| query.with("page", Some(&page.to_string())).address(PATH);
    html! {
        @if page > 1 || has_more {
            nav .row .page-links aria-label=(texts::PAGES) {
                @if page > 1 { a .button rel="prev" href=(at(page - 1)) { (texts::PREVIOUS) } }
                @if has_more && page < PAGES_MAX { a .button rel="next" href=(at(page + 1)) { (texts::NEXT) } }
            }
        }
    }
}
