//! `windrow index`: makes the files of folders searchable.

mod explanation;
mod options;
mod pauses;
mod settings;
mod watching;

use std::process::ExitCode;
use std::time::Instant;

use windrow_ingest::{
    EngineStore, IngestOptions, IngestSummary, Progress, Store, UnavailableFolder, WalkRoot,
    ingest, remove_folder,
};

use crate::allocator::AllocatorSettings;
use crate::command_line::{Failure, Subcommand};
use crate::data_folder::DataFolder;
use crate::folder_server::{Clients, serve_during};
use crate::progress_bar::{Display, format_grouped, show_progress, with_display};
use crate::progress_line::show_progress_lines;
use crate::search::not_indexed_failure;
use crate::server_store::ServerStore;
use options::{Options, ProgressDisplay, format_help, parse};
use settings::Settings;
use watching::watch_folders;

pub const INDEX: Subcommand = Subcommand {
    name: "index",
    summary: Some("make the files of folders searchable"),
    run,
};

/// Threads create index entries that other threads free, in blocks of some megabytes. With 256 MiB
/// of memory, a mailbox of 1 GB takes 390 MB; with glibc's default size of mapped blocks it takes
/// 500 MB, in about the same time.
const ALLOCATOR: AllocatorSettings = AllocatorSettings {
    arenas: 1,
    mapped_bytes_min: Some(4 << 20),
};

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{}", format_help());
        return Ok(ExitCode::SUCCESS);
    };
    ALLOCATOR.apply();
    if options.remove {
        remove_folders(&options)?;
    } else if options.watch {
        watch_folders(&options)?;
    } else {
        index_folders(&options)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ingests the folders and prints the summary.
fn index_folders(options: &Options) -> Result<(), Failure> {
    let started = Instant::now();
    let settings = Settings::new(options)?;
    settings.limit_cores()?;
    settings.lower_priority()?;
    settings.refuse_missing_folders()?;
    let data_folder = settings.open_data_folder()?;
    let ingest_options = IngestOptions {
        pool: settings.pool.clone(),
        retry_failures: options.retry,
        settings: settings.entries.clone(),
        writers: settings.writers,
    };
    let roots = settings.roots()?;
    let summary = with_store(data_folder, &settings, |store| {
        show_ingest(store, &roots, &ingest_options, options.display)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    report_folders(&summary);
    print!("{}", format_summary(&summary, Some(seconds)));
    if let Some(format) = options.explanation {
        print!("{}", explanation::format_report(&summary.pipeline, format));
    }
    match summary.folders_missing.as_slice() {
        [] => Ok(()),
        _ => Err(Failure::Runtime("not all folders were read".to_owned())),
    }
}

/// Warns about folders that could not be read.
fn report_folders(summary: &IngestSummary) {
    for folder in &summary.folders_missing {
        let folder = folder.display();
        eprintln!("windrow: {folder}: there is no such file or folder");
    }
    for folder in &summary.folders_unavailable {
        eprintln!("windrow: {}", describe_unavailable_folder(folder));
    }
}

/// Removes all documents of the files below the folders.
fn remove_folders(options: &Options) -> Result<(), Failure> {
    let settings = Settings::new(options)?;
    if !DataFolder::exists(settings.data_folder()) {
        return Err(not_indexed_failure(settings.data_folder()));
    }
    let data_folder = settings.open_data_folder()?;
    with_store(data_folder, &settings, |store| {
        for folder in &options.folders {
            let files = remove_folder(store, folder).map_err(Failure::runtime)?;
            if files == 0 {
                let folder = folder.display();
                let reason = format!("{folder}: nothing at or below this path is stored");
                return Err(Failure::Runtime(reason));
            }
            println!(
                "{}: {} files removed",
                folder.display(),
                format_grouped(files)
            );
        }
        Ok(())
    })
}

/// Calls `work` with the store of a data folder. If this process opens the folder, it serves it
/// meanwhile and closes it afterwards.
fn with_store<T>(
    data_folder: DataFolder,
    settings: &Settings,
    work: impl FnOnce(&dyn Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let signer = settings.file_signer()?;
    match data_folder {
        DataFolder::Local(engine) => {
            let store = EngineStore::new(engine.clone(), signer).map_err(Failure::runtime)?;
            let result = serve_during(
                &engine,
                settings.data_folder(),
                Clients::OwnCommands,
                None,
                || work(&store),
            )?;
            engine.close().map_err(Failure::runtime)?;
            Ok(result)
        }
        DataFolder::Server(address) => {
            work(&ServerStore::connect(address, signer).map_err(Failure::runtime)?)
        }
    }
}

fn describe_unavailable_folder(folder: &UnavailableFolder) -> String {
    format!(
        "{} is missing or empty; the documents of its {} files are kept. If the files were deleted, \
         run `windrow index --remove {}`",
        folder.path,
        format_grouped(folder.files),
        folder.path
    )
}

/// Ingests the folders and shows the progress.
fn show_ingest(
    store: &dyn Store,
    folders: &[WalkRoot],
    options: &IngestOptions,
    display: ProgressDisplay,
) -> Result<IngestSummary, Failure> {
    let progress = Progress::default();
    let show: Display = match display {
        ProgressDisplay::Bar => show_progress,
        ProgressDisplay::Json => show_progress_lines,
    };
    with_display(&progress, show, || {
        ingest(store, folders, options, &progress)
    })
    .map_err(Failure::runtime)
}

/// Formats the counts of a run, and its speed if its duration is known.
fn format_summary(summary: &IngestSummary, seconds: Option<f64>) -> String {
    let files = format_grouped(summary.files_read);
    let megabytes = summary.bytes_read as f64 / 1e6;
    let speed = seconds.map(|seconds| {
        let rate = summary.files_read as f64 / seconds.max(1e-3);
        format!(" in {seconds:.1} s ({rate:.0} files/s)")
    });
    let speed = speed.unwrap_or_default();
    let mut text = format!(
        "{files} files of {megabytes:.1} MB read{speed}: {} documents, {} failures, {} skipped\n",
        format_grouped(summary.documents),
        format_grouped(summary.failures),
        format_grouped(summary.files_skipped)
    );
    text.push_str(&format!(
        "{} new, {} changed, {} moved, {} unchanged, {} gone\n",
        format_grouped(summary.files_added),
        format_grouped(summary.files_replaced),
        format_grouped(summary.files_moved),
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
    fn kept_folders_are_described() {
        let folder = UnavailableFolder {
            path: "/disk".into(),
            files: 1234,
        };
        let text = describe_unavailable_folder(&folder);
        assert!(text.starts_with("/disk is missing or empty; the documents of its 1,234 files"));
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
            files_moved: 4,
            folders_unavailable: Vec::new(),
            folders_missing: Vec::new(),
            ..IngestSummary::default()
        };
        assert_eq!(
            format_summary(&summary, Some(2.0)),
            "1,200 files of 5.0 MB read in 2.0 s (600 files/s): 1,210 documents, 1 failures, 3 skipped\n\
             1,150 new, 50 changed, 4 moved, 100 unchanged, 2 gone\n\
             see the collection files.failures for the reasons of the failures\n"
        );
    }
}
