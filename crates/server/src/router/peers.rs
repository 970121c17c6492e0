//! Connections to the other servers of a cluster.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use windrow_access::Mechanism;
use windrow_client::{Client, ClientError, Stream};

use crate::access::local_user::PEER_USER;
use crate::sync::lock;

/// Encrypts a stream to a server with this host name. Fails with the reason.
pub type EncryptStream =
    Arc<dyn Fn(Box<dyn Stream>, &str) -> Result<Box<dyn Stream>, String> + Send + Sync>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time without progress while a command is sent to a server.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval at which a wait for a reply checks if it must end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The most unused connections to a server that stay open.
const IDLE_MAX: usize = 64;

/// Fails with the reason why a wait for a reply must end.
pub type CheckWait = Box<dyn Fn() -> Result<(), String> + Send>;

/// The connections to other servers.
pub struct Peers {
    key: Option<String>,
    encrypt: Option<EncryptStream>,
    idle: Mutex<HashMap<String, Vec<Peer>>>,
}

/// A connection to another server, which is logged in.
pub struct Peer {
    address: String,
    pub client: Client,
    socket: TcpStream,
    wait: Arc<Mutex<Option<CheckWait>>>,
}

impl Peers {
    /// Creates the connections to the other servers. `key` is the key of the cluster, and `encrypt`
    /// begins TLS. Without `key`, connections do not log in. Without `encrypt`, they are not
    /// encrypted.
    pub fn new(key: Option<String>, encrypt: Option<EncryptStream>) -> Peers {
        Peers {
            key,
            encrypt,
            idle: Mutex::default(),
        }
    }

    /// Returns an unused connection, or opens one. `check` ends waits for its replies.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses the key.
    pub fn take(&self, address: &str, check: CheckWait) -> Result<Peer, ClientError> {
        while let Some(peer) = self.take_idle(address) {
            if is_open(&peer.socket) {
                *lock(&peer.wait) = Some(check);
                return Ok(peer);
            }
        }
        self.connect(address, check)
    }

    fn take_idle(&self, address: &str) -> Option<Peer> {
        lock(&self.idle).get_mut(address)?.pop()
    }

    /// Keeps a connection for another command. The last one has been answered.
    pub fn give(&self, peer: Peer) {
        *lock(&peer.wait) = None;
        let mut idle = lock(&self.idle);
        let idle = idle.entry(peer.address.clone()).or_default();
        if idle.len() < IDLE_MAX {
            idle.push(peer);
        }
    }

    fn connect(&self, address: &str, check: CheckWait) -> Result<Peer, ClientError> {
        let fail = |reason: &dyn std::fmt::Display| ClientError::connection(address, reason);
        let socket = connect_to(address).map_err(|error| fail(&error))?;
        let wait = Arc::new(Mutex::new(Some(check)));
        let stream = InterruptibleStream {
            socket: socket.try_clone().map_err(|error| fail(&error))?,
            wait: wait.clone(),
        };
        let stream: Box<dyn Stream> = Box::new(stream);
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let stream = match &self.encrypt {
            Some(encrypt) => encrypt(stream, host).map_err(|reason| fail(&reason))?,
            None => stream,
        };
        let mut client = Client::new(address.to_owned(), stream);
        if let Some(key) = &self.key {
            let (user, database) = PEER_USER;
            client.log_in(user, database, Some(Mechanism::ScramSha256), key)?;
        }
        Ok(Peer {
            address: address.to_owned(),
            client,
            socket,
            wait,
        })
    }
}

fn connect_to(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, CONNECT_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(CHECK_INTERVAL))?;
                socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
                SockRef::from(&socket).set_tcp_keepalive(&keep_alive_options())?;
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns the options of TCP that notice after ten seconds that a machine has disappeared.
fn keep_alive_options() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(5))
        .with_interval(Duration::from_secs(1))
        .with_retries(5)
}

/// Returns `false` if the server has closed an unused connection. It sends nothing on its own but
/// the end of the encryption.
fn is_open(socket: &TcpStream) -> bool {
    if socket.set_nonblocking(true).is_err() {
        return false;
    }
    let peeked = socket.peek(&mut [0]);
    let is_silent = matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
    is_silent && socket.set_nonblocking(false).is_ok()
}

/// A socket whose reads can be interrupted.
struct InterruptibleStream {
    socket: TcpStream,
    wait: Arc<Mutex<Option<CheckWait>>>,
}

impl Read for InterruptibleStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.socket.read(buffer) {
                Err(error) if is_timeout(&error) => {
                    let check = lock(&self.wait);
                    if let Some(Err(reason)) = check.as_ref().map(|check| check()) {
                        return Err(io::Error::other(reason));
                    }
                }
                read => return read,
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Write for InterruptibleStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
