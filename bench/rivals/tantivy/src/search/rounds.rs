//! The times of the queries: the best of three rounds after a round that only warms up.

use std::time::Instant;

use tantivy::Searcher;
use tantivy::query::Query;

use crate::Failure;
use crate::queries::{PreparedQueries, TASKS, Task};

const ROUNDS: usize = 3;

/// Prints the mean and the median of each kind and task in microseconds.
pub fn measure(
    queries: &PreparedQueries,
    prefix: &str,
    round_seconds: f64,
    searcher: impl Fn() -> Searcher,
) -> Result<(), Failure> {
    for (kind, queries) in queries.kinds() {
        for (name, task) in TASKS {
            let times = best_round(queries, task, round_seconds, &searcher)?;
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            println!("{prefix}mean.{kind}.{name} {mean:.3}");
            println!("{prefix}median.{kind}.{name} {:.3}", median(times));
        }
    }
    Ok(())
}

/// Returns the microseconds of each query in the round with the smallest sum.
fn best_round(
    queries: &[Box<dyn Query>],
    task: Task,
    seconds: f64,
    searcher: &impl Fn() -> Searcher,
) -> Result<Vec<f64>, Failure> {
    round(queries, task, 0.0, searcher)?;
    let mut best: Option<Vec<f64>> = None;
    for _ in 0..ROUNDS {
        let times = round(queries, task, seconds, searcher)?;
        let sum = |times: &[f64]| times.iter().sum::<f64>();
        if best.as_deref().is_none_or(|best| sum(&times) < sum(best)) {
            best = Some(times);
        }
    }
    best.ok_or_else(|| "no rounds".into())
}

/// Runs all queries in turn until the time is over, at least once. Returns the mean microseconds of
/// each.
fn round(
    queries: &[Box<dyn Query>],
    task: Task,
    seconds: f64,
    searcher: &impl Fn() -> Searcher,
) -> Result<Vec<f64>, Failure> {
    let mut times = vec![0.0; queries.len()];
    let start = Instant::now();
    let mut turns = 0.0;
    while turns == 0.0 || start.elapsed().as_secs_f64() < seconds {
        for (query, time) in queries.iter().zip(&mut times) {
            let start = Instant::now();
            task(query.as_ref(), &searcher())?;
            *time += start.elapsed().as_secs_f64() * 1e6;
        }
        turns += 1.0;
    }
    Ok(times.into_iter().map(|time| time / turns).collect())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 {
        times[middle]
    } else {
        (times[middle - 1] + times[middle]) / 2.0
    }
}
