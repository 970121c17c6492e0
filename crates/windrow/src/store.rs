//! `windrow store`: inspects a database in an object store, verifies it, and deletes unneeded
//! objects.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lexopt::prelude::*;
use windrow_collection::{StorageError, run_of_row};
use windrow_server::StoredPlacement;
use windrow_storage::{Bucket, MasterKey, StoreReport, collect_garbage, inspect, unlock, unseal};

use crate::command_line::{Failure, Subcommand};
use crate::data_sets;
use crate::encryption;

pub const STORE: Subcommand = Subcommand {
    name: "store",
    summary: Some("check databases in object stores"),
    run,
};

const HELP: &str = "Looks at a database in an object store. Servers can use it meanwhile.

Usage: windrow store stat URL [options]
       windrow store check URL [options]
       windrow store gc URL [options]
       windrow store decrypt URL FILE [options]

Commands:
  stat   show the servers, the log and the sizes
  check  read the catalog and the log, and look for each run of the catalog; ends with 1 if
         something is missing or damaged
  gc     delete log objects that the newest boundary covers, and runs that a lost server has not
         registered. Servers do the same; this is for databases without a server
  decrypt
         write the documents of a rollback file of an encrypted database to the standard output, as
         BSON, and the name of their collection to the standard error

URL is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. Credentials and options are
those of `windrow serve --store`. If there are several data sets, the command runs on each of them;
URL/sets/NAME is a single one, which decrypt needs.

Options:
  --store-option NAME=VALUE  a setting of the object store, such as aws_endpoint=http://127.0.0.1:9000
  --encryption-key-file FILE  the key of an encrypted database; by default the file that
                             WINDROW_ENCRYPTION_KEY_FILE names
  -h, --help                 show this help

Examples:
  windrow store stat s3://bucket/prefix
  windrow store check s3://bucket/prefix
";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Stat,
    Check,
    Collect,
    /// Decrypts a file.
    Decrypt(PathBuf),
}

/// The parsed command line.
#[derive(Debug, PartialEq)]
struct Options {
    action: Action,
    url: String,
    options: Vec<(String, String)>,
    key_file: Option<PathBuf>,
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let master = encryption::find_key(options.key_file.as_deref())?;
    let bucket = open_bucket(&options.url, &options.options).map_err(Failure::runtime)?;
    if let Action::Decrypt(file) = &options.action {
        decrypt(bucket.as_ref(), master, file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = data_sets::find(bucket.as_ref()).map_err(Failure::runtime)?;
    let placement = match found.stored {
        StoredPlacement::Undivided => {
            let is_whole = run_on_database(&options.action, bucket, master.as_deref())?;
            return Ok(exit_code(is_whole));
        }
        StoredPlacement::Complete(placement) => placement,
        // The new sets are not databases yet.
        StoredPlacement::Adding {
            placement,
            existing,
        } => placement.reduced(existing.max(1)),
    };
    let mut are_whole = true;
    for set in placement.ids() {
        println!("data set      {}", placement.name(set));
        let url = data_sets::data_set_url(&options.url, &placement, set);
        let bucket = open_bucket(&url, &options.options).map_err(Failure::runtime)?;
        are_whole &= run_on_database(&options.action, bucket, master.as_deref())?;
        println!();
    }
    Ok(exit_code(are_whole))
}

fn exit_code(is_whole: bool) -> ExitCode {
    if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs an action on a database. Returns `false` if the database is damaged.
fn run_on_database(
    action: &Action,
    bucket: Arc<dyn Bucket>,
    master: Option<&MasterKey>,
) -> Result<bool, Failure> {
    let (bucket, report) = inspect_unlocked(bucket, master)?;
    match action {
        Action::Stat | Action::Decrypt(_) => print!("{}", show(&report)),
        Action::Check => return Ok(check(&report)),
        Action::Collect => {
            let runs = collect_garbage(&bucket, &report).map_err(Failure::runtime)?;
            let log = report.log_objects;
            println!("{runs} runs were deleted; before, there were {log} log objects");
        }
    }
    Ok(true)
}

/// Returns the object store without decryption of its database, and a report of its contents.
fn inspect_unlocked(
    bucket: Arc<dyn Bucket>,
    master: Option<&MasterKey>,
) -> Result<(Arc<dyn Bucket>, StoreReport), Failure> {
    let bucket = unlock(bucket, master).map_err(Failure::runtime)?;
    let report = inspect(&bucket, &run_of_row).map_err(Failure::runtime)?;
    Ok((bucket, report))
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut values, mut options, mut key_file) = (Vec::new(), Vec::new(), None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("store-option") => {
                let value = arguments.value()?.string()?;
                let option = parse_option(&value);
                let fail = |reason| Failure::Usage(format!("--store-option {value:?} {reason}"));
                options.push(option.map_err(fail)?);
            }
            Long("encryption-key-file" | "encryptionKeyFile") => {
                key_file = Some(arguments.value()?.into());
            }
            Value(value) => values.push(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let words: Vec<&str> = values.iter().map(String::as_str).collect();
    let (action, url) = match words.as_slice() {
        ["stat", url] => (Action::Stat, url),
        ["check", url] => (Action::Check, url),
        ["gc", url] => (Action::Collect, url),
        ["decrypt", url, file] => (Action::Decrypt(PathBuf::from(file)), url),
        _ => {
            let message = "write `windrow store stat URL`, `windrow store check URL`, \
                           `windrow store gc URL` or `windrow store decrypt URL FILE`; see \
                           `windrow store --help`";
            return Err(Failure::usage(message));
        }
    };
    Ok(Some(Options {
        action,
        url: (*url).to_owned(),
        options,
        key_file,
    }))
}

/// Parses a setting of an object store. The error message continues a sentence that begins with the
/// text.
pub fn parse_option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("is not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Prints the documents of a rollback file.
fn decrypt(
    bucket: &dyn Bucket,
    master: Option<Arc<MasterKey>>,
    path: &Path,
) -> Result<(), Failure> {
    let missing = || Failure::missing_argument("--encryption-key-file FILE", "store");
    let master = master.ok_or_else(missing)?;
    let place = path.display().to_string();
    let fail = |what: String| Failure::runtime(format!("{place}: {what}"));
    let bytes = fs::read(path).map_err(|error| fail(error.to_string()))?;
    let opened = unseal(bucket, &master, &bytes, &place).map_err(Failure::runtime)?;
    let end = opened.iter().position(|byte| *byte == 0);
    let parts = end.and_then(|end| opened.split_at_checked(end));
    let (name, documents) = parts.ok_or_else(|| fail("it is no rollback file".to_owned()))?;
    eprintln!("documents of {}", String::from_utf8_lossy(name));
    let written = std::io::stdout().write_all(documents.get(1..).unwrap_or_default());
    written.map_err(|error| fail(error.to_string()))
}

fn show(report: &StoreReport) -> String {
    let (start, newest) = (report.first_log_object, report.newest_log_object);
    let primary = match (report.is_released, report.primary.as_str()) {
        (true, _) => "none: the last server has ended",
        (false, "") => "unknown: it took over before the log that is needed",
        (false, address) => address,
    };
    let addresses = report.members.iter().map(|it| it.address.as_str());
    let addresses: Vec<&str> = addresses.collect();
    format!(
        "database      {}\n\
         servers       {}\n\
         primary       {primary}\n\
         takeovers     {}\n\
         log           objects {start} to {newest} are needed, {} exist; {} records\n\
         checkpoints   {}\n\
         runs          {}, {}\n\
         unused runs   {}\n",
        report.database,
        addresses.join(", "),
        report.epoch,
        report.log_objects,
        report.newest,
        report.checkpoints,
        report.runs,
        megabytes(report.run_bytes),
        report.orphans.len(),
    )
}

/// Returns a size in MB.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Prints the missing objects. Returns `false` if any are missing.
fn check(report: &StoreReport) -> bool {
    let (start, newest) = (report.first_log_object, report.newest_log_object);
    if report.missing.is_empty() {
        let runs = report.runs;
        println!("log objects {start} to {newest} and {runs} runs are as the catalog says");
        return true;
    }
    for run in &report.missing {
        println!("run {run} is missing");
    }
    false
}

/// Opens the object store at a URL.
#[cfg(feature = "object-store")]
pub fn open_bucket(
    url: &str,
    options: &[(String, String)],
) -> Result<Arc<dyn Bucket>, StorageError> {
    let bucket = windrow_storage::RemoteBucket::open(url, options)?;
    Ok(Arc::new(bucket))
}

/// Fails, because this program was compiled without object stores.
#[cfg(not(feature = "object-store"))]
pub fn open_bucket(url: &str, _: &[(String, String)]) -> Result<Arc<dyn Bucket>, StorageError> {
    Err(StorageError::Unsuitable {
        place: url.to_owned(),
        what: "this program was built without the feature object-store".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    #[test]
    fn arguments_are_parsed() {
        let check = |arguments: &[&str], expected: Result<Options, &str>| {
            check_parsed(parse, arguments, expected);
        };
        let options = |action| Options {
            action,
            url: "s3://b/p".to_owned(),
            options: vec![("a".to_owned(), "b=c".to_owned())],
            key_file: Some("key".into()),
        };
        let key = "--encryption-key-file=key";
        let given = |word| ["--store-option", "a=b=c", key, word, "s3://b/p"];
        check(&given("stat"), Ok(options(Action::Stat)));
        check(&given("check"), Ok(options(Action::Check)));
        check(&given("gc"), Ok(options(Action::Collect)));
        let decrypt = [given("decrypt").as_slice(), &["removed.bson.encrypted"]].concat();
        let file = PathBuf::from("removed.bson.encrypted");
        check(&decrypt, Ok(options(Action::Decrypt(file))));
        check(&["--store-option", "a", "gc", "x"], Err("NAME=VALUE"));
        check(&["stat"], Err("stat URL"));
        check(&["drop", "s3://b/p"], Err("stat URL"));
    }
}
