//! The page with the schema of a collection, inferred from a sample.

use maud::{Markup, html};
use windrow_document::doc;

use crate::error::PageError;
use crate::literals::format_date;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::texts::collections as texts;

use super::schema_sample::{BARS, Distribution, FIELDS_MAX, Field, SchemaSample};
use crate::collection_frame::collection_page;
use crate::data_table::{Column, data_table};

/// The number of documents of the sample.
const SAMPLE: usize = 1_000;
/// The maximum number of bytes of the sample.
const SAMPLE_BYTES_MAX: usize = 64 << 20;

/// Shows the page.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let command = doc! {
        "aggregate": (namespace.collection.as_str()), "cursor": {},
        "pipeline": [{ "$sample": { "size": (SAMPLE as i64) } }],
        "$db": (namespace.database.as_str()),
    };
    let (mut sample, mut bytes) = (SchemaSample::default(), 0);
    request
        .database()?
        .for_each_document(command, &mut |document| {
            sample.add(document);
            bytes += document.as_bytes().len();
            bytes < SAMPLE_BYTES_MAX && sample.documents < SAMPLE
        })?;
    let content = html! {
        p .muted { (texts::SCHEMA_LEAD) " " (texts::sampled(sample.documents)) }
        @if sample.documents == 0 {
            p .empty { (texts::NO_SCHEMA) }
        } @else {
            (table(&sample))
            @if sample.fields.len() >= FIELDS_MAX { p .muted { (texts::FIELDS_MAX) } }
        }
    };
    Ok(collection_page(
        request,
        &namespace,
        "schema",
        &[],
        &content,
    ))
}

fn table(sample: &SchemaSample) -> Markup {
    data_table(
        texts::SCHEMA,
        "schema",
        &[
            Column::text(texts::FIELD),
            Column::number(texts::PRESENT),
            Column::text(texts::TYPES),
            Column::text(texts::VALUES),
        ],
        &html! { @for field in sample.sorted() { (row(sample, field)) } },
    )
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.0} %", part as f64 * 100.0 / whole.max(1) as f64)
}

fn row(sample: &SchemaSample, field: &Field) -> Markup {
    let depth = field.path.matches(['.', '[']).count().min(6);
    html! {
        tr {
            th scope="row" class=(format!("depth-{depth}")) { bdi .key { (field.path) } }
            td .number { (percent(field.documents, sample.documents)) }
            td {
                @for (kind, count) in &field.types {
                    span .badge { (kind.name()) @if field.types.len() > 1 { " " (percent(*count, field.values())) } } " "
                }
            }
            td { @if let Some(distribution) = field.distribution() { (plot(&distribution, field.values())) } }
        }
    }
}

fn plot(distribution: &Distribution, values: usize) -> Markup {
    let date = |millis: f64| {
        let text = format_date(millis as i64).unwrap_or_default();
        text.get(..10).unwrap_or_default().to_owned()
    };
    match distribution {
        Distribution::Numbers { low, high, bars } => {
            histogram(bars, &low.to_string(), &high.to_string())
        }
        Distribution::Dates { low, high, bars } => histogram(bars, &date(*low), &date(*high)),
        Distribution::Texts(texts) => html! {
            ul .frequent {
                @for (text, count) in texts {
                    li {
                        svg .bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                            rect width=(count * 100 / values.max(1)) height="10" {}
                        }
                        span .number .small { (percent(*count, values)) }
                        bdi .value { (text) }
                    }
                }
            }
        },
    }
}

fn histogram(bars: &[usize; BARS], low: &str, high: &str) -> Markup {
    let most = bars.iter().copied().max().unwrap_or(1).max(1);
    html! {
        div .histogram {
            span .small .muted { (low) }
            @if low != high {
                svg viewBox="0 0 160 28" width="160" height="28" role="img" aria-label=(texts::histogram(low, high)) {
                    @for (at, count) in bars.iter().enumerate() {
                        @let height = (count * 27).div_ceil(most);
                        rect x=(at * 10) y=(28 - height) width="9" height=(height) {}
                    }
                }
                span .small .muted { (high) }
            }
        }
    }
}
