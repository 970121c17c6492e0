//! How the C library divides the memory of the process.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// How many heaps malloc of glibc has. It is read when a process starts.
const ARENAS_VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Starts the program again, in the same process, with so many heaps for all of its threads. If the
/// variable is set, or if the program cannot be started, this does nothing.
///
/// By default there are eight heaps for each core, and each keeps free memory between blocks that
/// are in use, and memory that other threads return to it.
pub fn limit_arenas(count: usize) {
    if cfg!(not(target_env = "gnu")) || std::env::var_os(ARENAS_VARIABLE).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    command.env(ARENAS_VARIABLE, count.to_string());
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // Returns only if it fails.
    let _ = command.args(arguments).exec();
}
