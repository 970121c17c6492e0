//! `windrow failures`: lists the files and members that could not be read or have no text.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_ingest::{FailureClass, StoreCollection};

use crate::command_line::{Failure, Subcommand};
use crate::config;
use crate::output_format::OutputFormat;
use crate::search::Searcher;

pub const FAILURES: Subcommand = Subcommand {
    name: "failures",
    summary: Some("list the files that could not be read"),
    run,
};

const HELP: &str = "\
Lists the files and members that could not be read, with their reasons, in the order of their paths.

Usage: windrow failures [--data DIR] [OPTION…]

Options:
  --data DIR       the data folder [default: that of the configuration, see `windrow config --help`]
  --class CLASS    only failures of this class: unreadable, malformed, encrypted, no_text, limit,
                   deadline, crashed, missing_converter, converter, refused or unfinished
  --skipped        list the files and members whose format has no text instead
  --below FOLDER   only those at or below this path
  --limit N        at most N [default: all]
  --json           print a JSON document a line
  -h, --help       show this help

Exit code: 0 if there are any, 1 if there are none, 2 if the command failed.

Examples:
  windrow failures --data ./data --class encrypted
  windrow failures --data ./data --skipped --below ~/Documents
";

const EXIT_NONE: u8 = 1;
const EXIT_FAILURE: u8 = 2;

#[derive(Debug)]
struct Options {
    data_folder: PathBuf,
    collection: StoreCollection,
    class: Option<FailureClass>,
    below: Option<PathBuf>,
    limit: Option<u32>,
    format: OutputFormat,
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let listed = parse(arguments).and_then(|options| match options {
        Some(options) => list(&options),
        None => {
            print!("{HELP}");
            Ok(1)
        }
    });
    Ok(match listed {
        Ok(0) => ExitCode::from(EXIT_NONE),
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("windrow: {failure}");
            ExitCode::from(EXIT_FAILURE)
        }
    })
}

fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut data_folder, mut class, mut below, mut limit) = (None, None, None, None);
    let (mut collection, mut format) = (StoreCollection::Failures, OutputFormat::Text);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("class") => class = Some(parse_class(&arguments.value()?.string()?)?),
            Long("skipped") => collection = StoreCollection::Skipped,
            Long("below") => below = Some(PathBuf::from(arguments.value()?)),
            Long("limit") => limit = Some(arguments.value()?.parse()?),
            Long("json") => format = OutputFormat::Json,
            other => return Err(other.unexpected().into()),
        }
    }
    if class.is_some() && collection == StoreCollection::Skipped {
        let reason = "--class is for failures; files that were skipped have no class";
        return Err(Failure::usage(reason));
    }
    Ok(Some(Options {
        data_folder: config::data_folder(data_folder, "failures")?,
        collection,
        class,
        below,
        limit,
        format,
    }))
}

fn parse_class(name: &str) -> Result<FailureClass, Failure> {
    FailureClass::from_name(name).ok_or_else(|| {
        let names = FailureClass::ALL.map(FailureClass::as_str).join(", ");
        Failure::Usage(format!("--class {name:?} is none of the classes: {names}"))
    })
}

/// Prints the rows. Returns their number.
fn list(options: &Options) -> Result<usize, Failure> {
    let mut searcher = Searcher::open(&options.data_folder)?;
    let (mut output, mut count) = (io::stdout().lock(), 0);
    let pipeline = pipeline(options)?;
    searcher.aggregate_on(options.collection.name(), &pipeline, &mut |row| {
        count += 1;
        // A write error means that the pipe was closed, so the list ends.
        write_row(row, options.format, &mut output).is_ok()
    })?;
    Ok(count)
}

fn pipeline(options: &Options) -> Result<ArrayBuf, Failure> {
    let mut filter = DocumentBuf::new();
    if let Some(class) = options.class {
        filter.push("class", class.as_str());
    }
    if let Some(below) = &options.below {
        let below = below.canonicalize().or_else(|_| std::path::absolute(below));
        let below = windrow_ingest::path_to_text(&below.map_err(Failure::runtime)?);
        // `0` is the character after `/`, so this range contains all paths below the folder.
        let (first, end) = (format!("{below}/"), format!("{below}0"));
        let range = doc! { "path": { "$gte": (first), "$lt": (end) } };
        filter.push("$or", array![{ "path": (below) }, (range)]);
    }
    let mut stages = vec![
        doc! { "$match": (filter) },
        doc! { "$sort": { "path": 1, "_id": 1 } },
    ];
    stages.extend(
        options
            .limit
            .map(|limit| doc! { "$limit": (i64::from(limit)) }),
    );
    Ok(stages.into_iter().map(Value::from).collect())
}

fn write_row(row: Document<'_>, format: OutputFormat, output: &mut dyn Write) -> io::Result<()> {
    if format == OutputFormat::Json {
        return writeln!(output, "{row}");
    }
    let text = |name| row.get(name).and_then(ValueRef::as_str).unwrap_or_default();
    let line = format!("{}: {}", text("_id"), text("reason"));
    let line: String = line.chars().filter(|it| !it.is_control()).collect();
    writeln!(output, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Result<Option<Options>, Failure> {
        let all = ["--data", "d"].into_iter().chain(arguments.iter().copied());
        parse(lexopt::Parser::from_args(all))
    }

    #[test]
    fn rows_are_selected() {
        let line = ["--class", "limit", "--below", "/d", "--limit", "5"];
        let pipeline = pipeline(&options(&line).unwrap().unwrap()).unwrap();
        let expected = r#"[{"$match":{"class":"limit","$or":[{"path":"/d"},{"path":{"$gte":"/d/","$lt":"/d0"}}]}},{"$sort":{"path":1,"_id":1}},{"$limit":5}]"#;
        assert_eq!(pipeline.as_array().to_string(), expected);
        for (line, reason) in [
            (&["--class", "odd"][..], "malformed"),
            (&["--skipped", "--class", "limit"], "--class"),
            (&["--limit", "-1"], "-1"),
        ] {
            let failure = options(line).unwrap_err().to_string();
            assert!(failure.contains(reason), "{failure}");
        }
    }
}
