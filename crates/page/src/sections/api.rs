//! The JSON API below `/api/v1`, which `openapi.json` describes.
//!
//! Programs authenticate each request by HTTP Basic, or send a session cookie.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_file_query::TimeContext;
use windrow_file_search::{
    CountedField, DocumentSource, ResultPage, ResultText, SearchResult, find,
};

use super::search::{DATABASE, IndexedFiles, QueryInput, Search, SearchAddress, StoredDocument};
use crate::database::Database;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::route::Route;
use crate::texts::api as texts;

/// The routes of the API.
pub const ROUTES: &[Route] = &[
    Route::get("/api/v1/search", search),
    Route::get("/api/v1/facets", facets),
    Route::get("/api/v1/document", document),
    Route::get("/api/v1/status", status),
    Route::get("/api/v1/openapi.json", describe).open(),
];

const OPENAPI: &str = include_str!("../../assets/openapi.json");

/// The maximum of `limit`, its default, and the maximum of `skip`.
const RESULTS_MAX: u32 = 100;
const RESULTS: u32 = 20;
const SKIP_MAX: u32 = 100_000;
/// The default number of values of a property.
const VALUES: u32 = 10;
/// The number of characters that are read of a document to find the line of a snippet.
const CHARACTERS_READ: u32 = 20_000;

fn describe(_: &Request) -> Result<Response, PageError> {
    let described: Value =
        serde_json::from_str(OPENAPI).map_err(|error| PageError::unavailable(&error))?;
    Ok(Response::json(&described))
}

/// Returns an integer parameter, or its default.
fn number(
    request: &Request,
    name: &str,
    range: RangeInclusive<u32>,
    otherwise: u32,
) -> Result<u32, PageError> {
    match request.query().get(name) {
        None => Ok(otherwise),
        Some(text) => {
            let number = text.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                PageError::bad_request(texts::number(name, *range.start(), *range.end()))
            })
        }
    }
}

/// A search, and what its parameters and results are read from.
struct PreparedSearch {
    search: Search,
    address: SearchAddress,
    files: IndexedFiles,
}

/// Prepares the search for the parameters of a request.
fn prepare(request: &Request) -> Result<PreparedSearch, PageError> {
    let address = SearchAddress::new(request.query());
    let sort = request.query().get("sort");
    if sort.is_some_and(|sort| windrow_file_search::SortOrder::from_name(sort).is_none()) {
        return Err(PageError::bad_request(texts::SORT));
    }
    let mut files = IndexedFiles::new(request.database()?);
    let search = Search::prepare(request, &mut files, &address, QueryInput::Complete)?;
    Ok(PreparedSearch {
        search,
        address,
        files,
    })
}

fn search(request: &Request) -> Result<Response, PageError> {
    let limit = number(request, "limit", 1..=RESULTS_MAX, RESULTS)?;
    let skip = number(request, "skip", 0..=SKIP_MAX, 0)?;
    let PreparedSearch {
        search,
        address,
        mut files,
    } = prepare(request)?;
    let page = ResultPage {
        limit,
        skip,
        sort: address.order(),
        text: ResultText::Beginning(CHARACTERS_READ),
    };
    let mut results = Vec::new();
    let found = find(
        &mut files,
        &search.target,
        search.relaxable(&address),
        &page,
        &mut |result, _| {
            results.push(result_json(&result));
            true
        },
    )?;
    let total = files.count(&search.target.operator)?;
    let notes: Vec<String> = found.notes().collect();
    let mut content = json!({ "total": total, "results": results });
    if let (Some(suggestion), Some(content)) = (found.suggestion, content.as_object_mut()) {
        content.insert("suggestion".to_owned(), suggestion.into());
    }
    if let (false, Some(content)) = (notes.is_empty(), content.as_object_mut()) {
        content.insert("notes".to_owned(), notes.into());
    }
    Ok(Response::json(&content))
}

fn result_json(result: &SearchResult) -> Value {
    let mut document = result.to_document();
    document.push("id", result.id.as_str());
    document.push("size", result.size);
    document.push(
        "modified",
        windrow_document::Value::DateTime(result.modified_ms),
    );
    if let Some(ms) = result.date_ms {
        document.push("date", windrow_document::Value::DateTime(ms));
    }
    let texts = [
        ("extension", &result.extension),
        ("language", &result.language),
        ("author", &result.author),
    ];
    for (name, text) in texts {
        if !text.is_empty() {
            document.push(name, text.as_str());
        }
    }
    to_json(document.as_document())
}

fn facets(request: &Request) -> Result<Response, PageError> {
    let name = request.query().text("field");
    let field = CountedField::from_name(name)
        .ok_or_else(|| PageError::bad_request(texts::field(&CountedField::names())))?;
    let limit = number(request, "limit", 1..=RESULTS_MAX, VALUES)?;
    let PreparedSearch {
        search, mut files, ..
    } = prepare(request)?;
    let reply = files.first(&field.pipeline(&search.target.operator, limit))?;
    let counts = reply.map(|reply| field.counts(reply.as_document(), limit));
    let values: Vec<Value> = counts
        .unwrap_or_default()
        .into_iter()
        .map(|it| json!({ "value": it.value, "count": it.count }))
        .collect();
    Ok(Response::json(&json!({ "field": name, "values": values })))
}

fn document(request: &Request) -> Result<Response, PageError> {
    let mut files = IndexedFiles::new(request.database()?);
    let found = StoredDocument::read(&mut files, request.query().text("id"))?;
    let found = found.ok_or_else(|| PageError::not_found(texts::NOT_INDEXED))?;
    let mut content = to_json(found.fields.as_document());
    if let Some(fields) = content.as_object_mut() {
        fields.shift_remove("is_cut");
        if found.is_cut {
            fields.insert("truncated".to_owned(), true.into());
        }
    }
    Ok(Response::json(&content))
}

fn status(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let status = database.run(doc! { "serverStatus": 1, "$db": "admin" })?;
    let text = |name: &str| {
        status
            .get(name)
            .and_then(ValueRef::as_str)
            .unwrap_or_default()
    };
    let uptime = status
        .get("uptime")
        .and_then(ValueRef::as_f64)
        .unwrap_or(0.0);
    let mut content = json!({
        "host": text("host"), "version": request.site().services.version, "uptime_seconds": uptime,
    });
    let files = files_status(&mut database)?;
    if let (Some(files), Some(content)) = (files, content.as_object_mut()) {
        content.insert("files".to_owned(), files);
    }
    Ok(Response::json(&content))
}

/// Returns the number of indexed files and the last run. `None` if no files are indexed.
fn files_status(database: &mut Database) -> Result<Option<Value>, PageError> {
    if !database.has_collection(DATABASE, "documents")? {
        return Ok(None);
    }
    let mut files = Map::new();
    for collection in ["documents", "failures", "skipped"] {
        let count = database.run(doc! { "count": collection, "$db": DATABASE })?;
        let count = count.get("n").and_then(ValueRef::as_whole);
        files.insert(collection.to_owned(), count.unwrap_or(0).into());
    }
    let newest = doc! { "find": "runs", "sort": { "ended": -1 }, "limit": 1, "$db": DATABASE };
    if let Some(run) = database.documents(newest, 1)?.first() {
        let mut shown = DocumentBuf::new();
        for (name, value) in run.as_document() {
            if !["_id", "pipeline", "settings"].contains(&name) {
                shown.push(name, value.to_value());
            }
        }
        files.insert("last_run".to_owned(), to_json(shown.as_document()));
    }
    Ok(Some(Value::Object(files)))
}

/// Converts a document to JSON. Dates become RFC 3339 strings, as in relaxed Extended JSON.
fn to_json(document: Document<'_>) -> Value {
    let text = document.to_string();
    let mut value = serde_json::from_str(&text).unwrap_or(Value::Null);
    simplify(&mut value);
    value
}

/// Replaces Extended JSON objects of dates and long integers by plain values.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(fields) => match simplified(fields) {
            Some(simple) => *value = simple,
            None => fields.values_mut().for_each(simplify),
        },
        Value::Array(all) => all.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn simplified(fields: &Map<String, Value>) -> Option<Value> {
    let mut all = fields.iter();
    let (Some((name, content)), None) = (all.next(), all.next()) else {
        return None;
    };
    match (name.as_str(), content) {
        ("$numberLong", Value::String(digits)) => digits.parse::<i64>().ok().map(Value::from),
        ("$date", Value::Object(inner)) => {
            let ms = simplified(inner)?.as_i64()?;
            let shown = TimeContext::utc(0).format_ms(ms);
            Some(format!("{}Z", shown.replace(' ', "T")).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_all_routes() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let mut paths: Vec<&str> = described["paths"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut routes: Vec<&str> = ROUTES.iter().map(|route| route.path).collect();
        paths.sort_unstable();
        routes.sort_unstable();
        assert_eq!(paths, routes);
    }

    #[test]
    fn dates_are_texts() {
        let date = windrow_document::Value::DateTime(0);
        let document = doc! { "a": { "b": [(date)] }, "c": (1i64 << 60) };
        assert_eq!(
            to_json(document.as_document()),
            json!({ "a": { "b": ["1970-01-01T00:00:00Z"] }, "c": (1i64 << 60) })
        );
    }
}
