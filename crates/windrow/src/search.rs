//! `windrow search`: shows ranked documents with the matching part of their text.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lexopt::prelude::*;
use windrow_collection::{Engine, Namespace};
use windrow_document::{Document, DocumentBuf, doc};
use windrow_ingest::{DATABASE, StoreCollection};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, Snapshot, Uninterrupted};
use windrow_text::{Language, Query, Sensitivity, TextVersion};

use crate::client::{Client, ClientError};
use crate::command_line::{Failure, Subcommand};
use crate::folder::{self, Opened};
use crate::found::{Found, Style};
use crate::memory;

pub const SEARCH: Subcommand = Subcommand {
    name: "search",
    summary: Some("finds indexed files by their words"),
    run,
};

const HELP: &str = "Finds files that `windrow index` made searchable, the best first: where they are, their score, and
the place where the words stand. A server that has the data folder open is asked.

Usage: windrow search WORDS… --data DIR [OPTION…]

  word word     documents with any of the words; those with more of them score higher
  \"a phrase\"    only documents with exactly this, as in '\"bread and butter\"'
  -word         only documents without this word

Options:
  --data DIR          the data folder
  --limit N           how many documents to show [default: 10]
  --language NAME     the language of the words: its name or two-letter code, or none
                      [default: english]
  --json              one JSON object a line
  -h, --help          this text

Exit codes: 0 something was found, 1 nothing was found, 2 it could not be searched.

Examples:
  windrow search 'configuration file' --data ./data
  windrow search '\"free software\" -windows' --data ./data --limit 3
  windrow search brot --language de --data ./data --json
";

const NOTHING_FOUND: u8 = 1;
const NOT_SEARCHED: u8 = 2;

/// The parsed command line.
#[derive(Debug, PartialEq)]
struct Options {
    words: String,
    data: PathBuf,
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
        Ok(Some(options)) => Ok(search(&options).unwrap_or_else(|failure| refuse(&failure))),
        Err(failure) => Ok(refuse(&failure)),
    }
}

/// As usual for search commands, 1 means that nothing matched. Failures have code 2.
fn refuse(failure: &Failure) -> ExitCode {
    eprintln!("windrow: {failure}");
    ExitCode::from(NOT_SEARCHED)
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut words, mut data) = (Vec::new(), None);
    let (mut limit, mut language, mut json) = (10, Language::ENGLISH, false);
    loop {
        if let Some(word) = negated_word(&mut arguments) {
            words.push(word);
            continue;
        }
        let Some(argument) = arguments.next()? else {
            break;
        };
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data = Some(PathBuf::from(arguments.value()?)),
            Long("limit") => limit = limit_of(&arguments.value()?.string()?)?,
            Long("language") => language = language_of(&arguments.value()?.string()?)?,
            Long("json") => json = true,
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if words.is_empty() {
        return Err(Failure::missing("WORDS", "search"));
    }
    Ok(Some(Options {
        words: words.join(" "),
        data: data.ok_or_else(|| Failure::missing("--data DIR", "search"))?,
        limit,
        language,
        json,
    }))
}

/// Takes the next argument if it is `-word`: not an option, but a negated search term.
fn negated_word(arguments: &mut lexopt::Parser) -> Option<String> {
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

fn limit_of(text: &str) -> Result<u32, Failure> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        Failure::Usage(format!(
            "--limit {text:?} is no number of documents; write 1 or more"
        ))
    })
}

fn language_of(text: &str) -> Result<Language, Failure> {
    Language::parse(text, TextVersion::V3).map_err(|_| {
        Failure::Usage(format!(
            "--language {text:?} is none that text indexes know; write a name as english, a code as \
             en, or none"
        ))
    })
}

fn search(options: &Options) -> Result<ExitCode, Failure> {
    if !options.data.is_dir() {
        return Err(nothing_indexed(&options.data));
    }
    let query = Query::parse(
        &options.words,
        options.language,
        Sensitivity::NONE,
        TextVersion::V3,
    );
    let mut to = io::stdout().lock();
    let style = match options.json {
        true => Style::Json,
        false if to.is_terminal() && std::env::var_os("NO_COLOR").is_none() => Style::Coloured,
        false => Style::Plain,
    };
    let mut count = 0;
    ask(options, &mut |document| {
        count += 1;
        let written = Found::of(document, &query).write(&mut to, count, style);
        // A write error means that the pipe was closed, so the search ends.
        written.is_ok()
    })?;
    Ok(match count {
        0 => ExitCode::from(NOTHING_FOUND),
        _ => ExitCode::SUCCESS,
    })
}

/// Receives the results in the order of their scores. Returns `false` to end the search.
type Take<'t> = dyn FnMut(Document<'_>) -> bool + 't;

fn ask(options: &Options, take: &mut Take<'_>) -> Result<(), Failure> {
    let command = find_command(options);
    let command = command.as_document();
    match folder::open(&options.data, memory::default_bytes())? {
        Opened::Here(engine) => ask_engine(&engine, command, &options.data, take),
        Opened::ByServer(address) => ask_server(address, command, &options.data, take),
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
        "$db": DATABASE,
    }
}

fn ask_engine(
    engine: &Arc<Engine>,
    command: Document<'_>,
    data: &Path,
    take: &mut Take<'_>,
) -> Result<(), Failure> {
    let namespace = Namespace::new(DATABASE, StoreCollection::Documents.name()).map_err(failed)?;
    let collection = engine
        .collection(&namespace)
        .ok_or_else(|| nothing_indexed(data))?;
    let source = Snapshot::of(&collection).map_err(failed)?;
    let find = find_of(command).map_err(failed)?;
    let mut cursor = find.open(&source).map_err(failed)?;
    while let Some(found) = cursor.next(&Uninterrupted).map_err(failed)? {
        if !take(found.as_document()) {
            break;
        }
    }
    Ok(())
}

/// Parses the command for the planner.
fn find_of(command: Document<'_>) -> Result<Find, windrow_mql::Error> {
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

fn ask_server(
    address: SocketAddr,
    command: Document<'_>,
    data: &Path,
    take: &mut Take<'_>,
) -> Result<(), Failure> {
    const INDEX_NOT_FOUND: i32 = 27;
    let mut client = Client::connect(address).map_err(failed)?;
    match client.documents(command, take) {
        Ok(()) => Ok(()),
        Err(ClientError::Command { code, .. }) if code == INDEX_NOT_FOUND => {
            Err(nothing_indexed(data))
        }
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

fn nothing_indexed(data: &Path) -> Failure {
    let data = data.display();
    Failure::Run(format!(
        "no files have been indexed into {data}; `windrow index FOLDER --data {data}` does that"
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
            data: "d".into(),
            limit: 10,
            language: Language::ENGLISH,
            json: false,
        }
    }

    #[test]
    fn the_command_line() {
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
            language: language_of("de").unwrap(),
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
    fn a_search_is_a_find() {
        let find = find_of(find_command(&options("bread -white")).as_document()).unwrap();
        assert_eq!(find.limit, Some(10));
        assert!(find.sort.unwrap().needs_text_score());
        assert!(find.projection.unwrap().needs_text_score());
        assert_eq!(find.filter.text().unwrap().search, "bread -white");
    }
}
