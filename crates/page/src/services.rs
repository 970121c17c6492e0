//! What the page needs of the program around it.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use zeroize::Zeroizing;

use crate::folder_services::FolderServices;

/// What the page needs of the program around it.
pub struct PageServices {
    /// Opens a connection to the server on behalf of a browser at the first address, which is
    /// connected to the second one.
    pub connect: ConnectFunction,
    /// Returns `true` if clients have to log in.
    pub requires_login: Box<dyn Fn() -> bool + Send + Sync>,
    /// The user of the program itself, which may do everything. `None` if it needs no login.
    pub own_login: Option<Credentials>,
    /// Opens a file that was indexed. Fails if its signature is not valid: a client that can write
    /// documents can write any path and stamp, but no signature.
    pub open_file: OpenFunction,
    /// The data folder, for what is beside the database: saved searches and synonyms.
    pub data_folder: PathBuf,
    /// Folders of files. `None` if the program does not know how they are indexed.
    pub folders: Option<FolderServices>,
    /// TLS. `None` if the page is not encrypted.
    pub tls: Option<PageTls>,
    /// Returns `true` if a connection comes from a process of the user who runs this program.
    pub is_own_user: Box<dyn Fn(ConnectionEnds) -> bool + Send + Sync>,
    /// The version of the program.
    pub version: &'static str,
}

/// TLS of the page.
pub struct PageTls {
    /// Browsers without TLS are sent to the encrypted page.
    pub is_required: bool,
    /// Returns what a handshake uses now.
    pub config: Box<dyn Fn() -> Option<Arc<ServerConfig>> + Send + Sync>,
}

/// A file as a document describes it.
#[derive(Debug, Clone, Copy)]
pub struct IndexedFile<'d> {
    /// The path.
    pub path: &'d str,
    /// Size in bytes, time of modification and of change in nanoseconds since 1970-01-01 UTC, inode.
    pub stamp: [i64; 4],
    /// The signature of path and stamp.
    pub signature: &'d [u8],
}

/// Opens a file.
pub type OpenFunction = Box<dyn Fn(&IndexedFile<'_>) -> io::Result<File> + Send + Sync>;

/// Opens a connection: client and server are the addresses that the server sees.
pub type ConnectFunction =
    Box<dyn Fn(SocketAddr, SocketAddr) -> io::Result<UnixStream> + Send + Sync>;

impl fmt::Debug for PageServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PageServices")
    }
}

/// The addresses of both ends of a browser's connection to the page.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnds {
    /// The browser's.
    pub browser: SocketAddr,
    /// The page's.
    pub page: SocketAddr,
    /// The connection uses TLS.
    pub is_encrypted: bool,
}

impl ConnectionEnds {
    /// Returns `true` if others on the network can read what is sent.
    pub fn is_readable(&self) -> bool {
        !self.is_encrypted && !self.browser.ip().to_canonical().is_loopback()
    }
}

/// A user with a password. The password is never shown.
#[derive(Clone)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The database of the user.
    pub database: String,
    /// The password, which is overwritten when it is dropped.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.database, self.user)
    }
}
