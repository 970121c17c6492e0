//! W7's baseline: tantivy's index of the words, frequencies and positions of the bodies on standard
//! input, one a line, and the times of queries in process on one thread.
//!
//! Arguments: folder, threads of the build, bytes of memory, file of the queries, seconds of a
//! round, writers. Prints figures: the sizes of the index, `count.KIND.N` of each query, and
//! `mean.KIND.TASK` and `median.KIND.TASK` in microseconds. With writers, each of them adds 1,000
//! documents a second during a second series of measurements, whose figures begin with `writing.`.

mod build;
mod queries;
mod rounds;
mod writers;

use std::io::BufRead;
use std::time::Duration;

use build::Settings;
use queries::PreparedQueries;
use rounds::Schedule;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads, memory, queries, round, writers] = arguments.as_slice() else {
        return Err(
            "arguments: folder, threads, bytes of memory, queries, seconds, writers".into(),
        );
    };
    let settings = Settings {
        folder: folder.into(),
        threads: threads.parse()?,
        memory_bytes: memory.parse()?,
    };
    let round = Duration::from_secs_f64(round.parse()?);
    let writers: u64 = writers.parse()?;
    let queries = std::fs::read_to_string(queries)?;
    let bodies: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;

    let built = build::build(&settings, &bodies)?;
    built.print()?;
    let queries = PreparedQueries::parse(&queries, built.body)?;
    let reader = built.index.reader()?;
    queries.print_counts(&reader.searcher())?;
    let quiet = Schedule::quiet(round);
    rounds::measure(&queries, "", quiet, || reader.searcher())?;
    if writers > 0 {
        writers::beside(&built, &settings, &bodies, writers, |reader| {
            let schedule = Schedule::beside_writers(round);
            rounds::measure(&queries, "writing.", schedule, || reader.searcher())
        })?;
    }
    Ok(())
}
