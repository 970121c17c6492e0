//! `windrow index --watch`: keeps the documents up to date until it is ended by a signal.
//!
//! If no server has the data folder open, this process serves it on a free port of the loopback address, so
//! that `windrow search` finds it meanwhile.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use windrow_collection::Engine;
use windrow_ingest::{
    EngineStore, IngestOptions, IngestSummary, Progress, Store, WatchControl, WatchOptions, watch,
};
use windrow_server::{Config, Log, Server, Services, UnixSocket, new_password};

use super::options::Options;
use super::settings::Settings;
use super::{describe_kept_folder, format_summary};
use crate::address_file::{AddressFile, Password, ServerAddress};
use crate::command_line::Failure;
use crate::data_folder::DataFolder;
use crate::progress_bar::show_progress;
use crate::server_store::ServerStore;

/// Ingests the folders and watches them until the process is told to end.
pub fn watch_folders(options: &Options) -> Result<(), Failure> {
    let settings = Settings::new(options)?;
    settings.limit_cores()?;
    settings.lower_priority()?;
    let stop = stop_at_signals()?;
    match settings.open_data_folder()? {
        DataFolder::Local(engine) => {
            let store = EngineStore::new(engine.clone()).map_err(Failure::runtime)?;
            serve_during(&engine, settings.data_folder(), || {
                watch_store(&store, &settings, options, &stop)
            })?;
            engine.close().map_err(Failure::runtime)
        }
        DataFolder::Server(address) => {
            let store = ServerStore::connect(address).map_err(Failure::runtime)?;
            watch_store(&store, &settings, options, &stop)
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

fn watch_store(
    store: &dyn Store,
    settings: &Settings,
    options: &Options,
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
    let (progress, is_ingested) = (Progress::default(), AtomicBool::new(false));
    let control = WatchControl {
        should_stop: &|| stop.load(Ordering::Relaxed),
        is_paused: &|| settings.pauses.are_now(),
        on_round: &|summary| {
            is_ingested.store(true, Ordering::Relaxed);
            report_round(summary);
        },
        on_problem: &|problem| eprintln!("windrow: {problem}"),
        progress: &progress,
    };
    let roots = settings.roots()?;
    thread::scope(|scope| {
        scope.spawn(|| show_progress(&progress, &is_ingested));
        let watched = watch(store, &roots, &ingest_options, &watch_options, &control);
        is_ingested.store(true, Ordering::Relaxed);
        watched.map_err(Failure::runtime)
    })
}

fn report_round(summary: &IngestSummary) {
    for folder in &summary.folders_kept {
        eprintln!("windrow: {}", describe_kept_folder(folder));
    }
    print!("{}", format_summary(summary, None));
}

/// Serves the data folder while `work` runs.
fn serve_during(
    engine: &Arc<Engine>,
    data_folder: &Path,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let password = new_password().map_err(|error| Failure::runtime(error.message))?;
    let config = Config {
        local_password: Some(password.clone()),
        local_user_by_ip: !engine.is_encrypted(),
        unix_socket: engine.is_encrypted().then(|| UnixSocket {
            is_required: true,
            ..UnixSocket::default()
        }),
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        arguments: std::env::args().collect(),
        ..Config::default()
    };
    let services = Services {
        engine: engine.clone(),
        log: Arc::new(Log::to_nowhere()),
        folder: Some(data_folder.to_path_buf()),
        traces: None,
        status: Vec::new(),
    };
    let server = Server::bind(config, services).map_err(Failure::runtime)?;
    let address = server.addresses().first().copied();
    let file = address.map(|address| {
        let mut own = ServerAddress::plain(address);
        own.unix_socket = server.unix_sockets().first().cloned();
        own.password = Some(Password(password));
        AddressFile::write(data_folder, &own)
    });
    let file = file
        .transpose()
        .map_err(|error| Failure::runtime(format!("the address file of this process: {error}")))?;
    let stop = server.stop();
    let served = thread::spawn(move || server.run());
    let result = work();
    stop.request();
    let served = served.join();
    drop(file);
    result?;
    match served {
        Ok(served) => served.map_err(Failure::runtime),
        Err(_) => Err(Failure::runtime("the server of the data folder panicked")),
    }
}
