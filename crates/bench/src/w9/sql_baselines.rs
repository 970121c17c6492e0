//! The same queries in SQLite and DuckDB, on documents stored as JSON. For orientation only,
//! without a target.

use std::io::{BufWriter, Write};
use std::process::ChildStdin;

use super::expected_results::ExpectedResults;
use crate::corpus::users::Users;
use crate::error::BenchError;
use crate::options::Options;
use crate::rival::{self, Figures};

/// Programs of `bench/rivals`. Missing ones are skipped.
const NAMES: [&str; 2] = ["sqlite", "duckdb"];

/// Returns the best times of each program in milliseconds, by query.
pub fn run(
    options: &Options,
    corpus: &Users,
    expected: &ExpectedResults,
    documents: u64,
    turns: usize,
) -> Result<Vec<(&'static str, Figures)>, BenchError> {
    let mut arguments = vec![documents.to_string(), expected.skipped().to_string()];
    let turns = (0..turns).map(|number| expected.turn(number));
    arguments.extend(turns.map(|turn| format!("{}:{}", turn.user, turn.age)));
    let mut found = Vec::new();
    for name in NAMES {
        let feed = |input: &mut BufWriter<ChildStdin>| feed(corpus, documents, input);
        let figures = rival::run(options, name, &arguments, feed)?;
        found.extend(figures.map(|figures| (name, figures)));
    }
    Ok(found)
}

/// Writes a JSON object per line.
fn feed(corpus: &Users, documents: u64, out: &mut BufWriter<ChildStdin>) -> std::io::Result<()> {
    let mut pad = Vec::new();
    for number in 0..documents {
        let user = corpus.user(number);
        pad.clear();
        corpus.pad(number, &mut pad);
        let pad = String::from_utf8_lossy(&pad);
        writeln!(
            out,
            r#"{{"_id":{number},"user":{},"age":{},"pad":"{pad}","x":{}}}"#,
            user.user, user.age, user.x
        )?;
    }
    Ok(())
}

/// Prints a line for each query.
pub fn print(found: &[(&'static str, Figures)], names: &[&str]) {
    if found.is_empty() {
        return;
    }
    eprintln!("the same queries in SQL, ms:");
    for (number, name) in names.iter().enumerate() {
        let times = found.iter().map(|(who, figures)| {
            let time = figures.get(&format!("q{number}"));
            time.map_or_else(|_| format!("{who} -"), |time| format!("{who} {time:.3}"))
        });
        eprintln!("  {name:<44} {}", times.collect::<Vec<_>>().join(", "));
    }
}
