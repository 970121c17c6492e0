//! Connections to the server, and the pool of idle connections of a session.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow_client::{Client, ClientError};
use windrow_document::doc;

use crate::services::{ConnectionEnds, Credentials, PageServices};

/// The maximum number of idle connections of a session.
const IDLE_MAX: usize = 4;
/// Idle connections are closed after this time.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// How error messages name the server.
const SERVER: &str = "this address";

/// An authenticated connection to the server.
pub struct Connection {
    /// The authenticated client.
    pub client: Client,
    /// The socket, by which another thread can close the connection.
    pub socket: Arc<UnixStream>,
    /// The browser's address. The server checks it against the `clientSource` restrictions of the
    /// user, so requests from other addresses cannot use the connection.
    browser: IpAddr,
    used: Instant,
}

/// A socket that another thread can shut down.
struct SharedSocket(Arc<UnixStream>);

impl Read for SharedSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

impl Write for SharedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection {
    /// Connects on behalf of a browser, and authenticates.
    ///
    /// # Errors
    /// Fails if the server refuses the connection or the credentials.
    pub fn open(
        services: &PageServices,
        credentials: Option<&Credentials>,
        ends: ConnectionEnds,
    ) -> Result<Connection, ClientError> {
        let socket = (services.connect)(ends.browser, ends.page);
        let socket = socket.map_err(|error| ClientError::connection(SERVER, &error))?;
        let socket = Arc::new(socket);
        let stream = Box::new(SharedSocket(socket.clone()));
        let mut client = Client::new(SERVER.to_owned(), stream);
        let hello = doc! {
            "hello": 1, "$db": "admin",
            "client": {
                "application": { "name": "Windrow page" },
                "driver": { "name": "windrow-page", "version": (services.version) },
                "os": { "type": (std::env::consts::OS) },
            },
        };
        client.run(hello.as_document(), None)?;
        if let Some(it) = credentials {
            client.log_in(&it.user, &it.database, None, &it.password)?;
        }
        Ok(Connection {
            client,
            socket,
            browser: ends.browser.ip(),
            used: Instant::now(),
        })
    }
}

/// The idle connections of a session.
#[derive(Default)]
pub struct IdleConnections {
    idle: Mutex<Vec<Connection>>,
}

impl IdleConnections {
    /// Returns the most recently used idle connection for a browser at this address.
    pub fn take(&self, browser: IpAddr) -> Option<Connection> {
        let mut idle = self.lock();
        let found = idle.iter().rposition(|it| it.browser == browser)?;
        Some(idle.remove(found))
    }

    /// Returns a connection to the pool.
    pub fn put(&self, mut connection: Connection) {
        connection.used = Instant::now();
        let mut idle = self.lock();
        idle.push(connection);
        if idle.len() > IDLE_MAX {
            idle.remove(0);
        }
    }

    /// Closes the connections that were idle for too long.
    pub fn close_unused(&self) {
        self.lock().retain(|it| it.used.elapsed() < IDLE_TIME_MAX);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
