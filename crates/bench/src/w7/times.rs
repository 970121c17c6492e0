//! The times of the queries over the wire. `bench/rivals/tantivy/src/search` measures the baseline
//! in the same manner.

use std::time::{Duration, Instant};

use super::interface::Interface;
use super::queries::{Kind, Queries, Query};
use crate::client::{Connection, message};
use crate::error::BenchError;
use crate::load::{COLLECTION, DATABASE};
use crate::measure::timed;
use crate::report::median;

/// The shortest time of a query without its requests. It bounds what noise can subtract.
const LEAST_US: f64 = 0.1;

/// How often and how long the queries of a task run.
#[derive(Clone, Copy)]
pub struct Schedule {
    /// The best of these is used. If there are several, another one before them warms up.
    rounds: usize,
    /// All queries run in turn until a round has this length.
    length: Duration,
    /// A round ends within the queries. Otherwise each query runs at least once.
    is_cut: bool,
}

impl Schedule {
    /// The best of three rounds.
    pub fn quiet(length: Duration) -> Self {
        Self {
            rounds: 3,
            length,
            is_cut: false,
        }
    }

    /// One round as long as two. The collection grows meanwhile, so slow queries must not run
    /// longer than the baseline's fast ones.
    pub fn beside_writers(length: Duration) -> Self {
        Self {
            rounds: 1,
            length: 2 * length,
            is_cut: true,
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// The ids and scores of the ten best documents.
    Top10,
    /// Those of the hundred best, and the number of all.
    Top100WithCount,
    /// The number of documents.
    Count,
}

impl Task {
    pub const ALL: [Self; 3] = [Self::Top10, Self::Top100WithCount, Self::Count];

    /// The name in the report.
    pub fn title(self) -> &'static str {
        match self {
            Self::Top10 => "top 10",
            Self::Top100WithCount => "top 100 with count",
            Self::Count => "count",
        }
    }

    /// The name in the baseline's figures.
    pub fn key(self) -> &'static str {
        match self {
            Self::Top10 => "top10",
            Self::Top100WithCount => "top100",
            Self::Count => "count",
        }
    }

    fn messages(self, interface: &Interface, query: &Query) -> Vec<Vec<u8>> {
        match self {
            Self::Top10 => vec![(interface.top)(query, 10)],
            Self::Top100WithCount => (interface.top_with_count)(query, 100),
            Self::Count => vec![(interface.count)(query)],
        }
    }
}

/// The times of a kind of queries and a task in microseconds, without those of empty requests.
pub struct TaskTimes {
    pub kind: Kind,
    pub task: Task,
    pub mean_us: f64,
    pub median_us: f64,
    /// The time of an empty find, which was subtracted for each request.
    pub empty_find_us: f64,
}

/// Measures all kinds and tasks.
pub fn measure(
    connection: &mut Connection,
    interface: &Interface,
    queries: &Queries,
    schedule: Schedule,
) -> Result<Vec<TaskTimes>, BenchError> {
    let mut times = Vec::new();
    for kind in queries.kinds {
        for task in Task::ALL {
            let queries = queries.with_kind(kind).into_iter();
            let messages: Vec<_> = queries
                .map(|query| task.messages(interface, query))
                .collect();
            let round = best_round(connection, &messages, schedule)?;
            let requests = messages.first().map_or(0, Vec::len) as f64;
            let net_us = round.net_us(requests);
            let found = TaskTimes {
                kind,
                task,
                mean_us: mean(&net_us),
                median_us: median(&net_us),
                empty_find_us: round.empty_find_us,
            };
            eprintln!(
                "  {:<7} {:<20} {:>12.1} µs",
                kind.name(),
                task.title(),
                found.mean_us
            );
            times.push(found);
        }
    }
    Ok(times)
}

fn empty_find() -> Vec<u8> {
    message(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", |filter| filter.int32("_id", -1));
        writer.int32("limit", 10);
        writer.boolean("singleBatch", true);
    })
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// The mean times of a round.
struct Round {
    /// Of each query that ran.
    query_us: Vec<f64>,
    /// The time of the empty finds between the queries. The machine delays both equally.
    empty_find_us: f64,
}

impl Round {
    /// The times of the queries without their requests.
    fn net_us(&self, requests: f64) -> Vec<f64> {
        let net = |time: &f64| (time - requests * self.empty_find_us).max(LEAST_US);
        self.query_us.iter().map(net).collect()
    }
}

/// Returns the round in which the queries took the least time.
fn best_round(
    connection: &mut Connection,
    queries: &[Vec<Vec<u8>>],
    schedule: Schedule,
) -> Result<Round, BenchError> {
    if schedule.rounds > 1 {
        run_round(connection, queries, Schedule::quiet(Duration::ZERO))?;
    }
    let mut best = run_round(connection, queries, schedule)?;
    for _ in 1..schedule.rounds {
        let round = run_round(connection, queries, schedule)?;
        if mean(&round.query_us) < mean(&best.query_us) {
            best = round;
        }
    }
    Ok(best)
}

fn run_round(
    connection: &mut Connection,
    queries: &[Vec<Vec<u8>>],
    schedule: Schedule,
) -> Result<Round, BenchError> {
    let empty = [empty_find()];
    let mut times = vec![(0.0, 0.0); queries.len()];
    let (mut empty_sum, mut empty_count) = (0.0, 0.0);
    let start = Instant::now();
    'round: for turn in 0.. {
        for (place, (messages, (sum, count))) in queries.iter().zip(&mut times).enumerate() {
            let is_over = start.elapsed() >= schedule.length && turn + place > 0;
            if is_over && (schedule.is_cut || place == 0) {
                break 'round;
            }
            empty_sum += send_all(connection, &empty)?;
            empty_count += 1.0;
            *sum += send_all(connection, messages)?;
            *count += 1.0;
        }
    }
    let ran = times.into_iter().filter(|(_, count)| *count > 0.0);
    Ok(Round {
        query_us: ran.map(|(sum, count)| sum / count).collect(),
        empty_find_us: empty_sum / empty_count,
    })
}

/// Returns the microseconds until the last reply.
fn send_all(connection: &mut Connection, messages: &[Vec<u8>]) -> Result<f64, BenchError> {
    let (seconds, ()) = timed(|| {
        let mut messages = messages.iter();
        messages.try_for_each(|message| connection.succeed(message).map(drop))
    })?;
    Ok(seconds * 1e6)
}
