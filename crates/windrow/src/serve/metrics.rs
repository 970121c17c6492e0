//! The metrics of `windrow serve`.

use std::io;
use std::sync::Arc;

use windrow_document::doc;
use windrow_server::{Log, State, metrics_page};
use windrow_web::{MetricsOptions, MetricsServer};

use super::options::Options;
use crate::command_line::Failure;
use crate::secret_file;

/// The id of the log line about the address of metrics. MongoDB has no such event.
const ADDRESS: i32 = 9_000_015;

/// Serves the metrics if an address is configured.
pub fn start_metrics(
    log: &Log,
    options: &Options,
    state: Arc<State>,
) -> Result<Option<MetricsServer>, Failure> {
    let Some(listen) = options.metrics_listen else {
        return Ok(None);
    };
    let token = match &options.metrics_token_file {
        None => None,
        Some(path) => {
            let token = secret_file::read(path)?.trim().to_owned();
            if token.is_empty() {
                return Err(secret_file::failure(path, "it has no token".to_owned()));
            }
            Some(token)
        }
    };
    let metrics_options = MetricsOptions { listen, token };
    let server = MetricsServer::start(metrics_options, move || metrics_page(&state));
    // An address that other machines can reach needs a token.
    let server = server.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Failure::Usage(error.to_string()),
        _ => Failure::runtime(error),
    })?;
    let attr = doc! { "address": (server.address().to_string()) };
    log.info("NETWORK", ADDRESS, "main", "Serving metrics", attr);
    Ok(Some(server))
}
