//! The import and export page, and exports.

use std::io::{self, Write};

use hyper::header::{CONTENT_DISPOSITION, HeaderName};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};

use crate::database::Database;
use crate::error::PageError;
use crate::literals::{JsonFormat, extended_json};
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::texts::collections as texts;

use super::csv;
use super::find_form::Find;
use super::import::import_form;
use crate::collection_frame::{collection_page, document_field, notice};

/// Shows the page with both forms.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let done = request.query().number("done");
    let content = html! {
        @if let Some(count) = done { (notice("good", &texts::inserted(i64::from(count)))) }
        (export_form(request, &namespace))
        @if request.can_write() { (import_form(request, &namespace)) }
    };
    Ok(collection_page(
        request,
        &namespace,
        "transfer",
        &["import.js"],
        &content,
    ))
}

fn export_form(request: &Request, namespace: &Namespace) -> Markup {
    let form = request.query();
    html! {
        section .panel {
            h2 .first { (texts::EXPORT) }
            p .muted { (texts::EXPORT_LEAD) }
            form .stack method="get" action=(namespace.page_address("export")) {
                (document_field("filter", texts::FILTER, texts::FILTER_EXAMPLE, form.text("filter")))
                div .row .two {
                    (document_field("projection", texts::PROJECTION, "{ name: 1 }", form.text("projection")))
                    (document_field("sort", texts::SORT, "{ at: -1 }", form.text("sort")))
                }
                div .row .two {
                    div .field .grow {
                        label for="format" { (texts::FORMAT) }
                        select #format name="format" {
                            @for (value, name) in texts::FORMATS { option value=(value) { (name) } }
                        }
                    }
                    div .field .grow {
                        label for="fields" { (texts::CSV_FIELDS) }
                        input .code #fields name="fields" aria-describedby="fields-hint";
                        span #fields-hint .muted .small { (texts::CSV_FIELDS_HINT) }
                    }
                }
                div { button .primary type="submit" { (texts::EXPORT_SUBMIT) } }
            }
        }
    }
}

/// The format of an export.
#[derive(Clone, Debug)]
enum Format {
    Lines(JsonFormat),
    Array,
    Csv(Vec<Path>),
}

const FIELD_SAMPLE: usize = 100;
/// The time limit of an export.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(3600);

/// Sends the matching documents.
pub fn export(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let query = request.query();
    let find = Find::parse(query).map_err(PageError::bad_request)?;
    let command = find.command(&namespace);
    let mut database = request.database()?;
    database.set_time_max(EXPORT_TIME_MAX);
    let (format, content_type, extension) = match query.text("format") {
        "csv" => {
            let paths = csv_paths(&mut database, query.text("fields"), &command)?;
            (Format::Csv(paths), "text/csv; charset=utf-8", "csv")
        }
        "array" => (Format::Array, "application/json", "json"),
        other => {
            let format = if other == "canonical" {
                JsonFormat::Canonical
            } else {
                JsonFormat::Relaxed
            };
            (Format::Lines(format), "application/x-ndjson", "jsonl")
        }
    };
    let name = format!("{namespace}.{extension}");
    let name = utf8_percent_encode(&name, NON_ALPHANUMERIC);
    let disposition = format!("attachment; filename*=UTF-8''{name}");
    let response = Response::from_writer(content_type, move |writer| {
        write_documents(writer, &mut database, command, &format)
    });
    let header: HeaderName = CONTENT_DISPOSITION;
    Ok(response.with_header(header, &disposition))
}

/// Returns the field paths of CSV: those of the form, or else those of the first documents.
fn csv_paths(
    database: &mut Database,
    requested: &str,
    command: &DocumentBuf,
) -> Result<Vec<Path>, PageError> {
    let mut names: Vec<String> = requested
        .split(',')
        .map(|it| it.trim().to_owned())
        .collect();
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        database.for_each_document(first_documents(command), &mut |document| {
            for (name, _) in document.iter() {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            true
        })?;
    }
    Ok(names.iter().map(|name| Path::parse(name)).collect())
}

fn first_documents(command: &DocumentBuf) -> DocumentBuf {
    let mut first = command.clone();
    first.push("limit", FIELD_SAMPLE as i64);
    first
}

/// Writes documents until the browser disconnects. After an error the connection is closed without
/// the end of the response, so the browser reports a failed download.
fn write_documents(
    writer: &mut dyn Write,
    database: &mut Database,
    command: DocumentBuf,
    format: &Format,
) -> io::Result<()> {
    match format {
        Format::Array => writer.write_all(b"[")?,
        Format::Csv(paths) => {
            let names = paths.iter().map(|path| {
                let names: Vec<&str> = path.components().iter().map(|it| it.name()).collect();
                names.join(".").into()
            });
            csv::write_line(writer, names)?;
        }
        Format::Lines(_) => {}
    }
    let (mut written, mut is_first) = (Ok(()), true);
    let read = database.for_each_document(command, &mut |document| {
        written = write_document(writer, document, format, is_first);
        is_first = false;
        written.is_ok()
    });
    written?;
    read.map_err(io::Error::other)?;
    match format {
        Format::Array => writer.write_all(b"\n]\n"),
        _ => Ok(()),
    }
}

fn write_document(
    writer: &mut dyn Write,
    document: Document<'_>,
    format: &Format,
    is_first: bool,
) -> io::Result<()> {
    let value = ValueRef::Document(document);
    match format {
        Format::Csv(paths) => csv::write_line(writer, csv::values(document, paths)),
        Format::Lines(format) => writeln!(writer, "{}", extended_json(value, *format)),
        Format::Array => {
            let comma = if is_first { "" } else { "," };
            write!(
                writer,
                "{comma}\n{}",
                extended_json(value, JsonFormat::Relaxed)
            )
        }
    }
}
