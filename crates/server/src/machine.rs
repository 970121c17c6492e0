//! Information of the operating system on the machine and the process. If it is not available (no
//! `/proc`), values are 0 or empty, because no command may fail for that reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the host name.
pub fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() {
        "localhost".to_owned()
    } else {
        name.trim().to_owned()
    }
}

/// The folders in a data folder, by kind of file.
pub const DATA_KINDS: &[&str] = &["log", "runs", "catalog"];

/// Returns the memory of the machine in kilobytes.
pub fn memory_kb() -> u64 {
    field_kb("/proc/meminfo", "MemTotal:")
}

/// Returns the memory limit of the process's control group in kilobytes, or the memory of the
/// machine.
pub fn memory_limit_kb() -> u64 {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    limit
        .trim()
        .parse::<u64>()
        .map_or(memory_kb(), |bytes| bytes / 1024)
}

/// Returns the resident and virtual memory of the process in kilobytes.
pub fn process_kb() -> (u64, u64) {
    (
        field_kb("/proc/self/status", "VmRSS:"),
        field_kb("/proc/self/status", "VmSize:"),
    )
}

/// Returns the processors that this process may use.
pub fn cores() -> i32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as i32)
}

/// Returns the processors of the machine, including those that this process may not use.
pub fn processors() -> i32 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_one = |line: &&str| line.starts_with("processor");
    match text.lines().filter(is_one).count() {
        0 => cores(),
        count => count as i32,
    }
}

/// Returns a field of the first processor.
pub fn processor(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(found, _)| found.trim() == name)?;
    Some(value.trim().to_owned())
}

/// Returns the bytes of the file system of a folder that this process cannot use, and all. The
/// former include what is reserved for the administrator.
pub fn file_system_bytes(folder: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    let used = found.f_blocks.saturating_sub(found.f_bavail);
    Some((bytes(used), bytes(found.f_blocks)))
}

/// Returns the size of the files of a folder in bytes, without those of folders within it.
pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok());
    sizes.filter(|it| it.is_file()).map(|it| it.len()).sum()
}

/// Returns the number of distinct values of a field of the processors, such as their sockets.
pub fn distinct_of_processors(names: &[&str]) -> Option<i32> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let of_one = |block: &str| -> Vec<String> {
        let fields = block.lines().filter_map(|line| line.split_once(':'));
        let meant = fields.filter(|(name, _)| names.contains(&name.trim()));
        meant.map(|(_, value)| value.trim().to_owned()).collect()
    };
    let found: BTreeSet<Vec<String>> = text.split("\n\n").map(of_one).collect();
    let count = found.iter().filter(|one| one.len() == names.len()).count();
    (count > 0).then_some(count as i32)
}

/// Returns the number of NUMA nodes.
pub fn memory_nodes() -> Option<i32> {
    let entries = fs::read_dir("/sys/devices/system/node").ok()?;
    let is_node = |name: &str| {
        let number = name.strip_prefix("node");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let nodes = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let count = nodes.filter(|name| is_node(name)).count();
    (count > 0).then_some(count as i32)
}

/// Returns the version text of the kernel.
pub fn kernel_text() -> Option<String> {
    let text = fs::read_to_string("/proc/version").ok()?;
    Some(text.trim().to_owned())
}

/// Returns the size of a memory page.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Returns the greatest number of open files of the process.
pub fn open_files_max() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let mut lines = text.lines();
    let rest = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Counters of the kernel for this process.
pub struct ProcessCounters {
    /// Page faults that read from disk, and those that did not.
    pub faults: u64,
    pub reclaims: u64,
    pub user_micros: u64,
    pub system_micros: u64,
    /// Maximum resident memory.
    pub resident_max_kb: u64,
}

/// The length of a clock tick in `/proc`: `USER_HZ` is 100 on all architectures.
const TICK_MICROS: u64 = 10_000;

/// Returns the counters of this process. They are 0 if they cannot be read.
pub fn counted() -> ProcessCounters {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program name is in parentheses and may contain spaces. Field 3 follows it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = rest
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0);
    ProcessCounters {
        faults: field(12),
        reclaims: field(10),
        user_micros: field(14) * TICK_MICROS,
        system_micros: field(15) * TICK_MICROS,
        resident_max_kb: field_kb("/proc/self/status", "VmHWM:"),
    }
}

/// Returns the name of the distribution.
pub fn system_name() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown").trim_matches('"').to_owned()
}

/// Returns the version of the kernel.
pub fn kernel_version() -> String {
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version.trim().to_owned()
}

/// Returns the number after a name at the start of a line.
fn field_kb(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
