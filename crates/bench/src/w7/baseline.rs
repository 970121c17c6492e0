//! tantivy in process, with the same documents and queries.

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

/// Runs the baseline. Returns `None` if it is not compiled.
pub fn run(
    options: &Options,
    corpus: &Natural,
    queries: &Queries,
    round: Duration,
) -> Result<Option<Figures>, BenchError> {
    eprintln!("tantivy in process, the same documents and queries");
    let path = options.rivals.join(QUERIES);
    std::fs::write(&path, queries.text()).at(path.display())?;
    let folder = RivalFolder::create(options)?;
    let arguments = [
        folder.argument(),
        options.cores.unwrap_or(THREADS).to_string(),
        options.memory_bytes.to_string(),
        path.display().to_string(),
        round.as_secs_f64().to_string(),
        options.writers.to_string(),
    ];
    let body =
        |number: u64, out: &mut Vec<u8>| out.extend_from_slice(corpus.body(number).as_bytes());
    let figures = rival::run(options, "tantivy-search", &arguments, |input| {
        write_bodies(input, corpus.documents(), &body)
    })?;
    if let Some(figures) = &figures {
        print_sizes(figures)?;
    }
    Ok(figures)
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
