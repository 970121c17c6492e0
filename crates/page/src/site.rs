//! The state that all requests share.

use std::fmt;
use std::io;
use std::sync::Arc;

use hyper::header::HeaderMap;
use tokio::sync::Semaphore;

use crate::history::History;
use crate::host::Hosts;
use crate::imports::Imports;
use crate::login_delay::LoginDelay;
use crate::services::{ConnectionEnds, PageServices};
use crate::session::{Session, Sessions};

/// The state that all requests share.
pub struct Site {
    /// The services of the program.
    pub services: PageServices,
    /// The accepted hosts.
    pub hosts: Hosts,
    /// Refuses all requests that write.
    pub is_read_only: bool,
    /// The entries of the navigation.
    pub navigation: Vec<NavigationEntry>,
    /// The history of the server.
    pub history: History,
    /// The running imports.
    pub imports: Imports,
    /// The sessions of users.
    pub sessions: Sessions,
    /// The session of all browsers without access control.
    pub shared_session: Arc<Session>,
    /// The delays after failed logins.
    pub login_delay: LoginDelay,
    /// The limits of concurrent logins.
    pub logins: Logins,
}

/// The limits of concurrent logins. Their sum is less than the number of threads that run handlers.
#[derive(Debug)]
pub struct Logins {
    /// Counts the logins that wait or run.
    pub waiting: Semaphore,
    /// Counts the logins that run.
    pub running: Semaphore,
}

impl Default for Logins {
    fn default() -> Logins {
        Logins {
            waiting: Semaphore::new(12),
            running: Semaphore::new(4),
        }
    }
}

/// An entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NavigationEntry {
    /// The name.
    pub name: &'static str,
    /// The address of its first page.
    pub path: &'static str,
}

impl fmt::Debug for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Site")
    }
}

/// The name of the session cookie.
const COOKIE: &str = "windrow_session";

impl Site {
    /// Creates a site.
    ///
    /// # Errors
    /// Fails if the operating system has no random numbers.
    pub fn new(
        services: PageServices,
        hosts: Hosts,
        is_read_only: bool,
        navigation: Vec<NavigationEntry>,
    ) -> io::Result<Site> {
        Ok(Site {
            services,
            hosts,
            is_read_only,
            navigation,
            history: History::default(),
            imports: Imports::default(),
            sessions: Sessions::default(),
            shared_session: Arc::new(Session::new(None)?),
            login_delay: LoginDelay::default(),
            logins: Logins::default(),
        })
    }

    /// Returns the session of a request. `None` if the user must log in.
    pub fn session(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        if !(self.services.requires_login)() {
            return Some(self.shared_session.clone());
        }
        self.sessions.find(session_token(headers)?)
    }

    /// Closes unused connections, and removes expired sessions.
    pub fn clean(&self) {
        self.sessions.clean();
        self.imports.clean();
        self.shared_session.connections.close_unused();
    }
}

/// Returns the token in the session cookie.
pub fn session_token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(hyper::header::COOKIE).iter();
    let pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE).then_some(value))
}

/// Returns the session cookie. It is sent only with requests from this site, and scripts cannot
/// read it. The cookie of an encrypted connection is never sent over an unencrypted one.
pub fn session_cookie(token: &str, ends: ConnectionEnds) -> String {
    let secure = if ends.is_encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// Returns the cookie that deletes the session cookie.
pub fn ended_session_cookie(ends: ConnectionEnds) -> String {
    format!("{}; Max-Age=0", session_cookie("", ends))
}
