//! Graphs of the last hours. All pages share the samples; scripts draw the graphs.

use std::time::{Duration, Instant};

use maud::{Markup, html};
use windrow_document::doc;

use crate::data_table::{Column, data_table};
use crate::error::PageError;
use crate::history::Window;
use crate::history::charts::{CHARTS, Chart, Unit, lines};
use crate::request::Request;
use crate::response::Response;
use crate::route::{EventStream, PollFunction};
use crate::show::{bytes, grouped};
use crate::texts::state as texts;

use super::{PATH, part_page};

/// The event stream of new samples.
pub const LIVE: EventStream = EventStream {
    interval: Duration::from_secs(1),
    start: start_polling,
};

/// The selectable periods, in minutes.
const RANGES: [(u32, &str); 3] = [
    (15, texts::MINUTES_15),
    (60, texts::HOUR),
    (240, texts::HOURS_4),
];
/// The maximum number of points of a graph.
const POINTS_MAX: usize = 600;
/// The interval at which a stream checks the privileges of its user.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Fails if the user may not see the state of the server.
fn check_privilege(request: &Request) -> Result<(), PageError> {
    let status = doc! { "serverStatus": 1, "$db": "admin" };
    request.database()?.run(status).map(|_| ())
}

fn minutes(request: &Request) -> u32 {
    let requested = request.query().number("minutes");
    let known = RANGES.iter().find(|(range, _)| Some(*range) == requested);
    known.map_or(15, |(range, _)| *range)
}

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    check_privilege(request)?;
    let shown = minutes(request);
    let history = &request.site().history;
    let window = history.window(shown, POINTS_MAX);
    let content = html! {
        div .row .spread {
            nav .choices aria-label=(texts::RANGE) {
                @for (range, name) in RANGES {
                    a href=(format!("{PATH}?minutes={range}"))
                        aria-current=[(range == shown).then_some("true")] { (name) }
                }
            }
            p .muted .small .hint { (texts::ZOOM) }
        }
        @if let Some(problem) = history.problem() {
            p .notice .warning role="status" { (texts::problem(&problem)) }
        } @else if history.newest().is_none() {
            p .notice role="status" { (texts::NO_SAMPLES) }
        }
        div #charts .charts data-series=(format!("/state/series?minutes={shown}")) data-minutes=(shown)
            data-live="/state/live" data-live-event="sample" {
            @for (chart, first) in charts_with_columns() { (figure(chart, first, &window)) }
        }
    };
    Ok(part_page(request, PATH, &["charts.js"], &content))
}

/// Returns the charts, each with the column of its first line.
fn charts_with_columns() -> impl Iterator<Item = (&'static Chart, usize)> {
    CHARTS.iter().scan(0, |next, chart| {
        let first = *next;
        *next += chart.lines.len();
        Some((chart, first))
    })
}

fn figure(chart: &Chart, first: usize, window: &Window) -> Markup {
    let names: Vec<&str> = chart.lines.iter().map(|line| line.name).collect();
    let heading = format!("chart-{}", chart.name);
    html! {
        section .chart .panel aria-labelledby=(heading) {
            h2 #(heading) { (chart.title) }
            div .plot aria-hidden="true" data-names=(names.join("|")) data-unit=(chart.unit.name())
                data-first=(first) {}
            (numbers(chart, first, window))
        }
    }
}

/// Shows the values of a chart as a table, which is also its legend.
fn numbers(chart: &Chart, first: usize, window: &Window) -> Markup {
    let cell = |value: Option<f32>| value.map_or("–".to_owned(), |it| shown(chart.unit, it));
    data_table(
        &format!("{}: {}", chart.title, texts::NUMBERS),
        "legend",
        &[
            Column::text(texts::LINE),
            Column::number(texts::NOW),
            Column::number(texts::AVERAGE),
            Column::number(texts::HIGHEST),
        ],
        &html! {
            @for (at, line) in chart.lines.iter().enumerate() {
                @let summary = window.summary(first + at);
                tr {
                    th scope="row" { span class=(format!("swatch line-{at}")) {} (line.name) }
                    td .number data-now=(first + at) { (cell(summary.map(|it| it.now))) }
                    td .number { (cell(summary.map(|it| it.average))) }
                    td .number { (cell(summary.map(|it| it.highest))) }
                }
            }
        },
    )
}

/// Formats a value with its unit. The script of the graphs must use the same format.
fn shown(unit: Unit, value: f32) -> String {
    match unit {
        Unit::Bytes => bytes(f64::from(value)),
        Unit::BytesPerSecond => format!("{}/s", bytes(f64::from(value))),
        Unit::Milliseconds => format!("{value:.2} ms"),
        Unit::Count | Unit::PerSecond if value < 10.0 && value.fract() != 0.0 => {
            format!("{value:.2}")
        }
        Unit::Count | Unit::PerSecond => grouped(value.round() as i64),
    }
}

/// Returns the samples as JSON.
pub fn series(request: &Request) -> Result<Response, PageError> {
    check_privilege(request)?;
    let window = request.site().history.window(minutes(request), POINTS_MAX);
    Ok(Response::bytes("application/json", window.to_json()))
}

fn start_polling(request: &Request) -> Result<PollFunction, PageError> {
    check_privilege(request)?;
    let mut checked = Instant::now();
    Ok(Box::new(move |request| {
        if checked.elapsed() > CHECK_INTERVAL {
            check_privilege(request)?;
            checked = Instant::now();
        }
        let history = &request.site().history;
        match history.newest() {
            Some(sample) => Ok(sample.to_string()),
            None => Ok(empty_sample()),
        }
    }))
}

/// A sample without numbers.
fn empty_sample() -> String {
    format!("[0{}]", ",null".repeat(lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        let cases = [
            (Unit::Bytes, 1_500.0, "1.5 kB"),
            (Unit::BytesPerSecond, 10.0, "10 B/s"),
            (Unit::Milliseconds, 0.254, "0.25 ms"),
            (Unit::PerSecond, 0.5, "0.50"),
            (Unit::PerSecond, 12_345.6, "12,346"),
            (Unit::Count, 3.0, "3"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(shown(unit, value), expected);
        }
    }

    #[test]
    fn columns_are_those_of_samples() {
        let (chart, first) = charts_with_columns().last().unwrap();
        assert_eq!(first + chart.lines.len(), lines().count());
    }
}
