//! The hidden command `windrow extract-worker`: reads files that `windrow index` names on standard
//! input and answers with their text. It may die of a file; that costs nobody else anything.

use std::io;
use std::process::ExitCode;

use windrow_ingest::WorkerConfig;

use crate::command_line::{Failure, Subcommand};

pub const WORKER: Subcommand = Subcommand {
    name: NAME,
    summary: None,
    run,
};

const NAME: &str = "extract-worker";

/// How `windrow index` starts this program as a worker.
pub fn config() -> io::Result<WorkerConfig> {
    WorkerConfig::this_program(&[NAME])
}

fn run(_: lexopt::Parser) -> Result<ExitCode, Failure> {
    let served = windrow_ingest::serve(io::stdin().lock(), io::stdout().lock());
    served.map_err(|error| Failure::Run(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
