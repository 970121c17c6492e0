//! The command line of `windrow index`.

use std::path::PathBuf;

use lexopt::prelude::*;
use windrow_extract::formats;
use windrow_ingest::WalkOptions;

use super::explanation::parse_format;
use crate::command_line::Failure;
use crate::output_format::OutputFormat;
use crate::page::WebAddress;
use crate::{byte_size, memory};

/// The output of `windrow index --help`.
pub fn format_help() -> String {
    let formats = list_formats();
    format!(
        "Makes the files of folders searchable. Each file, message or archive member becomes a document
in the collection `documents` of the database `files`, with a search index. A file that cannot be
read also has a document in `failures` with the reason, one without text a document in `skipped`.

Further runs read only changed files, give the documents of moved files their new paths, and remove
the documents of deleted files. A folder that is missing or empty (a disk that is not connected)
keeps its documents. If it is missing and has none, the other folders are read, and the exit code
is 1. An interrupted run is continued by the next one. Other commands can use the data folder
meanwhile. If a server has it open, this command uses the server.

Usage: windrow index [FOLDER…] --data DIR [OPTION…]
       windrow index --remove FOLDER… --data DIR

Without FOLDER, the folders of the configuration are indexed.

Options:
  --data DIR       the data folder; it is created if it does not exist [default: that of the
                   configuration]
  --config FILE    the configuration, see `windrow config --help` [default: if no FOLDER is given,
                   $XDG_CONFIG_HOME/windrow/index.toml]
  --workers N      how many files are read in parallel, and how many cores are used in all if there
                   are more [default: the number of cores]
  --threads EXTRACT,WRITE,INDEX
                   instead of --workers: the number of worker processes, of threads that write, and
                   of threads that make and merge the entries of indexes
  --queue SIZE     how much extracted text may wait for each thread that writes; 0: none, what a
                   worker has read is written before it reads on [default: 8MiB]
  --explain-pipeline
                   print where the time went: how long the stages worked and waited, and how full
                   the queue between them was; as JSON: --explain-pipeline=json
  --progress FORM  bar: for people; json: a line of JSON on standard error each half second, for
                   programs [default: bar]
  --memory SIZE    memory for the database: bytes, 512MB, 2GiB [default: a quarter of the
                   machine's]; not used if a server has the folder open
  --include GLOB   read only files that match; can be repeated. Patterns are those of .gitignore
  --skip GLOB      skip files and folders that match; can be repeated
  --gitignore      skip what .gitignore and .ignore files name
  --hidden         include files and folders whose names begin with a dot
  --follow-links   follow symbolic links below the folders
  --retry          also read unchanged files that failed or were skipped
  --watch          keep running, and read files as soon as they change
  --web ADDRESS    as --watch, and serve a page for browsers at http://HOST:PORT that searches the
                   files and shows the progress
  --rescan SECONDS with --watch: how often the folders are scanned whole [default: 3600, or 30 if
                   the system cannot report changes of so many folders]
  --remove         remove everything that is stored of the files in the folders, which need not
                   exist any more
  -h, --help       show this help

Formats, with their usual extensions:
{formats}
Examples:
  windrow index ~/Documents ~/Mail --data ./data
  windrow index /usr/share/doc --data ./data --workers 2
  windrow index ~/Documents --data ./data --web 127.0.0.1:8080
  windrow search 'bread -white' --data ./data
"
    )
}

/// Formats a line for each readable format.
fn list_formats() -> String {
    const NAME_COLUMNS: usize = 24;
    const LINE_COLUMNS: usize = 100;
    let mut lines = String::new();
    for format in formats() {
        let mut line = format!("  {:<NAME_COLUMNS$}", format.name());
        for extension in format.extensions() {
            if line.len() + extension.len() > LINE_COLUMNS {
                lines.push_str(line.trim_end());
                lines.push('\n');
                line = " ".repeat(2 + NAME_COLUMNS);
            }
            line.push_str(extension);
            line.push_str(", ");
        }
        lines.push_str(line.trim_end_matches([',', ' ']));
        lines.push('\n');
    }
    lines
}

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub folders: Vec<PathBuf>,
    pub config: Option<PathBuf>,
    pub data_folder: Option<PathBuf>,
    pub workers: Option<usize>,
    pub threads: Option<Threads>,
    /// In bytes.
    pub queue_bytes: Option<usize>,
    /// The form of the report on the stages. `None`: no report.
    pub explanation: Option<OutputFormat>,
    pub display: ProgressDisplay,
    pub memory_bytes: Option<u64>,
    /// Rules in addition to those of the configuration.
    pub rules: WalkOptions,
    pub retry: bool,
    pub remove: bool,
    pub watch: bool,
    /// The web page that is served during the run.
    pub web: Option<WebAddress>,
    /// In seconds.
    pub rescan: Option<u64>,
}

/// The display of the progress.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDisplay {
    #[default]
    Bar,
    Json,
}

/// Returns `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => {
                options.data_folder = Some(PathBuf::from(arguments.value()?));
            }
            Long("config") => options.config = Some(PathBuf::from(arguments.value()?)),
            Long("workers") => {
                options.workers = Some(parse_workers(&arguments.value()?.string()?)?);
            }
            Long("threads") => {
                options.threads = Some(parse_threads(&arguments.value()?.string()?)?);
            }
            Long("queue") => {
                options.queue_bytes = Some(parse_queue(&arguments.value()?.string()?)?)
            }
            Long("explain-pipeline") => {
                let form = arguments
                    .optional_value()
                    .map(|it| it.string())
                    .transpose()?;
                let format = parse_format(form.as_deref()).ok_or_else(|| {
                    let form = form.as_deref().unwrap_or_default();
                    Failure::Usage(format!(
                        "--explain-pipeline={form:?} is not known; write --explain-pipeline or \
                         --explain-pipeline=json"
                    ))
                })?;
                options.explanation = Some(format);
            }
            Long("progress") => {
                options.display = parse_display(&arguments.value()?.string()?)?;
            }
            Long("memory") => {
                let bytes = memory::parse_option(&arguments.value()?.string()?)?;
                options.memory_bytes = Some(bytes);
            }
            Long("include") => options.rules.include.push(arguments.value()?.string()?),
            Long("skip") => options.rules.skip.push(arguments.value()?.string()?),
            Long("gitignore") => options.rules.gitignore = true,
            Long("hidden") => options.rules.hidden = true,
            Long("follow-links") => options.rules.follow_links = true,
            Long("retry") => options.retry = true,
            Long("remove") => options.remove = true,
            Long("watch") => options.watch = true,
            Long("web") => {
                let text = arguments.value()?.string()?;
                let address = WebAddress::parse(&text);
                let fail = |reason| Failure::Usage(format!("--web {text:?} {reason}"));
                options.web = Some(address.map_err(fail)?);
                options.watch = true;
            }
            Long("rescan") => options.rescan = Some(parse_rescan(&arguments.value()?.string()?)?),
            Value(folder) if folder.is_empty() => {
                return Err(Failure::usage("a FOLDER is empty"));
            }
            Value(folder) => options.folders.push(PathBuf::from(folder)),
            other => return Err(other.unexpected().into()),
        }
    }
    options.check()?;
    Ok(Some(options))
}

impl Options {
    fn check(&self) -> Result<(), Failure> {
        if self.remove && self.folders.is_empty() {
            return Err(Failure::missing_argument("FOLDER", "index"));
        }
        if self.rescan.is_some() && !self.watch {
            return Err(Failure::usage("--rescan is for --watch"));
        }
        if self.workers.is_some() && self.threads.is_some() {
            let reason = "--threads names the workers, too, so --workers cannot be used with it";
            return Err(Failure::usage(reason));
        }
        if self.explanation.is_some() && self.watch {
            let reason = "--explain-pipeline is for a run that ends, not for --watch";
            return Err(Failure::usage(reason));
        }
        if self.display == ProgressDisplay::Json && self.watch {
            let reason = "--progress json is for a run that ends, not for --watch";
            return Err(Failure::usage(reason));
        }
        let reads = self.workers.is_some()
            || self.threads.is_some()
            || self.queue_bytes.is_some()
            || self.explanation.is_some()
            || self.display != ProgressDisplay::Bar
            || self.retry
            || self.watch
            || self.rules != WalkOptions::default();
        if self.remove && reads {
            let reason = "--remove reads no files, so only --data, --config and --memory can be \
                          used with it";
            return Err(Failure::usage(reason));
        }
        self.rules.check_patterns().map_err(Failure::Usage)
    }
}

fn parse_display(text: &str) -> Result<ProgressDisplay, Failure> {
    match text {
        "bar" => Ok(ProgressDisplay::Bar),
        "json" => Ok(ProgressDisplay::Json),
        _ => Err(Failure::Usage(format!(
            "--progress {text:?} is not known; write bar or json"
        ))),
    }
}

fn parse_rescan(text: &str) -> Result<u64, Failure> {
    let number = text.parse().ok().filter(|seconds| *seconds > 0);
    let reason = || format!("--rescan {text:?} is not a number of seconds; write 1 or more");
    number.ok_or_else(|| Failure::Usage(reason()))
}

/// The numbers of threads of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    pub extract: usize,
    pub write: usize,
    pub index: usize,
}

const WORKERS_MAX: usize = 1024;

fn parse_threads(text: &str) -> Result<Threads, Failure> {
    let parse = |number: &str| number.parse().ok();
    let numbers: Option<Vec<usize>> = text.split(',').map(parse).collect();
    match numbers.as_deref() {
        Some(&[extract, write, index])
            if [extract, write, index]
                .iter()
                .all(|number| (1..=WORKERS_MAX).contains(number))
                && write <= extract =>
        {
            Ok(Threads {
                extract,
                write,
                index,
            })
        }
        _ => Err(Failure::Usage(format!(
            "--threads {text:?} is not EXTRACT,WRITE,INDEX: three numbers from 1 to {WORKERS_MAX}, \
             and no more threads that write than worker processes"
        ))),
    }
}

fn parse_queue(text: &str) -> Result<usize, Failure> {
    const QUEUE_BYTES_MAX: u64 = 1 << 30;
    let bytes = match text {
        "0" => Some(0),
        text => byte_size::parse(text).ok(),
    };
    bytes
        .filter(|bytes| *bytes <= QUEUE_BYTES_MAX)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--queue {text:?} is not a size; write 0, or up to 1GiB such as 8MiB"
            ))
        })
}

fn parse_workers(text: &str) -> Result<usize, Failure> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=WORKERS_MAX).contains(number))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "--workers {text:?} is not a number of workers; write 1 to {WORKERS_MAX}"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    fn check(arguments: &[&str], expected: Result<Options, &str>) {
        check_parsed(parse, arguments, expected);
    }

    #[test]
    fn arguments_are_parsed() {
        let options = Options {
            folders: vec!["a".into(), "b".into()],
            config: Some("c".into()),
            data_folder: Some("d".into()),
            workers: Some(3),
            threads: None,
            queue_bytes: Some(1 << 20),
            explanation: None,
            display: ProgressDisplay::Bar,
            memory_bytes: Some(1 << 30),
            rules: WalkOptions {
                include: vec!["*.txt".into()],
                skip: vec!["x".into(), "y".into()],
                gitignore: true,
                hidden: true,
                follow_links: true,
                exclude: Vec::new(),
                languages: Vec::new(),
            },
            retry: true,
            remove: false,
            web: None,
            watch: true,
            rescan: Some(60),
        };
        let line = "a --data d b --config c --workers 3 --memory=1GiB --include *.txt --skip x \
                    --skip y --gitignore --hidden --follow-links --retry --watch \
                    --rescan 60 --queue 1MiB";
        check(&line.split(' ').collect::<Vec<_>>(), Ok(options));
        check(&["--remove"], Err("FOLDER"));
        check(&["a", "--skip", "["], Err("\"[\""));
        check(&["a", "--data", "d", "--workers", "0"], Err("--workers"));
        check(&["a", "--data", "d", "--memory", "much"], Err("much"));
        check(&["a", "--data", "d", "--fast"], Err("--fast"));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }

    #[test]
    fn options_exclude_each_other() {
        let removed = Options {
            folders: vec!["a".into()],
            remove: true,
            ..Options::default()
        };
        check(&["a", "--remove"], Ok(removed));
        check(&["a", "--remove", "--hidden"], Err("--remove"));
        check(&["a", "--rescan", "5"], Err("--watch"));
        check(&["a", "--watch", "--rescan", "0"], Err("--rescan"));
        let programs = Options {
            folders: vec!["a".into()],
            display: ProgressDisplay::Json,
            ..Options::default()
        };
        check(&["a", "--progress", "json"], Ok(programs));
        check(&["a", "--progress", "lines"], Err("--progress"));
        check(&["a", "--progress", "json", "--watch"], Err("--watch"));
        check(&["a", "--progress", "json", "--remove"], Err("--remove"));
    }

    #[test]
    fn threads_and_queues_are_parsed() {
        let threads = Options {
            folders: vec!["a".into()],
            threads: Some(Threads {
                extract: 3,
                write: 1,
                index: 2,
            }),
            queue_bytes: Some(0),
            explanation: Some(OutputFormat::Json),
            ..Options::default()
        };
        let line = "a --threads 3,1,2 --queue 0 --explain-pipeline=json";
        check(&line.split(' ').collect::<Vec<_>>(), Ok(threads));
        for wrong in ["3,1", "0,1,1", "1,2,1", "1,1,1,1", "a,1,1"] {
            check(&["a", "--threads", wrong], Err("--threads"));
        }
        check(
            &["a", "--threads", "1,1,1", "--workers", "1"],
            Err("--workers"),
        );
        check(&["a", "--queue", "2GiB"], Err("--queue"));
        check(&["a", "--explain-pipeline=x"], Err("--explain-pipeline"));
        check(&["a", "--explain-pipeline", "--watch"], Err("--watch"));
    }

    #[test]
    fn help_lists_the_readable_formats() {
        let help = format_help();
        let long = help.lines().find(|line| line.len() > 100);
        assert_eq!(long, None);
        assert!(help.contains("  PDF                     pdf\n"), "{help}");
        assert!(!help.contains("ELF program"), "{help}");
    }
}
