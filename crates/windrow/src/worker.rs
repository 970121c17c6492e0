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
///
/// The allocator would reserve an arena of 1 GiB at once, all the address space that a worker may
/// have; without arenas it asks for what it needs.
pub fn config() -> io::Result<WorkerConfig> {
    let mut config = WorkerConfig::this_program(&[NAME])?;
    let no_arenas = ("MIMALLOC_DISALLOW_ARENA_ALLOC".into(), "1".into());
    config.environment.push(no_arenas);
    Ok(config)
}

fn run(_: lexopt::Parser) -> Result<ExitCode, Failure> {
    let served = windrow_ingest::serve(io::stdin().lock(), io::stdout().lock());
    served.map_err(|error| Failure::Run(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
