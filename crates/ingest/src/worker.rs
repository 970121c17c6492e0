//! The owner's side of a worker process.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windrow_extract::{ExtractedDocument, ExtractionCounts, Limits};

use crate::failure::{Failure, FailureClass};
use crate::protocol::{Reply, Request, StartLimits};

/// The time limit for starting a worker.
const START: Duration = Duration::from_secs(20);
/// The size of the pipe. A larger one blocks the worker less often.
const PIPE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 256 << 10;
/// The maximal size of a reply in addition to its text: title, addresses, names.
const REPLY_OVERHEAD_BYTES: usize = 16 << 20;

/// How to start workers, and their limits.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The program, which must call [`crate::serve`].
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// The limits of each file. Their `deadline` is ignored.
    pub limits: Limits,
    /// The time limit for a file. The worker is killed after one and a half times as long.
    pub file_deadline: Duration,
    /// The maximal address space of a worker in bytes.
    pub memory_bytes_max: u64,
}

impl WorkerConfig {
    /// The running program with these arguments, and the default limits: 30 s and 1 GiB.
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
        })
    }

    fn start_limits(&self) -> StartLimits {
        StartLimits {
            memory_bytes_max: self.memory_bytes_max,
            deadline_ms: u64::try_from(self.file_deadline.as_millis()).unwrap_or(u64::MAX),
            input_bytes_max: self.limits.input_bytes_max,
            text_bytes_max: self.limits.text_bytes_max as u64,
            expanded_bytes_max: self.limits.expanded_bytes_max,
            expansion_ratio_max: self.limits.expansion_ratio_max,
            depth_max: self.limits.depth_max,
            members_max: self.limits.members_max,
            pages_max: self.limits.pages_max,
        }
    }
}

/// An event of a file.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// A document of the file. It stays valid if the file fails later.
    Document(Box<ExtractedDocument>),
    /// A member of the file failed. The other members are still read.
    MemberFailed(Failure),
    /// The last event of the file.
    End(End),
}

/// The result of a file.
#[derive(Debug, PartialEq)]
pub enum End {
    /// The file was read.
    Done(ExtractionCounts),
    /// The file is of a kind without text. Contains the name of its kind.
    Skipped(String),
    /// The file failed.
    Failed(Failure),
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

    /// Reads the file at `path` and calls `sink` with its events. The last one is [`Event::End`].
    ///
    /// If the process dies or exceeds the time limit, it is replaced and the result is
    /// [`End::Failed`].
    ///
    /// # Errors
    /// Fails if a new process cannot be started.
    pub fn extract(&mut self, path: &Path, sink: &mut dyn FnMut(Event)) -> io::Result<()> {
        let killed_at = Instant::now() + self.config.file_deadline * 3 / 2;
        match self.process.exchange(path, killed_at, sink) {
            Ok(end) => sink(Event::End(end)),
            Err(broken) => {
                let failure = self.process.end(&broken, self.config.file_deadline);
                self.process = Process::start(&self.config)?;
                sink(Event::End(End::Failed(failure)));
            }
        }
        Ok(())
    }
}

/// Why a process cannot be used any more.
enum Broken {
    /// It closed its pipe, because it is dead or dying.
    Closed,
    /// It exceeded the time limit.
    Late,
    /// It sent an invalid reply.
    Garbled,
}

#[derive(Debug)]
struct Process {
    child: Child,
    requests: ChildStdin,
    replies: ChildStdout,
    /// Received bytes. Those from `start` on are not decoded yet.
    buffer: Vec<u8>,
    start: usize,
    reply_bytes_max: usize,
}

impl Process {
    fn start(config: &WorkerConfig) -> io::Result<Self> {
        let mut child = Command::new(&config.program)
            .args(&config.arguments)
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
            .text_bytes_max
            .saturating_add(REPLY_OVERHEAD_BYTES);
        let (buffer, start) = (Vec::new(), 0);
        let mut process = Process {
            child,
            requests,
            replies,
            buffer,
            start,
            reply_bytes_max,
        };
        process.greet(config)?;
        Ok(process)
    }

    fn greet(&mut self, config: &WorkerConfig) -> io::Result<()> {
        self.requests
            .write_all(&Request::Start(config.start_limits()).encode())?;
        match self.reply(Instant::now() + START) {
            Ok(Reply::Ready) => Ok(()),
            _ => {
                let program = config.program.display();
                Err(io::Error::other(format!(
                    "{program} does not start as a worker"
                )))
            }
        }
    }

    fn exchange(
        &mut self,
        path: &Path,
        mut killed_at: Instant,
        sink: &mut dyn FnMut(Event),
    ) -> Result<End, Broken> {
        let request = Request::File(path.as_os_str().as_bytes().to_vec());
        self.requests
            .write_all(&request.encode())
            .map_err(|_| Broken::Closed)?;
        loop {
            let event = match self.reply(killed_at)? {
                Reply::Document(document) => Event::Document(document),
                Reply::Member(failure) => Event::MemberFailed(failure),
                Reply::Done(tally) => return Ok(End::Done(tally)),
                Reply::Unsupported(what) => return Ok(End::Skipped(what)),
                Reply::Failed(failure) => return Ok(End::Failed(failure)),
                Reply::Ready => return Err(Broken::Garbled),
            };
            // The time that the sink takes does not count, because the worker may be blocked
            // meanwhile.
            let begun = Instant::now();
            sink(event);
            killed_at += begun.elapsed();
        }
    }

    fn reply(&mut self, killed_at: Instant) -> Result<Reply, Broken> {
        loop {
            let unread = self.buffer.get(self.start..).unwrap_or_default();
            if let Some((length, rest)) = unread.split_first_chunk::<4>() {
                let length = u32::from_le_bytes(*length) as usize;
                if length > self.reply_bytes_max {
                    return Err(Broken::Garbled);
                }
                if let Some(frame) = rest.get(..length) {
                    let reply = Reply::decode(frame).ok_or(Broken::Garbled);
                    self.start += 4 + length;
                    return reply;
                }
            }
            self.fill(killed_at)?;
        }
    }

    /// Waits for bytes and appends them to the buffer.
    fn fill(&mut self, killed_at: Instant) -> Result<(), Broken> {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.wait(killed_at)?;
        self.buffer.reserve(READ_BYTES);
        match rustix::io::read(&self.replies, spare_capacity(&mut self.buffer)) {
            Ok(0) => Err(Broken::Closed),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(_) => Err(Broken::Closed),
        }
    }

    fn wait(&self, killed_at: Instant) -> Result<(), Broken> {
        loop {
            let left = killed_at.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(|_| Broken::Late)?;
            let mut pipes = [PollFd::new(&self.replies, PollFlags::IN)];
            match poll(&mut pipes, Some(&timeout)) {
                Ok(0) => return Err(Broken::Late),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
    }

    /// Ends the process and returns the failure of its file.
    fn end(&mut self, broken: &Broken, file_deadline: Duration) -> Failure {
        if !matches!(broken, Broken::Closed) {
            let _ = self.child.kill();
        }
        let status = self.child.wait();
        match broken {
            Broken::Late => Failure::of_file(
                FailureClass::Deadline,
                format!(
                    "it took longer than {} s and its reader was stopped",
                    file_deadline.as_secs_f64()
                ),
            ),
            Broken::Garbled => Failure::of_file(
                FailureClass::Crashed,
                "its reader gave an answer without meaning",
            ),
            Broken::Closed => Failure::of_file(FailureClass::Crashed, death(status)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn death(status: io::Result<ExitStatus>) -> String {
    const ABORT: i32 = 6;
    const MEMORY_FAULTS: [i32; 2] = [7, 11];
    match status.ok().and_then(|status| status.signal()) {
        Some(ABORT) => "its reader ran out of memory or gave up (signal 6)".into(),
        Some(signal) if MEMORY_FAULTS.contains(&signal) => {
            format!("its reader ran out of stack or failed (signal {signal})")
        }
        Some(signal) => format!("its reader was killed (signal {signal})"),
        None => "its reader ended before its answer".into(),
    }
}
