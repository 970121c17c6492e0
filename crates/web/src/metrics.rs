//! The listener of metrics. It has one path, `/metrics`.
//!
//! A client cannot occupy it: connections are limited, and each must send its request in time.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, oneshot};

use crate::host::{is_loopback_name, named_host};

/// The options of a [`MetricsServer`].
#[derive(Clone, Debug)]
pub struct MetricsOptions {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The token that clients must send, as `Authorization: Bearer TOKEN`. Without it, the address
    /// must be a loopback address.
    pub token: Option<String>,
}

/// Serves a page of metrics until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The largest number of connections at a time. Others wait.
const CONNECTIONS_MAX: usize = 32;
/// How long a client can take to send a request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection can last. Clients that keep connections open connect again.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(600);
/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What answers need.
struct Shared {
    token: Option<String>,
    page: Box<dyn Fn() -> String + Send + Sync>,
}

impl MetricsServer {
    /// Listens, and serves the result of `page` on a new thread. `page` is called for each request.
    ///
    /// # Errors
    /// Fails if the address cannot be used, or if other machines could read the page without a
    /// token.
    pub fn start(
        options: MetricsOptions,
        page: impl Fn() -> String + Send + Sync + 'static,
    ) -> io::Result<MetricsServer> {
        let MetricsOptions { listen, token } = options;
        if token.is_none() && !listen.ip().is_loopback() {
            let message = format!(
                "metrics on {listen} need a token, because other machines can reach the address"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let failed = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"))
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let shared = Arc::new(Shared {
            token,
            page: Box::new(page),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, &shared) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(MetricsServer {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the address, with the assigned port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts connections. Ends if the listener cannot be used.
async fn accept(listener: TcpListener, shared: &Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Files are exhausted. An immediate retry would only take processor time.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = respond(&request, &shared);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIME_MAX)
                .max_buf_size(HEAD_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // A client that breaks the protocol or leaves is no error of the server.
            let _ = tokio::time::timeout(CONNECTION_TIME_MAX, connection).await;
            drop(permit);
        });
    }
}

/// Answers a request. The connection of a client that did not get the page is closed: it must not
/// keep others out.
fn respond(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let mut response = answer(request, shared);
    if response.status() != StatusCode::OK {
        let close = hyper::header::HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    if shared.token.is_none() && !is_for_loopback(request) {
        let message = "without a token, the page has only names of the loopback address\n";
        return plain(StatusCode::FORBIDDEN, message);
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "the only page is /metrics\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "the page can only be read\n",
        );
        let allowed = hyper::header::HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    if !is_allowed(request, shared.token.as_deref()) {
        let mut response = plain(StatusCode::UNAUTHORIZED, "a bearer token is needed\n");
        let scheme = hyper::header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        return response;
    }
    let mut response = plain(StatusCode::OK, (shared.page)());
    let content = hyper::header::HeaderValue::from_static(CONTENT);
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}

/// Returns `true` if the request names this machine as its host.
fn is_for_loopback(request: &Request<Incoming>) -> bool {
    named_host(request.headers()).is_some_and(|host| is_loopback_name(host.host()))
}

/// Returns `true` if no token is needed, or if the request has it.
fn is_allowed(request: &Request<Incoming>, token: Option<&str>) -> bool {
    let Some(token) = token else {
        return true;
    };
    let header = request.headers().get(AUTHORIZATION);
    let received = header.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    received.is_some_and(|received| bool::from(received.ct_eq(token.as_bytes())))
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let content = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content);
    let fresh = hyper::header::HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, fresh);
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn start(token: Option<&str>) -> MetricsServer {
        let options = MetricsOptions {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: token.map(str::to_owned),
        };
        MetricsServer::start(options, || "up 1\n".to_owned()).unwrap()
    }

    fn ask(server: &MetricsServer, request: &str) -> String {
        ask_as(server, request, "Host: localhost\r\nConnection: close\r\n")
    }

    fn ask_as(server: &MetricsServer, request: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let time_max = Some(Duration::from_secs(5));
        stream.set_read_timeout(time_max).unwrap();
        let request = request.replace('\n', "\r\n") + "\r\n" + headers + "\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn check(server: &MetricsServer, request: &str, status: &str, text: &str) {
        let answer = ask(server, request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{request}: {answer}"
        );
        assert!(answer.ends_with(text), "{request}: {answer}");
    }

    #[test]
    fn the_page_is_read_with_get() {
        let server = start(None);
        check(&server, "GET /metrics HTTP/1.1", "200", "\r\n\r\nup 1\n");
        check(&server, "GET /metrics?x=1 HTTP/1.1", "200", "up 1\n");
        check(&server, "HEAD /metrics HTTP/1.1", "200", "\r\n\r\n");
        check(&server, "POST /metrics HTTP/1.1", "405", "only be read\n");
        check(&server, "GET / HTTP/1.1", "404", "/metrics\n");
        assert!(
            ask(&server, "GET /metrics HTTP/1.1")
                .contains("content-type: text/plain; version=0.0.4")
        );
        check(&server, "nonsense", "400", "");
        let long = format!("GET /metrics HTTP/1.1\nA: {}", "x".repeat(64 << 10));
        check(&server, &long, "431", "");
    }

    #[test]
    fn a_token_is_needed_if_there_is_one() {
        let server = start(Some("secret"));
        check(&server, "GET /metrics HTTP/1.1", "401", "needed\n");
        for wrong in ["Bearer secre", "Bearer secret2", "Basic secret", "secret"] {
            let request = format!("GET /metrics HTTP/1.1\nAuthorization: {wrong}");
            check(&server, &request, "401", "needed\n");
        }
        check(
            &server,
            "GET /metrics HTTP/1.1\nAuthorization: Bearer secret",
            "200",
            "up 1\n",
        );
    }

    /// A web site whose name leads to 127.0.0.1 could read the page by a browser of this machine.
    #[test]
    fn the_host_is_this_machine_unless_there_is_a_token() {
        let (open, closed) = (start(None), start(Some("secret")));
        let check_host = |headers: &str, status: &str| {
            let headers = format!("{headers}Connection: close\r\n");
            let answer = ask_as(&open, "GET /metrics HTTP/1.1", &headers);
            let begin = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&begin), "{headers}: {answer}");
        };
        for host in [
            "localhost",
            "LocalHost:9216",
            "127.0.0.1:1",
            "[::1]:9216",
            "127.0.0.2",
        ] {
            check_host(&format!("Host: {host}\r\n"), "200");
        }
        for host in [
            "evil.example",
            "evil.example:9216",
            "localhost.evil.example",
            "10.0.0.1",
            "",
        ] {
            check_host(&format!("Host: {host}\r\n"), "403");
        }
        check_host("Host: localhost\r\nHost: evil.example\r\n", "403");
        let headers = "Host: evil.example\r\nConnection: close\r\n";
        let request = "GET /metrics HTTP/1.1\nAuthorization: Bearer secret";
        assert!(ask_as(&closed, request, headers).starts_with("HTTP/1.1 200"));
    }

    /// A client without the token had kept one of the connections for ten minutes.
    #[test]
    fn refused_clients_are_disconnected() {
        let server = start(Some("secret"));
        let answer = ask_as(&server, "GET /metrics HTTP/1.1", "Host: localhost\r\n");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }

    #[test]
    fn other_addresses_need_a_token() {
        let options = MetricsOptions {
            listen: SocketAddr::from(([0, 0, 0, 0], 0)),
            token: None,
        };
        let error = MetricsServer::start(options, String::new).unwrap_err();
        assert!(error.to_string().contains("need a token"), "{error}");
    }

    /// Clients that send nothing do not keep others out for ever: they are disconnected after the
    /// time of a request. Here there are fewer than the limit, so others are served at once.
    #[test]
    fn silent_clients_do_not_disturb_others() {
        let server = start(None);
        let connect = || TcpStream::connect(server.address()).unwrap();
        let silent: Vec<TcpStream> = (0..CONNECTIONS_MAX - 1).map(|_| connect()).collect();
        check(&server, "GET /metrics HTTP/1.1", "200", "up 1\n");
        drop(silent);
        drop(server);
    }
}
