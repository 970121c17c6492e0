//! `hostInfo`: the machine that the server runs on.

use std::time::SystemTime;

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::{clock, machine};

pub const HOST_INFO: Command = Command {
    name: "hostInfo",
    help: "tells about the machine that the server runs on",
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let kernel = machine::kernel_version();
    Ok(Reply::ok(doc! {
        "system": {
            "currentTime": (clock::date(SystemTime::now())),
            "hostname": (context.state.host.clone()),
            "cpuAddrSize": 64,
            "memSizeMB": ((machine::memory_kb() / 1024) as i64),
            "memLimitMB": ((machine::memory_limit_kb() / 1024) as i64),
            "numCores": (machine::cores()),
            "cpuArch": (std::env::consts::ARCH),
            "numaEnabled": false,
        },
        "os": {
            "type": "Linux",
            "name": (machine::system_name()),
            "version": (format!("Kernel {kernel}")),
        },
        "extra": { "kernelVersion": kernel },
    }))
}
