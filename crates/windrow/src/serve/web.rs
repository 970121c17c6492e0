//! The page of `windrow serve`.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use windrow_document::doc;
use windrow_ingest::text_to_path;
use windrow_page::{Credentials, PageOptions, PageServer, PageServices};
use windrow_server::{Connector, LOCAL_USER, Log};

use super::options::Options;
use super::web_options::WebOptions;
use crate::command_line::Failure;

/// The id of the log line about the address of the page. MongoDB has no such event.
const ADDRESS: i32 = 9_000_040;

/// Serves the page, if an address was given. `password` is that of Windrow's own user.
pub fn start_web(
    log: &Log,
    options: &Options,
    connector: Connector,
    password: &str,
) -> Result<Option<PageServer>, Failure> {
    let Some(web) = &options.web else {
        return Ok(None);
    };
    let data_folder = &options.data_folder;
    let server = start_page(web, connector, password, data_folder).map_err(Failure::runtime)?;
    let attr = doc! { "address": (format!("http://{}", server.address())) };
    log.info("NETWORK", ADDRESS, "main", "Serving the page", attr);
    Ok(Some(server))
}

/// Serves the page of a server within this process.
pub fn start_page(
    web: &WebOptions,
    connector: Connector,
    password: &str,
    data_folder: &Path,
) -> io::Result<PageServer> {
    let (user, database) = LOCAL_USER;
    let login = connector.clone();
    let services = PageServices {
        connect: Box::new(move |browser, page| connector.connect(browser, page)),
        requires_login: Box::new(move || login.requires_login()),
        own_login: Some(Credentials {
            user: user.to_owned(),
            database: database.to_owned(),
            password: password.to_owned().into(),
        }),
        open_file: Box::new(|path| match text_to_path(path) {
            // A pipe that took the place of a file must not keep the thread.
            Some(path) => OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32)
                .open(path),
            None => Err(io::ErrorKind::NotFound.into()),
        }),
        data_folder: data_folder.to_owned(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let options = PageOptions {
        listen: web.address.listen,
        host_name: web.address.host_name.clone(),
        is_read_only: web.is_read_only,
    };
    PageServer::start(options, services)
}
