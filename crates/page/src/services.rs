//! What the page needs from the program that embeds it.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::http::uri::Scheme;
use tokio_rustls::rustls::ServerConfig;
use zeroize::Zeroizing;

use crate::folder_services::FolderServices;

/// What the page needs from the program that embeds it.
pub struct PageServices {
    /// Opens a connection to the server on behalf of a browser. The first address is that of the
    /// browser, the second that of the page.
    pub connect: ConnectFunction,
    /// Returns `true` if the server has access control enabled.
    pub requires_login: Box<dyn Fn() -> bool + Send + Sync>,
    /// The credentials of the program itself, with all privileges. `None` without access control.
    pub own_login: Option<Credentials>,
    /// Opens an indexed file. Fails if its signature is invalid. The signature proves that the
    /// document was stored by an ingestion: a client can insert a document with any path, but
    /// without a signature.
    pub open_file: OpenFunction,
    /// The data folder, which contains saved searches and synonyms.
    pub data_folder: PathBuf,
    /// The services for folders. `None` if the program does not manage them.
    pub folders: Option<FolderServices>,
    /// The TLS settings. `None` if the page is not encrypted.
    pub tls: Option<PageTls>,
    /// Returns `true` if a connection comes from a process of the operating system user that runs
    /// the program.
    pub is_own_user: Box<dyn Fn(ConnectionEnds) -> bool + Send + Sync>,
    /// The version of the program.
    pub version: &'static str,
}

/// TLS settings of the page.
pub struct PageTls {
    /// Unencrypted requests are redirected to the encrypted page.
    pub is_required: bool,
    /// Returns the current TLS configuration. It can change when certificates are reloaded.
    pub config: Box<dyn Fn() -> Option<Arc<ServerConfig>> + Send + Sync>,
}

/// An indexed file, as its document describes it.
#[derive(Debug, Clone, Copy)]
pub struct IndexedFile<'d> {
    /// The path.
    pub path: &'d str,
    /// The state of the file when it was indexed.
    pub stamp: IndexedStamp,
    /// The signature of path and stamp.
    pub signature: &'d [u8],
}

/// The state of a file when it was indexed. Numbers are signed as in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedStamp {
    /// The size in bytes.
    pub bytes: i64,
    /// The modification time, in nanoseconds since 1970-01-01 UTC.
    pub modified_ns: i64,
    /// The time of the last status change, in nanoseconds since 1970-01-01 UTC.
    pub changed_ns: i64,
    /// The inode.
    pub inode: i64,
}

/// Opens an indexed file.
pub type OpenFunction = Box<dyn Fn(&IndexedFile<'_>) -> io::Result<File> + Send + Sync>;

/// Opens a connection. The arguments are the addresses of the client and the server.
pub type ConnectFunction =
    Box<dyn Fn(SocketAddr, SocketAddr) -> io::Result<UnixStream> + Send + Sync>;

impl fmt::Debug for PageServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PageServices")
    }
}

/// The addresses of a browser's connection to the page.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnds {
    /// The address of the browser.
    pub browser: SocketAddr,
    /// The address of the page.
    pub page: SocketAddr,
    /// The connection uses TLS.
    pub is_encrypted: bool,
}

impl ConnectionEnds {
    /// Returns the scheme of the page's address.
    pub(crate) fn scheme(&self) -> Scheme {
        if self.is_encrypted {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        }
    }

    /// Returns `true` if others on the network can read the traffic.
    pub fn is_readable(&self) -> bool {
        !self.is_encrypted && !self.browser.ip().to_canonical().is_loopback()
    }
}

/// The credentials of a user. `Debug` omits the password.
#[derive(Clone)]
pub struct Credentials {
    /// The user name.
    pub user: String,
    /// The authentication database.
    pub database: String,
    /// The password. Its memory is overwritten when it is dropped.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.database, self.user)
    }
}
