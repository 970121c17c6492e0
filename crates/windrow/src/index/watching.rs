//! `windrow index --watch`: keeps the documents up to date until it is ended by a signal.
//!
//! If no server has the data folder open, this process serves it on a free port of the loopback address, so
//! that `windrow search` finds it meanwhile.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM};
use windrow_collection::Engine;
use windrow_ingest::{
    EngineStore, IngestOptions, IngestSummary, Store, WatchControl, WatchOptions, watch,
};
use windrow_page::PageServer;
use windrow_server::{
    Config, Connector, Log, Server, Services, UnixSocket, UsersEngine, new_password,
};

use super::options::Options;
use super::settings::Settings;
use super::{describe_kept_folder, format_summary};
use crate::address_file::{AddressFile, Password, ServerAddress};
use crate::command_line::Failure;
use crate::data_folder::DataFolder;
use crate::page::{PageContext, RunWatch, WebAddress, WebOptions, start_page};
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
            let store = EngineStore::new(engine.clone(), settings.file_signer()?)
                .map_err(Failure::runtime)?;
            let run = new_run();
            let page = options.web.as_ref().map(|address| ServedPage {
                address,
                config: options.config.clone(),
                run: run.clone(),
            });
            serve_during(&engine, settings.data_folder(), page, || {
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
        should_stop: &|| stop.load(Ordering::Relaxed),
        is_paused: &|| settings.pauses.are_now(),
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
    for folder in &summary.folders_kept {
        eprintln!("windrow: {}", describe_kept_folder(folder));
    }
    print!("{}", format_summary(summary, None));
}

fn new_run() -> RunWatch {
    RunWatch {
        progress: Arc::default(),
        is_ended: Arc::default(),
        started: Instant::now(),
    }
}

/// The page that is served while files are read.
struct ServedPage<'o> {
    address: &'o WebAddress,
    config: Option<PathBuf>,
    run: RunWatch,
}

impl ServedPage<'_> {
    /// Serves the page until the result is dropped.
    fn start(
        self,
        connector: Connector,
        password: &str,
        data_folder: &Path,
    ) -> Result<PageServer, Failure> {
        let web = WebOptions {
            address: self.address.clone(),
            is_read_only: false,
        };
        let context = PageContext {
            connector,
            password,
            data_folder,
            config: self.config,
            run: Some(self.run),
        };
        let page = start_page(&web, context).map_err(Failure::runtime)?;
        eprintln!("windrow: the page is at http://{}", page.address());
        Ok(page)
    }
}

/// Serves the data folder, and the page if there is one, while `work` runs.
fn serve_during(
    engine: &Arc<Engine>,
    data_folder: &Path,
    page: Option<ServedPage<'_>>,
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
        users: UsersEngine::Own,
        status: Vec::new(),
    };
    let server = Server::bind(config, services).map_err(Failure::runtime)?;
    let page = page
        .map(|page| page.start(server.connector(), &password, data_folder))
        .transpose()?;
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
    drop((file, page));
    result?;
    match served {
        Ok(served) => served.map_err(Failure::runtime),
        Err(_) => Err(Failure::runtime("the server of the data folder panicked")),
    }
}
