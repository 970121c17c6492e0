//! How the C library divides the memory of the process.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// How many heaps malloc of glibc has. It is read when a process starts.
const ARENAS_VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Starts the program again, in the same process, with one heap for all of its threads. If the variable is
/// set, or if the program cannot be started, this does nothing.
///
/// By default each thread has a heap of its own, which keeps the memory that other threads return to it.
/// Entries of indexes are created by several threads and released by others: a mailbox of 1 GB needed
/// 747 MB, and needs 515 MB with one heap, in the same time.
pub(super) fn use_one_arena() {
    if cfg!(not(target_env = "gnu")) || std::env::var_os(ARENAS_VARIABLE).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    command.env(ARENAS_VARIABLE, "1");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // Returns only if it fails.
    let _ = command.args(arguments).exec();
}
