//! `buildInfo`: the version that the server presents, and the one that it is.

use windrow_document::{DocumentBuf, doc};
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{CommandError, Reply, Request};

use super::{Accepted, Command};
use crate::context::Context;

pub const BUILD_INFO: Command = Command {
    name: "buildInfo",
    aliases: &["buildinfo"],
    help: "tells version and build of the server",
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

/// The MongoDB whose behaviour clients may expect.
pub const MONGODB_VERSION: &str = "8.0.0";

/// What `hello` and `buildInfo` say of Windrow itself.
pub fn windrow() -> DocumentBuf {
    doc! { "version": (env!("CARGO_PKG_VERSION")) }
}

fn run(_: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    Ok(Reply::ok(doc! {
        "version": MONGODB_VERSION,
        "gitVersion": "windrow",
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "sysInfo": "deprecated",
        "versionArray": [8, 0, 0, 0],
        "openssl": { "running": "disabled", "compiled": "disabled" },
        "buildEnvironment": {
            "distmod": "", "distarch": (std::env::consts::ARCH), "cc": "rustc",
            "target_arch": (std::env::consts::ARCH), "target_os": (std::env::consts::OS),
        },
        "bits": 64,
        "debug": (cfg!(debug_assertions)),
        "maxBsonObjectSize": (DOCUMENT_BYTES_MAX as i32),
        "storageEngines": ["windrow"],
        "windrow": (windrow()),
    }))
}
