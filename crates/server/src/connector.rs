//! Connections within the process of the server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::admission::{EndAddresses, accept};
use crate::network_address::NetworkAddress;
use crate::socket::Socket;
use crate::state::State;
use crate::tls::TlsMode;

/// Opens connections to a server within its process. They are served as those of other clients:
/// they log in, they are counted, and their commands are checked, limited and recorded.
#[derive(Clone)]
pub struct Connector {
    state: Arc<State>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connector")
    }
}

impl Connector {
    pub(crate) fn new(state: Arc<State>) -> Connector {
        Connector { state }
    }

    /// Opens a connection on behalf of a client at `client`, which is connected to the address
    /// `server` of this machine. Restrictions of users and the audit log have these addresses.
    ///
    /// # Errors
    /// Fails if the server stops, or if the system has no sockets or threads left.
    pub fn connect(&self, client: SocketAddr, server: SocketAddr) -> io::Result<UnixStream> {
        if self.state.stop.is_requested() {
            let message = "the server is shutting down";
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, message));
        }
        let (stream, served) = UnixStream::pair()?;
        let ends = EndAddresses {
            client: NetworkAddress::Ip(client),
            server: NetworkAddress::Ip(server),
        };
        accept(&self.state, Socket::Unix(served), ends)?;
        Ok(stream)
    }

    /// Returns `true` if clients have to log in.
    pub fn requires_login(&self) -> bool {
        self.state.requires_login()
    }

    /// Returns which clients have to use TLS, and what a handshake uses now: the files of
    /// certificates can be read again. `None` without TLS.
    pub fn tls(&self) -> Option<(TlsMode, Arc<ServerConfig>)> {
        let tls = self.state.tls.as_ref()?;
        Some((tls.mode(), tls.loaded().config))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use windrow_document::{DocumentBuf, doc};

    use crate::{Config, Log, Server, Services};

    use super::*;

    /// Sends a message, and returns the reply.
    fn ask(stream: &mut UnixStream, body: DocumentBuf) -> DocumentBuf {
        let length = 21 + body.as_bytes().len() as i32;
        let mut message = Vec::new();
        for word in [length, 1, 0, 2013, 0] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.push(0);
        message.extend_from_slice(body.as_bytes());
        stream.write_all(&message).unwrap();
        let mut header = [0; 21];
        stream.read_exact(&mut header).unwrap();
        let length = i32::from_le_bytes(header[..4].try_into().unwrap()) as usize;
        let mut reply = vec![0; length - header.len()];
        stream.read_exact(&mut reply).unwrap();
        DocumentBuf::from_bytes(reply).unwrap()
    }

    #[test]
    fn commands_are_served_within_the_process() {
        let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
        let config = Config {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            ..Config::default()
        };
        let server = Server::bind(config, services).unwrap();
        let (connector, stop) = (server.connector(), server.stop());
        let served = std::thread::spawn(move || server.run());
        let client: SocketAddr = "192.0.2.7:5".parse().unwrap();
        let own: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let mut stream = connector.connect(client, own).unwrap();
        let current = doc! { "currentOp": 1, "$ownOps": true, "$db": "admin" };
        let reply = ask(&mut stream, current).to_string();
        assert!(reply.contains("192.0.2.7:5"), "{reply}");
        assert!(!connector.requires_login());
        stop.request();
        served.join().unwrap().unwrap();
        assert!(connector.connect(client, own).is_err());
    }
}
