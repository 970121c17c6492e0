//! The memory of the machine.

use std::fs;

use crate::byte_size;
use crate::command_line::Failure;

/// The minimum memory of the engine.
pub const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// The assumed memory if the system does not report it.
const UNKNOWN_MACHINE_BYTES: u64 = 2 << 30;

/// Returns a quarter of the memory that this process can use.
pub fn default_memory_bytes() -> u64 {
    (read_machine_bytes() / 4).max(MEMORY_BYTES_MIN)
}

/// Parses the value of `--memory`, in bytes.
pub fn parse_option(text: &str) -> Result<u64, Failure> {
    let bytes = byte_size::parse(text).and_then(check);
    bytes.map_err(|reason| Failure::Usage(format!("--memory: {reason}")))
}

/// Returns `bytes` if it is enough for the engine.
pub fn check(bytes: u64) -> Result<u64, String> {
    let mebibytes_min = MEMORY_BYTES_MIN >> 20;
    if bytes < MEMORY_BYTES_MIN {
        Err(format!(
            "{bytes} bytes are too little; the minimum is {mebibytes_min}MiB"
        ))
    } else {
        Ok(bytes)
    }
}

/// Returns the memory of the machine, or the limit of the control group if it is lower.
pub fn read_machine_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = parse_meminfo_total(&machine).unwrap_or(UNKNOWN_MACHINE_BYTES);
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    limit
        .trim()
        .parse()
        .map_or(machine, |limit: u64| limit.min(machine))
}

fn parse_meminfo_total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_read_from_meminfo() {
        let check =
            |text: &str, expected: Option<u64>| assert_eq!(parse_meminfo_total(text), expected);
        check(
            "MemTotal:       16384 kB\nMemFree: 1 kB\n",
            Some(16_384 * 1024),
        );
        check("MemFree: 1 kB\n", None);
        check("MemTotal: much\n", None);
        assert!(default_memory_bytes() >= MEMORY_BYTES_MIN);
    }
}
