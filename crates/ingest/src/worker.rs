//! The owner's side of a worker process.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windrow_converters::ProgramSettings;
use windrow_extract::{FilePart, Limits};

use crate::failure::{Failure, FailureClass};
use crate::file_event::{FileEvent, FileOutcome};
use crate::protocol::{InvalidFrame, Reply, Request, WorkerLimits};

/// The time limit for starting a worker.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Additional time for a program, to start and to kill it.
const PROGRAM_OVERHEAD: Duration = Duration::from_secs(2);
/// The size of the pipe. A larger one blocks the worker less often.
const PIPE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 256 << 10;
/// The maximum size of a reply without its text: title, addresses, names.
const REPLY_OVERHEAD_BYTES: usize = 16 << 20;

/// The command that starts workers, and their limits.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The program, which must call [`crate::run_worker`].
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// The limits of each file. Their `deadline` is ignored.
    pub limits: Limits,
    /// The time limit for a file. A large file gets one additional second for each 2 MiB. The
    /// worker is killed after one and a half times the limit.
    pub file_deadline: Duration,
    /// The maximal address space of a worker in bytes.
    pub memory_bytes_max: u64,
    /// Programs that read further formats.
    pub programs: ProgramSettings,
    /// The folder for temporary files. `None` is that of the system. A worker that is killed does
    /// not remove its files.
    pub temporary: Option<PathBuf>,
}

impl WorkerConfig {
    /// Uses the current program with these arguments, and the default limits: 30 s and 1 GiB.
    ///
    /// # Errors
    /// Fails if the operating system does not return the path of the program.
    pub fn this_program(arguments: &[&str]) -> io::Result<Self> {
        Ok(WorkerConfig {
            program: std::env::current_exe()?,
            arguments: arguments.iter().map(OsString::from).collect(),
            limits: Limits::default(),
            file_deadline: Duration::from_secs(30),
            memory_bytes_max: 1 << 30,
            programs: ProgramSettings::default(),
            temporary: None,
        })
    }

    fn worker_limits(&self) -> WorkerLimits {
        WorkerLimits {
            memory_bytes_max: self.memory_bytes_max,
            file_deadline_ms: u64::try_from(self.file_deadline.as_millis()).unwrap_or(u64::MAX),
            file_limits: self.limits.clone(),
            programs: self.programs.to_text(),
        }
    }
}

/// A worker process and the pipes to it. Dropping it kills the process.
#[derive(Debug)]
pub struct Worker {
    config: WorkerConfig,
    process: Process,
}

impl Worker {
    /// Starts a process and waits until it is ready.
    ///
    /// # Errors
    /// Fails if the process cannot be started or does not follow the protocol.
    pub fn start(config: &WorkerConfig) -> io::Result<Self> {
        Ok(Worker {
            config: config.clone(),
            process: Process::start(config)?,
        })
    }

    /// Reads a part of the file at `path`, whose documents are in `languages` (any if empty).
    /// Calls `sink` with its events, the last of which is [`FileEvent::End`].
    ///
    /// If the process dies or exceeds the time limit, it is replaced and the result is
    /// [`FileOutcome::Failed`].
    ///
    /// # Errors
    /// Fails if a new process cannot be started.
    pub fn extract(
        &mut self,
        path: &Path,
        languages: &[String],
        file_part: FilePart,
        sink: &mut dyn FnMut(FileEvent),
    ) -> io::Result<()> {
        let deadline = file_deadline(path, self.config.file_deadline);
        let kill_time = Instant::now() + deadline * 3 / 2;
        let request = Request::File {
            path: path.as_os_str().as_bytes().to_vec(),
            languages: languages.to_vec(),
            file_part,
        };
        match self.process.read_file(&request, kill_time, sink) {
            Ok(outcome) => sink(FileEvent::End(outcome)),
            Err(error) => {
                let failure = self.process.kill(&error, deadline);
                self.process = Process::start(&self.config)?;
                sink(FileEvent::End(FileOutcome::Failed(failure)));
            }
        }
        Ok(())
    }
}

/// The number of bytes of a file that extend its time limit by a second.
const BYTES_PER_SECOND: u64 = 2 << 20;

/// Returns the time limit of a file: `base`, plus an extension for large files such as mailboxes
/// and archives.
pub(crate) fn file_deadline(path: &Path, base: Duration) -> Duration {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    base.saturating_add(Duration::from_millis(bytes / (BYTES_PER_SECOND / 1_000)))
}

/// The reason why a process must be replaced.
enum WorkerError {
    /// It closed its pipe, because it has crashed or exited.
    Closed,
    /// It exceeded the time limit.
    TimedOut,
    /// It sent an invalid reply.
    InvalidReply,
}

#[derive(Debug)]
struct Process {
    child: Child,
    requests: ChildStdin,
    replies: ChildStdout,
    /// Received bytes. Those from `decoded_bytes` on are not decoded yet.
    buffer: Vec<u8>,
    decoded_bytes: usize,
    reply_bytes_max: usize,
}

impl Process {
    fn start(config: &WorkerConfig) -> io::Result<Self> {
        let temporary = config.temporary.iter().map(|folder| ("TMPDIR", folder));
        let mut child = Command::new(&config.program)
            .args(&config.arguments)
            .envs(temporary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a worker has no pipes"));
        };
        // A failure is harmless: a smaller pipe is only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&replies, PIPE_BYTES);
        let reply_bytes_max = config
            .limits
            .part_bytes_max
            .saturating_add(REPLY_OVERHEAD_BYTES);
        let mut process = Process {
            child,
            requests,
            replies,
            buffer: Vec::new(),
            decoded_bytes: 0,
            reply_bytes_max,
        };
        process.handshake(config)?;
        Ok(process)
    }

    fn handshake(&mut self, config: &WorkerConfig) -> io::Result<()> {
        self.requests
            .write_all(&Request::Start(config.worker_limits()).encode())?;
        match self.read_reply(Instant::now() + START_TIMEOUT) {
            Ok(Reply::Ready) => Ok(()),
            _ => {
                let program = config.program.display();
                Err(io::Error::other(format!(
                    "{program} does not follow the protocol of a worker"
                )))
            }
        }
    }

    fn read_file(
        &mut self,
        request: &Request,
        mut kill_time: Instant,
        sink: &mut dyn FnMut(FileEvent),
    ) -> Result<FileOutcome, WorkerError> {
        self.requests
            .write_all(&request.encode())
            .map_err(|_| WorkerError::Closed)?;
        loop {
            let event = match self.read_reply(kill_time)? {
                Reply::Event(FileEvent::End(outcome)) => return Ok(outcome),
                Reply::Event(event) => event,
                Reply::Program(time_ms) => {
                    kill_time += Duration::from_millis(time_ms) + PROGRAM_OVERHEAD;
                    continue;
                }
                Reply::Ready => return Err(WorkerError::InvalidReply),
            };
            // The time of the sink does not count, because the worker may be blocked meanwhile.
            let started = Instant::now();
            sink(event);
            kill_time += started.elapsed();
        }
    }

    fn read_reply(&mut self, kill_time: Instant) -> Result<Reply, WorkerError> {
        loop {
            let unread = self.buffer.get(self.decoded_bytes..);
            debug_assert!(
                unread.is_some(),
                "{} bytes are read twice",
                self.decoded_bytes
            );
            let unread = unread.unwrap_or_default();
            if let Some((length, rest)) = unread.split_first_chunk::<4>() {
                let length = u32::from_le_bytes(*length) as usize;
                if length > self.reply_bytes_max {
                    return Err(WorkerError::InvalidReply);
                }
                if let Some(frame) = rest.get(..length) {
                    let reply =
                        Reply::decode(frame).map_err(|InvalidFrame| WorkerError::InvalidReply);
                    self.decoded_bytes += 4 + length;
                    return reply;
                }
            }
            self.fill(kill_time)?;
        }
    }

    /// Waits for bytes and appends them to the buffer.
    fn fill(&mut self, kill_time: Instant) -> Result<(), WorkerError> {
        self.buffer.drain(..self.decoded_bytes);
        self.decoded_bytes = 0;
        self.wait_readable(kill_time)?;
        self.buffer.reserve(READ_BYTES);
        match rustix::io::read(&self.replies, spare_capacity(&mut self.buffer)) {
            Ok(0) => Err(WorkerError::Closed),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(_) => Err(WorkerError::Closed),
        }
    }

    fn wait_readable(&self, kill_time: Instant) -> Result<(), WorkerError> {
        loop {
            let remaining = kill_time.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(remaining).map_err(|_| WorkerError::TimedOut)?;
            let mut pipes = [PollFd::new(&self.replies, PollFlags::IN)];
            match poll(&mut pipes, Some(&timeout)) {
                Ok(0) => return Err(WorkerError::TimedOut),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(WorkerError::Closed),
            }
        }
    }

    /// Kills the process. Returns the failure of its file.
    fn kill(&mut self, error: &WorkerError, file_deadline: Duration) -> Failure {
        if !matches!(error, WorkerError::Closed) {
            // Fails only if the process has already exited.
            let _ = self.child.kill();
        }
        let status = self.child.wait();
        match error {
            WorkerError::TimedOut => Failure::new(
                FailureClass::Deadline,
                format!(
                    "reading took longer than {} s, and the worker was killed",
                    file_deadline.as_secs_f64()
                ),
            ),
            WorkerError::InvalidReply => {
                Failure::new(FailureClass::Crashed, "the worker sent an invalid reply")
            }
            WorkerError::Closed => Failure::new(FailureClass::Crashed, describe_exit(status)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process was already waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn describe_exit(status: io::Result<ExitStatus>) -> String {
    const ABORT: i32 = 6;
    const MEMORY_FAULTS: [i32; 2] = [7, 11];
    match status.ok().and_then(|status| status.signal()) {
        Some(ABORT) => "the worker ran out of memory or aborted (signal 6)".into(),
        Some(signal) if MEMORY_FAULTS.contains(&signal) => {
            format!("the worker ran out of stack or crashed (signal {signal})")
        }
        Some(signal) => format!("the worker was killed (signal {signal})"),
        None => "the worker exited before its reply".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mailbox of 1 GB was cut after 30 s.
    #[test]
    fn a_large_file_has_more_time() {
        let name = format!("windrow-deadline-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let second = Duration::from_secs(1);
        assert_eq!(file_deadline(&path, second), second);
        let file = fs::File::create(&path).unwrap();
        for (bytes, seconds) in [(1_000, 1), (1 << 30, 513)] {
            file.set_len(bytes).unwrap();
            assert_eq!(file_deadline(&path, second).as_secs(), seconds);
        }
        fs::remove_file(&path).unwrap();
    }
}
