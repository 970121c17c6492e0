//! The lock of a data folder. A second process gets an error with the folder and the id of the
//! first process. The lock ends with its process.

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

/// Not a test by itself: the body of the other process, which has the folder open until its input
/// ends. It does nothing without the environment variable.
#[test]
fn other_process() {
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
fn second_process_gets_the_id_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--nocapture"])
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
        "the death of a process does not lose an unsynced write"
    );
}

#[test]
fn lock_is_released_with_the_last_part() {
    let disk = MemoryDisk::new();
    let Storage {
        log, runs, catalog, ..
    } = open(&disk);
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
fn folder_without_permission_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_folder(folder.path()).unwrap());
    let path = folder.path().join("FORMAT");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        return; // The user is root, which may read all files.
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
fn file_instead_of_a_folder_is_refused() {
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
