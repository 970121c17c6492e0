//! A persistent converter, which reads several files in one process, see `answers`.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use windrow_extract::{ConvertedDocument, ProgramInput};

use crate::answers::{
    Answer, AnswerError, AnswerFailure, encode_file_request, encode_next_request, parse_answer,
};
use crate::command::Placeholders;
use crate::folder_usage::FolderUsage;
use crate::private_folder::PrivateFolder;
use crate::process::{
    Deadline, ERROR_BYTES_MAX, PipeReader, ProcessGroup, RunError, SandboxedCommand, wait,
};

/// The reason why a file was not converted.
#[derive(Debug)]
pub(crate) enum ConversationError {
    /// The process must be restarted.
    Broken(String),
    /// The process reported that it cannot read the file.
    File(String),
    /// A program that the converter needs is not installed.
    MissingProgram(String),
}

impl From<RunError> for ConversationError {
    fn from(error: RunError) -> Self {
        ConversationError::Broken(error.to_string())
    }
}

impl From<std::io::Error> for ConversationError {
    fn from(error: std::io::Error) -> Self {
        ConversationError::Broken(error.to_string())
    }
}

/// The running process. It is killed on drop.
#[derive(Debug)]
pub(crate) struct PersistentConverter {
    /// Owns the process, which is killed on drop.
    _group: ProcessGroup,
    requests: ChildStdin,
    answers: PipeReader,
    /// The end of the error output.
    errors: PipeReader,
    folder: PrivateFolder,
}

/// The limits for a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConversationLimits {
    pub(crate) time_max: Duration,
    pub(crate) bytes_max: u64,
    pub(crate) documents_max: u64,
}

impl PersistentConverter {
    /// Starts the process. `folder` is the private folder that `command` allows.
    pub(crate) fn start(
        command: &SandboxedCommand<'_>,
        folder: PrivateFolder,
    ) -> Result<Self, ConversationError> {
        let mut group = command.start(Stdio::piped(), Stdio::piped())?;
        let answers = PipeReader::new(group.child.stdout.take().map(OwnedFd::from));
        let errors = PipeReader::new(group.child.stderr.take().map(OwnedFd::from));
        let requests = group.child.stdin.take();
        let missing = || ConversationError::Broken("it has no input".to_owned());
        Ok(PersistentConverter {
            requests: requests.ok_or_else(missing)?,
            answers,
            errors,
            _group: group,
            folder,
        })
    }

    /// Returns the documents of a file.
    pub(crate) fn convert(
        &mut self,
        input: &ProgramInput<'_>,
        media_type: &str,
        limits: ConversationLimits,
    ) -> Result<Vec<ConvertedDocument>, ConversationError> {
        let file = self.folder.copy(input)?;
        let work = self.folder.work();
        let placeholders = Placeholders {
            file: &file,
            media_type,
            folder: &work,
        };
        let deadline = Deadline::new(limits.time_max);
        let mut bytes_left = limits.bytes_max;
        let (mut documents, mut failed) = (Vec::new(), 0);
        let mut request = encode_file_request(&placeholders);
        loop {
            let answer = self.ask(&request, deadline, bytes_left)?;
            match answer.failure {
                Some(AnswerFailure::File) => {
                    return Err(ConversationError::File(
                        "it cannot read the file".to_owned(),
                    ));
                }
                Some(AnswerFailure::Document) => failed += 1,
                None if answer.has_document => {
                    bytes_left = bytes_left.saturating_sub(answer.document.bytes.len() as u64);
                    documents.push(answer.document);
                }
                None => {}
            }
            let answers = documents.len() as u64 + failed;
            if answer.is_last || !(answer.has_document || answer.failure.is_some()) {
                break;
            }
            if answers > limits.documents_max {
                let reason = format!("more than {} documents", limits.documents_max);
                return Err(ConversationError::Broken(reason));
            }
            request = encode_next_request(media_type);
        }
        self.folder.clear();
        if documents.is_empty() && failed > 0 {
            Err(ConversationError::File(
                "it cannot read the document".to_owned(),
            ))
        } else {
            Ok(documents)
        }
    }

    fn ask(
        &mut self,
        request: &[u8],
        deadline: Deadline,
        bytes_max: u64,
    ) -> Result<Answer, ConversationError> {
        // The protocol adds names and lengths to the document.
        const OVERHEAD_BYTES: u64 = 1 << 20;
        // Cannot block: a request is smaller than a pipe, and the answers to all earlier requests
        // were read.
        let sent = self
            .requests
            .write_all(request)
            .and_then(|()| self.requests.flush());
        if sent.is_err() {
            return Err(self.describe_end(deadline));
        }
        let mut checked_bytes = 0;
        let mut usage = FolderUsage::new(&self.folder.work());
        loop {
            // Parsing starts at the beginning of the answer. To keep the total time linear, it is
            // repeated only when the length has doubled or the last bytes may end the answer.
            let bytes = &self.answers.bytes;
            if bytes.len() >= checked_bytes && bytes.ends_with(b"\n")
                || bytes.len() >= 2 * checked_bytes
            {
                checked_bytes = bytes.len();
                match parse_answer(bytes) {
                    Ok(None) => {}
                    Ok(Some(parsed)) => {
                        self.answers.bytes.drain(..parsed.length);
                        return Ok(parsed.answer);
                    }
                    Err(AnswerError::MissingProgram(program)) => {
                        return Err(ConversationError::MissingProgram(program));
                    }
                    Err(AnswerError::Invalid(reason)) => {
                        let reason = format!("it does not follow the protocol: {reason}");
                        return Err(ConversationError::Broken(reason));
                    }
                }
            }
            if self.answers.bytes.len() as u64 > bytes_max.saturating_add(OVERHEAD_BYTES) {
                return Err(RunError::OutputLimit(bytes_max).into());
            }
            self.errors.keep_end(ERROR_BYTES_MAX);
            if usage.exceeds_limit() {
                return Err(RunError::FilesLimit.into());
            }
            if self.answers.pipe.is_none() {
                return Err(self.describe_end(deadline));
            }
            if wait(&mut [&mut self.answers, &mut self.errors], None, deadline)?.is_none() {
                return Err(RunError::TimedOut(deadline.time_max).into());
            }
        }
    }

    /// Returns the error of a process that has exited, with the last line of its error output.
    fn describe_end(&mut self, deadline: Deadline) -> ConversationError {
        while self.errors.pipe.is_some() {
            match wait(&mut [&mut self.errors], None, deadline) {
                Ok(Some(_)) => self.errors.keep_end(ERROR_BYTES_MAX),
                Ok(None) | Err(_) => break,
            }
        }
        let line = self.errors.last_line();
        ConversationError::Broken(if line.is_empty() {
            "it ended before its answer".to_owned()
        } else {
            format!("it ended before its answer: {line}")
        })
    }
}
