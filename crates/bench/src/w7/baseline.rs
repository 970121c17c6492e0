//! Programs that answer the same queries on the same documents in their own process: tantivy, and
//! Windrow's layer of queries without a server (`bench/inside/src/search.rs`).

use std::time::Duration;

use super::queries::Queries;
use crate::calibration::write_bodies;
use crate::corpus::natural::Natural;
use crate::error::{At, BenchError};
use crate::options::Options;
use crate::rival::{self, Figures, RivalFolder};

/// The file of the queries, below `--rivals`.
const QUERIES: &str = "w7-queries.txt";
const THREADS: usize = 2;

/// Writes the queries for the programs, and returns the path.
pub fn write_queries(options: &Options, queries: &Queries) -> Result<String, BenchError> {
    let path = options.rivals.join(QUERIES);
    std::fs::write(&path, queries.text()).at(path.display())?;
    Ok(path.display().to_string())
}

fn run_on(
    options: &Options,
    corpus: &Natural,
    name: &str,
    arguments: &[String],
) -> Result<Option<Figures>, BenchError> {
    let body =
        |number: u64, out: &mut Vec<u8>| out.extend_from_slice(corpus.body(number).as_bytes());
    rival::run(options, name, arguments, |input| {
        write_bodies(input, corpus.documents(), &body)
    })
}

/// Runs tantivy on the queries in a file. Returns `None` if it is not compiled.
pub fn run(
    options: &Options,
    corpus: &Natural,
    queries: &str,
    round: Duration,
) -> Result<Option<Figures>, BenchError> {
    eprintln!("tantivy in process, the same documents and queries");
    let folder = RivalFolder::create(options)?;
    let arguments = [
        folder.argument(),
        options.cores.unwrap_or(THREADS).to_string(),
        options.memory_bytes.to_string(),
        queries.to_owned(),
        round.as_secs_f64().to_string(),
        options.writers.to_string(),
    ];
    let figures = run_on(options, corpus, "tantivy-search", &arguments)?;
    if let Some(figures) = &figures {
        print_sizes(figures)?;
    }
    Ok(figures)
}

/// Runs Windrow's layer of queries on those in a file. Returns `None` if it is not compiled.
pub fn run_inside(
    options: &Options,
    corpus: &Natural,
    queries: &str,
    round: Duration,
) -> Result<Option<Figures>, BenchError> {
    eprintln!("Windrow in process, the same documents and queries");
    let folder = RivalFolder::create(options)?;
    let arguments = [
        folder.argument(),
        options.memory_bytes.to_string(),
        queries.to_owned(),
        round.as_secs_f64().to_string(),
    ];
    run_on(options, corpus, "inside-search", &arguments)
}

/// Prints what the sizes of an index depend on, and the size of each kind of file.
fn print_sizes(figures: &Figures) -> Result<(), BenchError> {
    for name in ["terms", "postings", "positions"] {
        eprintln!("  {:>12} {name}", figures.get(name)?);
    }
    for (name, bytes) in figures.beginning("bytes.") {
        eprintln!("  {bytes:>12} bytes in .{name}");
    }
    Ok(())
}
