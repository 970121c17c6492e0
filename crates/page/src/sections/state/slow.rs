//! The page of slow operations, taken from the server log.

use maud::{Markup, html};

use crate::data_table::{Column, data_table};
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::show::grouped;
use crate::texts::state as texts;

use super::log::read_lines;
use super::log_line::LogLine;
use super::{SLOW, part_page, profile};

/// The maximum number of operations shown.
const OPERATIONS_MAX: usize = 100;

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let mut lines = read_lines(&mut database)?;
    lines.retain(LogLine::is_slow_operation);
    let profiles = profile::read(&mut database)?;
    let content = html! {
        p .muted { (texts::SLOW_LEAD) }
        (table(&lines))
        (profile::table(request, &profiles))
    };
    Ok(part_page(request, SLOW, &[], &content))
}

fn table(lines: &[LogLine]) -> Markup {
    html! {
        @if lines.is_empty() {
            p .empty { (texts::NO_SLOW) }
        } @else {
            (data_table(
                texts::SLOW,
                "",
                &[
                    Column::text(texts::TIME),
                    Column::number(texts::DURATION),
                    Column::text(texts::NAMESPACE),
                    Column::text(texts::COMMAND),
                    Column::number(texts::EXAMINED),
                ],
                &html! { @for line in lines.iter().take(OPERATIONS_MAX) { (row(line)) } },
            ))
        }
    }
}

fn row(line: &LogLine) -> Markup {
    let count = |name: &str| line.number(name).map_or("–".to_owned(), grouped);
    let command = line.attributes.get("command").and_then(|it| it.as_object());
    let name = command.and_then(|it| it.keys().next());
    let name = match (line.text("type"), name) {
        ("command", Some(name)) => name,
        (kind, _) => kind,
    };
    let details = serde_json::to_string_pretty(&line.attributes).unwrap_or_default();
    html! {
        tr {
            td .nowrap .small { (line.time_to_second()) }
            td .number { (count("durationMillis")) " ms" }
            td { bdi { (line.text("ns")) } }
            td {
                details {
                    summary { bdi { (name) } @if !line.text("planSummary").is_empty() { " · " (line.text("planSummary")) } }
                    pre .code .wrap { (details) }
                }
            }
            td .number {
                (count("keysExamined")) " / " (count("docsExamined")) " / " (count("nreturned"))
            }
        }
    }
}
