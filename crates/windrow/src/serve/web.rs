//! The page of `windrow serve`.

use windrow_document::doc;
use windrow_page::PageServer;
use windrow_server::{Connector, Log};

use super::options::Options;
use crate::command_line::Failure;
use crate::page::{PageContext, start_page};

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
    let context = PageContext {
        connector,
        password,
        data_folder: &options.data_folder,
        config: None,
        run: None,
    };
    let server = start_page(web, context).map_err(Failure::runtime)?;
    let attr = doc! { "address": (format!("http://{}", server.address())) };
    log.info("NETWORK", ADDRESS, "main", "Serving the page", attr);
    Ok(Some(server))
}
