//! Starts the web page of a server in this process.
//!
//! Modules in reading order:
//!
//! - `options`: the address
//! - `own_user`: identifies browsers of the user that runs the program
//! - `page_runs`, `folders`: the folder services

mod folders;
mod options;
mod own_user;
mod page_runs;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use windrow_ingest::{FileSigner, FileStamp, text_to_path};
use windrow_page::{
    Credentials, IndexedFile, IndexedStamp, OpenFunction, PageOptions, PageServer, PageServices,
    PageTls,
};
use windrow_server::{Connector, LOCAL_USER, TlsMode};

use folders::folder_services;
use own_user::is_own_user;

pub use folders::RunWatch;
pub use options::{WebAddress, WebOptions};

/// The environment of the page.
pub struct PageContext<'c> {
    pub connector: Connector,
    /// The password of the internal user.
    pub password: &'c str,
    pub data_folder: &'c Path,
    /// The path of the folder configuration. `None` is the default path.
    pub config: Option<PathBuf>,
    /// The run of this process, if any.
    pub run: Option<RunWatch>,
}

/// Serves the page of a server within this process.
pub fn start_page(web: &WebOptions, context: PageContext<'_>) -> io::Result<PageServer> {
    let (user, database) = LOCAL_USER;
    let [login, tls] = [(); 2].map(|()| context.connector.clone());
    let connector = context.connector;
    let services = PageServices {
        connect: Box::new(move |browser, page| connector.connect(browser, page)),
        requires_login: Box::new(move || login.requires_login()),
        own_login: Some(Credentials {
            user: user.to_owned(),
            database: database.to_owned(),
            password: context.password.to_owned().into(),
        }),
        open_file: open_indexed(context.data_folder.to_owned()),
        data_folder: context.data_folder.to_owned(),
        folders: Some(folder_services(
            context.data_folder,
            context.config,
            context.run,
        )),
        tls: tls.tls().map(|(mode, _)| PageTls {
            is_required: mode == TlsMode::Require,
            config: Box::new(move || tls.tls().map(|(_, config)| config)),
        }),
        is_own_user: Box::new(is_own_user),
        version: env!("CARGO_PKG_VERSION"),
    };
    let options = PageOptions {
        listen: web.address.listen,
        host_name: web.address.host_name.clone(),
        is_read_only: web.is_read_only,
    };
    PageServer::start(options, services)
}

/// Returns a function that opens files that were indexed into this data folder.
fn open_indexed(data_folder: PathBuf) -> OpenFunction {
    Box::new(move |file: &IndexedFile<'_>| {
        let IndexedStamp {
            bytes,
            modified_ns,
            changed_ns,
            inode,
        } = file.stamp;
        let stamp = FileStamp::from_fields([bytes, modified_ns, changed_ns, inode].map(Some));
        let stamp = stamp.ok_or(io::ErrorKind::NotFound)?;
        let signer = FileSigner::open(&data_folder)?;
        if signer.verify(file.path, &stamp, file.signature) {
            open_file(file.path)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    })
}

/// Opens a file by its stored path. Does not block if the path is a named pipe.
fn open_file(path: &str) -> io::Result<File> {
    let path = text_to_path(path).ok_or(io::ErrorKind::NotFound)?;
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options.open(path)
}
