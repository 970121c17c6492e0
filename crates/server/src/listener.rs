//! Sockets on which the server listens.

use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use socket2::{SockRef, TcpKeepalive};

use crate::network_address::NetworkAddress;
use crate::socket::Socket;

/// A listening socket. Dropping it removes the file of a Unix domain socket.
pub(crate) enum Listener {
    Tcp {
        listener: TcpListener,
        bound: SocketAddr,
    },
    Unix {
        listener: UnixListener,
        path: PathBuf,
        /// The file at the path.
        file: FileIdentity,
    },
}

/// The identity of a file. The number of a socket's file is not given to another file before
/// the socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    fn read(path: &Path) -> io::Result<FileIdentity> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(FileIdentity {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

impl Listener {
    /// Listens on an address. Port 0 selects a free port. The error contains the address.
    pub fn bind(address: SocketAddr) -> io::Result<Listener> {
        let listener = TcpListener::bind(address).map_err(|error| explain(&address, &error))?;
        let bound = listener.local_addr()?;
        Ok(Listener::Tcp { listener, bound })
    }

    /// Listens on a Unix domain socket with these permissions. The file of a server that is not
    /// there any more is replaced.
    ///
    /// The permissions are set before the socket listens, so no other user can connect.
    pub fn bind_unix(path: &Path, permissions: u32) -> io::Result<Listener> {
        let bind = || {
            remove_stale(path)?;
            let family = AddressFamily::UNIX;
            let flags = SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
            rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            fs::set_permissions(path, Permissions::from_mode(permissions))?;
            let file = FileIdentity::read(path)?;
            rustix::net::listen(&socket, BACKLOG)?;
            Ok((UnixListener::from(socket), file))
        };
        let (listener, file) =
            bind().map_err(|error: io::Error| explain(&path.display(), &error))?;
        Ok(Listener::Unix {
            listener,
            path: path.to_owned(),
            file,
        })
    }

    /// Waits for a client. Returns its socket and its address.
    pub fn accept(&self) -> io::Result<(Socket, NetworkAddress)> {
        match self {
            Listener::Tcp { listener, .. } => {
                let (stream, address) = listener.accept()?;
                stream.set_nodelay(true)?;
                SockRef::from(&stream).set_tcp_keepalive(&keep_alive_options())?;
                Ok((Socket::Tcp(stream), NetworkAddress::Ip(address)))
            }
            Listener::Unix { listener, path, .. } => {
                let (stream, _) = listener.accept()?;
                Ok((Socket::Unix(stream), NetworkAddress::Unix(path.clone())))
            }
        }
    }

    /// Returns the address, with the assigned port.
    pub fn address(&self) -> NetworkAddress {
        match self {
            Listener::Tcp { bound, .. } => NetworkAddress::Ip(*bound),
            Listener::Unix { path, .. } => NetworkAddress::Unix(path.clone()),
        }
    }

    /// Wakes the thread that waits in [`accept`](Self::accept). The standard library cannot
    /// interrupt it.
    pub fn wake(&self) {
        match self {
            Listener::Tcp { bound, .. } => {
                // A listener that cannot be reached is not waiting any more.
                let address = connectable(*bound);
                drop(TcpStream::connect_timeout(&address, Duration::from_secs(1)));
            }
            // The file may be gone, so a connection is not possible.
            Listener::Unix { listener, .. } => {
                let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix { path, file, .. } = self {
            // The file may already be gone, which is not an error here. It may be that of another
            // server, which must stay.
            let _ = remove_same(path, *file);
        }
    }
}

fn explain(address: &dyn std::fmt::Display, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}

/// Removes the socket of a server that is not there any more. Fails if a server listens on it, or
/// if the file is no socket.
fn remove_stale(path: &Path) -> io::Result<()> {
    let stale = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the file exists and is not a socket",
            ));
        }
        Ok(_) => FileIdentity::read(path)?,
    };
    if is_listening(path)? {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    remove_same(path, stale)
}

/// Returns `true` if a server listens on a Unix domain socket. Does not wait for one that accepts
/// no connection.
fn is_listening(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        // AGAIN: the queue of clients that wait for the server is full.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a file if it is still this one.
fn remove_same(path: &Path, file: FileIdentity) -> io::Result<()> {
    if FileIdentity::read(path)? == file {
        fs::remove_file(path)
    } else {
        Ok(())
    }
}

/// Probes an idle client after two minutes, and closes the connection ten seconds later. Drivers
/// expect at least this time.
fn keep_alive_options() -> TcpKeepalive {
    let (silence, interval) = (Duration::from_secs(120), Duration::from_secs(1));
    TcpKeepalive::new()
        .with_time(silence)
        .with_interval(interval)
        .with_retries(10)
}

/// Returns an address of this machine at which a listener can be reached.
fn connectable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &Path) -> String {
        let bound = Listener::bind_unix(path, 0o700);
        bound.map(drop).unwrap_err().to_string()
    }

    #[test]
    fn sockets_of_dead_servers_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mongodb-1.sock");
        let first = Listener::bind_unix(&path, 0o700).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(error(&path).contains("in use"), "{}", error(&path));
        drop(first);
        assert!(!path.exists());
        // The file that a killed server leaves behind.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::bind_unix(&path, 0o700).unwrap());
        fs::write(&path, "text").unwrap();
        assert!(error(&path).contains("not a socket"), "{}", error(&path));
        assert_eq!(fs::read(&path).unwrap(), b"text");
        let long = folder.path().join("a".repeat(200));
        assert!(error(&long).contains("cannot listen"), "{}", error(&long));
    }

    /// A server that ended had removed the socket of the next one.
    #[test]
    fn sockets_of_other_servers_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mongodb-1.sock");
        let first = Listener::bind_unix(&path, 0o700).unwrap();
        fs::remove_file(&path).unwrap();
        let second = Listener::bind_unix(&path, 0o700).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    /// A server that accepts no connections, with a full queue, had kept the next one from starting
    /// for ever.
    #[test]
    fn a_server_that_hangs_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::NONBLOCK);
        let socket = || rustix::net::socket_with(family, SocketType::STREAM, flags, None).unwrap();
        let (hangs, address) = (socket(), SocketAddrUnix::new(&path).unwrap());
        rustix::net::bind(&hangs, &address).unwrap();
        rustix::net::listen(&hangs, 1).unwrap();
        let mut waiting = Vec::new();
        loop {
            let client = socket();
            let connected = rustix::net::connect(&client, &address);
            waiting.push(client);
            if connected.is_err() {
                break;
            }
        }
        assert!(error(&path).contains("in use"), "{}", error(&path));
    }

    #[test]
    fn a_waiting_listener_is_woken() {
        let folder = tempfile::tempdir().unwrap();
        let unix = Listener::bind_unix(&folder.path().join("s"), 0o700).unwrap();
        let tcp = Listener::bind(SocketAddr::from(([0, 0, 0, 0], 0))).unwrap();
        for listener in [unix, tcp] {
            std::thread::scope(|scope| {
                scope.spawn(|| drop(listener.accept()));
                std::thread::sleep(Duration::from_millis(20));
                listener.wake();
            });
        }
    }
}
