//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use crate::client::Concern;
use crate::error::BenchError;

pub const HELP: &str = "\
windrow-bench WORKLOAD [options]: workloads over the wire, beside a baseline in the same run

M is MongoDB's published figure, scaled by the time of std::stable_sort in the same run.

  w1   bulk text index: createIndexes over std::stable_sort of the same words
  w1-report
       w1 with other languages, versions, memory, cores, and GNU sort; plots in bench/out/w1.html
  w2   multikey insertion, 100 URIs a document: documents/s in each tenth, beside WiredTiger
  w3   iiBench: three compound indexes, documents/s in each tenth, beside WiredTiger
  w4   insertion with and without an index on one field
  w5   a clustered collection over an ordinary one: writing, finding, deleting, index size
  w8   insertion in batches, single insertion, find by _id, beside WiredTiger and M
  w9   queries, index builds, updates and deletes on a million documents, beside M
  reads
       by a secondary index over by _id: one document, ranges; the first read after writing
  concurrency
       8 connections over 1, 64 on one document, reading and writing while an index is built
  space
       bytes of indexes beside RocksDB with LZ4; a collection overwritten over a fresh one
  dump the documents themselves, on standard output: --cases words, weather, small, large

  --server PATH        the windrow binary (default target/release/windrow)
  --rivals DIR         where the compiled baselines are (default bench/out)
  --folder DIR         where temporary data folders go (default: the system's)
  --memory BYTES       the server's and the rival's memory, e.g. 1GiB (default 1GiB)
  --seed N             of the generator (default 1)
  --documents N        how many (default: the workload's own)
  --scale X            that many times the workload's own number
  --rounds N           ours and the baseline in turn, N times, medians are compared (default 1)
  --natural DIR        w1: bodies from the text files below DIR instead of random words
  --language NAME      w1: default_language of the index
  --text-version N     w1: textIndexVersion of the index
  --build-memory MB    w1: maxIndexBuildMemoryUsageMegabytes
  --cores N            how many the server may use (default all)
  --show yes           w1: draw the build's progress, as currentOp tells it
  --cases A,B          w8: of small, large, single, journaled, find (default small,large);
                       w9: words of the rows' names; concurrency: of insert, update, same, build,
                       text; space: of uris, registers, users, overwrite; w5: of objectid, uuid
                       (default all)
  --connections A,B    w8: how many (default 1)
  --operations N       w8: single inserts or finds, all connections together (default 100000);
                       concurrency: writes of all connections together (default 40000)
  --find-every N       w2, w3: a find by index after every so many documents
  --concern NAME       w4: none (w: 0), written or journaled (default written)
  --rival-seconds N    w2, w3: when the baseline may stop (default 120)
  --calibration N      W1 documents whose words are sorted to scale what is published (default
                       600000, as published)
  --settle SECONDS     reads, space: how long to wait until all is folded and merged (default 90)
  --seconds N          reads: of writing before the first read (default 60); concurrency: of writing
                       and reading alone (default 3)
  --results FILE       append the line of JSON to FILE as well

Examples:
  windrow-bench w1 --scale 0.1 --show yes
  windrow-bench w8 --cases find,journaled --connections 1,8,64";

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub server: PathBuf,
    pub rivals: PathBuf,
    pub folder: PathBuf,
    pub memory_bytes: u64,
    pub seed: u64,
    pub documents: Option<u64>,
    pub scale: f64,
    pub rounds: usize,
    pub natural: Option<PathBuf>,
    pub language: Option<String>,
    pub text_version: Option<u32>,
    pub build_megabytes: Option<u64>,
    pub cores: Option<usize>,
    pub show: bool,
    pub cases: Option<Vec<String>>,
    pub connections: Vec<usize>,
    pub operations: Option<u64>,
    pub rival_seconds: u64,
    pub calibration: Option<u64>,
    pub settle_seconds: u64,
    pub seconds: Option<u64>,
    pub find_every: Option<u64>,
    pub concern: Concern,
    pub results: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            server: "target/release/windrow".into(),
            rivals: "bench/out".into(),
            folder: std::env::temp_dir(),
            memory_bytes: 1 << 30,
            seed: 1,
            documents: None,
            scale: 1.0,
            rounds: 1,
            natural: None,
            language: None,
            text_version: None,
            build_megabytes: None,
            cores: None,
            show: false,
            cases: None,
            connections: vec![1],
            operations: None,
            rival_seconds: 120,
            calibration: None,
            settle_seconds: 90,
            seconds: None,
            find_every: None,
            concern: Concern::Acknowledged,
            results: None,
        }
    }
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Self, BenchError> {
        let mut options = Self::default();
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                return Err(BenchError::Usage(format!("{} needs a value", pair[0])));
            };
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BenchError> {
        match name {
            "--server" => self.server = value.into(),
            "--rivals" => self.rivals = value.into(),
            "--folder" => self.folder = value.into(),
            "--memory" => self.memory_bytes = bytes(value)?,
            "--seed" => self.seed = number(name, value)?,
            "--documents" => self.documents = Some(number(name, value)?),
            "--scale" => self.scale = number(name, value)?,
            "--rounds" => self.rounds = number::<usize>(name, value)?.max(1),
            "--natural" => self.natural = Some(value.into()),
            "--language" => self.language = Some(value.into()),
            "--text-version" => self.text_version = Some(number(name, value)?),
            "--build-memory" => self.build_megabytes = Some(number(name, value)?),
            "--cores" => self.cores = Some(number::<usize>(name, value)?.max(1)),
            "--show" => self.show = value == "yes",
            "--cases" => self.cases = Some(value.split(',').map(str::to_owned).collect()),
            "--connections" => {
                self.connections = value
                    .split(',')
                    .map(|one| number(name, one))
                    .collect::<Result<_, _>>()?;
            }
            "--operations" => self.operations = Some(number(name, value)?),
            "--rival-seconds" => self.rival_seconds = number(name, value)?,
            "--find-every" => self.find_every = Some(number::<u64>(name, value)?.max(1)),
            "--concern" => self.concern = concern(value)?,
            "--settle" => self.settle_seconds = number(name, value)?,
            "--seconds" => self.seconds = Some(number(name, value)?),
            "--calibration" => self.calibration = Some(number(name, value)?),
            "--results" => self.results = Some(value.into()),
            _ => return Err(BenchError::Usage(format!("there is no option {name}"))),
        }
        Ok(())
    }

    /// Returns the requested cases, or the workload's default.
    pub fn cases_or(&self, own: &[&str]) -> Vec<String> {
        let own = || own.iter().map(|one| (*one).to_owned()).collect();
        self.cases.clone().unwrap_or_else(own)
    }

    /// Returns the number of documents of a workload whose default is `own`.
    pub fn documents_of(&self, own: u64) -> u64 {
        self.documents
            .unwrap_or((own as f64 * self.scale).round() as u64)
            .max(1)
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, BenchError> {
    value
        .parse()
        .map_err(|_| BenchError::Usage(format!("{name}: {value:?} is not a number")))
}

fn concern(value: &str) -> Result<Concern, BenchError> {
    match value {
        "none" => Ok(Concern::Unacknowledged),
        "written" => Ok(Concern::Acknowledged),
        "journaled" => Ok(Concern::Journaled),
        _ => Err(BenchError::Usage(format!(
            "--concern: {value:?} is not none, written or journaled"
        ))),
    }
}

fn bytes(value: &str) -> Result<u64, BenchError> {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("", 1)];
    let (digits, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((value.strip_suffix(name)?, *unit)))
        .unwrap_or((value, 1));
    Ok(number::<u64>("--memory", digits)? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read() {
        let check = |line: &str, change: fn(&mut Options)| {
            let mut expected = Options::default();
            change(&mut expected);
            assert_eq!(parse(line).as_ref(), Ok(&expected), "{line}");
        };
        check("", |_| {});
        check("--memory 2GiB", |one| one.memory_bytes = 2 << 30);
        check("--memory 64MiB --seed 9", |one| {
            one.memory_bytes = 64 << 20;
            one.seed = 9;
        });
        check("--connections 1,8,64", |one| {
            one.connections = vec![1, 8, 64]
        });
        check("--cases find,single", |one| {
            one.cases = Some(vec!["find".into(), "single".into()])
        });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |line: &str, expected: &str| {
            assert_eq!(parse(line).unwrap_err(), expected, "{line}");
        };
        check("--speed 3", "there is no option --speed");
        check("--seed", "--seed needs a value");
        check("--seed x", "--seed: \"x\" is not a number");
        check("--memory 1TB", "--memory: \"1TB\" is not a number");
    }

    #[test]
    fn the_number_of_documents_is_scaled_unless_given() {
        let of = |line: &str| parse(line).unwrap().documents_of(600_000);
        assert_eq!(
            (of(""), of("--scale 0.1"), of("--documents 7")),
            (600_000, 60_000, 7)
        );
    }
}
