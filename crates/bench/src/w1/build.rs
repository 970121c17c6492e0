//! A build: loads documents, runs `createIndexes`, queries, kills and restarts the server, and
//! queries again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::bodies::Bodies;
use super::{progress, queries};
use crate::client::Connection;
use crate::error::BenchError;
use crate::load::{self, Feed};
use crate::measure::timed;
use crate::options::Options;
use crate::report::hash;
use crate::server::Server;

const BATCH: u64 = 1_000;
const INDEX: &str = "body_text";

pub struct BuildResult {
    pub load_rate: f64,
    pub build_seconds: f64,
    pub index_bytes: f64,
    /// The peak memory of the server.
    pub peak_bytes: f64,
    pub query_ms: f64,
    pub restart_seconds: f64,
    pub hash: u64,
}

pub fn build(options: &Options, bodies: &Bodies) -> Result<BuildResult, BenchError> {
    let mut server = Server::start(options)?;
    let mut connection = server.connect()?;
    limit_memory(options, &mut connection)?;
    eprintln!("loading {} documents over the wire", bodies.documents);
    let feed = Feed::new(bodies.corpus, BATCH);
    let load_seconds = feed.insert(&mut connection, 0..bodies.documents)?;
    let definition = definition(options);
    eprintln!("createIndexes {definition}");
    let build_seconds = create(options, &server, &mut connection, &definition)?;
    eprintln!("  {build_seconds:.2} s");
    let index_bytes = load::statistic(&mut connection, &format!("indexSizes.{INDEX}"))?;
    let peak_bytes = server.peak_bytes();
    let (answers, query_ms) = queries::ask(&mut connection, bodies)?;
    let restart_seconds = server.kill_and_restart()?.as_secs_f64();
    let mut connection = server.connect()?;
    let (again, _) = queries::ask(&mut connection, bodies)?;
    if answers != again {
        let text = "other answers after SIGKILL than before";
        return Err(BenchError::Server(text.into()));
    }
    let holds = load::verify(&mut connection, bodies.corpus, bodies.documents)?;
    server.stop()?;
    Ok(BuildResult {
        load_rate: bodies.documents as f64 / load_seconds,
        build_seconds,
        index_bytes,
        peak_bytes,
        query_ms,
        restart_seconds,
        hash: hash(holds, &answers),
    })
}

fn limit_memory(options: &Options, connection: &mut Connection) -> Result<(), BenchError> {
    let Some(megabytes) = options.build_megabytes else {
        return Ok(());
    };
    let set = connection.run("admin", |writer| {
        writer.int32("setParameter", 1);
        writer.int64("maxIndexBuildMemoryUsageMegabytes", megabytes as i64);
    });
    set.map(drop)
}

/// The index specification for `createIndexes`.
fn definition(options: &Options) -> String {
    let language = options.language.iter();
    let language = language.map(|name| format!(r#", "default_language": "{name}""#));
    let version = options.text_version.iter();
    let version = version.map(|number| format!(r#", "textIndexVersion": {number}"#));
    let more: String = language.chain(version).collect();
    format!(r#"{{"key": {{"body": "text"}}, "name": "{INDEX}"{more}}}"#)
}

fn create(
    options: &Options,
    server: &Server,
    connection: &mut Connection,
    definition: &str,
) -> Result<f64, BenchError> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        if options.show {
            let mut watcher = server.connect()?;
            let done = &done;
            scope.spawn(move || progress::show(&mut watcher, done));
        }
        let made = timed(|| load::create_index(connection, definition));
        done.store(true, Ordering::Release);
        Ok(made?.0)
    })
}
