//! The HTTP server, on its own threads.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::application::Application;
use crate::host::Hosts;
use crate::options::PageOptions;
use crate::sampler::Sampler;
use crate::sections::navigation;
use crate::services::ConnectionEnds;
use crate::services::PageServices;
use crate::site::Site;
use crate::tls_stream::{BrowserStream, accept_stream};

/// Serves the page until it is dropped.
#[derive(Debug)]
pub struct PageServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _sampler: Sampler,
}

/// The maximum number of connections. Further ones wait.
const CONNECTIONS_MAX: usize = 4_096;
/// The maximum number of threads that run handlers.
const THREADS_MAX: usize = 32;
/// The maximum time to receive the head of a request, also of the next one on the connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The interval at which unused connections and sessions are closed.
const CLEANING_INTERVAL: Duration = Duration::from_secs(15);

impl PageServer {
    /// Listens, and serves the page on new threads.
    ///
    /// # Errors
    /// Fails if the address cannot be used, or if other machines could reach the page although
    /// clients need not log in.
    pub fn start(options: PageOptions, services: PageServices) -> io::Result<PageServer> {
        let PageOptions {
            listen,
            host_name,
            is_read_only,
        } = options;
        let is_reachable = !listen.ip().to_canonical().is_loopback();
        if is_reachable && !(services.requires_login)() {
            let message = format!(
                "the page on {listen} can be reached from other machines, so clients must log in: \
                 create a user, or require logins with --auth"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let failed = |error: io::Error| {
            let message = format!("the page cannot listen on {listen}: {error}");
            io::Error::new(error.kind(), message)
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let hosts = Hosts {
            is_reachable,
            name: host_name,
        };
        let site = Site::new(services, hosts, is_read_only, navigation())?;
        let site = Arc::new(site);
        let sampler = Sampler::start(site.clone(), address)?;
        let application = Application::new(site);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("page")
            .max_blocking_threads(THREADS_MAX)
            .build()?;
        let thread = thread::Builder::new().name("page".into());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, &application) => {}
                    () = clean(&application) => {}
                    _ = stopped => {}
                }
            });
            // Commands end with their connections, so there is no need to wait for the threads.
            runtime.shutdown_background();
        })?;
        Ok(PageServer {
            address,
            stop: Some(stop),
            thread: Some(thread),
            _sampler: sampler,
        })
    }

    /// Returns the address, with the assigned port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails if the thread has already ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn clean(application: &Application) {
    loop {
        tokio::time::sleep(CLEANING_INTERVAL).await;
        application.clean();
    }
}

/// Accepts connections. Returns if the listener cannot be used.
async fn accept(listener: TcpListener, application: &Application) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let Ok(page) = listener.local_addr() else {
        return;
    };
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, browser)) = listener.accept().await else {
            // The process has no free file descriptors. An immediate retry would only use processor
            // time.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Avoids the delay of small responses. Not required, so an error is ignored.
        let _ = stream.set_nodelay(true);
        let page = stream.local_addr().unwrap_or(page);
        let application = application.clone();
        tokio::spawn(async move {
            let accepting = accept_stream(stream, application.tls());
            match timeout(HEAD_TIME_MAX, accepting).await {
                Ok(Ok(BrowserStream::Plain(stream))) => {
                    let ends = ConnectionEnds {
                        browser,
                        page,
                        is_encrypted: false,
                    };
                    serve(TokioIo::new(stream), &application, ends).await;
                }
                Ok(Ok(BrowserStream::Encrypted(stream))) => {
                    let ends = ConnectionEnds {
                        browser,
                        page,
                        is_encrypted: true,
                    };
                    serve(TokioIo::new(*stream), &application, ends).await;
                }
                // The TLS handshake failed or timed out.
                Ok(Err(_)) | Err(_) => {}
            }
            drop(permit);
        });
    }
}

/// Serves the requests of a connection.
async fn serve(
    stream: impl hyper::rt::Read + hyper::rt::Write + Unpin,
    application: &Application,
    ends: ConnectionEnds,
) {
    let service = service_fn(|request| {
        let application = application.clone();
        async move { Ok::<_, Infallible>(application.answer(request, ends).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(stream, service);
    // An error is the browser's: it violated the protocol or disconnected.
    let _ = connection.await;
}
