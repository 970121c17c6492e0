//! A server with its data in memory.
//!
//!     cargo run -p windrow-server --example serve -- 127.0.0.1:27017
//!     cargo run -p windrow-server --example serve -- 127.0.0.1:27017 rs0    # a replica set of one

use std::sync::Arc;

use windrow_document::doc;
use windrow_server::{Config, Log, Server, Services};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let listen = arguments
        .get(1)
        .map_or("127.0.0.1:27017", String::as_str)
        .parse()?;
    let options = doc! { "net": { "bindIp": (arguments.get(1).cloned()) } };
    let config = Config {
        listen: vec![listen],
        replica_set: arguments.get(2).cloned(),
        arguments,
        options,
        ..Config::default()
    };
    let log = Arc::new(Log::to_stderr());
    log.take_panics();
    let server = Server::bind(config, Services::in_memory(log)?)?;
    server.handle_signals(|| {})?;
    server.run()?;
    Ok(())
}
