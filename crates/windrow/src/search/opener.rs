//! `--open`: opens the file of a result with the desktop's default program.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windrow_ingest::text_to_path;

use windrow_file_search::SearchResult;

use super::result::escape_control;
use crate::command_line::Failure;

/// Opens the file of a result. Returns a message that names the file.
pub fn open_result(result: &SearchResult) -> Result<String, Failure> {
    let shown = escape_control(&result.path);
    let path = text_to_path(&result.path)
        .ok_or_else(|| Failure::Runtime(format!("{shown} is not the path of a file")))?;
    if !path.exists() {
        let message = format!("{shown} does not exist any more; run `windrow index` again");
        return Err(Failure::Runtime(message));
    }
    let program = opener()?;
    start(&program, &path)?;
    Ok(match &result.inner {
        None => format!("opens {shown}"),
        Some(inner) => format!("opens {shown}, which contains {}", escape_control(inner)),
    })
}

/// Returns the program that opens files.
fn opener() -> Result<OsString, Failure> {
    if cfg!(target_os = "macos") {
        return Ok("open".into());
    }
    if is_in_path("xdg-open") {
        return Ok("xdg-open".into());
    }
    let browser = env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    browser.ok_or_else(|| {
        let message = "no program opens files: xdg-open is not in PATH, and BROWSER is not set";
        Failure::Runtime(message.to_owned())
    })
}

fn is_in_path(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder: PathBuf| folder.join(program).is_file())
}

/// Starts a program detached from this one and its standard streams.
fn start(program: &OsString, path: &Path) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null());
    let started = command.stderr(Stdio::null()).spawn();
    started.map(drop).map_err(|error| {
        let program = program.display();
        Failure::Runtime(format!("{program} cannot be started: {error}"))
    })
}
