//! `hostInfo`: the machine on which the server runs.

use std::time::SystemTime;

use windrow_access::Action;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::{clock, machine};

pub const HOST_INFO: Command = Command {
    name: "hostInfo",
    help: "returns the properties of the machine of the server",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::hostInfo]),
    arguments: AcceptedArguments::Only(&[]),
    run,
    ..Command::EMPTY
};

/// Returns additional information of the operating system, without values that are not known.
fn extra(kernel: &str) -> DocumentBuf {
    let mut extra = DocumentBuf::new();
    let mut add = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            extra.push(name, text);
        }
    };
    add("versionString", machine::kernel_text());
    add("cpuString", machine::processor("model name"));
    add("cpuFeatures", machine::processor("flags"));
    add("cpuFrequencyMHz", machine::processor("cpu MHz"));
    extra.push("kernelVersion", kernel);
    let bytes = machine::page_bytes();
    extra.push("pageSize", bytes as i64);
    let pages = machine::memory_kb().saturating_mul(1024).checked_div(bytes);
    extra.push("numPages", pages.unwrap_or(0) as i32);
    if let Some(files) = machine::open_files_max() {
        extra.push("maxOpenFiles", files as i32);
    }
    extra
}

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let kernel = machine::kernel_version();
    let cores = machine::distinct_of_processors(&["physical id", "core id"]);
    Ok(Reply::ok(doc! {
        "system": {
            "currentTime": (clock::date(SystemTime::now())),
            "hostname": (context.state.host.clone()),
            "cpuAddrSize": 64,
            "memSizeMB": ((machine::memory_kb() / 1024) as i64),
            "memLimitMB": ((machine::memory_limit_kb() / 1024) as i64),
            "numCores": (machine::processors()),
            "cpuArch": (std::env::consts::ARCH),
            "numCoresAvailableToProcess": (machine::cores()),
            "numPhysicalCores": (cores.unwrap_or_else(machine::processors)),
            "numCpuSockets": (machine::distinct_of_processors(&["physical id"]).unwrap_or(1)),
            "numNumaNodes": (machine::memory_nodes().unwrap_or(1)),
            "numaEnabled": false,
        },
        "os": {
            "type": "Linux",
            "name": (machine::system_name()),
            "version": (format!("Kernel {kernel}")),
        },
        "extra": (extra(&kernel)),
    }))
}
