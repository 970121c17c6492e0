//! The sandbox of a converter, and the launcher that enters it.
//!
//! A converter is started through the launcher, because a process can only restrict itself:
//!
//! ```text
//! worker ── starts ─▶ windrow (launcher) ── limits, Landlock, seccomp ─▶ executes the converter
//! ```
//!
//! - *Landlock*: it can read the system folders and its input file, and write one private folder.
//! - *seccomp*: it cannot create sockets or leave its process group, see `system_calls`.
//! - *Resource limits*: memory, processor time, file size, number of open files and processes.
//! - *Process group*: all its processes are killed at the deadline.
//!
//! If the worker is killed, the kernel kills the converter. Processes that the converter has
//! started remain until they reach their own limits.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, getuid, setrlimit};

use crate::settings::SandboxMode;
use crate::system_calls;

/// Folders that every converter may read: programs, libraries, and their configuration and data.
const READ_FOLDERS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/var/lib/texmf",
    "/var/lib/ghostscript",
    "/var/cache/fontconfig",
];
/// Files that programs read about the machine and themselves.
const READ_FILES: &[&str] = &[
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/filesystems",
    "/sys/devices/system/cpu",
];
const NULL_DEVICE: &str = "/dev/null";

/// The newest Landlock ABI whose rights are used. Older kernels support a subset.
const LANDLOCK: ABI = ABI::V6;
const OPEN_FILES_MAX: u64 = 256;
/// The exit code if the launcher failed to execute the converter.
pub(crate) const LAUNCH_FAILED: i32 = 125;

/// The permissions of a converter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    pub(crate) mode: SandboxMode,
    /// Files and folders that it may read besides those of the system.
    pub(crate) read: Vec<PathBuf>,
    /// The folder that it may write.
    pub(crate) write: Option<PathBuf>,
    pub(crate) memory_bytes_max: Option<u64>,
    pub(crate) cpu_seconds_max: Option<u64>,
    pub(crate) file_bytes_max: Option<u64>,
    /// The maximum number of processes and threads.
    pub(crate) processes_max: Option<u64>,
}

impl Permissions {
    /// Sets the memory limit, if the converter has its own.
    pub(crate) fn with_memory(self, bytes_max: Option<u64>) -> Self {
        Permissions {
            memory_bytes_max: bytes_max.or(self.memory_bytes_max),
            ..self
        }
    }

    /// Returns the permissions as arguments for the launcher.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if self.mode == SandboxMode::Required {
            arguments.extend(["--sandbox".into(), "required".into()]);
        }
        let numbers = [
            ("--memory", self.memory_bytes_max),
            ("--cpu", self.cpu_seconds_max),
            ("--file-size", self.file_bytes_max),
            ("--processes", self.processes_max),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                arguments.extend([name.into(), number.to_string().into()]);
            }
        }
        let read = self.read.iter().map(|path| ("--read", path));
        for (name, path) in read.chain(self.write.iter().map(|path| ("--write", path))) {
            arguments.extend([name.into(), path.into()]);
        }
        arguments.push("--".into());
        arguments
    }

    /// Parses the arguments of [`Permissions::to_arguments`]. The remaining arguments are the
    /// command.
    fn from_arguments(
        arguments: &mut dyn Iterator<Item = OsString>,
    ) -> Result<Permissions, String> {
        let mut permissions = Permissions::default();
        loop {
            let name = arguments.next().ok_or("a command is missing")?;
            if name == "--" {
                return Ok(permissions);
            }
            let value = arguments.next();
            let value = value.ok_or_else(|| format!("{} needs a value", name.display()))?;
            let number = || value.to_str().and_then(|text| text.parse().ok());
            match name.to_str() {
                Some("--sandbox") if value == "required" => {
                    permissions.mode = SandboxMode::Required
                }
                Some("--memory") => permissions.memory_bytes_max = number(),
                Some("--cpu") => permissions.cpu_seconds_max = number(),
                Some("--file-size") => permissions.file_bytes_max = number(),
                Some("--processes") => permissions.processes_max = number(),
                Some("--read") => permissions.read.push(value.into()),
                Some("--write") => permissions.write = Some(value.into()),
                _ => return Err(format!("{} is not known", name.display())),
            }
        }
    }
}

/// The support of the kernel for the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    /// The Landlock ABI, or the reason why Landlock is not available.
    pub landlock: Result<String, String>,
    /// The reason why seccomp filters are not available. `None` if they are.
    pub seccomp: Result<(), String>,
}

impl SandboxStatus {
    /// Returns `true` if programs cannot leave the sandbox.
    pub fn is_complete(&self) -> bool {
        self.landlock.is_ok() && self.seccomp.is_ok()
    }
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.landlock {
            Ok(interface) => write!(formatter, "{interface}, ")?,
            Err(reason) => write!(formatter, "no Landlock ({reason}), ")?,
        }
        match &self.seccomp {
            Ok(()) => write!(formatter, "seccomp"),
            Err(reason) => write!(formatter, "no seccomp ({reason})"),
        }
    }
}

/// Detects the support of the kernel. Enters the sandbox in a thread that ends afterwards.
pub fn probe() -> SandboxStatus {
    let restricted = std::thread::spawn(|| {
        let landlock = restrict_files(&Permissions::default());
        SandboxStatus {
            landlock,
            seccomp: system_calls::refuse(),
        }
    });
    restricted.join().unwrap_or_else(|_| SandboxStatus {
        landlock: Err("it panicked".to_owned()),
        seccomp: Err("it panicked".to_owned()),
    })
}

/// The failure of the launcher.
#[derive(Debug)]
pub struct LaunchFailure {
    /// The exit code with which the launcher must exit.
    pub exit_code: i32,
    /// The reason, for standard error.
    pub reason: String,
}

/// Runs the launcher: enters the sandbox and executes the command in `arguments`. Returns only if
/// that fails.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> LaunchFailure {
    let reason = match try_launch(&mut arguments.into_iter()) {
        Ok(error) => error.to_string(),
        Err(reason) => reason,
    };
    LaunchFailure {
        exit_code: LAUNCH_FAILED,
        reason,
    }
}

fn try_launch(arguments: &mut dyn Iterator<Item = OsString>) -> Result<std::io::Error, String> {
    let permissions = Permissions::from_arguments(arguments)?;
    let program = arguments.next().ok_or("a command is missing")?;
    // Kills the converter when the worker dies.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments);
    limit_resources(&permissions)?;
    let files = restrict_files(&permissions);
    let calls = system_calls::refuse();
    if permissions.mode == SandboxMode::Required {
        let required = files.map(|_| ()).and(calls);
        required.map_err(|reason| format!("sandbox = \"required\", but {reason}"))?;
    }
    Ok(command.exec())
}

fn limit_resources(permissions: &Permissions) -> Result<(), String> {
    let processes = permissions.processes_max.map(|own| own + count_threads());
    let limits = [
        (Resource::As, permissions.memory_bytes_max),
        (Resource::Cpu, permissions.cpu_seconds_max),
        (Resource::Fsize, permissions.file_bytes_max),
        (Resource::Nofile, Some(OPEN_FILES_MAX)),
        (Resource::Nproc, processes),
        (Resource::Core, Some(0)),
    ];
    for (resource, limit) in limits {
        if let Some(limit) = limit {
            lower_limit(resource, limit)?;
        }
    }
    Ok(())
}

/// Lowers a resource limit. Lower limits are unchanged.
fn lower_limit(resource: Resource, limit: u64) -> Result<(), String> {
    let maximum = getrlimit(resource).maximum;
    let value = Some(maximum.map_or(limit, |maximum| maximum.min(limit)));
    let limit = Rlimit {
        current: value,
        maximum: value,
    };
    setrlimit(resource, limit).map_err(|error| format!("the limit {resource:?}: {error}"))
}

/// Returns the number of threads of this user. The kernel counts all of them against
/// `RLIMIT_NPROC`.
fn count_threads() -> u64 {
    const OWN_LINKS: u64 = 2;
    let user = getuid().as_raw();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = processes.filter_map(|process| {
        let tasks = process.path().join("task").metadata().ok()?;
        (tasks.uid() == user).then(|| tasks.nlink().saturating_sub(OWN_LINKS).max(1))
    });
    threads.sum()
}

/// Restricts the files that this thread and its descendants can open. Returns the Landlock ABI, or
/// the reason why it is not available.
fn restrict_files(permissions: &Permissions) -> Result<String, String> {
    let describe = |error: landlock::RulesetError| format!("Landlock: {error}");
    let read = AccessFs::from_read(LANDLOCK);
    let write = AccessFs::from_all(LANDLOCK) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let own: Vec<&Path> = permissions.read.iter().map(PathBuf::as_path).collect();
    let folder: Vec<&Path> = permissions.write.iter().map(PathBuf::as_path).collect();
    let null: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(READ_FOLDERS, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(READ_FILES, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules([NULL_DEVICE], null)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(own, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(folder, write)))
        .and_then(|rules| rules.restrict_self());
    let status = restricted.map_err(describe)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("the kernel has Landlock disabled".to_owned())
        }
        (RulesetStatus::NotEnforced, _) => Err("the kernel has no Landlock".to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(format!("Landlock {}", effective_abi as i32))
        }
        (_, _) => Ok("Landlock".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_passed_as_arguments() {
        let permissions = Permissions {
            mode: SandboxMode::Required,
            read: vec!["/a b".into(), "--".into()],
            write: Some("/t".into()),
            memory_bytes_max: Some(1),
            cpu_seconds_max: Some(2),
            file_bytes_max: Some(3),
            processes_max: Some(4),
        };
        for expected in [permissions, Permissions::default()] {
            let mut arguments = expected.to_arguments().into_iter().chain(["x".into()]);
            assert_eq!(Permissions::from_arguments(&mut arguments), Ok(expected));
            assert_eq!(arguments.next(), Some("x".into()));
        }
    }

    #[test]
    fn wrong_arguments_are_reported() {
        for (arguments, expected) in [
            (&["--memory"][..], "needs a value"),
            (&["--read", "/a"], "command is missing"),
            (&["--colour", "x", "--"], "--colour is not known"),
            (&["--"], "command is missing"),
        ] {
            let LaunchFailure { exit_code, reason } = launch(arguments.iter().map(OsString::from));
            assert_eq!(exit_code, LAUNCH_FAILED);
            assert!(reason.contains(expected), "{arguments:?}: {reason}");
        }
    }

    #[test]
    fn the_restriction_ends_with_its_thread() {
        let status = probe();
        assert!(!status.to_string().is_empty());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x"), "y").unwrap();
        assert!(std::net::TcpListener::bind("127.0.0.1:0").is_ok());
    }
}
