//! What all requests share.

use std::fmt;
use std::io;
use std::sync::Arc;

use hyper::header::HeaderMap;
use tokio::sync::Semaphore;

use crate::history::History;
use crate::host::Hosts;
use crate::imports::Imports;
use crate::login_delay::LoginDelay;
use crate::services::PageServices;
use crate::session::{Session, Sessions};

/// What all requests share.
pub struct Site {
    /// The program around the page.
    pub services: PageServices,
    /// The accepted names of this machine.
    pub hosts: Hosts,
    /// Nothing can be changed by the page.
    pub is_read_only: bool,
    /// The entries of the navigation.
    pub navigation: Vec<NavigationEntry>,
    /// What the server did in the last hours.
    pub history: History,
    /// Imports that go on.
    pub imports: Imports,
    /// The sessions of users.
    pub sessions: Sessions,
    /// The session of all browsers while there is no access control.
    pub shared_session: Arc<Session>,
    /// Who has to wait for the next login.
    pub login_delay: LoginDelay,
    /// The logins that go on.
    pub logins: Logins,
}

/// Limits of logins that go on at a time: together less than the threads that answer requests.
#[derive(Debug)]
pub struct Logins {
    /// Those whose password is checked, and those that wait.
    pub waiting: Semaphore,
    /// Those whose password is checked.
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
    /// Its name.
    pub name: &'static str,
    /// The address of its first page.
    pub path: &'static str,
}

impl fmt::Debug for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Site")
    }
}

/// The name of the cookie of a session.
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

    /// Returns the session of a request. `None` if its person has to log in.
    pub fn session(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        if !(self.services.requires_login)() {
            return Some(self.shared_session.clone());
        }
        self.sessions.find(session_token(headers)?)
    }

    /// Closes connections that are not used, and ends sessions that are over.
    pub fn clean(&self) {
        self.sessions.clean();
        self.imports.clean();
        self.shared_session.connections.close_unused();
    }
}

/// Returns the token of the session's cookie.
pub fn session_token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(hyper::header::COOKIE).iter();
    let pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE).then_some(value))
}

/// Returns the cookie of a session. Only requests of the page itself have it, and scripts do not see
/// it. That of an encrypted connection is never sent over another one.
pub fn session_cookie(token: &str, is_encrypted: bool) -> String {
    let secure = if is_encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// Returns the cookie that removes that of a session.
pub fn ended_session_cookie(is_encrypted: bool) -> String {
    format!("{}; Max-Age=0", session_cookie("", is_encrypted))
}
