//! The lock: a second process gets an error that names the folder and the first process; a dead
//! process leaves no lock.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{open, refusal, small};
use windrow_storage::{MemoryDisk, RealDisk, Storage, StorageError};

const FOLDER_VARIABLE: &str = "WINDROW_TEST_FOLDER";

fn open_folder(folder: &std::path::Path) -> Result<Storage, StorageError> {
    Storage::open(Arc::new(RealDisk::new(folder)?), small())
}

/// Not a test by itself: the other process, which holds the folder until its input ends.
#[test]
fn the_other_process() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
        return;
    };
    let storage = open_folder(folder.as_ref()).unwrap();
    let position = storage
        .log
        .append(&[b"from the other process"], |_| {})
        .unwrap();
    println!("\nholding {}", position.0);
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    std::process::abort();
}

#[test]
fn a_second_process_is_told_who_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process", "--nocapture"])
        .env(FOLDER_VARIABLE, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding 1"));
    let error = open_folder(folder.path())
        .err()
        .expect("the folder is in use")
        .to_string();
    let place = folder.path().display();
    assert_eq!(
        error,
        format!(
            "the data folder {place} is in use by process {}",
            child.id()
        )
    );
    drop(child.stdin.take());
    assert!(!child.wait().unwrap().success(), "it aborted");
    let storage = open_folder(folder.path()).unwrap();
    assert_eq!(
        storage.log.written().0,
        1,
        "a write outlives its process without any sync"
    );
}

#[test]
fn the_lock_goes_with_the_last_part() {
    let disk = MemoryDisk::new();
    let Storage { log, runs, catalog } = open(&disk);
    assert_eq!(
        refusal(&disk),
        "the data folder memory:/ is in use by another process"
    );
    drop(log);
    drop(runs);
    assert_eq!(
        refusal(&disk),
        "the data folder memory:/ is in use by another process"
    );
    drop(catalog);
    drop(open(&disk));
}

#[test]
fn a_folder_without_permission() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_folder(folder.path()).unwrap());
    let path = folder.path().join("FORMAT");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        return; // Nothing is forbidden to root.
    }
    let error = open_folder(folder.path())
        .err()
        .expect("not allowed")
        .to_string();
    let place = path.display();
    assert_eq!(
        error,
        format!("no permission for {place}: it must be readable and writable by this user")
    );
}

#[test]
fn a_path_that_is_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = open_folder(file.path())
        .err()
        .expect("not a folder")
        .to_string();
    assert!(
        error.starts_with(&file.path().display().to_string()),
        "{error}"
    );
}
