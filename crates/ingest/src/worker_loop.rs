//! The worker process: reads files and replies with their documents.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use windrow_converters::{Converters, ProgramMonitor, ProgramSettings};
use windrow_extract::{
    ExtractError, ExtractionCounts, FileContext, Languages, Limits, Output, Programs, ReadMode,
    convert_file, detect_read_mode, extract_parts, extract_stream, extract_with,
};

use crate::failure::{Failure, FailureClass};
use crate::file_event::{FileEvent, FileOutcome};
use crate::protocol::{InvalidFrame, Reply, Request, WorkerLimits};
use crate::watchdog::{Watchdog, WatchedOutput};
use crate::worker::file_deadline;

/// The number of bytes that are read to detect the format of a file.
const HEAD_BYTES: u64 = 8192;
const REQUEST_BYTES_MAX: u32 = 1 << 20;
const INPUT_BUFFER_BYTES: usize = 256 << 10;
const OUTPUT_BUFFER_BYTES: usize = 256 << 10;

/// Reads a file and emits what [`windrow_extract::extract`] would emit.
pub type FileReader<'c> = &'c mut dyn FnMut(
    FileRequest<'_>,
    &mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ReadError>;

/// A request to read a file.
pub struct FileRequest<'r> {
    /// The path.
    pub path: &'r Path,
    /// The limits.
    pub limits: &'r Limits,
    /// The languages of its documents.
    pub languages: &'r Languages,
    /// Programs that read further formats.
    pub programs: &'r mut dyn Programs,
}

/// The reason why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The operating system refused to open or read it.
    Io(io::Error),
    /// Its content is invalid or has no text.
    Extract(ExtractError),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

impl From<ExtractError> for ReadError {
    fn from(error: ExtractError) -> Self {
        ReadError::Extract(error)
    }
}

/// The main loop of a worker process: answers requests until `input` ends.
///
/// Limits the memory of the process, and exits if a file takes far too long. The process must not
/// do anything else.
///
/// # Errors
/// Fails if the owner closes its pipes or sends an invalid request.
pub fn run_worker(input: impl Read, output: impl Write) -> io::Result<()> {
    run_worker_with(input, output, &mut read_file)
}

/// Like [`run_worker`] with another function to read a file. Tests use it to simulate failures.
///
/// # Errors
/// Like [`run_worker`].
pub fn run_worker_with(
    input: impl Read,
    output: impl Write,
    read_file: FileReader<'_>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let worker_limits = read_worker_limits(&mut input)?;
    let programs = ProgramSettings::from_text(&worker_limits.programs)
        .ok_or_else(|| invalid_data("the settings of programs are invalid"))?;
    limit_process(&worker_limits, &programs)?;
    let deadline = Duration::from_millis(worker_limits.file_deadline_ms);
    let watchdog = Watchdog::start()?;
    let output = WorkerOutput {
        output: RefCell::new(BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, output)),
        watchdog: &watchdog,
    };
    let mut programs = Converters::new(programs, &output);
    output.write(&Reply::Ready)?;
    output.flush()?;
    while let Some(request) = read_request(&mut input)? {
        let Request::File {
            path,
            languages,
            file_part,
        } = request
        else {
            continue;
        };
        let languages = Languages::new(&languages)
            .map_err(|code| invalid_data(&format!("the language {code} is not known")))?;
        let path = Path::new(OsStr::from_bytes(&path));
        let deadline = file_deadline(path, deadline);
        let limits = Limits {
            deadline: Some(Instant::now() + deadline),
            file_part,
            ..worker_limits.file_limits.clone()
        };
        watchdog.begin_file(deadline * 2);
        programs.begin_file();
        let request = FileRequest {
            path,
            limits: &limits,
            languages: &languages,
            programs: &mut programs,
        };
        handle_file(request, &output, read_file)?;
        output.flush()?;
    }
    Ok(())
}

/// Writes the replies of a worker. The watchdog is paused while a write blocks, and while a program
/// runs, which has its own deadline.
struct WorkerOutput<'w, W: Write> {
    output: RefCell<BufWriter<W>>,
    watchdog: &'w Watchdog,
}

impl<W: Write> WorkerOutput<'_, W> {
    fn write(&self, reply: &Reply) -> io::Result<()> {
        self.watched().write_all(&reply.encode())
    }

    /// Flushes the output while the watchdog is paused.
    fn flush(&self) -> io::Result<()> {
        self.watched().flush()
    }

    fn watched(&self) -> WatchedOutput<'_, BufWriter<W>> {
        WatchedOutput {
            output: self.output.borrow_mut(),
            watchdog: self.watchdog,
        }
    }
}

impl<W: Write> ProgramMonitor for WorkerOutput<'_, W> {
    fn program_started(&self, time_max: Duration) {
        let time_ms = u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX);
        // If the owner has exited, the next reply fails as well.
        let _ = self
            .write(&Reply::Program(time_ms))
            .and_then(|()| self.flush());
    }

    fn program_ended(&self) {
        self.watchdog.resume();
    }
}

/// Limits the resources of the process and silences panic messages, because the owner reports
/// failures. A program may be allowed more memory than the worker.
fn limit_process(limits: &WorkerLimits, programs: &ProgramSettings) -> io::Result<()> {
    let worker_bytes = limits.memory_bytes_max;
    lower_limit(
        Resource::As,
        worker_bytes,
        programs.memory_bytes_max().max(worker_bytes),
    )?;
    lower_limit(Resource::Core, 0, 0)?;
    std::panic::set_hook(Box::new(|_| ()));
    Ok(())
}

/// Lowers a resource limit and its hard limit. Lower limits are unchanged.
fn lower_limit(resource: Resource, current: u64, maximum: u64) -> io::Result<()> {
    let allowed = getrlimit(resource).maximum;
    let lowered = |limit: u64| Some(allowed.map_or(limit, |allowed| allowed.min(limit)));
    Ok(setrlimit(
        resource,
        Rlimit {
            current: lowered(current),
            maximum: lowered(maximum),
        },
    )?)
}

/// Reads the first request.
fn read_worker_limits(input: &mut impl Read) -> io::Result<WorkerLimits> {
    match read_request(input)? {
        Some(Request::Start(limits)) => Ok(limits),
        _ => Err(invalid_data(
            "the first request to a worker must contain its limits",
        )),
    }
}

fn invalid_data(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_string())
}

fn read_request(input: &mut impl Read) -> io::Result<Option<Request>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let length = u32::from_le_bytes(length);
    if length > REQUEST_BYTES_MAX {
        return Err(invalid_data(&format!(
            "a request of {length} bytes exceeds the limit of {REQUEST_BYTES_MAX}"
        )));
    }
    let mut frame = vec![0; length as usize];
    input.read_exact(&mut frame)?;
    Request::decode(&frame)
        .map(Some)
        .map_err(|InvalidFrame| invalid_data("a request is invalid"))
}

fn handle_file<W: Write>(
    request: FileRequest<'_>,
    output: &WorkerOutput<'_, W>,
    read_file: FileReader<'_>,
) -> io::Result<()> {
    let mut sent = Ok(());
    let mut emit = |found: Output| {
        let event = match found {
            Output::Document(document) => FileEvent::Document(document),
            Output::Failure(failure) => FileEvent::MemberFailure {
                failure: Failure::from_error(Some(failure.inner_path), &failure.error),
                attached_to: failure.attached_to,
            },
            Output::Skipped(skipped) => FileEvent::MemberSkipped {
                inner: skipped.inner_path,
                format: skipped.format.to_owned(),
                attached_to: skipped.attached_to,
            },
        };
        if sent.is_ok() {
            sent = output.write(&Reply::Event(event));
        }
    };
    let outcome = match read_file(request, &mut emit) {
        Ok(counts) => FileOutcome::Done(counts),
        Err(ReadError::Extract(ExtractError::Unsupported(format))) => {
            FileOutcome::Skipped(format.into())
        }
        Err(ReadError::Extract(error)) => FileOutcome::Failed(Failure::from_error(None, &error)),
        Err(ReadError::Io(error)) => {
            FileOutcome::Failed(Failure::new(FailureClass::Unreadable, error))
        }
    };
    sent?;
    output.write(&Reply::Event(FileEvent::End(outcome)))
}

/// Reads only the beginning of a file if its format can be read from it.
fn read_file(
    request: FileRequest<'_>,
    emit: &mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ReadError> {
    let FileRequest {
        path,
        limits,
        languages,
        programs,
    } = request;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(HEAD_BYTES)).unwrap_or(0) + 1);
    (&mut file).take(HEAD_BYTES).read_to_end(&mut bytes)?;
    let mode = detect_read_mode(&name, &bytes, Some(&*programs));
    let context = FileContext {
        path: Some(path),
        languages: Some(languages),
        programs: Some(programs),
        ..FileContext::new(limits)
    };
    match mode {
        ReadMode::WholeFile | ReadMode::Convert if limits.file_part.index > 0 => {
            Ok(ExtractionCounts::default())
        }
        ReadMode::Skip(format) => Err(ExtractError::Unsupported(format).into()),
        ReadMode::Convert => Ok(convert_file(&name, &bytes, context, emit)?),
        ReadMode::Parts(format) => {
            let mut reader = BufReader::new(file);
            Ok(extract_parts(format, &name, &mut reader, context, emit)?)
        }
        ReadMode::Stream(format) => {
            let capacity = usize::try_from(size).map_or(INPUT_BUFFER_BYTES, |size| {
                size.clamp(bytes.len(), INPUT_BUFFER_BYTES)
            });
            let mut reader = BufReader::with_capacity(capacity, bytes.chain(file));
            Ok(extract_stream(format, &name, &mut reader, context, emit)?)
        }
        ReadMode::WholeFile | ReadMode::Archive => {
            // Reads one byte more than the limit, to detect that the file exceeds it.
            let bytes_max = limits.input_bytes_max.saturating_add(1);
            let rest_bytes_max = bytes_max.saturating_sub(bytes.len() as u64);
            let rest_bytes = size.min(bytes_max).saturating_sub(bytes.len() as u64);
            bytes.reserve(usize::try_from(rest_bytes).unwrap_or(0));
            file.take(rest_bytes_max).read_to_end(&mut bytes)?;
            Ok(extract_with(&name, &bytes, context, emit)?)
        }
    }
}
