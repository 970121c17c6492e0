//! The newest lines of the server log, with a filter.

use std::time::Duration;

use maud::{Markup, html};
use windrow_document::{ValueRef, doc};

use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::form::FormFields;
use crate::request::Request;
use crate::response::Response;
use crate::route::{EventStream, PollFunction};
use crate::texts::state as texts;

use super::log_line::LogLine;
use super::{LOG, part_page};

/// The event stream of the lines that match the filter in the address.
pub const LIVE: EventStream = EventStream {
    interval: Duration::from_secs(2),
    start: start_polling,
};

/// The maximum number of lines.
const LINES_MAX: usize = 200;

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let lines = read_lines(&mut request.database()?)?;
    let mut components: Vec<&str> = lines.iter().map(|line| line.component.as_str()).collect();
    components.sort_unstable();
    components.dedup();
    components.retain(|name| !name.is_empty());
    let query = request.query();
    let live = query.address("/state/log/live");
    let content = html! {
        p .muted { (texts::LOG_LEAD) }
        (filter(query, &components))
        div #log data-live=(live) data-live-event="table" { (table(&lines, query)) }
    };
    Ok(part_page(request, LOG, &["live_table.js"], &content))
}

fn start_polling(_: &Request) -> Result<PollFunction, PageError> {
    Ok(Box::new(|request| {
        let lines = read_lines(&mut request.database()?)?;
        Ok(table(&lines, request.query()).into_string())
    }))
}

/// Returns the lines of `getLog`, the newest first.
pub fn read_lines(database: &mut Database) -> Result<Vec<LogLine>, PageError> {
    let reply = database.run(doc! { "getLog": "global", "$db": "admin" })?;
    let lines = reply.get("log").and_then(ValueRef::as_array);
    let lines = lines.into_iter().flatten().filter_map(ValueRef::as_str);
    let mut lines: Vec<LogLine> = lines.map(LogLine::parse).collect();
    lines.reverse();
    Ok(lines)
}

fn filter(query: &FormFields, components: &[&str]) -> Markup {
    let (severity, component) = (query.text("severity"), query.text("component"));
    html! {
        form .filter .row method="get" action=(LOG) role="search" {
            div .field {
                label for="q" { (texts::LOG_TEXT) }
                input #q type="search" name="q" value=(query.text("q"));
            }
            div .field {
                label for="severity" { (texts::LOG_SEVERITY) }
                select #severity name="severity" {
                    option value="" { (texts::LOG_ALL) }
                    @for (letter, name) in texts::SEVERITIES {
                        option value=(letter) selected[letter == severity] { (name) }
                    }
                }
            }
            div .field {
                label for="component" { (texts::LOG_COMPONENT) }
                select #component name="component" {
                    option value="" { (texts::LOG_ALL) }
                    @for name in components {
                        option value=(name) selected[*name == component] { (name) }
                    }
                }
            }
            button type="submit" { (texts::LOG_FILTER) }
        }
    }
}

fn is_shown(line: &LogLine, query: &FormFields) -> bool {
    let text = query.text("q").to_lowercase();
    let has_text = text.is_empty()
        || line.message.to_lowercase().contains(&text)
        || line.attributes_text().to_lowercase().contains(&text);
    let (severity, component) = (query.text("severity"), query.text("component"));
    has_text
        && line.severity.starts_with(severity)
        && (component.is_empty() || line.component == component)
}

fn table(lines: &[LogLine], query: &FormFields) -> Markup {
    let shown = lines.iter().filter(|line| is_shown(line, query));
    let shown: Vec<&LogLine> = shown.take(LINES_MAX).collect();
    html! {
        @if shown.is_empty() {
            p .empty { (texts::NO_LINES) }
        } @else {
            (data_table(
                texts::LOG,
                "log",
                &[
                    Column::text(texts::TIME),
                    Column::text(texts::LOG_SEVERITY),
                    Column::text(texts::LOG_COMPONENT),
                    Column::text(texts::LOG_MESSAGE),
                ],
                &html! { @for line in shown { (row(line)) } },
            ))
        }
    }
}

fn row(line: &LogLine) -> Markup {
    let known = texts::SEVERITIES
        .iter()
        .find(|(letter, _)| line.severity.starts_with(letter));
    let name = known.map_or(line.severity.as_str(), |(_, name)| name);
    let class = match line.severity.as_str() {
        "F" | "E" => "badge bad",
        "W" => "badge warning",
        _ => "badge",
    };
    html! {
        tr {
            td .nowrap .small { (line.time_to_second()) }
            td { span class=(class) { (name) } }
            td .small { (line.component) }
            td { bdi { (line.message) } " " bdi .muted .small .attributes { (line.attributes_text()) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_combined() {
        let line = LogLine {
            severity: "D1".to_owned(),
            component: "INDEX".to_owned(),
            message: "Index build".to_owned(),
            ..LogLine::default()
        };
        let cases = [
            ("", true),
            ("q=index&severity=D&component=INDEX", true),
            ("q=BUILD", true),
            ("q=none", false),
            ("severity=I", false),
            ("component=COMMAND", false),
        ];
        for (query, expected) in cases {
            assert_eq!(
                is_shown(&line, &FormFields::parse(query.as_bytes())),
                expected,
                "{query}"
            );
        }
    }
}
