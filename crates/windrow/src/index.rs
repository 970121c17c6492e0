//! `windrow index`: makes the files of folders searchable.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use lexopt::prelude::*;
use windrow_ingest::{
    EngineStore, IngestOptions, IngestSummary, Progress, Store, WalkOptions, WorkerPool, ingest,
};

use crate::command_line::{Failure, Subcommand};
use crate::data_folder::DataFolder;
use crate::progress_bar::{format_grouped, with_progress_bar};
use crate::server_store::ServerStore;
use crate::{extract_worker, memory};

pub const INDEX: Subcommand = Subcommand {
    name: "index",
    summary: Some("make the files of folders searchable"),
    run,
};

const HELP: &str =
    "Makes the files of folders searchable: plain text, Markdown, HTML, source code, mail (.eml and
mbox), PDF, and gzip or zip files that contain them. Each file or message becomes a document in the
collection `documents` of the database `files`, with a text index. A file that cannot be read
becomes a document in `failures` with the reason.

Further runs read only changed files and remove the documents of deleted files. An interrupted run
is continued by the next one. If a server has the data folder open, the command uses the server.

Usage: windrow index FOLDER… --data DIR [OPTION…]

Options:
  --data DIR       the data folder; it is created if it does not exist
  --workers N      how many files are read in parallel [default: the number of cores]
  --memory SIZE    memory for the database: bytes, 512MB, 2GiB [default: a quarter of the
                   machine's]; not used if a server has the folder open
  --hidden         include files and folders whose names begin with a dot
  --follow-links   follow symbolic links below the folders
  --retry          also read files that failed and have not changed
  -h, --help       show this help

Examples:
  windrow index ~/Documents ~/Mail --data ./data
  windrow index /usr/share/doc --data ./data --workers 2
  windrow search 'bread -white' --data ./data
";

/// The parsed command line.
#[derive(Debug, PartialEq)]
struct Options {
    folders: Vec<PathBuf>,
    data_folder: PathBuf,
    workers: Option<usize>,
    memory_bytes: u64,
    walk: WalkOptions,
    retry: bool,
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    index_folders(&options)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut folders, mut data_folder, mut workers, mut memory_bytes) =
        (Vec::new(), None, None, None);
    let (mut walk, mut retry) = (WalkOptions::default(), false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("workers") => workers = Some(parse_workers(&arguments.value()?.string()?)?),
            Long("memory") => {
                memory_bytes = Some(memory::parse_option(&arguments.value()?.string()?)?)
            }
            Long("hidden") => walk.hidden = true,
            Long("follow-links") => walk.follow_links = true,
            Long("retry") => retry = true,
            Value(folder) => folders.push(PathBuf::from(folder)),
            other => return Err(other.unexpected().into()),
        }
    }
    if folders.is_empty() {
        return Err(Failure::missing_argument("FOLDER", "index"));
    }
    Ok(Some(Options {
        folders,
        data_folder: data_folder.ok_or_else(|| Failure::missing_argument("--data DIR", "index"))?,
        workers,
        memory_bytes: memory_bytes.unwrap_or_else(memory::default_memory_bytes),
        walk,
        retry,
    }))
}

fn parse_workers(text: &str) -> Result<usize, Failure> {
    const WORKERS_MAX: usize = 1024;
    let number = text.parse().ok();
    number
        .filter(|number| (1..=WORKERS_MAX).contains(number))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--workers {text:?} is not a number of workers; write 1 to {WORKERS_MAX}"
            ))
        })
}

fn index_folders(options: &Options) -> Result<(), Failure> {
    check_folders(&options.folders)?;
    let started = Instant::now();
    let pool = WorkerPool::new(extract_worker::worker_config().map_err(Failure::runtime)?);
    let pool = match options.workers {
        Some(workers) => pool.with_workers(workers),
        None => pool,
    };
    let opened_folder = DataFolder::open(&options.data_folder, options.memory_bytes)?;
    let mut walk = options.walk.clone();
    // The database must not index its own files.
    let canonical_folder = options.data_folder.canonicalize().map_err(|error| {
        Failure::runtime(format!(
            "the data folder {}: {error}",
            options.data_folder.display()
        ))
    })?;
    walk.exclude.push(canonical_folder);
    let ingest_options = IngestOptions {
        walk,
        pool,
        retry_failures: options.retry,
    };
    let progress = Progress::default();
    let run = |store: &dyn Store| {
        let run = || ingest(store, &options.folders, &ingest_options, &progress);
        with_progress_bar(&progress, run).map_err(Failure::runtime)
    };
    let summary = match opened_folder {
        DataFolder::Local(engine) => {
            let summary = run(&EngineStore::new(engine.clone()).map_err(Failure::runtime)?)?;
            engine.close().map_err(Failure::runtime)?;
            summary
        }
        DataFolder::Server(address) => {
            run(&ServerStore::connect(address).map_err(Failure::runtime)?)?
        }
    };
    print!(
        "{}",
        format_summary(&summary, started.elapsed().as_secs_f64())
    );
    Ok(())
}

/// A missing folder is probably a typing error. Its stored documents must not be removed.
fn check_folders(folders: &[PathBuf]) -> Result<(), Failure> {
    for folder in folders {
        folder
            .metadata()
            .map_err(|error| Failure::runtime(format!("{}: {error}", folder.display())))?;
    }
    Ok(())
}

/// Files without text are not stored and are read again by every run, so they do not count as new.
fn format_summary(summary: &IngestSummary, seconds: f64) -> String {
    let files = format_grouped(summary.files_read);
    let megabytes = summary.bytes_read as f64 / 1e6;
    let rate = summary.files_read as f64 / seconds.max(1e-3);
    let mut text = format!(
        "{files} files of {megabytes:.1} MB read in {seconds:.1} s ({rate:.0} files/s): {} documents, {} failures, {} skipped\n",
        format_grouped(summary.documents),
        format_grouped(summary.failures),
        format_grouped(summary.files_skipped)
    );
    text.push_str(&format!(
        "{} new, {} changed, {} unchanged, {} gone\n",
        format_grouped(summary.files_added.saturating_sub(summary.files_skipped)),
        format_grouped(summary.files_replaced),
        format_grouped(summary.files_unchanged),
        format_grouped(summary.files_removed)
    ));
    if summary.failures > 0 {
        text.push_str("see the collection files.failures for the reasons of the failures\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    fn check(arguments: &[&str], expected: Result<Options, &str>) {
        check_parsed(parse, arguments, expected);
    }

    #[test]
    fn arguments_are_parsed() {
        let options = Options {
            folders: vec!["a".into(), "b".into()],
            data_folder: "d".into(),
            workers: Some(3),
            memory_bytes: 1 << 30,
            walk: WalkOptions {
                hidden: true,
                follow_links: true,
                ..WalkOptions::default()
            },
            retry: true,
        };
        let arguments = [
            "a",
            "--data",
            "d",
            "b",
            "--workers",
            "3",
            "--memory=1GiB",
            "--hidden",
            "--follow-links",
            "--retry",
        ];
        check(&arguments, Ok(options));
        check(&[], Err("FOLDER"));
        check(&["a"], Err("--data"));
        check(&["a", "--data", "d", "--workers", "0"], Err("--workers"));
        check(&["a", "--data", "d", "--memory", "much"], Err("much"));
        check(&["a", "--data", "d", "--fast"], Err("--fast"));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }

    #[test]
    fn reports_contain_all_counts() {
        let summary = IngestSummary {
            files_found: 1300,
            files_unchanged: 100,
            files_added: 1150,
            files_replaced: 50,
            files_removed: 2,
            files_read: 1200,
            bytes_read: 5_000_000,
            documents: 1210,
            failures: 1,
            files_skipped: 3,
        };
        assert_eq!(
            format_summary(&summary, 2.0),
            "1,200 files of 5.0 MB read in 2.0 s (600 files/s): 1,210 documents, 1 failures, 3 skipped\n\
             1,147 new, 50 changed, 100 unchanged, 2 gone\n\
             see the collection files.failures for the reasons of the failures\n"
        );
    }
}
