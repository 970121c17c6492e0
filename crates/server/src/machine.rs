//! What the operating system says about the machine and this process. Where it says nothing (no
//! `/proc`), the answer is 0 or empty: nothing here may make a command fail.

use std::fs;

/// The machine's name.
pub fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() {
        "localhost".to_owned()
    } else {
        name.trim().to_owned()
    }
}

/// Memory of the machine in kilobytes.
pub fn memory_kb() -> u64 {
    field_kb("/proc/meminfo", "MemTotal:")
}

/// The limit that the process's control group sets to its memory in kilobytes, else the machine's.
pub fn memory_limit_kb() -> u64 {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    limit
        .trim()
        .parse::<u64>()
        .map_or(memory_kb(), |bytes| bytes / 1024)
}

/// Memory that this process holds: in the machine's memory, and as addresses, in kilobytes.
pub fn process_kb() -> (u64, u64) {
    (
        field_kb("/proc/self/status", "VmRSS:"),
        field_kb("/proc/self/status", "VmSize:"),
    )
}

pub fn cores() -> i32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as i32)
}

/// The distribution's name.
pub fn system_name() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown").trim_matches('"').to_owned()
}

pub fn kernel_version() -> String {
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version.trim().to_owned()
}

/// The number behind a name at the start of a line.
fn field_kb(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
