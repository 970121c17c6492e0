//! `buildInfo`: the MongoDB version that the server presents, and its own version.

use windrow_document::doc;
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
use crate::context::Context;
use crate::version::{MONGODB_VERSION, windrow};

pub const BUILD_INFO: Command = Command {
    name: "buildInfo",
    aliases: &["buildinfo"],
    help: "returns the version and the build of the server",
    routing: Routing::Here,
    needs: Needs::Nothing,
    arguments: AcceptedArguments::Only(&[]),
    in_transactions: InTransactions::Following,
    run,
    ..Command::EMPTY
};

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
