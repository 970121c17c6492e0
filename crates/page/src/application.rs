//! Handles HTTP requests: host, route, session, form token, handler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, VARY,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::assets::{AssetRequest, serve_asset};
use crate::basic_login::basic_credentials;
use crate::body::{BodyEncoding, BodyReader, BodyWriter, PageBody};
use crate::error::PageError;
use crate::form::FormFields;
use crate::host::is_own_origin;
use crate::interrupt::InterruptOnDrop;
use crate::live::{EventStreams, PollResult, RunPoll};
use crate::login::{self, begin_session};
use crate::request::{Request, RequestParts};
use crate::response::{Content, Response, compress};
use crate::route::{Answer, EventStream, Route};
use crate::secret::is_same;
use crate::sections::routes;
use crate::services::{ConnectionEnds, PageTls};
use crate::session::Session;
use crate::shell::error_page;
use crate::site::Site;
use crate::texts;

/// Handles the HTTP requests of the page.
#[derive(Clone, Debug)]
pub struct Application {
    site: Arc<Site>,
    streams: EventStreams,
}

/// The header in which a script sends the form token.
const TOKEN: HeaderName = HeaderName::from_static("x-form-token");
/// The prefix of the paths of the JSON API.
const API: &str = "/api/";
/// The form field that contains the form token.
const TOKEN_FIELD: &str = "token";
const FORM: &str = "application/x-www-form-urlencoded";
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// Smaller responses are not compressed.
const COMPRESSED_BYTES_MIN: usize = 1_000;

/// The security headers of all responses. They restrict all resources to the page's own origin,
/// forbid inline scripts and styles, forbid frames, and forbid MIME sniffing.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), microphone=(), geolocation=()",
    ),
];

impl Application {
    /// Creates the application of a site.
    pub fn new(site: Arc<Site>) -> Application {
        Application {
            site,
            streams: EventStreams::default(),
        }
    }

    /// Returns the TLS settings. `None` if the page is not encrypted.
    pub fn tls(&self) -> Option<&PageTls> {
        self.site.services.tls.as_ref()
    }

    /// Removes expired sessions, unused connections and streams without readers.
    pub fn clean(&self) {
        self.site.clean();
        self.streams.clean();
    }

    /// Answers a request. If the browser disconnects, hyper drops the future, which interrupts the
    /// commands of the request.
    pub async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        ends: ConnectionEnds,
    ) -> hyper::Response<PageBody> {
        let is_head = request.method() == Method::HEAD;
        let mut response = self.respond(request, ends).await;
        if is_head {
            *response.body_mut() = PageBody::Whole(None);
        }
        for (name, value) in HEADERS {
            let entry = response.headers_mut().entry(name);
            entry.or_insert(HeaderValue::from_static(value));
        }
        response
    }

    async fn respond(
        &self,
        request: hyper::Request<Incoming>,
        ends: ConnectionEnds,
    ) -> hyper::Response<PageBody> {
        let (head, body) = request.into_parts();
        let encoding = accepted_encoding(&head.headers);
        let Some(host) = self.site.hosts.accepted(&head.headers) else {
            let response = Response::text(texts::error::FORBIDDEN_HOST);
            return finish(response.with_status(StatusCode::FORBIDDEN));
        };
        if !ends.is_encrypted && self.tls().is_some_and(|tls| tls.is_required) {
            return finish(redirect_to_tls(&head, &host));
        }
        let path = head.uri.path().to_owned();
        if let Some(name) = path.strip_prefix("/assets/") {
            let tag = head
                .headers
                .get(IF_NONE_MATCH)
                .and_then(|it| it.to_str().ok());
            let query = FormFields::parse(head.uri.query().unwrap_or_default().as_bytes());
            let asset = serve_asset(AssetRequest {
                name,
                tag: query.get("v"),
                known_tag: tag,
                accepts_gzip: encoding == BodyEncoding::Gzip,
            });
            if let Some(asset) = asset {
                return finish(asset);
            }
        }
        let parts = RequestParts {
            query: FormFields::parse(head.uri.query().unwrap_or_default().as_bytes()),
            session: self.site.session(&head.headers),
            method: head.method,
            path,
            headers: head.headers,
            parameters: Vec::new(),
            form: FormFields::default(),
            ends,
            site: self.site.clone(),
            interrupt: Arc::default(),
            permit: None,
        };
        self.route(parts, &host, body, encoding).await
    }

    /// Finds the route, authenticates the request and checks its form token, then runs the handler.
    async fn route(
        &self,
        mut parts: RequestParts,
        host: &Authority,
        body: Incoming,
        encoding: BodyEncoding,
    ) -> hyper::Response<PageBody> {
        let route = match find_route(&parts) {
            Ok(route) => route,
            Err(error) => return refuse(parts, &error),
        };
        parts.parameters = route.parameters(&parts.path).unwrap_or_default();
        if parts.session.is_none() && !route.is_open {
            parts.session = match log_in_program(&parts).await {
                Some(Ok(session)) => Some(session),
                Some(Err(error)) => return refuse(parts, &error),
                None => return ask_for_login(parts),
            };
        }
        match route.answer {
            Answer::Once(function) => match receive_form(&mut parts, route, host, body).await {
                Ok(()) => run(parts, encoding, function).await,
                Err(error) => refuse(parts, &error),
            },
            Answer::Received(function) => match check_post(&parts, route, host) {
                Ok(()) => {
                    let reader = BodyReader::new(body);
                    run(parts, encoding, move |request| function(request, reader)).await
                }
                Err(error) => refuse(parts, &error),
            },
            Answer::Events(live) => self.stream(parts, live).await,
        }
    }

    async fn stream(&self, parts: RequestParts, live: EventStream) -> hyper::Response<PageBody> {
        let session = parts.session.clone();
        let key = format!(
            "{:p} {}",
            session_pointer(&session),
            parts.query.address(&parts.path)
        );
        let ends = parts.ends;
        let request = Request::new(parts);
        let own = request.clone();
        let begun = tokio::task::spawn_blocking(move || (live.start)(&own)).await;
        let poll = match begun {
            Ok(Ok(poll)) => poll,
            Ok(Err(error)) => return finish(error_page(&request, &error)),
            Err(_) => return finish(error_page(&request, &failed())),
        };
        let body = self
            .streams
            .subscribe(&key, live, poll, poll_runner(request, ends));
        let mut response = hyper::Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Redirects an unencrypted GET to the encrypted page. Other methods are refused: their content was
/// sent unencrypted, and it has no effect.
fn redirect_to_tls(head: &Parts, host: &Authority) -> Response {
    match head.method {
        Method::GET | Method::HEAD => {
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
            Response::redirect(&format!("https://{host}{path}"))
                .with_status(StatusCode::TEMPORARY_REDIRECT)
        }
        _ => Response::text(texts::error::NOT_ENCRYPTED).with_status(StatusCode::FORBIDDEN),
    }
}

fn session_pointer(session: &Option<Arc<Session>>) -> *const Session {
    session.as_ref().map_or(std::ptr::null(), Arc::as_ptr)
}

/// Returns the function that runs a poll. Each poll gets a request of its own, on a thread that may
/// block.
fn poll_runner(request: Request, ends: ConnectionEnds) -> RunPoll {
    Arc::new(move |mut poll| {
        let again = Request::new(RequestParts {
            method: Method::GET,
            path: request.path().to_owned(),
            parameters: request.parameters().to_vec(),
            query: request.query().clone(),
            form: FormFields::default(),
            headers: request.headers().clone(),
            ends,
            session: request.session().cloned(),
            site: request.site().clone(),
            interrupt: Arc::default(),
            permit: None,
        });
        Box::pin(async move {
            // A stream ends when its session ends.
            if again.session().is_some_and(|session| session.is_over()) {
                return None;
            }
            let result = tokio::task::spawn_blocking(move || {
                let result = poll(&again).map_err(|error| error.message);
                PollResult { poll, result }
            });
            result.await.ok()
        })
    })
}

/// Returns the route of a request. Fails with 404 if no route has its path, with 405 if no route
/// has its method.
fn find_route(parts: &RequestParts) -> Result<&'static Route, PageError> {
    let mut has_path = false;
    for route in routes() {
        if route.parameters(&parts.path).is_some() {
            if route.accepts(&parts.method) {
                return Ok(route);
            }
            has_path = true;
        }
    }
    Err(if has_path {
        PageError::new(StatusCode::METHOD_NOT_ALLOWED, texts::error::METHOD)
    } else {
        PageError::not_found(texts::error::NOT_FOUND)
    })
}

/// Redirects a browser to the login page. Requests for JSON or for a part of a page fail with 401.
fn ask_for_login(parts: RequestParts) -> hyper::Response<PageBody> {
    let address = parts.query.address(&parts.path);
    let request = Request::new(parts);
    if request.wants_json() || request.wants_part() {
        let error = PageError::new(StatusCode::UNAUTHORIZED, texts::error::LOGIN);
        return finish(error_page(&request, &error));
    }
    let next = utf8_percent_encode(&address, NON_ALPHANUMERIC);
    finish(Response::redirect(&format!("{}?next={next}", login::PATH)))
}

/// Authenticates an API request by HTTP Basic. Returns `None` if the request has no credentials or
/// is not for the API.
async fn log_in_program(parts: &RequestParts) -> Option<Result<Arc<Session>, PageError>> {
    if !parts.path.starts_with(API) {
        return None;
    }
    let credentials = basic_credentials(&parts.headers, &parts.query)?;
    let (site, ends) = (parts.site.clone(), parts.ends);
    let begun = tokio::task::spawn_blocking(move || begin_session(&site, ends, credentials));
    let begun = begun.await.unwrap_or_else(|_| Err(failed()));
    Some(begun.map(Arc::new))
}

/// Receives and checks the body of a POST request.
async fn receive_form(
    parts: &mut RequestParts,
    route: &Route,
    host: &Authority,
    body: Incoming,
) -> Result<(), PageError> {
    if !route.is_post {
        return Ok(());
    }
    let sent = read_body(body, route.body_bytes_max).await?;
    if is_form(&parts.headers) {
        parts.form = FormFields::parse(&sent);
    }
    check_post(parts, route, host)
}

/// The maximum time to receive the body of a form.
const BODY_TIME_MAX: Duration = Duration::from_secs(60);

async fn read_body(body: Incoming, bytes_max: usize) -> Result<Bytes, PageError> {
    let read = Limited::new(body, bytes_max).collect();
    let read = tokio::time::timeout(BODY_TIME_MAX, read).await;
    let read = read.map_err(|_| PageError::bad_request(texts::error::INCOMPLETE))?;
    read.map(|read| read.to_bytes()).map_err(|error| {
        if error.is::<LengthLimitError>() {
            PageError::new(StatusCode::PAYLOAD_TOO_LARGE, texts::error::TOO_LARGE)
        } else {
            PageError::bad_request(texts::error::INCOMPLETE)
        }
    })
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    content_type.is_some_and(|it| it.split(';').next().unwrap_or_default().trim() == FORM)
}

/// Checks that a POST request was sent by a page of this site.
fn check_post(parts: &RequestParts, route: &Route, host: &Authority) -> Result<(), PageError> {
    if !is_own_origin(&parts.headers, host, &parts.ends.scheme()) {
        return Err(PageError::forbidden(texts::error::ORIGIN));
    }
    if route.writes && parts.site.is_read_only {
        return Err(PageError::forbidden(texts::error::READ_ONLY));
    }
    // Before the login there is no session, so there is no token to check.
    let Some(session) = parts.session.as_ref().filter(|_| !route.is_open) else {
        return Ok(());
    };
    let sent = parts.headers.get(TOKEN).and_then(|it| it.to_str().ok());
    let sent = sent.or(parts.form.get(TOKEN_FIELD)).unwrap_or_default();
    if is_same(sent, &session.form_token) {
        Ok(())
    } else {
        Err(PageError::forbidden(texts::error::TOKEN))
    }
}

/// Runs a handler on a thread that may block.
async fn run(
    mut parts: RequestParts,
    encoding: BodyEncoding,
    function: impl FnOnce(&Request) -> Result<Response, PageError> + Send + 'static,
) -> hyper::Response<PageBody> {
    if let Some(session) = &parts.session {
        // Cannot fail: the semaphore is never closed.
        parts.permit = session.requests.clone().acquire_owned().await.ok();
    }
    let interrupt = parts.interrupt.clone();
    let guard = InterruptOnDrop::new(interrupt.clone());
    let request = Request::new(parts);
    let own = request.clone();
    let answered = tokio::task::spawn_blocking(move || {
        let request = own;
        if request.interrupt().is_interrupted() {
            return finish(Response::text(""));
        }
        let called = catch_unwind(AssertUnwindSafe(|| function(&request)));
        let response = called.unwrap_or_else(|_| Err(failed()));
        let response = response.unwrap_or_else(|error| error_page(&request, &error));
        let guard = InterruptOnDrop::new(request.interrupt().clone());
        finish_encoded(response, encoding, Some(guard))
    });
    let mut response = answered.await.unwrap_or_else(|_| {
        let response = Response::text(texts::error::FAILED);
        finish(response.with_status(StatusCode::INTERNAL_SERVER_ERROR))
    });
    if let Err(error) = response.body_mut().begin().await {
        response = finish(error_page(&request, &error.into()));
    }
    guard.disarm();
    response
}

/// The error of a handler that panicked. The panic message is in the log.
fn failed() -> PageError {
    PageError::new(StatusCode::INTERNAL_SERVER_ERROR, texts::error::FAILED)
}

/// Returns the response for an error.
fn refuse(parts: RequestParts, error: &PageError) -> hyper::Response<PageBody> {
    let is_method = error.status == StatusCode::METHOD_NOT_ALLOWED;
    let mut response = error_page(&Request::new(parts), error);
    if is_method {
        response = response.with_header(ALLOW, "GET, HEAD, POST");
    }
    finish(response)
}

/// Converts a response for hyper, without compression.
fn finish(response: Response) -> hyper::Response<PageBody> {
    finish_encoded(response, BodyEncoding::Identity, None)
}

/// Converts a response for hyper. Starts to write a streamed content; `guard` interrupts the
/// commands of the request if the browser disconnects before the end.
fn finish_encoded(
    response: Response,
    encoding: BodyEncoding,
    guard: Option<InterruptOnDrop>,
) -> hyper::Response<PageBody> {
    let Response {
        status,
        headers,
        content,
    } = response;
    let is_encoded = headers.iter().any(|(name, _)| *name == CONTENT_ENCODING);
    let accepts_gzip = encoding == BodyEncoding::Gzip && !is_encoded;
    let mut is_compressed = false;
    let body = match content {
        Content::Whole(bytes) if accepts_gzip && bytes.len() >= COMPRESSED_BYTES_MIN => {
            match compress(&bytes, Compression::fast()) {
                Ok(compressed) => {
                    is_compressed = true;
                    PageBody::whole(compressed.into())
                }
                Err(_) => PageBody::whole(bytes),
            }
        }
        Content::Whole(bytes) => PageBody::whole(bytes),
        Content::Written {
            write,
            is_compressible,
        } => {
            is_compressed = accepts_gzip && is_compressible;
            let encoding = if is_compressed {
                BodyEncoding::Gzip
            } else {
                BodyEncoding::Identity
            };
            let (mut writer, body) = BodyWriter::new(encoding, guard);
            tokio::task::spawn_blocking(move || {
                match write(&mut writer) {
                    // Fails if the client has disconnected.
                    Ok(()) => drop(writer.finish()),
                    Err(error) => writer.abort(error),
                }
            });
            body
        }
    };
    let mut answer = hyper::Response::new(body);
    *answer.status_mut() = status;
    for (name, value) in headers {
        answer.headers_mut().append(name, value);
    }
    if is_compressed {
        let headers = answer.headers_mut();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    answer
}

/// Returns the encoding of responses that the client prefers.
fn accepted_encoding(headers: &HeaderMap) -> BodyEncoding {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|it| it.to_str().ok());
    let mut names = accepted.unwrap_or_default().split(',');
    if names.any(|name| name.trim().split(';').next() == Some("gzip")) {
        BodyEncoding::Gzip
    } else {
        BodyEncoding::Identity
    }
}
