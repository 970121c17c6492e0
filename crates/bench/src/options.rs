//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use crate::client::Concern;
use crate::error::BenchError;

/// The output of `--help`.
pub const HELP: &str = "\
windrow-bench WORKLOAD [options]: runs a workload over the wire and a baseline in the same run

M is MongoDB's published figure, scaled to this machine by the time of std::stable_sort.

  w1   building a text index, compared with std::stable_sort of the same words
  w1-report
       w1 with other languages, versions, memory, cores, and GNU sort; plots in bench/out/w1.html
  w2   insertion with a multikey index on 100 URIs per document, compared with WiredTiger
  w3   iiBench: insertion with three compound indexes, compared with WiredTiger
  w4   insertion with and without an index on a field
  w5   a clustered collection, compared with an ordinary collection
  w7   search in text: terms, unions, intersections and phrases, compared with tantivy
  w8   insertion and find by _id, compared with WiredTiger and M
  w9   queries, index builds, updates and deletes, compared with M
  reads
       reads by a secondary index, compared with reads by _id
  concurrency
       concurrent writers, and reading and writing during an index build
  space
       sizes of indexes, compared with RocksDB, and of an overwritten collection
  dump write documents to standard output: --cases words, weather, small, large

  --server PATH        the windrow binary (default target/release/windrow)
  --rivals DIR         the folder of the compiled baselines (default bench/out)
  --folder DIR         the folder for temporary data (default: the system's)
  --user NAME          create this user, and log in as it on every connection (SCRAM-SHA-256)
  --password TEXT      its password (default: its name)
  --tls-folder DIR     use TLS, with ca.pem and server.pem of `windrow certificate --folder DIR`
  --memory BYTES       the memory of server and baseline, e.g. 1GiB (default 1GiB)
  --seed N             the seed of the generator (default 1)
  --documents N        the number of documents (default: depends on the workload)
  --scale X            the factor of the default number of documents
  --rounds N           run N times and compare the medians (default 1)
  --natural DIR        w1: bodies from the text files below DIR instead of random words;
                       w7: from these instead of the corpus of bench/corpus.sh
  --language NAME      w1: default_language of the index
  --text-version N     w1: textIndexVersion of the index
  --build-memory MB    w1: maxIndexBuildMemoryUsageMegabytes
  --cores N            the number of cores for the server (default all)
  --show yes           w1: show the progress of the build, as reported by currentOp
  --cases A,B          w8: of small, small-journaled, large, single, journaled, find, login (default
                       small,large);
                       w9: words in the names of the rows; concurrency: of insert, update, same,
                       build, text; space: of uris, registers, users, overwrite; w5: of objectid, uuid
                       (default all); w7: of words, patterns (default words)
  --connections A,B    w8: the numbers of connections (default 1)
  --operations N       w8: single inserts or finds of all connections (default 100000), or
                       logins (default 1000);
                       concurrency: writes of all connections (default 40000)
  --queries N          w7: the number of queries of each kind (default 100)
  --writers N          w7: measure again while N writers insert 1,000 documents/s each (default 0)
  --find-every N       w2, w3: run a find by index after every N documents
  --concern NAME       w4: none (w: 0), written or journaled (default written)
  --rival-seconds N    w2, w3: the time limit of the baseline (default 120)
  --calibration N      documents whose words are sorted to scale published figures (default
                       600000, as published)
  --settle SECONDS     reads, space, w7: the time limit for folds and merges (default 90)
  --seconds N          reads: writing before the first read (default 60); concurrency: writing
                       and reading alone (default 3); w7: the least time of a round of one kind
                       of query (default 1)
  --results FILE       also append the line of JSON to FILE

Examples:
  windrow-bench w1 --scale 0.1 --show yes
  windrow-bench w8 --cases find,journaled --connections 1,8,64
  windrow-bench w8 --cases small,login --user cook --tls-folder ./tls";

/// The parsed command line. Options without a value here have a default that depends on the
/// workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The server's binary (`--server`).
    pub server: PathBuf,
    /// The folder of the compiled baselines (`--rivals`).
    pub rivals: PathBuf,
    /// The folder for temporary data folders (`--folder`).
    pub folder: PathBuf,
    /// The user that connections log in as (`--user`).
    pub user: Option<String>,
    /// Its password (`--password`).
    pub password: Option<String>,
    /// The folder with the certificates of TLS (`--tls-folder`).
    pub tls_folder: Option<PathBuf>,
    /// The memory of the server and of a baseline in bytes (`--memory`).
    pub memory_bytes: u64,
    /// The seed of the generators (`--seed`).
    pub seed: u64,
    /// The number of documents (`--documents`).
    pub documents: Option<u64>,
    /// The factor of the workload's number of documents (`--scale`).
    pub scale: f64,
    /// The number of rounds whose median is used (`--rounds`).
    pub rounds: usize,
    /// A folder with text files for W1 and W7 (`--natural`).
    pub natural: Option<PathBuf>,
    /// The language of W1's text index (`--language`).
    pub language: Option<String>,
    /// The version of W1's text index (`--text-version`).
    pub text_version: Option<u32>,
    /// The memory of an index build in MB (`--build-memory`).
    pub build_megabytes: Option<u64>,
    /// The number of cores that the server can use (`--cores`).
    pub cores: Option<usize>,
    /// Show the progress of W1's build (`--show`).
    pub show: bool,
    /// The cases of the workload (`--cases`).
    pub cases: Option<Vec<String>>,
    /// The numbers of connections (`--connections`).
    pub connections: Vec<usize>,
    /// The number of operations (`--operations`).
    pub operations: Option<u64>,
    /// The time limit of a baseline in seconds (`--rival-seconds`).
    pub rival_seconds: u64,
    /// The number of documents for calibration (`--calibration`).
    pub calibration: Option<u64>,
    /// The time limit for background work in seconds (`--settle`).
    pub settle_seconds: u64,
    /// The duration of a phase in seconds (`--seconds`).
    pub seconds: Option<u64>,
    /// The number of queries of each kind of W7 (`--queries`).
    pub queries: usize,
    /// The number of writers beside W7's queries (`--writers`).
    pub writers: u64,
    /// Run a find after this many documents (`--find-every`).
    pub find_every: Option<u64>,
    /// When inserts are acknowledged (`--concern`).
    pub concern: Concern,
    /// A file to which the results are appended (`--results`).
    pub results: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            server: "target/release/windrow".into(),
            rivals: "bench/out".into(),
            folder: std::env::temp_dir(),
            user: None,
            password: None,
            tls_folder: None,
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
            queries: 100,
            writers: 0,
            find_every: None,
            concern: Concern::Acknowledged,
            results: None,
        }
    }
}

impl Options {
    /// Parses the arguments after the workload. Fails with [`BenchError::Usage`].
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
            "--user" => self.user = Some(value.to_owned()),
            "--password" => self.password = Some(value.to_owned()),
            "--tls-folder" => self.tls_folder = Some(value.into()),
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
                    .map(|value| number(name, value))
                    .collect::<Result<_, _>>()?;
            }
            "--operations" => self.operations = Some(number(name, value)?),
            "--rival-seconds" => self.rival_seconds = number(name, value)?,
            "--queries" => self.queries = number::<usize>(name, value)?.max(1),
            "--writers" => self.writers = number(name, value)?,
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
        let own = || own.iter().map(|item| (*item).to_owned()).collect();
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
    fn options_are_parsed() {
        let check = |line: &str, change: fn(&mut Options)| {
            let mut expected = Options::default();
            change(&mut expected);
            assert_eq!(parse(line).as_ref(), Ok(&expected), "{line}");
        };
        check("", |_| {});
        check("--memory 2GiB", |item| item.memory_bytes = 2 << 30);
        check("--memory 64MiB --seed 9", |item| {
            item.memory_bytes = 64 << 20;
            item.seed = 9;
        });
        check("--connections 1,8,64", |item| {
            item.connections = vec![1, 8, 64]
        });
        check("--cases find,single", |item| {
            item.cases = Some(vec!["find".into(), "single".into()])
        });
    }

    #[test]
    fn errors_name_the_argument() {
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
