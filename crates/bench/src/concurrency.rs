//! Concurrency: concurrent writers, and reading and writing during an index build. The baseline is
//! Windrow without the concurrent load in the same run.

mod during_build;
mod writers;

use crate::error::BenchError;
use crate::options::Options;
use crate::report::{CaseResult, HASH_START, Report, hash};

type Case = fn(&Options) -> Result<CaseResult, BenchError>;

const CASES: [(&str, Case); 5] = [
    ("insert", writers::inserts),
    ("update", writers::updates),
    ("same", writers::same_document),
    ("build", during_build::build),
    ("text", during_build::text_build),
];

/// Runs the workload.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let mut rows = Vec::new();
    let mut sum = HASH_START;
    for name in options.cases_or(&CASES.map(|(name, _)| name)) {
        let Some((_, case)) = CASES.iter().find(|(known, _)| *known == name) else {
            return Err(BenchError::Usage(format!("there is no case {name:?}")));
        };
        let result = case(options)?;
        sum = hash(sum, &result.hash.to_le_bytes());
        rows.extend(result.rows);
    }
    Report {
        workload: "concurrency",
        baseline: "ourselves, alone",
        rows,
        hash: sum,
    }
    .print(options)
}
