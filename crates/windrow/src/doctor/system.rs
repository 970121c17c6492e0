//! Checks of the system: versions, clock and limits.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit};
use rustix::system::uname;

use super::check::Check;
use crate::config::Config;
use crate::memory;
use crate::progress_bar::format_grouped;
use crate::serve::DATA_FILES;

/// 2026-01-01. This version is newer.
const EARLIEST_MS: i64 = 1_767_225_600_000;
/// The minimum jump that is reported. Time synchronization makes smaller ones.
const CLOCK_JUMP_MS: i64 = 60_000;

pub fn check_version() -> Check {
    let system = uname();
    let message = format!(
        "windrow {} on {} {}, {}",
        env!("CARGO_PKG_VERSION"),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy()
    );
    Check::ok("version", message)
}

/// Checks the clock against the age of the program and the end of the newest run.
pub fn check_clock(newest_run_ms: Option<i64>) -> Check {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    });
    rate_clock(now, newest_run_ms)
}

fn rate_clock(now_ms: i64, newest_run_ms: Option<i64>) -> Check {
    const NAME: &str = "clock";
    let shown =
        jiff::Timestamp::from_millisecond(now_ms).map(|time| time.strftime("%FT%TZ").to_string());
    let now = shown.unwrap_or_else(|_| format!("{now_ms} ms"));
    let advice = "set it: documents that expire, and the dates of runs, depend on it";
    if now_ms < EARLIEST_MS {
        return Check::problem(
            NAME,
            format!("{now} is before this program was written"),
            advice,
        );
    }
    match newest_run_ms {
        Some(run) if run > now_ms.saturating_add(CLOCK_JUMP_MS) => Check::problem(
            NAME,
            format!("{now} is before the last run of `windrow index`"),
            advice,
        ),
        _ => Check::ok(NAME, now),
    }
}

/// Checks the memory of the database against the limits of the process.
pub fn check_memory(configured: Option<u64>) -> Check {
    let machine = memory::read_machine_bytes();
    let limit = getrlimit(Resource::As).current;
    rate_memory(
        configured.unwrap_or_else(memory::default_memory_bytes),
        machine,
        limit,
    )
}

fn rate_memory(database: u64, machine: u64, limit: Option<u64>) -> Check {
    const NAME: &str = "memory";
    let megabytes = |bytes: u64| format_grouped(bytes / 1_000_000);
    let available = limit.map_or(machine, |limit| limit.min(machine));
    let (needed, there) = (megabytes(database), megabytes(available));
    let message = format!("{needed} MB for the database, {there} MB available");
    if database > available {
        let advice =
            "set a smaller `memory`, or raise the limit of the process (ulimit -v, cgroup)";
        return Check::problem(NAME, message, advice);
    }
    if database > available / 2 {
        let advice = "workers and the system's cache need memory, too; half of it is enough";
        return Check::warning(NAME, message, advice);
    }
    Check::ok(NAME, message)
}

/// Checks the limit of open files against the needs of the data folder and of the maximum number of
/// connections.
pub fn check_open_files(connections_max: Option<usize>) -> Check {
    let limit = getrlimit(Resource::Nofile);
    match connections_max {
        // `windrow serve` raises its soft limit to the hard limit.
        Some(connections) => rate_open_files(limit.maximum, connections as u64),
        None => rate_open_files(limit.current, 0),
    }
}

fn rate_open_files(limit: Option<u64>, connections: u64) -> Check {
    const NAME: &str = "open files";
    let Some(most) = limit else {
        return Check::ok(NAME, "no limit");
    };
    let message = format!("{} at most", format_grouped(most));
    if most < DATA_FILES {
        let advice = "raise it to 1,024 or more (ulimit -n, LimitNOFILE of systemd)";
        return Check::warning(NAME, message, advice);
    }
    if most < connections.saturating_add(DATA_FILES) {
        let message = format!("{message}, for {} connections", format_grouped(connections));
        let advice = "raise it to 1,024 more than the connections (LimitNOFILE of systemd), or set net.maxIncomingConnections";
        return Check::warning(NAME, message, advice);
    }
    Check::ok(NAME, message)
}

/// Checks the number of folders of `windrow index --watch` against the limit of the system.
pub fn check_watches(config: &Config) -> Check {
    const NAME: &str = "watched folders";
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let limit = limit.ok().and_then(|text| text.trim().parse::<u64>().ok());
    let Some(limit) = limit else {
        return Check::skipped(NAME, "the system does not tell its limit");
    };
    let folders = config.folders.iter().map(|folder| folder.path.clone());
    let counted = count_folders(folders.collect(), limit);
    let number = format_grouped(counted.folders);
    let more = if counted.is_complete { "" } else { "at least " };
    let message = format!(
        "{more}{number}, the limit of the system is {}",
        format_grouped(limit)
    );
    if counted.folders > limit {
        let advice =
            "`windrow index --watch` scans regularly instead; raise fs.inotify.max_user_watches";
        Check::warning(NAME, message, advice)
    } else {
        Check::ok(NAME, message)
    }
}

struct CountedFolders {
    folders: u64,
    is_complete: bool,
}

/// Counts folders until there are more than `limit` or it takes too long.
fn count_folders(mut rest: Vec<PathBuf>, limit: u64) -> CountedFolders {
    const TIME_MAX: Duration = Duration::from_secs(10);
    let started = Instant::now();
    let mut folders = 0;
    while let Some(folder) = rest.pop() {
        if folders > limit || started.elapsed() > TIME_MAX {
            return CountedFolders {
                folders,
                is_complete: false,
            };
        }
        let Ok(entries) = folder.read_dir() else {
            continue;
        };
        folders += 1;
        let below = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        rest.extend(below.map(|entry| entry.path()));
    }
    CountedFolders {
        folders,
        is_complete: true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;

    #[test]
    fn a_clock_in_the_past_is_a_problem() {
        for (now, run, expected) in [
            (0, None, Level::Problem),
            (EARLIEST_MS + 1, None, Level::Good),
            (EARLIEST_MS + 1, Some(EARLIEST_MS), Level::Good),
            (EARLIEST_MS, Some(EARLIEST_MS + CLOCK_JUMP_MS), Level::Good),
            (
                EARLIEST_MS,
                Some(EARLIEST_MS + CLOCK_JUMP_MS + 1),
                Level::Problem,
            ),
        ] {
            assert_eq!(rate_clock(now, run).level, expected, "{now} {run:?}");
        }
    }

    #[test]
    fn memory_has_to_be_available() {
        const GIB: u64 = 1 << 30;
        for (database, machine, limit, expected) in [
            (GIB, 4 * GIB, None, Level::Good),
            (3 * GIB, 4 * GIB, None, Level::Warning),
            (5 * GIB, 4 * GIB, None, Level::Problem),
            (GIB, 4 * GIB, Some(GIB / 2), Level::Problem),
        ] {
            assert_eq!(rate_memory(database, machine, limit).level, expected);
        }
    }

    #[test]
    fn connections_need_open_files() {
        for (limit, connections, expected) in [
            (None, u64::MAX, Level::Good),
            (Some(1023), 0, Level::Warning),
            (Some(1024), 0, Level::Good),
            (Some(11_023), 10_000, Level::Warning),
            (Some(11_024), 10_000, Level::Good),
        ] {
            let check = rate_open_files(limit, connections);
            assert_eq!(check.level, expected, "{limit:?} {connections}");
        }
    }

    #[test]
    fn folders_are_counted_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/b", "c"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("c/loop")).unwrap();
        let all = count_folders(vec![folder.path().into()], 100);
        assert!(all.is_complete && all.folders == 4);
        let some = count_folders(vec![folder.path().into()], 1);
        assert!(!some.is_complete && some.folders == 2);
    }
}
