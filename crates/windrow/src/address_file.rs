//! The file `server.json` in a data folder. It contains the addresses and the process id of the
//! server that has the folder open. Other commands use it to find the server. It is only a hint:
//! the lock of the folder is authoritative. A killed server leaves its file behind, and the next
//! server replaces it.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use windrow_document::doc;

use crate::secret_file;

const FILE_NAME: &str = "server.json";

/// The addresses of a server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// An address of the server.
    pub address: SocketAddr,
    /// Its Unix domain socket, if it has one. Connections to it need no TLS.
    pub unix_socket: Option<PathBuf>,
    /// Connections to the address need TLS.
    pub requires_tls: bool,
    /// The password of the internal user for Windrow's own commands. `None` without access control.
    pub password: Option<Password>,
}

/// A password. `Debug` omits it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}

impl ServerAddress {
    /// Creates the address of a server without a Unix domain socket and TLS.
    pub fn plain(address: SocketAddr) -> ServerAddress {
        ServerAddress {
            address,
            unix_socket: None,
            requires_tls: false,
            password: None,
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unix_socket {
            Some(path) => path.display().fmt(formatter),
            None => self.address.fmt(formatter),
        }
    }
}

/// The address file of a running server. Dropping it removes the file.
pub struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    /// Writes the file of a server of this process.
    pub fn write(folder: &Path, server: &ServerAddress) -> io::Result<AddressFile> {
        let path = folder.join(FILE_NAME);
        let mut content = doc! {
            "address": (to_connectable(server.address).to_string()),
            "pid": (i64::from(std::process::id())),
        };
        if let Some(socket) = server.unix_socket.as_ref().and_then(|path| path.to_str()) {
            content.push("unixSocket", socket);
        }
        if server.requires_tls {
            content.push("requiresTLS", true);
        }
        if let Some(Password(password)) = &server.password {
            content.push("password", password.as_str());
        }
        write_private(&path, &format!("{content}\n"))?;
        Ok(AddressFile { path })
    }
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, content: &str) -> io::Result<()> {
    // The file of a killed server may have other permissions.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    secret_file::create(path, content, secret_file::PRIVATE).map(drop)
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A remaining file is ignored, because no process with its id holds the lock of the folder.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the address of the server that has the folder open. A killed server leaves its file
/// behind, so the file is used only if it contains the id of `owner`, the process that holds the
/// lock. If the system does not report the owner, the file is used.
pub fn read_address(folder: &Path, owner: Option<u32>) -> Option<ServerAddress> {
    let content = fs::read_to_string(folder.join(FILE_NAME)).ok()?;
    parse_address(&content, owner)
}

/// The content of an address file.
#[derive(Deserialize)]
struct Content {
    address: SocketAddr,
    pid: u32,
    #[serde(rename = "unixSocket")]
    unix_socket: Option<PathBuf>,
    #[serde(rename = "requiresTLS", default)]
    requires_tls: bool,
    password: Option<Password>,
}

/// Returns the address in an address file, if it contains the id of `owner`.
fn parse_address(content: &str, owner: Option<u32>) -> Option<ServerAddress> {
    let content: Content = serde_json::from_str(content).ok()?;
    if owner.is_some_and(|owner| owner != content.pid) {
        return None;
    }
    Some(ServerAddress {
        address: content.address,
        unix_socket: content.unix_socket,
        requires_tls: content.requires_tls,
        password: content.password,
    })
}

/// Returns an address that a client can connect to. The unspecified address of a listener is
/// replaced by the loopback address.
fn to_connectable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(address: &str) -> ServerAddress {
        ServerAddress::plain(address.parse().unwrap())
    }

    #[test]
    fn dropping_an_address_file_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let address_file = AddressFile::write(folder.path(), &plain("0.0.0.0:27017")).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        let pid = std::process::id();
        let expected = format!(
            "{}\n",
            doc! { "address": "127.0.0.1:27017", "pid": (i64::from(pid)) }
        );
        assert_eq!(text, expected);
        drop(address_file);
        assert!(!folder.path().join(FILE_NAME).exists());
    }

    #[test]
    fn an_address_file_has_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let server = ServerAddress {
            unix_socket: Some("/tmp/a \"b\".sock".into()),
            requires_tls: true,
            password: Some(Password("secret".into())),
            ..plain("127.0.0.1:27017")
        };
        let _address_file = AddressFile::write(folder.path(), &server).unwrap();
        let read = read_address(folder.path(), Some(std::process::id()));
        assert_eq!(read, Some(server));
    }

    #[test]
    fn an_address_file_belongs_to_its_server() {
        let check = |content: &str, owner: Option<u32>, expected: Option<&str>| {
            assert_eq!(
                parse_address(content, owner),
                expected.map(plain),
                "{content}"
            );
        };
        let content = "{\"address\":\"127.0.0.1:27018\",\"pid\":7}\n";
        check(content, Some(7), Some("127.0.0.1:27018"));
        check(content, None, Some("127.0.0.1:27018"));
        check(content, Some(8), None);
        let spaced = "{ \"pid\": 7, \"address\": \"[::1]:5\" }";
        check(spaced, Some(7), Some("[::1]:5"));
        check("{\"address\":5,\"pid\":7}", Some(7), None);
        check("{\"address\":\"127.0.0.1:1\"}", None, None);
        check("", None, None);
    }
}
