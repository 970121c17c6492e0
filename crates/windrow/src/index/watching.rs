//! `windrow index --watch`: keeps the documents up to date until a signal ends it.
//!
//! If no server has the data folder open, this process serves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM};
use windrow_collection::Interrupted;
use windrow_ingest::{
    EngineStore, IngestOptions, IngestSummary, Store, WatchControl, WatchOptions, watch,
};

use super::options::Options;
use super::settings::Settings;
use super::{format_summary, report_folders};
use crate::command_line::Failure;
use crate::data_folder::DataFolder;
use crate::folder_server::{Clients, ServedPage, serve_during};
use crate::page::RunWatch;
use crate::progress_bar::show_progress;
use crate::server_store::ServerStore;

/// Ingests the folders and watches them until a signal ends the process.
pub fn watch_folders(options: &Options) -> Result<(), Failure> {
    let settings = Settings::new(options)?;
    settings.limit_cores()?;
    settings.lower_priority()?;
    let stop = stop_at_signals()?;
    match settings.open_data_folder()? {
        DataFolder::Local(engine) => {
            let store = EngineStore::new(engine.clone(), settings.file_signer()?)
                .map_err(Failure::runtime)?;
            let run = new_run();
            let page = options.web.as_ref().map(|address| ServedPage {
                address,
                config: options.config.clone(),
                run: run.clone(),
            });
            serve_during(&engine, settings.data_folder(), Clients::Any, page, || {
                watch_store(&store, &settings, options, &run, &stop)
            })?;
            engine.close().map_err(Failure::runtime)
        }
        DataFolder::Server(address) if options.web.is_some() => {
            let reason = format!(
                "the server at {address} has the data folder open; start that server with --web"
            );
            Err(Failure::Usage(reason))
        }
        DataFolder::Server(address) => {
            let store =
                ServerStore::connect(address, settings.file_signer()?).map_err(Failure::runtime)?;
            watch_store(&store, &settings, options, &new_run(), &stop)
        }
    }
}

fn stop_at_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process at once.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(Failure::runtime)?;
    }
    Ok(stop)
}

/// The interrupt of the watch. Fails after a signal.
fn check_signal(stop: &AtomicBool) -> Result<(), Interrupted> {
    if stop.load(Ordering::Relaxed) {
        Err(Interrupted::new("a signal has ended the watch"))
    } else {
        Ok(())
    }
}

fn watch_store(
    store: &dyn Store,
    settings: &Settings,
    options: &Options,
    run: &RunWatch,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let ingest_options = IngestOptions {
        pool: settings.pool.clone(),
        retry_failures: options.retry,
        settings: settings.entries.clone(),
        writers: settings.writers,
    };
    let defaults = WatchOptions::default();
    let watch_options = WatchOptions {
        rescan: settings.rescan.unwrap_or(defaults.rescan),
        rescan_unwatched: settings.rescan.unwrap_or(defaults.rescan_unwatched),
        ..defaults
    };
    let (progress, is_ingested) = (&*run.progress, &*run.is_ended);
    let control = WatchControl {
        interrupt: &|| check_signal(stop),
        is_paused: &|| settings.pauses.are_active(),
        on_round: &|summary| {
            is_ingested.store(true, Ordering::Relaxed);
            report_round(summary);
        },
        on_problem: &|problem| eprintln!("windrow: {problem}"),
        progress,
    };
    let roots = settings.roots()?;
    thread::scope(|scope| {
        scope.spawn(|| show_progress(progress, is_ingested));
        let watched = watch(store, &roots, &ingest_options, &watch_options, &control);
        is_ingested.store(true, Ordering::Relaxed);
        watched.map_err(Failure::runtime)
    })
}

fn report_round(summary: &IngestSummary) {
    report_folders(summary);
    print!("{}", format_summary(summary, None));
}

fn new_run() -> RunWatch {
    RunWatch {
        progress: Arc::default(),
        is_ended: Arc::default(),
        started: Instant::now(),
    }
}
