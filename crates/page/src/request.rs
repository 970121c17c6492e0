//! Requests as handlers see them.

use std::sync::Arc;

use hyper::Method;
use hyper::header::{ACCEPT, HeaderMap, HeaderName};
use tokio::sync::OwnedSemaphorePermit;
use windrow_document::{ValueRef, doc};

use crate::cancellation::Cancellation;
use crate::connection::Connection;
use crate::database::Database;
use crate::error::PageError;
use crate::folder_services::FolderServices;
use crate::form::Form;
use crate::services::ConnectionEnds;
use crate::session::Session;
use crate::site::Site;
use crate::texts;

/// Headers of proxies. A request with one of them comes from elsewhere.
const FORWARDED: [&str; 7] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];

/// Roles of users who may do with the server what the user of the machine may do.
const ADMINISTRATORS: [&str; 3] = ["root", "hostManager", "clusterAdmin"];

/// A request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Request {
    parts: Arc<RequestParts>,
}

/// What a request consists of.
#[derive(Debug)]
pub struct RequestParts {
    /// The method: GET or POST.
    pub method: Method,
    /// The path, as it was sent.
    pub path: String,
    /// The parts of the path that the route names, decoded.
    pub parameters: Vec<(&'static str, String)>,
    /// The query of the address.
    pub query: Form,
    /// The fields of a form that was sent. Empty if something else was sent.
    pub form: Form,
    /// The headers.
    pub headers: HeaderMap,
    /// The addresses of the connection.
    pub ends: ConnectionEnds,
    /// The session of the browser. `None` only on pages that are open to everybody.
    pub session: Option<Arc<Session>>,
    /// What all requests share.
    pub site: Arc<Site>,
    /// Ends the request when the browser goes.
    pub cancellation: Arc<Cancellation>,
    /// The room of the request in its session.
    pub permit: Option<OwnedSemaphorePermit>,
}

/// The header by which scripts of the page ask for a part of a page.
pub const PART: HeaderName = HeaderName::from_static("x-part");

impl Request {
    /// Creates a request.
    pub fn new(parts: RequestParts) -> Request {
        Request {
            parts: Arc::new(parts),
        }
    }

    /// Returns the path, as it was sent.
    pub fn path(&self) -> &str {
        &self.parts.path
    }

    /// Returns the part of the path that the route names so.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self
            .parts
            .parameters
            .iter()
            .find(|(known, _)| *known == name);
        debug_assert!(found.is_some(), "the route has no {{{name}}}");
        found.map_or("", |(_, value)| value)
    }

    /// Returns the parts of the path that the route names.
    pub fn parameters(&self) -> &[(&'static str, String)] {
        &self.parts.parameters
    }

    /// Returns the query of the address.
    pub fn query(&self) -> &Form {
        &self.parts.query
    }

    /// Returns the fields of the form that was sent.
    pub fn form(&self) -> &Form {
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

    /// Returns what all requests share.
    pub fn site(&self) -> &Arc<Site> {
        &self.parts.site
    }

    /// Returns the session of the browser. `None` only on pages that are open to everybody.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.parts.session.as_ref()
    }

    /// Returns the name of the user. `None` without access control.
    pub fn user(&self) -> Option<&str> {
        let credentials = self.session()?.credentials.as_ref()?;
        Some(&credentials.user)
    }

    /// Returns the token that forms send in the field `token`.
    pub fn form_token(&self) -> &str {
        self.session().map_or("", |session| &session.form_token)
    }

    /// Returns `true` if a script asks for a part of a page, without its frame.
    pub fn wants_part(&self) -> bool {
        self.headers().contains_key(PART)
    }

    /// Returns `true` if a program asks for JSON.
    pub fn wants_json(&self) -> bool {
        let accept = self.headers().get(ACCEPT).and_then(|it| it.to_str().ok());
        accept.is_some_and(|it| it.contains("application/json")) || self.path().starts_with("/api/")
    }

    /// Returns `true` if the page can change something.
    pub fn can_write(&self) -> bool {
        !self.site().is_read_only
    }

    /// Returns `true` if the browser belongs to the user of the machine under which the server runs. If
    /// clients must log in, the user of the database must also be an administrator of the server: a
    /// proxy can run under the user of the server, and its browsers belong to other people.
    pub fn is_owner(&self) -> bool {
        let services = &self.site().services;
        let is_direct = FORWARDED
            .iter()
            .all(|name| !self.headers().contains_key(*name));
        is_direct
            && (services.is_own_user)(self.ends())
            && (!(services.requires_login)() || self.is_administrator())
    }

    /// Returns `true` if the user of the session has one of [`ADMINISTRATORS`].
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

    /// Returns what only the user of the machine may use.
    ///
    /// # Errors
    /// Fails if the browser belongs to another user, or if folders are not known.
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

    /// Returns what ends the request when the browser goes.
    pub fn cancellation(&self) -> &Arc<Cancellation> {
        &self.parts.cancellation
    }

    /// Returns a connection to the database with the privileges of the user. It is closed when the
    /// browser goes, which ends its command.
    ///
    /// # Errors
    /// Fails if the server takes no connection.
    pub fn database(&self) -> Result<Database, PageError> {
        self.connect(self.cancellation().clone())
    }

    /// Returns a connection as [`database`](Self::database) does, whose command goes on when the
    /// browser goes.
    ///
    /// # Errors
    /// Fails if the server takes no connection.
    pub fn lasting_database(&self) -> Result<Database, PageError> {
        self.connect(Arc::default())
    }

    fn connect(&self, cancellation: Arc<Cancellation>) -> Result<Database, PageError> {
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
            cancellation,
            self.site().is_read_only,
        ))
    }
}
