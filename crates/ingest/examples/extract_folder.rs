//! Reads all files of a folder in worker processes and reports the throughput: `cargo run --release
//! -p windrow-ingest --example extract_folder -- FOLDER [WORKERS]`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Instant;

use windrow_ingest::{
    FileEvent, FileOutcome, WalkOptions, WorkerConfig, WorkerPool, run_worker, walk,
};

#[derive(Default)]
struct KindTotals {
    documents: u64,
    text_bytes: usize,
}

#[derive(Default)]
struct Totals {
    documents: BTreeMap<&'static str, KindTotals>,
    skipped: BTreeMap<String, u64>,
    failures: Vec<String>,
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "/usr/share/doc".into());
    if folder == "worker" {
        return run_worker(std::io::stdin().lock(), std::io::stdout().lock());
    }
    let started = Instant::now();
    let walked = walk(&WalkOptions::default().roots(&[folder.into()]));
    let walk_seconds = started.elapsed().as_secs_f64();
    let mut pool = WorkerPool::new(WorkerConfig::this_program(&["worker"])?);
    if let Some(workers) = arguments.next().and_then(|word| word.parse().ok()) {
        pool = pool.with_workers(workers);
    }
    let totals = Mutex::new(Totals::default());
    let started = Instant::now();
    pool.run(&walked.files, &|_, file, event| {
        let mut totals = totals
            .lock()
            .expect("no thread panics while it holds the lock");
        match event {
            FileEvent::Document(document) => {
                let kind = totals.documents.entry(document.kind.as_str()).or_default();
                kind.documents += 1;
                kind.text_bytes += document.text.len();
            }
            FileEvent::MemberFailure { failure, .. }
            | FileEvent::End(FileOutcome::Failed(failure)) => {
                let inner = failure.inner.unwrap_or_default();
                let line = format!("{}{inner}: {}", file.path.display(), failure.reason);
                totals.failures.push(line);
            }
            FileEvent::MemberSkipped { format: what, .. }
            | FileEvent::End(FileOutcome::Skipped(what)) => {
                *totals.skipped.entry(what).or_default() += 1
            }
            FileEvent::End(FileOutcome::Done(_)) => {}
        }
        ControlFlow::Continue(())
    })?;
    report(
        &walked,
        walk_seconds,
        started.elapsed().as_secs_f64(),
        &totals.into_inner().unwrap(),
    );
    Ok(())
}

fn report(walked: &windrow_ingest::WalkResult, walk_seconds: f64, seconds: f64, totals: &Totals) {
    let files = walked.files.len();
    let bytes: u64 = walked.files.iter().map(|file| file.stamp.size).sum();
    let text: usize = totals.documents.values().map(|kind| kind.text_bytes).sum();
    println!(
        "{files} files of {:.1} MB found in {walk_seconds:.3} s",
        bytes as f64 / 1e6
    );
    println!(
        "read in {seconds:.3} s: {:.0} files/s, {:.1} MB of text, {:.1} MB/s",
        files as f64 / seconds,
        text as f64 / 1e6,
        text as f64 / 1e6 / seconds
    );
    for (kind, totals) in &totals.documents {
        let megabytes = totals.text_bytes as f64 / 1e6;
        println!(
            "  {kind}: {} documents, {megabytes:.2} MB",
            totals.documents
        );
    }
    println!("skipped: {:?}", totals.skipped);
    for failure in walked
        .failures
        .iter()
        .map(|f| format!("{}: {}", f.path.display(), f.reason))
    {
        println!("not walked: {failure}");
    }
    totals
        .failures
        .iter()
        .for_each(|line| println!("failed: {line}"));
}
