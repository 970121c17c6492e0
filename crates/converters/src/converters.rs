//! Implements `windrow_extract::Programs` with the configured converters.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use windrow_extract::{
    ConvertedDocument, ConverterChoice, ExtractError, Limits, PictureFormat, ProgramInput,
    Programs, RecognizedText,
};

use crate::answers::find_missing_program;
use crate::command::{Placeholders, expand, find_program, named_files};
use crate::folder_usage::FILE_BYTES_MAX;
use crate::persistent::{ConversationError, ConversationLimits, PersistentConverter};
use crate::private_folder::PrivateFolder;
use crate::process::{RunError, SandboxedCommand};
use crate::recognition::{ProgramError, recognize};
use crate::sandbox::Permissions;
use crate::settings::{Converter, OutputFormat, ProgramSettings, Recognition};

/// The maximum number of processes and threads of a converter.
const PROCESSES_MAX: u64 = 256;

/// Observes when programs run. Their time does not count as time of the worker.
pub trait ProgramMonitor {
    /// A program starts. It may run for `time_max`.
    fn program_started(&self, time_max: Duration);

    /// The program has ended.
    fn program_ended(&self);
}

/// The converters of a worker. Persistent converters are killed on drop.
pub struct Converters<'m> {
    settings: ProgramSettings,
    monitor: &'m dyn ProgramMonitor,
    /// The remaining time for programs of the current file.
    time_left: Duration,
    running: HashMap<usize, PersistentConverter>,
}

impl<'m> Converters<'m> {
    /// Creates the converters. None is started.
    pub fn new(settings: ProgramSettings, monitor: &'m dyn ProgramMonitor) -> Self {
        Converters {
            settings,
            monitor,
            time_left: Duration::ZERO,
            running: HashMap::new(),
        }
    }

    /// Resets the time for programs at the start of a file.
    pub fn begin_file(&mut self) {
        self.time_left = Duration::from_millis(self.settings.file_ms_max);
    }

    /// Runs `work` with the remaining time of a program, and subtracts the time that it takes.
    fn with_time<T>(
        &mut self,
        program: &str,
        ms_max: u64,
        work: impl FnOnce(&mut Self, Duration) -> Result<T, ExtractError>,
    ) -> Result<T, ExtractError> {
        let time_max = Duration::from_millis(ms_max).min(self.time_left);
        if time_max.is_zero() {
            let seconds = self.settings.file_ms_max / 1000;
            let reason = format!("the programs of the file took longer than {seconds} s");
            return Err(failed(program, reason));
        }
        let started = Instant::now();
        self.monitor.program_started(time_max);
        let result = work(self, time_max);
        self.monitor.program_ended();
        self.time_left = self.time_left.saturating_sub(started.elapsed());
        result
    }

    fn permissions(
        &self,
        time_max: Option<Duration>,
        read: Vec<PathBuf>,
        work: PathBuf,
    ) -> Permissions {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        Permissions {
            mode: self.settings.sandbox,
            read,
            write: Some(work),
            // The worker's soft limit. The hard limit may be higher, for another converter.
            memory_bytes_max: getrlimit(Resource::As).current,
            cpu_seconds_max: time_max.map(|time| (time.as_secs() + 1) * cores + 1),
            file_bytes_max: Some(FILE_BYTES_MAX),
            // Applies only to converters that end with their file. The kernel counts all processes
            // of the user, so a persistent converter would fail when the user starts other
            // programs.
            processes_max: time_max.map(|_| PROCESSES_MAX),
        }
    }

    fn convert_once(
        &self,
        converter: &Converter,
        program: &Path,
        input: &ProgramInput<'_>,
        time_max: Duration,
        limits: &Limits,
    ) -> Result<Vec<ConvertedDocument>, ExtractError> {
        let describe = |error: std::io::Error| failed(converter.program(), error);
        let folder = PrivateFolder::new().map_err(describe)?;
        let file = folder.provide(input).map_err(describe)?;
        let work = folder.work();
        let placeholders = Placeholders {
            file: &file,
            media_type: &converter.media_type,
            folder: &work,
        };
        let words = converter.command.iter().skip(1);
        let mut read = readable(converter, program);
        read.push(file.clone());
        let command = SandboxedCommand {
            launcher: &self.settings.launcher,
            permissions: self
                .permissions(Some(time_max), read, work.clone())
                .with_memory(converter.memory_bytes_max),
            program,
            arguments: words.map(|word| expand(word, &placeholders)).collect(),
            folder: &work,
            environment: Vec::new(),
        };
        let output = command.run(time_max, limits.input_bytes_max);
        let bytes = output.map_err(|error| failed(converter.program(), error))?;
        if let Some(program) = find_missing_program(&bytes) {
            return Err(missing(&program, &converter.media_type));
        }
        let output = converter.output.unwrap_or(OutputFormat::Text);
        Ok(vec![ConvertedDocument {
            media_type: Some(output.as_media_type().to_owned()),
            charset: converter.charset.clone(),
            bytes,
            ..ConvertedDocument::default()
        }])
    }

    /// Converts with a persistent converter. A converter that failed is restarted for the next
    /// file.
    fn convert_persistently(
        &mut self,
        number: usize,
        converter: &Converter,
        program: &Path,
        input: &ProgramInput<'_>,
        limits: ConversationLimits,
    ) -> Result<Vec<ConvertedDocument>, ExtractError> {
        let describe = |error| match error {
            ConversationError::Broken(reason) | ConversationError::File(reason) => {
                failed(converter.program(), reason)
            }
            ConversationError::MissingProgram(program) => missing(&program, &converter.media_type),
        };
        let mut process = match self.running.remove(&number) {
            Some(process) => process,
            None => self.start(converter, program).map_err(describe)?,
        };
        match process.convert(input, &converter.media_type, limits) {
            Ok(mut documents) => {
                self.running.insert(number, process);
                for document in &mut documents {
                    complete(document, converter);
                }
                Ok(documents)
            }
            Err(error) => {
                if matches!(error, ConversationError::File(_)) {
                    self.running.insert(number, process);
                }
                Err(describe(error))
            }
        }
    }

    fn start(
        &self,
        converter: &Converter,
        program: &Path,
    ) -> Result<PersistentConverter, ConversationError> {
        let folder = PrivateFolder::new()?;
        let work = folder.work();
        let mut read = readable(converter, program);
        read.push(folder.input());
        let placeholders = Placeholders {
            file: Path::new(""),
            media_type: &converter.media_type,
            folder: &work,
        };
        let words = converter.command.iter().skip(1);
        let command = SandboxedCommand {
            launcher: &self.settings.launcher,
            permissions: self
                .permissions(None, read, work.clone())
                .with_memory(converter.memory_bytes_max),
            program,
            arguments: words.map(|word| expand(word, &placeholders)).collect(),
            folder: &work,
            // Recoll's handlers read this variable.
            environment: vec![
                ("RECOLL_CONFDIR", work.clone().into()),
                ("RECOLL_TMPDIR", work.clone().into()),
                ("RECOLL_FILTER_FORPREVIEW", "no".into()),
            ],
        };
        PersistentConverter::start(&command, folder)
    }

    /// Runs a program of the text recognition.
    fn run_recognition(
        &mut self,
        name: &'static str,
        arguments: Vec<OsString>,
        files: &RecognitionFiles<'_>,
        limits: &Limits,
    ) -> Result<Vec<u8>, ProgramError> {
        let program = find_program(name).ok_or(ProgramError::Missing)?;
        let time_max = files.time_max.min(self.time_left);
        if time_max.is_zero() {
            let time = Duration::from_millis(self.settings.file_ms_max);
            return Err(ProgramError::Failed(RunError::TimedOut(time)));
        }
        let read = vec![program.clone(), files.file.to_path_buf()];
        let started = Instant::now();
        self.monitor.program_started(time_max);
        let command = SandboxedCommand {
            launcher: &self.settings.launcher,
            permissions: self.permissions(Some(time_max), read, files.work.to_path_buf()),
            program: &program,
            arguments,
            folder: files.work,
            // Each core already runs a worker, so Tesseract must not use several threads.
            environment: vec![("OMP_THREAD_LIMIT", "1".into())],
        };
        let output = command.run(time_max, limits.input_bytes_max);
        self.monitor.program_ended();
        self.time_left = self.time_left.saturating_sub(started.elapsed());
        output.map_err(ProgramError::Failed)
    }
}

struct RecognitionFiles<'a> {
    file: &'a Path,
    work: &'a Path,
    /// The time limit for a picture or page.
    time_max: Duration,
}

impl Programs for Converters<'_> {
    fn find_converter(&self, extension: &str, media_types: &[&str]) -> Option<ConverterChoice> {
        let all = || self.settings.converters.iter().enumerate();
        let by_extension = all().find(|(_, it)| it.reads(extension, &[]));
        let found = by_extension.or_else(|| all().find(|(_, it)| it.reads("", media_types)));
        found.map(|(number, converter)| ConverterChoice {
            number,
            media_type: converter.media_type.clone(),
            is_fallback: converter.fallback,
            kind: converter.document_kind(),
        })
    }

    fn convert(
        &mut self,
        choice: &ConverterChoice,
        input: &ProgramInput<'_>,
        limits: &Limits,
    ) -> Result<Vec<ConvertedDocument>, ExtractError> {
        let Some(converter) = self.settings.converters.get(choice.number).cloned() else {
            return Err(failed(&choice.media_type, "there is no such converter"));
        };
        let program = find_program(converter.program())
            .ok_or_else(|| missing(converter.program(), &converter.media_type))?;
        self.with_time(converter.program(), converter.ms_max, |own, time_max| {
            if converter.persistent {
                let limits = ConversationLimits {
                    time_max,
                    bytes_max: limits.input_bytes_max,
                    documents_max: limits.members_max,
                };
                own.convert_persistently(choice.number, &converter, &program, input, limits)
            } else {
                own.convert_once(&converter, &program, input, time_max, limits)
            }
        })
    }

    fn recognizes_text(&self) -> bool {
        self.settings.recognition.is_some()
    }

    fn recognize_text(
        &mut self,
        format: PictureFormat,
        input: &ProgramInput<'_>,
        limits: &Limits,
    ) -> RecognizedText {
        let Some(recognition) = self.settings.recognition.clone() else {
            return RecognizedText::default();
        };
        let provided = PrivateFolder::new().and_then(|folder| Ok((folder.provide(input)?, folder)));
        let (file, folder) = match provided {
            Ok(provided) => provided,
            Err(error) => {
                let error = Some(failed(Recognition::PROGRAM, error));
                return RecognizedText {
                    error,
                    ..RecognizedText::default()
                };
            }
        };
        let work = folder.work();
        let files = RecognitionFiles {
            file: &file,
            work: &work,
            time_max: Duration::from_millis(recognition.ms_max),
        };
        let mut run =
            |name: &'static str, arguments| self.run_recognition(name, arguments, &files, limits);
        recognize(&recognition, format, &file, &work, &mut run)
    }
}

impl OutputFormat {
    /// Returns the media type.
    pub fn as_media_type(self) -> &'static str {
        match self {
            OutputFormat::Text => "text/plain",
            OutputFormat::Html => "text/html",
        }
    }
}

/// Adds the properties that the answer of a persistent converter omits. Recoll's handlers return
/// HTML for a file that is a single document.
fn complete(document: &mut ConvertedDocument, converter: &Converter) {
    if document.inner_name.is_none() && document.media_type.is_none() {
        let output = converter.output.unwrap_or(OutputFormat::Html);
        document.media_type = Some(output.as_media_type().to_owned());
    }
    if document.charset.is_none() {
        document.charset.clone_from(&converter.charset);
    }
}

/// Returns the files that a converter may read besides its input: its program, scripts among its
/// arguments, and the files in its settings.
fn readable(converter: &Converter, program: &Path) -> Vec<PathBuf> {
    let files = named_files(&converter.command);
    let own = converter.read.iter().cloned();
    std::iter::once(program.to_path_buf())
        .chain(files)
        .chain(own)
        .collect()
}

fn failed(program: &str, reason: impl std::fmt::Display) -> ExtractError {
    ExtractError::ProgramFailed {
        program: program.to_owned(),
        reason: reason.to_string(),
    }
}

fn missing(program: &str, media_type: &str) -> ExtractError {
    ExtractError::MissingProgram {
        program: program.to_owned(),
        media_type: media_type.to_owned(),
    }
}
