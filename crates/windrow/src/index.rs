//! `windrow index`: makes the files of folders searchable.

mod options;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use windrow_ingest::{
    EngineStore, IngestOptions, IngestSummary, Progress, Store, WorkerPool, ingest,
};

use crate::command_line::{Failure, Subcommand};
use crate::data_folder::DataFolder;
use crate::extract_worker;
use crate::progress_bar::{format_grouped, with_progress_bar};
use crate::server_store::ServerStore;
use options::{Options, format_help, parse};

pub const INDEX: Subcommand = Subcommand {
    name: "index",
    summary: Some("make the files of folders searchable"),
    run,
};

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{}", format_help());
        return Ok(ExitCode::SUCCESS);
    };
    index_folders(&options)?;
    Ok(ExitCode::SUCCESS)
}

/// Ingests the folders and prints the summary.
fn index_folders(options: &Options) -> Result<(), Failure> {
    check_folders(&options.folders)?;
    let started = Instant::now();
    let pool = WorkerPool::new(extract_worker::worker_config().map_err(Failure::runtime)?);
    let pool = match options.workers {
        Some(workers) => pool.with_workers(workers),
        None => pool,
    };
    let data_folder = DataFolder::open(&options.data_folder, options.memory_bytes)?;
    let mut walk = options.walk.clone();
    // The database must not index its own files.
    walk.exclude.push(canonicalize(&options.data_folder)?);
    let ingest_options = IngestOptions {
        walk,
        pool,
        retry_failures: options.retry,
    };
    let summary = match data_folder {
        DataFolder::Local(engine) => {
            let store = EngineStore::new(engine.clone()).map_err(Failure::runtime)?;
            let summary = show_ingest(&store, &options.folders, &ingest_options)?;
            engine.close().map_err(Failure::runtime)?;
            summary
        }
        DataFolder::Server(address) => {
            let store = ServerStore::connect(address).map_err(Failure::runtime)?;
            show_ingest(&store, &options.folders, &ingest_options)?
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    print!("{}", format_summary(&summary, seconds));
    Ok(())
}

/// Ingests the folders and shows the progress.
fn show_ingest(
    store: &dyn Store,
    folders: &[PathBuf],
    options: &IngestOptions,
) -> Result<IngestSummary, Failure> {
    let progress = Progress::default();
    with_progress_bar(&progress, || ingest(store, folders, options, &progress))
        .map_err(Failure::runtime)
}

fn canonicalize(data_folder: &Path) -> Result<PathBuf, Failure> {
    data_folder.canonicalize().map_err(|error| {
        Failure::runtime(format!(
            "the data folder {}: {error}",
            data_folder.display()
        ))
    })
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

/// Files without text are not stored, and every `windrow index` reads them again. They do not count
/// as new.
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
