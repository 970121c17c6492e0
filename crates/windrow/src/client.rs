//! Connects to servers: to the server of a data folder, or to one that is named by the user.

mod tls;

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use windrow_client::Stream;
use windrow_document::doc;
use windrow_server::LOCAL_USER;

use windrow_access::Mechanism;

use crate::address_file::{Password, ServerAddress};
use crate::server_target::{Endpoint, Login, ResolvedTarget, ServerTarget};

pub use tls::encrypt;
pub use windrow_client::{Client, ClientError, DocumentSequence};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum time of a reply from a remote server.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Connects to a server: by its Unix domain socket if it has one, otherwise by its address.
pub fn connect(address: &ServerAddress) -> Result<Client, ClientError> {
    let name = address.to_string();
    let stream = connect_stream(address);
    let stream = stream.map_err(|error| ClientError::connection(&name, &error))?;
    let mut client = Client::new(name, stream);
    if let Some(Password(password)) = &address.password {
        // The internal user for Windrow's own commands.
        let (user, database) = LOCAL_USER;
        client.log_in(user, database, Some(Mechanism::ScramSha256), password)?;
    }
    Ok(client)
}

/// Connects to a server that is named by the user, and authenticates.
pub fn open(target: &ServerTarget) -> Result<Client, ClientError> {
    let name = target.endpoint.to_string();
    let stream = open_stream(target);
    let stream = stream.map_err(|reason| ClientError::connection(&name, &reason))?;
    let mut client = Client::new(name, stream);
    match &target.login {
        None => {}
        Some(Login::Certificate) => {
            let login = doc! {
                "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external",
            };
            client.run(login.as_document(), None)?;
        }
        Some(Login::Password {
            user,
            database,
            mechanism,
            password: Password(password),
        }) => client.log_in(user, database, *mechanism, password)?,
    }
    Ok(client)
}

impl ResolvedTarget {
    /// Connects to the server, and authenticates.
    pub fn connect(&self) -> Result<Client, ClientError> {
        match self {
            ResolvedTarget::Named(target) => open(target),
            ResolvedTarget::OfFolder(address) => connect(address),
        }
    }
}

fn connect_stream(address: &ServerAddress) -> io::Result<Box<dyn Stream>> {
    if let Some(path) = &address.unix_socket {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) if address.requires_tls => return Err(error),
            // The socket file may have been removed.
            Err(_) => {}
        }
    }
    if address.requires_tls {
        return Err(io::Error::other(
            "it requires TLS and has no Unix domain socket, which this command needs",
        ));
    }
    let stream = TcpStream::connect_timeout(&address.address, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// Opens a stream to a server that is named by the user. Fails with the reason.
fn open_stream(target: &ServerTarget) -> Result<Box<dyn Stream>, String> {
    let stream = match &target.endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(|error| error.to_string())?;
            return Ok(Box::new(stream));
        }
        Endpoint::Tcp { host, port } => connect_to(host, *port).map_err(|it| it.to_string())?,
    };
    match (&target.tls, &target.endpoint) {
        (Some(files), Endpoint::Tcp { host, .. }) => tls::encrypt(stream, host, files),
        _ => Ok(Box::new(stream)),
    }
}

/// Connects to the first address of a host that accepts the connection.
fn connect_to(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
