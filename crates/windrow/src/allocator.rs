//! Limits the number of arenas of the C library's allocator.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variable that limits the number of arenas of glibc's malloc. It is read at the start of a
/// process.
const ARENAS_VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Restarts the program in the same process with at most `count` arenas. Does nothing if the
/// variable is set already. An error is ignored, because the limit only saves memory.
///
/// By default there are eight arenas per core. Each retains free memory between used blocks, and
/// memory that other threads free.
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
