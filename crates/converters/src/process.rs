//! Runs a converter as a process group: starts it in the sandbox, reads its output until a
//! deadline, and kills all its processes.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::folder_usage::{FILE_BYTES_MAX, FolderUsage};
use crate::sandbox::Permissions;

const READ_BYTES: usize = 64 << 10;
/// The number of bytes that are kept of the end of the error output.
pub(crate) const ERROR_BYTES_MAX: usize = 2048;
/// The interval at which the limits are checked while the process runs.
const WAIT_TIME: Duration = Duration::from_millis(250);
/// The time for which the output is read after the process was killed.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// A command that is run in the sandbox.
#[derive(Debug)]
pub(crate) struct SandboxedCommand<'a> {
    /// The arguments with which the current program acts as the launcher.
    pub(crate) launcher: &'a [String],
    pub(crate) permissions: Permissions,
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    /// The folder for temporary files.
    pub(crate) folder: &'a Path,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

/// The reason why a converter failed.
#[derive(Debug)]
pub(crate) enum RunError {
    Io(io::Error),
    /// It exceeded its time limit.
    TimedOut(Duration),
    /// Its output exceeds the limit.
    OutputLimit(u64),
    /// Its temporary files exceed the limit.
    FilesLimit,
    /// It exited with an error. Contains the end of its error output.
    Failed(ExitStatus, String),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        RunError::Io(error)
    }
}

impl std::fmt::Display for RunError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Io(error) => error.fmt(formatter),
            RunError::TimedOut(time) => {
                write!(
                    formatter,
                    "it took longer than {} s and was killed",
                    time.as_secs_f64()
                )
            }
            RunError::OutputLimit(bytes) => {
                write!(formatter, "its output exceeds the limit of {bytes} bytes")
            }
            RunError::FilesLimit => {
                write!(
                    formatter,
                    "its temporary files exceed the limit of {FILE_BYTES_MAX} bytes"
                )
            }
            RunError::Failed(status, message) => {
                match (status.code(), status.signal()) {
                    (Some(crate::sandbox::LAUNCH_FAILED), _) if !message.is_empty() => {
                        return formatter.write_str(message);
                    }
                    (Some(code), _) => write!(formatter, "it ended with code {code}")?,
                    (None, Some(signal)) => write!(formatter, "it was killed by signal {signal}")?,
                    (None, None) => write!(formatter, "it did not end")?,
                }
                if message.is_empty() {
                    Ok(())
                } else {
                    write!(formatter, ": {message}")
                }
            }
        }
    }
}

impl SandboxedCommand<'_> {
    /// Starts the launcher. Only a few environment variables are passed, because those of the user
    /// may contain secrets.
    pub(crate) fn start(&self, input: Stdio, errors: Stdio) -> io::Result<ProcessGroup> {
        const VARIABLES: [&str; 6] = [
            "PATH",
            "LANG",
            "LC_ALL",
            "LC_CTYPE",
            "TZ",
            "TESSDATA_PREFIX",
        ];
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(self.launcher)
            .args(self.permissions.to_arguments())
            .arg(self.program)
            .args(&self.arguments)
            .env_clear()
            .current_dir(self.folder)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0);
        for name in VARIABLES {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, self.folder);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        ProcessGroup::new(command.spawn()?)
    }

    /// Runs the converter to its end. Returns its output.
    pub(crate) fn run(&self, time_max: Duration, bytes_max: u64) -> Result<Vec<u8>, RunError> {
        let mut group = self.start(Stdio::null(), Stdio::piped())?;
        let deadline = Deadline::new(time_max);
        let mut usage = FolderUsage::new(self.folder);
        let mut output = PipeReader::new(group.child.stdout.take().map(OwnedFd::from));
        let mut errors = PipeReader::new(group.child.stderr.take().map(OwnedFd::from));
        while !group.has_ended(&mut output, &mut errors, deadline)? {
            errors.keep_end(ERROR_BYTES_MAX);
            if output.bytes.len() as u64 > bytes_max {
                return Err(RunError::OutputLimit(bytes_max));
            }
            if usage.exceeds_limit() {
                return Err(RunError::FilesLimit);
            }
        }
        // Descendants of the process may still have the pipes open, so the pipes may never end.
        group.kill();
        let drain = Deadline::new(DRAIN_TIME);
        while output.pipe.is_some() && output.bytes.len() as u64 <= bytes_max {
            if wait(&mut [&mut output, &mut errors], None, drain)?.is_none() {
                break;
            }
            errors.keep_end(ERROR_BYTES_MAX);
        }
        let status = group.wait()?;
        if output.bytes.len() as u64 > bytes_max {
            return Err(RunError::OutputLimit(bytes_max));
        }
        if status.success() {
            Ok(output.bytes)
        } else {
            Err(RunError::Failed(status, errors.last_line()))
        }
    }
}

/// A process and all its descendants in its process group. They are killed on drop.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    pub(crate) child: Child,
    /// A pidfd, which is readable when the process has exited.
    end: OwnedFd,
    is_reaped: bool,
}

impl ProcessGroup {
    fn new(mut child: Child) -> io::Result<Self> {
        let end = Pid::from_raw(child.id().cast_signed())
            .ok_or(Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match end {
            Ok(end) => Ok(ProcessGroup {
                child,
                end,
                is_reaped: false,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Reads pipes until the process has exited or the deadline has passed. Returns `true` if it
    /// has exited.
    fn has_ended(
        &self,
        output: &mut PipeReader,
        errors: &mut PipeReader,
        deadline: Deadline,
    ) -> Result<bool, RunError> {
        let ended = wait(&mut [output, errors], Some(self.end.as_fd()), deadline)?;
        ended.ok_or(RunError::TimedOut(deadline.time_max))
    }

    /// Kills all processes of the group. The first one remains a zombie until it is waited for, so
    /// the id of the group cannot be reused.
    pub(crate) fn kill(&self) {
        if !self.is_reaped
            && let Some(group) = Pid::from_raw(self.child.id().cast_signed())
        {
            // Fails only if no process of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait();
        self.is_reaped = true;
        status
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        if !self.is_reaped {
            let _ = self.wait();
        }
    }
}

/// A time limit and the time at which it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) time_max: Duration,
    end: Instant,
}

impl Deadline {
    pub(crate) fn new(time_max: Duration) -> Self {
        Deadline {
            time_max,
            end: Instant::now() + time_max,
        }
    }
}

/// Reads a pipe into memory.
#[derive(Debug)]
pub(crate) struct PipeReader {
    /// `None` after the end of the pipe.
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) bytes: Vec<u8>,
}

impl PipeReader {
    pub(crate) fn new(pipe: Option<OwnedFd>) -> Self {
        PipeReader {
            pipe,
            bytes: Vec::new(),
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else {
            return Ok(());
        };
        self.bytes.reserve(READ_BYTES);
        match rustix::io::read(pipe, spare_capacity(&mut self.bytes)) {
            Ok(0) => self.pipe = None,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    pub(crate) fn keep_end(&mut self, bytes_max: usize) {
        let excess = self.bytes.len().saturating_sub(bytes_max);
        self.bytes.drain(..excess);
    }

    pub(crate) fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line: String = lines
            .next_back()
            .unwrap_or_default()
            .chars()
            .take(300)
            .collect();
        line.replace(char::is_control, " ")
    }
}

/// Waits until a pipe has bytes or ends, at most for [`WAIT_TIME`], and reads the bytes. Returns
/// `None` at the deadline, otherwise whether `end` is readable.
pub(crate) fn wait(
    pipes: &mut [&mut PipeReader],
    end: Option<BorrowedFd<'_>>,
    deadline: Deadline,
) -> io::Result<Option<bool>> {
    let remaining = deadline.end.saturating_duration_since(Instant::now());
    if remaining.is_zero() {
        return Ok(None);
    }
    let timeout = Timespec::try_from(remaining.min(WAIT_TIME)).map_err(io::Error::other)?;
    let open = pipes.iter().filter_map(|it| it.pipe.as_ref());
    let pipe_fds = open.map(|pipe| PollFd::new(pipe, PollFlags::IN));
    let end_fd = end.iter().map(|end| PollFd::new(end, PollFlags::IN));
    let mut fds: Vec<PollFd<'_>> = pipe_fds.chain(end_fd).collect();
    match poll(&mut fds, Some(&timeout)) {
        Ok(0) if remaining <= WAIT_TIME => return Ok(None),
        Ok(0) => return Ok(Some(false)),
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Some(false)),
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    let mut ready = ready.into_iter();
    for pipe in pipes.iter_mut().filter(|it| it.pipe.is_some()) {
        if ready.next() == Some(true) {
            pipe.fill()?;
        }
    }
    Ok(Some(end.is_some() && ready.next() == Some(true)))
}
