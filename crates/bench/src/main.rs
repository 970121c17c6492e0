//! The program `windrow-bench`: a subcommand for each workload. See `--help`.

#![deny(missing_docs)]

use std::process::ExitCode;

use windrow_bench::error::BenchError;
use windrow_bench::options::{HELP, Options};
use windrow_bench::{concurrency, dump, reads, space, w1, w2, w3, w4, w5, w7, w8, w9};

type Workload = fn(&Options) -> Result<(), BenchError>;

const WORKLOADS: [(&str, Workload); 13] = [
    ("concurrency", concurrency::run),
    ("dump", dump::run),
    ("reads", reads::run),
    ("space", space::run),
    ("w1", w1::run),
    ("w1-report", w1::report::run),
    ("w2", w2::run),
    ("w3", w3::run),
    ("w4", w4::run),
    ("w5", w5::run),
    ("w7", w7::run),
    ("w8", w8::run),
    ("w9", w9::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match start(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(BenchError::Usage(what)) => {
            eprintln!("windrow-bench: {what} (see --help)");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("windrow-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &[String]) -> Result<(), BenchError> {
    let Some((name, rest)) = arguments.split_first() else {
        return Err(BenchError::Usage("the workload is missing".into()));
    };
    if name == "--help" || rest.iter().any(|argument| argument == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let Some((_, run)) = WORKLOADS.iter().find(|(known, _)| known == name) else {
        return Err(BenchError::Usage(format!("there is no workload {name:?}")));
    };
    run(&Options::parse(rest)?)
}
