//! The hidden command `windrow extract-worker`: reads the files that `windrow index` names on
//! standard input, and replies with their text. It is a separate process, because a malicious or
//! damaged file can crash it.

use std::io;
use std::process::ExitCode;

use windrow_ingest::WorkerConfig;

use crate::command_line::{Failure, Subcommand};

pub const EXTRACT_WORKER: Subcommand = Subcommand {
    name: NAME,
    summary: None,
    run,
};

const NAME: &str = "extract-worker";

/// Returns the configuration with which `windrow index` starts this program as a worker.
pub fn worker_config() -> io::Result<WorkerConfig> {
    WorkerConfig::this_program(&[NAME])
}

fn run(_: lexopt::Parser) -> Result<ExitCode, Failure> {
    let served = windrow_ingest::run_worker(io::stdin().lock(), io::stdout().lock());
    served.map_err(|error| Failure::Runtime(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
