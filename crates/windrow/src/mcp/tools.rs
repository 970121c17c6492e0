//! The tools: `search`, `read` and `facets`.

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value, json};

use windrow_file_search::{
    CountedField, DocumentSource as _, QueryReader, ResultPage, ResultText, SearchError, SortOrder,
    StoredText, Target, find,
};

use super::arguments::Arguments;
use super::json_rpc::{Request, RequestError};
use crate::command_line::Failure;
use crate::search::{Searcher, read_stored_text};

/// A tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    /// Returns the JSON schema of the arguments.
    schema: fn() -> Value,
    run: fn(&Path, &Map<String, Value>) -> Result<Value, ToolError>,
}

/// The error of a tool call.
enum ToolError {
    /// The arguments are invalid.
    Arguments(RequestError),
    /// The client can correct the call: the query is invalid, or no files are indexed.
    Failure(Failure),
}

const TOOLS: [Tool; 3] = [
    Tool {
        name: "search",
        description: "Searches the indexed files. A document has to have all words, in any of their \
            forms. The query can also have: \"a phrase\", -word, word OR word, wor*, ~similar, \
            title: author: from: to: subject: tag: path: filename: ext: kind: lang: mime: dir: \
            date:2024 date:2023-05..2024 size>1M. Returns paths, titles, scores and the matching part.",
        schema: search_schema,
        run: search,
    },
    Tool {
        name: "read",
        description: "Returns the text of an indexed document by its path, as results of search have it \
            (with inner, if it is there, behind a slash). Long documents are read in parts: by lines or \
            by characters.",
        schema: read_schema,
        run: read,
    },
    Tool {
        name: "facets",
        description: "Counts the documents of a query by author, ext, kind, lang, dir or year.",
        schema: facets_schema,
        run: facets,
    },
];

/// The maximum of `limit`.
const RESULTS_MAX: u32 = 100;
const NUMBERS_MAX: u32 = i32::MAX as u32;
/// The default number of characters of a document.
const CHARACTERS: u32 = 20_000;
const CHARACTERS_MAX: u32 = 200_000;

/// Returns the list of tools.
pub fn descriptions() -> Vec<Value> {
    let describe = |tool: &Tool| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "inputSchema": (tool.schema)(),
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    };
    TOOLS.iter().map(describe).collect()
}

/// Calls a tool.
pub fn call(data_folder: &Path, request: &Request) -> Result<Value, RequestError> {
    let name = request.parameters.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| RequestError::parameters("\"name\" is missing"))?;
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| {
        let names = TOOLS.map(|tool| tool.name).join(", ");
        RequestError::parameters(format!("there is no tool {name:?}; the tools are {names}"))
    })?;
    let empty = Map::new();
    let arguments = match request.parameters.get("arguments") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RequestError::parameters("\"arguments\" must be an object")),
    };
    match (tool.run)(data_folder, arguments) {
        // For clients without support for structured content.
        Ok(content) => Ok(json!({
            "content": [{ "type": "text", "text": content.to_string() }],
            "structuredContent": content, "isError": false,
        })),
        Err(ToolError::Failure(failure)) => Ok(json!({
            "content": [{ "type": "text", "text": failure.to_string() }], "isError": true,
        })),
        Err(ToolError::Arguments(error)) => Err(error),
    }
}

impl From<RequestError> for ToolError {
    fn from(error: RequestError) -> ToolError {
        ToolError::Arguments(error)
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> ToolError {
        ToolError::Failure(failure)
    }
}

impl From<SearchError> for ToolError {
    fn from(error: SearchError) -> ToolError {
        ToolError::Failure(error.into())
    }
}

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "the query" },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": RESULTS_MAX, "default": 10,
                "description": "the maximal number of results"
            },
            "skip": {
                "type": "integer", "minimum": 0, "default": 0,
                "description": "leave out the first results"
            },
            "sort": {
                "type": "string", "enum": ["relevance", "newest", "oldest", "largest"],
                "default": "relevance"
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

fn search(data_folder: &Path, arguments: &Map<String, Value>) -> Result<Value, ToolError> {
    let arguments = Arguments::new(arguments, &["query", "limit", "skip", "sort"])?;
    let sort = arguments.text("sort")?.unwrap_or("relevance");
    let sort = SortOrder::from_name(sort).ok_or_else(|| {
        let message = "\"sort\" must be \"relevance\", \"newest\", \"oldest\" or \"largest\"";
        RequestError::parameters(message)
    })?;
    let page = ResultPage {
        limit: arguments.number("limit", 1, RESULTS_MAX)?.unwrap_or(10),
        skip: arguments.number("skip", 0, NUMBERS_MAX)?.unwrap_or(0),
        sort,
        text: ResultText::Whole,
    };
    let reader = QueryReader::open(data_folder, None)?;
    let parsed = reader.parse(arguments.required_text("query")?)?;
    let mut searcher = Searcher::open(data_folder)?;
    let target = Target::new(parsed.query.to_operator());
    let mut results = Vec::new();
    let found = find(
        &mut searcher,
        &target,
        Some(&parsed),
        &page,
        &mut |result, _| {
            results.push(to_json(&result.to_document().to_string()));
            true
        },
    )?;
    let notes: Vec<String> = parsed.notes.iter().cloned().chain(found.notes()).collect();
    let mut content = json!({ "results": results });
    if let Some(suggestion) = found.suggestion {
        content["suggestion"] = suggestion.into();
    }
    if !notes.is_empty() {
        content["notes"] = notes.into();
    }
    Ok(content)
}

/// Parses the JSON of a document. Cannot fail.
fn to_json(document: &str) -> Value {
    serde_json::from_str(document).unwrap_or_else(|_| document.into())
}

fn read_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "the path of the document" },
            "offset": {
                "type": "integer", "minimum": 0, "default": 0,
                "description": "the number of characters before the part"
            },
            "length": {
                "type": "integer", "minimum": 1, "maximum": CHARACTERS_MAX, "default": CHARACTERS,
                "description": "the maximal number of characters"
            },
            "first_line": {
                "type": "integer", "minimum": 1,
                "description": "the first line of the part, in place of an offset"
            },
            "last_line": { "type": "integer", "minimum": 1, "description": "the last line of the part" },
        },
        "required": ["path"],
        "additionalProperties": false,
    })
}

fn read(data_folder: &Path, arguments: &Map<String, Value>) -> Result<Value, ToolError> {
    let names = ["path", "offset", "length", "first_line", "last_line"];
    let arguments = Arguments::new(arguments, &names)?;
    let path = arguments.required_text("path")?;
    let first_line = arguments.number("first_line", 1, NUMBERS_MAX)?;
    let last_line = arguments.number("last_line", 1, NUMBERS_MAX)?;
    let offset = arguments.number("offset", 0, NUMBERS_MAX)?;
    let length = arguments.number("length", 1, CHARACTERS_MAX)?;
    let has_lines = first_line.is_some() || last_line.is_some();
    if has_lines && offset.is_some() {
        let message = "\"offset\" and lines exclude each other";
        return Err(RequestError::parameters(message).into());
    }
    let mut searcher = Searcher::open(data_folder)?;
    let document = read_stored_text(&mut searcher, Path::new(path))?;
    let mut start = offset.unwrap_or(0) as usize;
    let mut count = length.unwrap_or(CHARACTERS) as usize;
    if has_lines {
        let lines = characters_of_lines(&document.text, first_line, last_line);
        start = lines.start;
        count = count.min(lines.len());
    }
    Ok(part(&document, start, count))
}

/// Returns the characters of a range of lines, which are numbered from 1. `last` is included.
fn characters_of_lines(text: &str, first: Option<u32>, last: Option<u32>) -> Range<usize> {
    let first = first.unwrap_or(1) as usize - 1;
    let lines = (last.unwrap_or(u32::MAX) as usize).saturating_sub(first);
    let mut all = text.split_inclusive('\n').map(|line| line.chars().count());
    let start: usize = all.by_ref().take(first).sum();
    start..start + all.take(lines).sum::<usize>()
}

/// Returns a part of a document. `start` and `count` are numbers of characters.
fn part(document: &StoredText, start: usize, count: usize) -> Value {
    let text: String = document.text.chars().skip(start).take(count).collect();
    let total = document.text.chars().count();
    let end = start.min(total) + text.chars().count();
    let mut content = json!({
        "path": document.id, "title": document.title, "kind": document.kind, "text": text,
        "offset": start.min(total), "characters": total,
    });
    if end < total {
        content["next_offset"] = end.into();
    }
    if let Some(reason) = &document.unread {
        content["unread"] = reason.as_str().into();
    }
    content
}

fn facets_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "the query, as in search" },
            "field": {
                "type": "string", "enum": CountedField::all_names(),
                "description": "the property; year is that of the last change"
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": RESULTS_MAX, "default": 10,
                "description": "the maximal number of values"
            },
        },
        "required": ["query", "field"],
        "additionalProperties": false,
    })
}

fn facets(data_folder: &Path, arguments: &Map<String, Value>) -> Result<Value, ToolError> {
    let arguments = Arguments::new(arguments, &["query", "field", "limit"])?;
    let limit = arguments.number("limit", 1, RESULTS_MAX)?.unwrap_or(10);
    let field = CountedField::from_name(arguments.required_text("field")?);
    let field = field.ok_or_else(|| {
        let names = CountedField::names();
        RequestError::parameters(format!("\"field\" must be one of {names}"))
    })?;
    let reader = QueryReader::open(data_folder, None)?;
    let parsed = reader.parse(arguments.required_text("query")?)?;
    let mut searcher = Searcher::open(data_folder)?;
    let pipeline = field.pipeline(&parsed.query.to_operator(), limit);
    let reply = searcher.first(&pipeline)?;
    let counts = reply.map(|reply| field.counts(reply.as_document(), limit));
    let counts = counts.unwrap_or_default().into_iter();
    let values: Vec<Value> = counts
        .map(|it| json!({ "value": it.value, "count": it.count }))
        .collect();
    Ok(json!({ "values": values }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> StoredText {
        StoredText {
            id: "/a".to_owned(),
            title: "a".to_owned(),
            kind: "text".to_owned(),
            text: "äb\ncd\n\nef".to_owned(),
            unread: None,
        }
    }

    #[test]
    fn lines_are_ranges_of_characters() {
        let cases = [
            (None, None, "äb\ncd\n\nef"),
            (Some(2), Some(2), "cd\n"),
            (Some(2), Some(3), "cd\n\n"),
            (Some(4), None, "ef"),
            (Some(9), None, ""),
            (Some(3), Some(2), ""),
            (None, Some(1), "äb\n"),
        ];
        for (first, last, expected) in cases {
            let lines = characters_of_lines(&document().text, first, last);
            assert_eq!(
                part(&document(), lines.start, lines.len())["text"],
                expected
            );
        }
    }

    #[test]
    fn parts_say_what_follows() {
        let cases = [
            (0, 3, "äb\n", Some(3)),
            (3, 6, "cd\n\nef", None),
            (20, 5, "", None),
        ];
        for (start, count, text, next) in cases {
            let part = part(&document(), start, count);
            assert_eq!(part["text"], text);
            assert_eq!(part.get("next_offset").and_then(Value::as_u64), next);
            assert_eq!(part["characters"], 9);
        }
    }
}
