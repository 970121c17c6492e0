//! `windrow status`: reports about indexed files and the last run, or about a server.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::*;
use windrow_converters::SandboxStatus;
use windrow_document::{Document, DocumentBuf, ValueRef, array, doc};
use windrow_file_query::TimeContext;
use windrow_file_search::{
    CountedField, DocumentSource as _, ValueCount, read_documents, unread_documents,
};
use windrow_ingest::{FailureClass, RUNS_NAME, StoreCollection};

use crate::command_line::{Failure, Subcommand};
use crate::config;
use crate::data_folder::DataFolder;
use crate::memory;
use crate::output_format::OutputFormat;
use crate::progress_bar::format_grouped;
use crate::search::{Searcher, not_indexed_failure};
use crate::server_report::{Report, page};
use crate::server_target::{ResolvedTarget, TargetOptions, connection_help};

pub const STATUS: Subcommand = Subcommand {
    name: "status",
    summary: Some("show what is indexed, and what the last run did, or the state of a server"),
    run,
};

const HELP: &str = concat!(
    "\
Shows what is stored of the indexed files: documents by kind, files and members that are found by
their names only, failures by class, converters that are not installed, skipped files by format, the size of the data folder, and what the last run of
`windrow index` did. If the system has no sandbox for converters, a line says so.

If a SERVER is named (HOST:PORT, or a connection string without a password), its state is shown
instead, and so is that of a server whose data folder has no indexed files: operations and latencies of one second, connections, memory, work in the background, disk,
running operations. The user needs the role clusterMonitor.

Usage: windrow status [--data DIR] [--json]
       windrow status SERVER [OPTION…]

Options:
  --data DIR       the data folder [default: that of the configuration, see `windrow config --help`]
  --json           print a JSON document
",
    connection_help!(),
    "  -h, --help       show this help

Examples:
  windrow status --data ./data
  windrow status --data ./data --json
  windrow status mongodb://ann@db.example/ --tls-ca-file ca.pem
"
);

struct Options {
    subject: Subject,
    format: OutputFormat,
}

/// The subject of the report.
enum Subject {
    Folder(PathBuf),
    Server(TargetOptions),
}

/// The interval over which the rates of a server are measured.
const INTERVAL: Duration = Duration::from_secs(1);

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let text = match &options.subject {
        Subject::Folder(folder) => show_folder(folder, options.format)?,
        Subject::Server(target) => show_server(&target.resolve()?, options.format)?,
    };
    // A write error means that the pipe was closed.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Reports about the indexed files of a data folder. If there are none, reports about the server
/// that has it open.
fn show_folder(folder: &Path, format: OutputFormat) -> Result<String, Failure> {
    if !DataFolder::exists(folder) {
        return Err(not_indexed_failure(folder));
    }
    let opened = DataFolder::open(folder, memory::default_memory_bytes())?;
    let server = match &opened {
        DataFolder::Server(address) => Some(address.clone()),
        DataFolder::Local(_) => None,
    };
    match (Searcher::from_folder(opened)?, server) {
        (Some(searcher), _) => {
            let status = read_status(folder, searcher)?;
            Ok(match format {
                OutputFormat::Json => format!("{}\n", status.to_document()),
                OutputFormat::Text => status.format(),
            })
        }
        (None, Some(server)) => show_server(&ResolvedTarget::OfFolder(server), format),
        (None, None) => Err(not_indexed_failure(folder)),
    }
}

fn show_server(target: &ResolvedTarget, format: OutputFormat) -> Result<String, Failure> {
    let report = Report::measure(target, INTERVAL)?;
    Ok(match format {
        OutputFormat::Json => format!("{}\n", report.to_document()),
        OutputFormat::Text => page::text(&report),
    })
}

fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut data_folder, mut format) = (None, OutputFormat::Text);
    let mut target = TargetOptions::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("json") => format = OutputFormat::Json,
            Long(name) => {
                let name = name.to_owned();
                if !target.accept(&name, &mut arguments)? {
                    return Err(Long(&name).unexpected().into());
                }
            }
            Value(server) if target.server.is_none() => target.server = Some(server.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if target == TargetOptions::default() {
        let folder = config::data_folder(data_folder, "status")?;
        let subject = Subject::Folder(folder);
        return Ok(Some(Options { subject, format }));
    }
    if target.server.is_none() || data_folder.is_some() {
        let message = "the state of a server needs its address, and not --data; see `windrow status \
                       --help`";
        return Err(Failure::usage(message));
    }
    let subject = Subject::Server(target);
    Ok(Some(Options { subject, format }))
}

/// A value and its frequency.
struct Count {
    value: String,
    count: u64,
}

struct Status {
    data_folder: PathBuf,
    data_bytes: u64,
    is_served: bool,
    kinds: Vec<Count>,
    /// The number of files and members that are indexed by name only.
    names: u64,
    failures: Vec<Count>,
    /// Messages about missing converters, and the number of affected files.
    missing_converters: Vec<Count>,
    skipped: Vec<Count>,
    /// The status of the sandbox.
    sandbox: SandboxStatus,
    last_run: Option<DocumentBuf>,
}

fn read_status(data_folder: &Path, mut searcher: Searcher) -> Result<Status, Failure> {
    let failures = StoreCollection::Failures;
    let missing = doc! { "class": (FailureClass::MissingConverter.as_str()) };
    let missing_converters = group(&mut searcher, failures, &missing, "$reason")?;
    let failures = group(&mut searcher, failures, &DocumentBuf::new(), "$class")?;
    let skipped = StoreCollection::Skipped;
    let skipped = group(&mut searcher, skipped, &DocumentBuf::new(), "$format")?;
    let mut last_run = None;
    let newest = array![{ "$sort": { "started": -1 } }, { "$limit": 1 }];
    searcher.aggregate_on(RUNS_NAME, &newest, &mut |run| {
        last_run = Some(run.to_buf());
        false
    })?;
    Ok(Status {
        data_folder: data_folder.to_path_buf(),
        data_bytes: folder_bytes(data_folder),
        is_served: searcher.is_served(),
        kinds: count_kinds(&mut searcher)?,
        names: searcher.count(&unread_documents())?.unsigned_abs(),
        sandbox: windrow_converters::probe(),
        failures,
        missing_converters,
        skipped,
        last_run,
    })
}

/// Counts the documents of each kind by the search index, without reading documents.
fn count_kinds(searcher: &mut Searcher) -> Result<Vec<Count>, Failure> {
    const KINDS_MAX: u32 = 1_000;
    let field = CountedField::Kind;
    let pipeline = field.pipeline(&read_documents(), KINDS_MAX);
    let reply = searcher.first(&pipeline)?;
    let counts = reply.map(|reply| field.counts(reply.as_document(), KINDS_MAX));
    let count = |counted: ValueCount| Count {
        value: counted.value,
        count: counted.count.unsigned_abs(),
    };
    Ok(counts.into_iter().flatten().map(count).collect())
}

/// Counts the matching documents for each value of a field, in descending order.
fn group(
    searcher: &mut Searcher,
    collection: StoreCollection,
    filter: &DocumentBuf,
    field: &str,
) -> Result<Vec<Count>, Failure> {
    let group = doc! { "_id": (field), "count": { "$sum": 1 } };
    let pipeline = array![
        { "$match": (filter.clone()) }, { "$group": (group) }, { "$sort": { "count": -1, "_id": 1 } },
    ];
    let mut counts = Vec::new();
    searcher.aggregate_on(collection.name(), &pipeline, &mut |found| {
        counts.extend(read_count(found));
        true
    })?;
    Ok(counts)
}

fn read_count(found: Document<'_>) -> Option<Count> {
    Some(Count {
        value: found.get("_id")?.as_str()?.to_owned(),
        count: u64::try_from(found.get("count")?.as_whole()?).ok()?,
    })
}

/// Returns the size of the files in a data folder. Files that are removed meanwhile are skipped.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

impl Status {
    fn format(&self) -> String {
        let megabytes = self.data_bytes as f64 / 1e6;
        let folder = self.data_folder.display();
        let served = if self.is_served {
            ", open in a server"
        } else {
            ""
        };
        let mut text = format!("Data folder  {folder}, {megabytes:.1} MB{served}\n");
        text.push_str(&format_counts("Documents", &self.kinds));
        text.push_str(&format!(
            "{:<12} {}\n",
            "Names only",
            format_grouped(self.names)
        ));
        text.push_str(&format_counts("Failures", &self.failures));
        for one in &self.missing_converters {
            text.push_str(&format!(
                "{:>12}   {}\n",
                format_grouped(one.count),
                one.value
            ));
        }
        text.push_str(&format_counts("Skipped", &self.skipped));
        if !self.sandbox.is_complete() {
            text.push_str(&format!("Sandbox      incomplete: {}\n", self.sandbox));
        }
        match &self.last_run {
            Some(run) => text.push_str(&format_run(run.as_document())),
            None => text.push_str("Last run     none is recorded\n"),
        }
        text
    }

    fn to_document(&self) -> DocumentBuf {
        let counts = |counts: &[Count]| {
            let mut fields = DocumentBuf::new();
            for one in counts {
                fields.push(&one.value, integer(one.count));
            }
            fields
        };
        let mut document = doc! {
            "data": (self.data_folder.to_string_lossy().into_owned()),
            "bytes": (integer(self.data_bytes)), "served": (self.is_served),
            "documents": (counts(&self.kinds)), "names_only": (integer(self.names)),
            "failures": (counts(&self.failures)),
            "skipped": (counts(&self.skipped)),
            "missing_converters": (counts(&self.missing_converters)),
            "sandbox": { "complete": (self.sandbox.is_complete()), "interfaces": (self.sandbox.to_string()) },
        };
        if let Some(run) = &self.last_run {
            document.push("last_run", run.clone());
        }
        document
    }
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn format_counts(title: &str, counts: &[Count]) -> String {
    let total: u64 = counts.iter().map(|one| one.count).sum();
    let mut text = format!("{title:<12} {}\n", format_grouped(total));
    for one in counts {
        text.push_str(&format!(
            "{:>12}   {}\n",
            format_grouped(one.count),
            one.value
        ));
    }
    text
}

fn format_run(run: Document<'_>) -> String {
    let number = |name| run.get(name).and_then(ValueRef::as_whole).unwrap_or(0);
    let count = |name| format_grouped(number(name).unsigned_abs());
    let time = |name| match run.get(name) {
        Some(ValueRef::DateTime(ms)) => ms,
        _ => 0,
    };
    let seconds = (time("ended") - time("started")) as f64 / 1000.0;
    let started = TimeContext::system().format_ms(time("started"));
    let folders = run.get("folders").and_then(ValueRef::as_array);
    let folders: Vec<&str> = folders
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_str)
        .collect();
    format!(
        "Last run     {}, {seconds:.1} s, {}\n\
         {:>12}   files read, {:.1} MB, {:.0} files/s\n\
         {:>12}   new, {} changed, {} moved, {} unchanged, {} gone\n",
        started,
        folders.join(", "),
        count("files_read"),
        number("bytes_read") as f64 / 1e6,
        number("files_read") as f64 / seconds.max(1e-3),
        count("files_added"),
        count("files_replaced"),
        count("files_moved"),
        count("files_unchanged"),
        count("files_removed"),
    )
}
