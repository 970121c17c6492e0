//! Files that hang, crash, exhaust memory or make a worker send invalid replies must be failures
//! with a reason, and all other files must be read. The workers are this program with a reader
//! whose behaviour depends on the file's name.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stdin, stdout};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use windrow_extract::{
    DocumentKind, ExtractedDocument, ExtractionCounts, FilePart, Limits, Output,
};
use windrow_ingest::{
    FailureClass, FileEvent, FileOutcome, WalkOptions, WalkResult, Worker, WorkerConfig,
    WorkerPool, run_worker, run_worker_with, walk,
};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("simulated worker") => {
            let _ = run_worker_with(stdin().lock(), stdout(), &mut |request, emit| {
                Ok(simulate(request.path, emit))
            });
        }
        Some("worker") => {
            run_worker(stdin().lock(), stdout().lock()).expect("the owner keeps its pipes open")
        }
        Some("no worker") => println!("hello"),
        _ => {
            bad_files_do_not_affect_others();
            files_are_read();
            time_spent_by_the_sink_does_not_count();
            other_programs_are_refused();
            println!("ok");
        }
    }
}

/// A reader whose behaviour depends on the file's name.
fn simulate(path: &Path, emit: &mut dyn FnMut(Output)) -> ExtractionCounts {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let document = |text: &str| {
        Output::Document(Box::new(ExtractedDocument::new(
            DocumentKind::Text,
            text.into(),
        )))
    };
    match name.as_str() {
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "many" => (0..6).for_each(|_| emit(document(&"long ".repeat(400_000)))),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(0),
        "eat" => {
            let mut eaten: Vec<Vec<u8>> = Vec::new();
            loop {
                eaten.push(vec![1; 16 << 20]);
                emit(document(&eaten.len().to_string()));
            }
        }
        "overflow" => assert_eq!(recurse(u64::MAX), 0),
        "garbage" => {
            stdout().write_all(b"\x05\0\0\0what?").unwrap();
            stdout().flush().unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        _ => emit(document(&name)),
    }
    ExtractionCounts {
        documents: 1,
        ..ExtractionCounts::default()
    }
}

/// Recursion that the compiler cannot turn into a loop.
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    if depth == 0 {
        0
    } else {
        recurse(depth - 1) + frame[std::hint::black_box(3)] - depth
    }
}

/// A temporary folder with these files, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let path = std::env::temp_dir().join(format!("windrow-workers-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (name, bytes) in files {
            fs::write(path.join(name), bytes).unwrap();
        }
        Folder(path)
    }

    fn walk(&self) -> WalkResult {
        walk(&WalkOptions::default().roots(std::slice::from_ref(&self.0)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn config(command: &str) -> WorkerConfig {
    WorkerConfig {
        file_deadline: Duration::from_secs(2),
        memory_bytes_max: 512 << 20,
        ..WorkerConfig::this_program(&[command]).unwrap()
    }
}

/// The outcomes of files, by name.
fn outcomes(pool: &WorkerPool, walked: &WalkResult) -> BTreeMap<String, FileOutcome> {
    let ends = Mutex::new(BTreeMap::new());
    pool.run(&walked.files, &|_, file, event| {
        if let FileEvent::End(end) = event {
            let name = file
                .path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            assert!(
                ends.lock().unwrap().insert(name, end).is_none(),
                "each file ends once"
            );
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    ends.into_inner().unwrap()
}

fn bad_files_do_not_affect_others() {
    let bad = [
        ("abort", FailureClass::Crashed, "out of memory"),
        ("garbage", FailureClass::Crashed, "invalid reply"),
        ("eat", FailureClass::Crashed, "out of memory"),
        ("exit", FailureClass::Crashed, "before its reply"),
        ("hang", FailureClass::Deadline, "longer than 2 s"),
        ("overflow", FailureClass::Crashed, ""),
    ];
    let good: Vec<String> = (0..40).map(|number| format!("file {number}")).collect();
    let names = good
        .iter()
        .map(String::as_str)
        .chain(bad.map(|(name, _, _)| name));
    let files: Vec<(&str, &[u8])> = names.map(|name| (name, &b""[..])).collect();
    let folder = Folder::new(&files);
    let started = Instant::now();
    let outcomes = outcomes(
        &WorkerPool::new(config("simulated worker")).with_workers(2),
        &folder.walk(),
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(outcomes.len(), good.len() + bad.len());
    for name in &good {
        assert!(
            matches!(&outcomes[name], FileOutcome::Done(counts) if counts.documents == 1),
            "{name}"
        );
    }
    for (name, class, reason) in bad {
        let FileOutcome::Failed(failure) = &outcomes[name] else {
            panic!("{name}: {:?}", outcomes[name])
        };
        assert_eq!(failure.class, class, "{name}: {failure:?}");
        assert!(failure.reason.contains(reason), "{name}: {failure:?}");
    }
}

fn files_are_read() {
    let folder = Folder::new(&[
        ("a.html", b"<title>T</title>words"),
        (
            "b.mbox",
            b"From a Mon Jan  1 00:00:00 2024\nSubject: one\n\n1\n\n\
              From b Mon Jan  1 00:00:00 2024\nSubject: two\n\n2\n",
        ),
        ("c.pdf", b"%PDF-1.4 nothing"),
        ("d.ttf", b"\0\x01\0\0\0"),
        ("e.txt", &[b'x'; 2000]),
    ]);
    let limits = Limits {
        input_bytes_max: 1000,
        ..Limits::default()
    };
    let config = WorkerConfig {
        limits,
        ..config("worker")
    };
    let mut walked = folder.walk();
    fs::remove_file(folder.0.join("a.html")).unwrap();
    fs::write(folder.0.join("f.md"), "# Late").unwrap();
    let mut worker = Worker::start(&config).unwrap();
    let mut titles = Vec::new();
    let mut read = |path: &Path| {
        let mut last = None;
        let sink = &mut |event| match event {
            FileEvent::Document(document) => titles.push(document.title.unwrap()),
            FileEvent::MemberFailure { failure, .. } => panic!("{failure:?}"),
            FileEvent::MemberSkipped { inner, format, .. } => panic!("{inner}: {format}"),
            FileEvent::End(end) => last = Some(end),
        };
        worker.extract(path, &[], FilePart::WHOLE, sink).unwrap();
        last.unwrap()
    };
    walked.files.push(walked.files[0].clone());
    walked.files[5].path = folder.0.join("f.md");
    let classes: Vec<String> = walked
        .files
        .iter()
        .map(|file| match read(&file.path) {
            FileOutcome::Done(counts) => format!("{} documents", counts.documents),
            FileOutcome::Skipped(what) => what,
            FileOutcome::Failed(failure) => failure.class.as_str().to_string(),
        })
        .collect();
    let expected = [
        "unreadable",
        "2 documents",
        "malformed",
        "font",
        "limit",
        "1 documents",
    ];
    assert_eq!(classes, expected);
    assert_eq!(titles, ["one", "two", "Late"]);
}

/// Six documents of 2 MB do not fit into the pipe, and the sink holds each for most of the
/// deadline.
fn time_spent_by_the_sink_does_not_count() {
    let config = WorkerConfig {
        file_deadline: Duration::from_millis(400),
        ..config("simulated worker")
    };
    let mut worker = Worker::start(&config).unwrap();
    let (mut documents, mut done) = (0, false);
    let sink = &mut |event| match event {
        FileEvent::Document(_) => {
            documents += 1;
            std::thread::sleep(Duration::from_millis(350));
        }
        event => done = matches!(event, FileEvent::End(FileOutcome::Done(_))),
    };
    worker
        .extract(Path::new("/many"), &[], FilePart::WHOLE, sink)
        .unwrap();
    assert_eq!((documents, done), (6, true));
}

fn other_programs_are_refused() {
    assert!(Worker::start(&config("no worker")).is_err());
    let missing = WorkerConfig {
        program: "/no/such/program".into(),
        ..config("worker")
    };
    let folder = Folder::new(&[("a", b"")]);
    assert!(
        WorkerPool::new(missing)
            .run(&folder.walk().files, &|_, _, _| ControlFlow::Continue(()))
            .is_err()
    );
}
