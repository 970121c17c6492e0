//! The times of the queries, measured as `crates/bench/src/w7/times.rs` measures Windrow's.

use std::time::{Duration, Instant};

use tantivy::Searcher;
use tantivy::query::Query;

use crate::Failure;
use crate::queries::{PreparedQueries, TASKS, Task};

/// How often and how long the queries of a task run.
#[derive(Clone, Copy)]
pub struct Schedule {
    rounds: usize,
    length: Duration,
    /// A round ends within the queries. Otherwise each query runs at least once.
    is_cut: bool,
}

impl Schedule {
    /// The best of three rounds, after one that only warms up.
    pub fn quiet(length: Duration) -> Self {
        Self {
            rounds: 3,
            length,
            is_cut: false,
        }
    }

    /// One round as long as two.
    pub fn beside_writers(length: Duration) -> Self {
        Self {
            rounds: 1,
            length: 2 * length,
            is_cut: true,
        }
    }
}

/// Prints the mean and the median of each kind and task in microseconds.
pub fn measure(
    queries: &PreparedQueries,
    prefix: &str,
    schedule: Schedule,
    searcher: impl Fn() -> Searcher,
) -> Result<(), Failure> {
    for (kind, queries) in queries.kinds() {
        for (name, task) in TASKS {
            let times = best_round(queries, task, schedule, &searcher)?;
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            println!("{prefix}mean.{kind}.{name} {mean:.3}");
            println!("{prefix}median.{kind}.{name} {:.3}", median(times));
        }
    }
    Ok(())
}

/// Returns the microseconds of each query in the round with the smallest mean.
fn best_round(
    queries: &[Box<dyn Query>],
    task: Task,
    schedule: Schedule,
    searcher: &impl Fn() -> Searcher,
) -> Result<Vec<f64>, Failure> {
    if schedule.rounds > 1 {
        run_round(queries, task, Schedule::quiet(Duration::ZERO), searcher)?;
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let rounds: Result<Vec<_>, _> = (0..schedule.rounds)
        .map(|_| run_round(queries, task, schedule, searcher))
        .collect();
    let best = rounds?
        .into_iter()
        .min_by(|one, other| mean(one).total_cmp(&mean(other)));
    best.ok_or_else(|| "no rounds".into())
}

/// Returns the mean microseconds of each query that ran.
fn run_round(
    queries: &[Box<dyn Query>],
    task: Task,
    schedule: Schedule,
    searcher: &impl Fn() -> Searcher,
) -> Result<Vec<f64>, Failure> {
    let mut times = vec![(0.0, 0.0); queries.len()];
    let start = Instant::now();
    for turn in 0.. {
        for (place, (query, (sum, count))) in queries.iter().zip(&mut times).enumerate() {
            let is_over = start.elapsed() >= schedule.length && turn + place > 0;
            if is_over && (schedule.is_cut || place == 0) {
                let ran = times.into_iter().filter(|(_, count)| *count > 0.0);
                return Ok(ran.map(|(sum, count)| sum / count).collect());
            }
            let start = Instant::now();
            task(query.as_ref(), &searcher())?;
            *sum += start.elapsed().as_secs_f64() * 1e6;
            *count += 1.0;
        }
    }
    Ok(Vec::new())
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
