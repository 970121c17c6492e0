//! The web page of `windrow serve`.

use std::io;

use windrow_document::doc;
use windrow_page::PageServer;
use windrow_server::{Connector, Log, TlsMode};

use super::options::Options;
use crate::command_line::Failure;
use crate::page::{PageContext, start_page};

/// The id of the log line about the address of the page. MongoDB has no such event.
const ADDRESS: i32 = 9_000_040;

/// The id of the log line about a page that is not encrypted. MongoDB has no such event.
const NOT_ENCRYPTED: i32 = 9_000_041;

/// Serves the page if an address is configured. `password` is that of the internal user.
pub fn start_web(
    log: &Log,
    options: &Options,
    connector: Connector,
    password: &str,
) -> Result<Option<PageServer>, Failure> {
    let Some(web) = &options.web else {
        return Ok(None);
    };
    let context = PageContext {
        connector,
        password,
        data_folder: &options.data_folder,
        config: None,
        run: None,
    };
    // Without access control, the page must not be reachable from other machines.
    let server = start_page(web, context).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Failure::Usage(error.to_string()),
        _ => Failure::runtime(error),
    })?;
    let mode = options.tls.as_ref().map(|tls| tls.mode);
    let scheme = if mode.is_some() { "https" } else { "http" };
    let address = server.address();
    let attr = doc! { "address": (format!("{scheme}://{address}")) };
    log.info("NETWORK", ADDRESS, "main", "Serving the page", attr);
    if !address.ip().to_canonical().is_loopback() && mode != Some(TlsMode::Require) {
        log.startup_warning(
            NOT_ENCRYPTED,
            &format!(
                "The page on {address} can be reached from other machines without encryption, so \
                 others on the network can read passwords: --tls-mode require forbids that"
            ),
        );
    }
    Ok(Some(server))
}
