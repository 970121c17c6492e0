//! The same queries on the same documents in SQLite and DuckDB, as JSON in a table: for orientation, and
//! without a bar.

use std::io::{BufWriter, Write};
use std::process::ChildStdin;

use super::facts::Facts;
use crate::corpus::users::Users;
use crate::error::BenchError;
use crate::options::Options;
use crate::rival::{self, Figures};

/// Programs of `bench/rivals`, each left out where it is not there.
const NAMES: [&str; 2] = ["sqlite", "duckdb"];

/// The best times in milliseconds that each of them takes, by the number of the query.
pub fn run(
    options: &Options,
    corpus: &Users,
    facts: &Facts,
    (documents, turns): (u64, usize),
) -> Result<Vec<(&'static str, Figures)>, BenchError> {
    let mut arguments = vec![documents.to_string(), facts.skipped().to_string()];
    let turns = (0..turns).map(|number| facts.turn(number));
    arguments.extend(turns.map(|turn| format!("{}:{}", turn.user, turn.age)));
    let mut found = Vec::new();
    for name in NAMES {
        let feed = |input: &mut BufWriter<ChildStdin>| feed(corpus, documents, input);
        let figures = rival::run(options, name, &arguments, feed)?;
        found.extend(figures.map(|figures| (name, figures)));
    }
    Ok(found)
}

/// One JSON object a line.
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

/// A line for each query that any of them was asked.
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
