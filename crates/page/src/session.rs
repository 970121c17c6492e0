//! Sessions of users.
//!
//! Without access control, all browsers share one session without a user. With access control, a
//! login creates a session, which the browser names by a cookie.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::connection::IdleConnections;
use crate::secret::new_token;
use crate::services::Credentials;

/// A session ends after this time without a request.
const UNUSED_TIME_MAX: Duration = Duration::from_secs(3600);
/// A session ends after this time in any case.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of sessions. A new one replaces the least recently used one.
const SESSIONS_MAX: usize = 1_000;
/// The maximum number of concurrent requests of a session.
const REQUESTS_MAX: usize = 8;
/// The maximum number of concurrent requests without access control.
const REQUESTS_MAX_SHARED: usize = 24;

/// A session: a user, its form token and its connections to the server.
pub struct Session {
    /// The credentials. `None` without access control.
    pub credentials: Option<Credentials>,
    /// The token that forms must send (protection against cross-site request forgery).
    pub form_token: String,
    /// The idle connections.
    pub connections: IdleConnections,
    /// Limits the number of concurrent requests.
    pub requests: Arc<Semaphore>,
    began: Instant,
    used: Mutex<Instant>,
    /// The user has logged out.
    is_ended: AtomicBool,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "session of {:?}", self.credentials)
    }
}

impl Session {
    /// Creates a session.
    ///
    /// # Errors
    /// Fails if the operating system has no random numbers.
    pub fn new(credentials: Option<Credentials>) -> io::Result<Session> {
        let requests = match credentials {
            Some(_) => REQUESTS_MAX,
            None => REQUESTS_MAX_SHARED,
        };
        Ok(Session {
            credentials,
            form_token: new_token()?,
            connections: IdleConnections::default(),
            requests: Arc::new(Semaphore::new(requests)),
            began: Instant::now(),
            used: Mutex::new(Instant::now()),
            is_ended: AtomicBool::new(false),
        })
    }

    /// Returns `true` if the user has logged out or the session has expired.
    pub fn is_over(&self) -> bool {
        let is_unused = self.credentials.is_some() && self.last_use().elapsed() > UNUSED_TIME_MAX;
        is_unused
            || self.is_ended()
            || self.began.elapsed() > TIME_MAX && self.credentials.is_some()
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    fn last_use(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions of users, by the tokens in their cookies.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    /// Adds a session, and returns the token for its cookie.
    ///
    /// # Errors
    /// Fails if the operating system has no random numbers.
    pub fn begin(&self, session: Arc<Session>) -> io::Result<String> {
        let token = new_token()?;
        let mut all = self.lock();
        if all.len() >= SESSIONS_MAX {
            let oldest = all.iter().min_by_key(|(_, session)| session.last_use());
            if let Some(oldest) = oldest.map(|(token, _)| token.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(token.clone(), session);
        Ok(token)
    }

    /// Returns the session of a token and marks it as used. The hash table does not compare in
    /// constant time, but a random token is too long to be guessed by timing.
    pub fn find(&self, token: &str) -> Option<Arc<Session>> {
        let found = self.lock().get(token).filter(|it| !it.is_over()).cloned()?;
        let mut used = found.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = Instant::now();
        drop(used);
        Some(found)
    }

    /// Ends a session.
    pub fn end(&self, token: &str) {
        if let Some(session) = self.lock().remove(token) {
            session.is_ended.store(true, Ordering::Relaxed);
        }
    }

    /// Removes expired sessions, and closes unused connections.
    pub fn clean(&self) {
        let mut all = self.lock();
        all.retain(|_, session| !session.is_over());
        for session in all.values() {
            session.connections.close_unused();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_by_their_tokens() {
        let sessions = Sessions::default();
        let session = Arc::new(Session::new(None).unwrap());
        let token = sessions.begin(session.clone()).unwrap();
        assert!(Arc::ptr_eq(&sessions.find(&token).unwrap(), &session));
        assert!(sessions.find("").is_none() && sessions.find(&session.form_token).is_none());
        sessions.clean();
        assert!(!session.is_over());
        sessions.end(&token);
        assert!(sessions.find(&token).is_none() && session.is_over());
    }

    #[test]
    fn there_are_not_too_many_sessions() {
        let sessions = Sessions::default();
        let begin = || {
            sessions
                .begin(Arc::new(Session::new(None).unwrap()))
                .unwrap()
        };
        let first = begin();
        for _ in 0..SESSIONS_MAX {
            begin();
        }
        assert!(sessions.find(&first).is_none());
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
    }
}
