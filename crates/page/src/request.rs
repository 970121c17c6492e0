//! Requests, as handlers see them.

use std::sync::Arc;

use hyper::Method;
use hyper::header::{ACCEPT, HeaderMap, HeaderName};
use tokio::sync::OwnedSemaphorePermit;
use windrow_document::{ValueRef, doc};

use crate::connection::Connection;
use crate::database::Database;
use crate::error::PageError;
use crate::folder_services::FolderServices;
use crate::form::FormFields;
use crate::interrupt::RequestInterrupt;
use crate::services::ConnectionEnds;
use crate::session::Session;
use crate::site::Site;
use crate::texts;

/// Headers that proxies add. A request with one of them was forwarded from another machine.
const FORWARDED: [&str; 7] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];

/// The roles of users that may administer the server as its operating system user can.
const ADMINISTRATORS: [&str; 3] = ["root", "hostManager", "clusterAdmin"];

/// A request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Request {
    parts: Arc<RequestParts>,
}

/// The parts of a request.
#[derive(Debug)]
pub struct RequestParts {
    /// The HTTP method.
    pub method: Method,
    /// The path, percent-encoded.
    pub path: String,
    /// The path parameters of the route, decoded.
    pub parameters: Vec<(&'static str, String)>,
    /// The query string.
    pub query: FormFields,
    /// The fields of the submitted form. Empty if the body is not a form.
    pub form: FormFields,
    /// The headers.
    pub headers: HeaderMap,
    /// The addresses of the connection.
    pub ends: ConnectionEnds,
    /// The session. `None` only for routes without login.
    pub session: Option<Arc<Session>>,
    /// The state that all requests share.
    pub site: Arc<Site>,
    /// Interrupts the commands of the request when the browser disconnects.
    pub interrupt: Arc<RequestInterrupt>,
    /// The permit that counts the request against the limit of its session.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// The header by which scripts request a part of a page, without its frame.
pub const PART: HeaderName = HeaderName::from_static("x-part");

impl Request {
    /// Creates a request.
    pub fn new(parts: RequestParts) -> Request {
        Request {
            parts: Arc::new(parts),
        }
    }

    /// Returns the path, percent-encoded.
    pub fn path(&self) -> &str {
        &self.parts.path
    }

    /// Returns a path parameter by its name in the route.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self
            .parts
            .parameters
            .iter()
            .find(|(known, _)| *known == name);
        debug_assert!(found.is_some(), "the route has no {{{name}}}");
        found.map_or("", |(_, value)| value)
    }

    /// Returns all path parameters.
    pub fn parameters(&self) -> &[(&'static str, String)] {
        &self.parts.parameters
    }

    /// Returns the query string.
    pub fn query(&self) -> &FormFields {
        &self.parts.query
    }

    /// Returns the fields of the submitted form.
    pub fn form(&self) -> &FormFields {
        &self.parts.form
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Returns the addresses of the connection.
    pub fn ends(&self) -> ConnectionEnds {
        self.parts.ends
    }

    /// Returns the state that all requests share.
    pub fn site(&self) -> &Arc<Site> {
        &self.parts.site
    }

    /// Returns the session. `None` only for routes without login.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.parts.session.as_ref()
    }

    /// Returns the user name. `None` without access control.
    pub fn user(&self) -> Option<&str> {
        let credentials = self.session()?.credentials.as_ref()?;
        Some(&credentials.user)
    }

    /// Returns the token that forms send in the field `token`.
    pub fn form_token(&self) -> &str {
        self.session().map_or("", |session| &session.form_token)
    }

    /// Returns `true` if a script requests a part of a page, without its frame.
    pub fn wants_part(&self) -> bool {
        self.headers().contains_key(PART)
    }

    /// Returns `true` if the client prefers JSON.
    pub fn wants_json(&self) -> bool {
        let accept = self.headers().get(ACCEPT).and_then(|it| it.to_str().ok());
        accept.is_some_and(|it| it.contains("application/json")) || self.path().starts_with("/api/")
    }

    /// Returns `true` if the page is not read-only.
    pub fn can_write(&self) -> bool {
        !self.site().is_read_only
    }

    /// Returns `true` if the browser is a process of the operating system user that runs the
    /// server. With access control, the database user must also be an administrator: a proxy may
    /// run as that operating system user and serve browsers of other people.
    pub fn is_owner(&self) -> bool {
        let services = &self.site().services;
        let is_direct = FORWARDED
            .iter()
            .all(|name| !self.headers().contains_key(*name));
        is_direct
            && (services.is_own_user)(self.ends())
            && (!(services.requires_login)() || self.is_administrator())
    }

    /// Returns `true` if the user has one of the roles in [`ADMINISTRATORS`].
    fn is_administrator(&self) -> bool {
        let status = doc! { "connectionStatus": 1, "$db": "admin" };
        let reply = self
            .database()
            .and_then(|mut database| database.run(status));
        let Ok(reply) = reply else {
            return false;
        };
        let info = reply.get("authInfo").and_then(ValueRef::as_document);
        let roles = info.and_then(|info| info.get("authenticatedUserRoles")?.as_array());
        roles.into_iter().flatten().any(|role| {
            let field = |name: &str| role.as_document()?.get(name)?.as_str();
            let name = field("role").unwrap_or_default();
            field("db") == Some("admin") && ADMINISTRATORS.contains(&name)
        })
    }

    /// Returns the services that only the operating system user of the server may use.
    ///
    /// # Errors
    /// Fails if the browser belongs to another user, or if the program has no folder services.
    pub fn owner_services(&self) -> Result<&FolderServices, PageError> {
        let Some(services) = &self.site().services.folders else {
            return Err(PageError::not_found(texts::error::WITHOUT_FOLDERS));
        };
        if self.is_owner() {
            Ok(services)
        } else {
            Err(PageError::forbidden(texts::error::NOT_OWNER))
        }
    }

    /// Returns the interrupt that is triggered when the browser disconnects.
    pub fn interrupt(&self) -> &Arc<RequestInterrupt> {
        &self.parts.interrupt
    }

    /// Returns a connection to the database with the privileges of the user. It is closed when the
    /// browser disconnects, which interrupts its command.
    ///
    /// # Errors
    /// Fails if the server refuses the connection.
    pub fn database(&self) -> Result<Database, PageError> {
        self.connect(self.interrupt().clone())
    }

    /// Returns a connection as [`database`](Self::database) does, whose command continues after the
    /// browser disconnects.
    ///
    /// # Errors
    /// Fails if the server refuses the connection.
    pub fn lasting_database(&self) -> Result<Database, PageError> {
        self.connect(Arc::default())
    }

    fn connect(&self, interrupt: Arc<RequestInterrupt>) -> Result<Database, PageError> {
        let Some(session) = self.session() else {
            return Err(PageError::forbidden("nobody has logged in"));
        };
        let ends = self.parts.ends;
        let connection = match session.connections.take(ends.browser.ip()) {
            Some(connection) => connection,
            None => {
                let services = &self.site().services;
                Connection::open(services, session.credentials.as_ref(), ends)?
            }
        };
        Ok(Database::new(
            connection,
            session.clone(),
            interrupt,
            self.site().is_read_only,
        ))
    }
}
