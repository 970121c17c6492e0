//! `windrow search`: shows ranked documents with the matching part of their text.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lexopt::prelude::*;
use windrow_collection::{Engine, Namespace};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_ingest::{DATABASE_NAME, StoreCollection};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, Snapshot, Uninterrupted};
use windrow_text::{Language, Query, Sensitivity, TextVersion};

use crate::client::{Client, ClientError};
use crate::command_line::{Failure, Subcommand};
use crate::data_folder::DataFolder;
use crate::memory;
use crate::search_result::{OutputStyle, SearchResult};

pub const SEARCH: Subcommand = Subcommand {
    name: "search",
    summary: Some("search indexed files"),
    run,
};

const HELP: &str =
    "Searches the files that `windrow index` made searchable. Shows the best results first, each with its
path, score and the matching part of its text. If a server has the data folder open, the command
uses the server.

Usage: windrow search WORDS… --data DIR [OPTION…]

  word word     documents with any of the words; more matching words score higher
  \"a phrase\"    only documents with this exact phrase, as in '\"bread and butter\"'
  -word         only documents without this word

Options:
  --data DIR          the data folder
  --limit N           the maximal number of results [default: 10]
  --language NAME     the language of the words: its name or two-letter code, or none
                      [default: english]
  --json              print a JSON object per line
  -h, --help          show this help

Exit codes: 0 there are results, 1 there are no results, 2 the search failed.

Examples:
  windrow search 'configuration file' --data ./data
  windrow search '\"free software\" -windows' --data ./data --limit 3
  windrow search brot --language de --data ./data --json
";

const EXIT_NO_RESULTS: u8 = 1;
const EXIT_FAILURE: u8 = 2;

/// The parsed command line.
#[derive(Debug, PartialEq)]
struct Options {
    words: String,
    data_folder: PathBuf,
    limit: u32,
    language: Language,
    json: bool,
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    match parse(arguments) {
        Ok(None) => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Ok(Some(options)) => {
            Ok(search(&options).unwrap_or_else(|failure| report_failure(&failure)))
        }
        Err(failure) => Ok(report_failure(&failure)),
    }
}

/// As usual for search commands, 1 means that nothing matched. Failures have code 2.
fn report_failure(failure: &Failure) -> ExitCode {
    eprintln!("windrow: {failure}");
    ExitCode::from(EXIT_FAILURE)
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut words, mut data_folder) = (Vec::new(), None);
    let (mut limit, mut language, mut json) = (10, Language::ENGLISH, false);
    loop {
        if let Some(word) = take_negated_term(&mut arguments) {
            words.push(word);
            continue;
        }
        let Some(argument) = arguments.next()? else {
            break;
        };
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("limit") => limit = parse_limit(&arguments.value()?.string()?)?,
            Long("language") => language = parse_language(&arguments.value()?.string()?)?,
            Long("json") => json = true,
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if words.is_empty() {
        return Err(Failure::missing_argument("WORDS", "search"));
    }
    Ok(Some(Options {
        words: words.join(" "),
        data_folder: data_folder
            .ok_or_else(|| Failure::missing_argument("--data DIR", "search"))?,
        limit,
        language,
        json,
    }))
}

/// Takes the next argument if it is `-word`: not an option, but a negated search term.
fn take_negated_term(arguments: &mut lexopt::Parser) -> Option<String> {
    let mut raw = arguments.try_raw_args()?;
    let word = raw.peek()?.to_str()?;
    let is_negated = word.starts_with('-') && !word.starts_with("--") && word.len() > 1;
    if !is_negated || word == "-h" {
        return None;
    }
    let word = word.to_owned();
    raw.next();
    Some(word)
}

fn parse_limit(text: &str) -> Result<u32, Failure> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        Failure::Usage(format!(
            "--limit {text:?} is not a number of results; write 1 or more"
        ))
    })
}

fn parse_language(text: &str) -> Result<Language, Failure> {
    Language::parse(text, TextVersion::V3).map_err(|_| {
        Failure::Usage(format!(
            "--language {text:?} is not supported by text indexes; write a name (english), a code (en) \
             or none"
        ))
    })
}

fn search(options: &Options) -> Result<ExitCode, Failure> {
    if !options.data_folder.is_dir() {
        return Err(not_indexed_failure(&options.data_folder));
    }
    let query = Query::parse(
        &options.words,
        options.language,
        Sensitivity::NONE,
        TextVersion::V3,
    );
    let mut output = io::stdout().lock();
    let style = if options.json {
        OutputStyle::Json
    } else if output.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        OutputStyle::Colored
    } else {
        OutputStyle::Plain
    };
    let mut count = 0;
    execute_search(options, &mut |document| {
        count += 1;
        let written = SearchResult::new(document, &query).write(&mut output, count, style);
        // A write error means that the pipe was closed, so the search ends.
        written.is_ok()
    })?;
    if count == 0 {
        return Ok(ExitCode::from(EXIT_NO_RESULTS));
    }
    Ok(ExitCode::SUCCESS)
}

/// Receives the results in the order of their scores. Returns `false` to end the search.
type ResultSink<'t> = dyn FnMut(Document<'_>) -> bool + 't;

fn execute_search(options: &Options, sink: &mut ResultSink<'_>) -> Result<(), Failure> {
    let command = find_command(options);
    let command = command.as_document();
    match DataFolder::open(&options.data_folder, memory::default_memory_bytes())? {
        DataFolder::Local(engine) => search_engine(&engine, command, &options.data_folder, sink),
        DataFolder::Server(address) => search_server(address, command, &options.data_folder, sink),
    }
}

/// The search as a `find` command.
fn find_command(options: &Options) -> DocumentBuf {
    let score = || doc! { "$meta": "textScore" };
    doc! {
        "find": (StoreCollection::Documents.name()),
        "filter": {
            "$text": { "$search": (options.words.clone()), "$language": (options.language.name()) }
        },
        "projection": {
            "path": 1, "inner": 1, "title": 1, "kind": 1, "language": 1, "text": 1,
            "score": (score())
        },
        "sort": { "score": (score()) },
        "limit": (i64::from(options.limit)),
        "$db": DATABASE_NAME,
    }
}

fn search_engine(
    engine: &Arc<Engine>,
    command: Document<'_>,
    data_folder: &Path,
    sink: &mut ResultSink<'_>,
) -> Result<(), Failure> {
    let namespace = Namespace::new(DATABASE_NAME, StoreCollection::Documents.name())
        .map_err(Failure::runtime)?;
    let collection = engine
        .collection(&namespace)
        .ok_or_else(|| not_indexed_failure(data_folder))?;
    let source = Snapshot::of(&collection).map_err(Failure::runtime)?;
    let find = parse_find(command).map_err(Failure::runtime)?;
    let mut cursor = find.open(&source).map_err(Failure::runtime)?;
    while let Some(found) = cursor.next(&Uninterrupted).map_err(Failure::runtime)? {
        if !sink(found.as_document()) {
            break;
        }
    }
    Ok(())
}

/// Parses the command for the planner.
fn parse_find(command: Document<'_>) -> Result<Find, windrow_mql::Error> {
    let part = |name: &str| {
        let part = command.get(name).and_then(|part| part.as_document());
        part.unwrap_or(Document::EMPTY)
    };
    let filter = Filter::parse(part("filter"))?;
    let limit = command.get("limit").and_then(|limit| limit.as_whole());
    Ok(Find {
        projection: Some(Projection::parse(part("projection"), &filter)?),
        sort: Some(Sort::parse(part("sort"))?),
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        ..Find::of(filter)
    })
}

fn search_server(
    address: SocketAddr,
    command: Document<'_>,
    data_folder: &Path,
    sink: &mut ResultSink<'_>,
) -> Result<(), Failure> {
    const INDEX_NOT_FOUND: i32 = 27;
    let mut client = Client::connect(address).map_err(Failure::runtime)?;
    match client.for_each_document(command, sink) {
        Ok(()) => Ok(()),
        Err(ClientError::Command { code, .. }) if code == INDEX_NOT_FOUND => {
            Err(not_indexed_failure(data_folder))
        }
        Err(error) => Err(Failure::runtime(error)),
    }
}

fn not_indexed_failure(data_folder: &Path) -> Failure {
    let data_folder = data_folder.display();
    Failure::Runtime(format!(
        "no files are indexed in {data_folder}; run `windrow index FOLDER --data {data_folder}` first"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    fn check(arguments: &[&str], expected: Result<Options, &str>) {
        check_parsed(parse, arguments, expected);
    }

    fn options(words: &str) -> Options {
        Options {
            words: words.to_owned(),
            data_folder: "d".into(),
            limit: 10,
            language: Language::ENGLISH,
            json: false,
        }
    }

    #[test]
    fn arguments_are_parsed() {
        check(
            &["bread", "butter", "--data", "d"],
            Ok(options("bread butter")),
        );
        check(
            &["bread", "-white", "--data=d"],
            Ok(options("bread -white")),
        );
        check(
            &["-white bread", "--data", "d"],
            Ok(options("-white bread")),
        );
        check(&["\"a b\"", "--data", "d"], Ok(options("\"a b\"")));
        let german = Options {
            limit: 3,
            language: parse_language("de").unwrap(),
            json: true,
            ..options("brot")
        };
        let arguments = [
            "brot",
            "--language",
            "de",
            "--limit",
            "3",
            "--json",
            "--data",
            "d",
        ];
        check(&arguments, Ok(german));
        check(&["--data", "d"], Err("WORDS"));
        check(&["bread"], Err("--data"));
        check(&["bread", "--data", "d", "--limit", "0"], Err("--limit"));
        check(
            &["bread", "--data", "d", "--language", "xx"],
            Err("--language"),
        );
        check(&["bread", "--data", "d", "--fast"], Err("--fast"));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }

    #[test]
    fn a_search_is_parsed_as_a_find_command() {
        let find = parse_find(find_command(&options("bread -white")).as_document()).unwrap();
        assert_eq!(find.limit, Some(10));
        assert!(find.sort.unwrap().needs_text_score());
        assert!(find.projection.unwrap().needs_text_score());
        assert_eq!(find.filter.text().unwrap().search, "bread -white");
    }
}
