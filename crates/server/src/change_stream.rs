//! Change streams: a pipeline that starts with `$changeStream`, as a cursor without an end.
//!
//! The engine reads changes from its log. This module converts them to events, passes them through
//! the rest of the pipeline one by one, and stores them for the next batch.
//!
//! Reading order: `token`, `options`, `event`, `split`, then this file.

mod event;
mod options;
mod split;
mod token;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_collection::{
    CollectionUuid, DdlKind, Engine, Error as CollectionError, Event, EventKind, Events, Namespace,
    Step, StorageError,
};
use windrow_document::{Array, Document, DocumentBuf, ValueRef};
use windrow_query::EventPipeline;
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{Batch, CommandError, ErrorCode};

use crate::context::Context;
use crate::cursors::{BatchSource, SourceBatch};
use crate::errors::{IntoCommandError, OrCommandError};
use crate::operations::Operation;
use crate::queries::Defaults;
use crate::views;
use options::{ChangeStreamOptions, Scope, Start};
use token::{EventToken, Token};

/// The name of the stage.
pub const STAGE: &str = "$changeStream";
/// The error label that tells drivers not to resume the stream.
const NON_RESUMABLE: &str = "NonResumableChangeStreamError";
/// Maximum bytes of an event: the largest document, and the other fields of the event.
const EVENT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);
/// Maximum time that a batch searches for events before it returns the position that it has
/// reached.
const SCAN_MAX: Duration = Duration::from_secs(1);

/// An open change stream.
pub struct ChangeStream {
    engine: Arc<Engine>,
    options: ChangeStreamOptions,
    pipeline: EventPipeline,
    /// `true` if large events are split into fragments.
    splits: bool,
    /// The number of the last fragment that the client has of an event that is read again.
    known: Option<u64>,
    events: Events,
    /// Events that were read and are not in a batch yet. `None` if the pipeline has filtered out
    /// the event.
    waiting: VecDeque<(Token, Option<DocumentBuf>)>,
    /// The position after the events that the client has received.
    token: Token,
    /// The last event or fragment that the client has received.
    given: Option<Token>,
    /// `true` if no event follows those in `waiting`.
    has_ended: bool,
}

/// The arguments of a command that opens a change stream.
pub struct StreamRequest<'a> {
    /// The stages of the pipeline, from `$changeStream` on.
    pub stages: Array<'a>,
    pub collation: Option<Document<'a>>,
    /// The variables of `let`.
    pub variables: Option<Document<'a>>,
    /// The level of the read concern.
    pub read_concern: Option<&'a str>,
}

/// Opens a stream. `namespace` has no collection if the stream watches a database.
pub fn open(
    context: &Context<'_>,
    namespace: &Namespace,
    request: &StreamRequest<'_>,
) -> Result<ChangeStream, CommandError> {
    let prepared = prepare(context, namespace, request)?;
    let engine = context.state.services.engine.clone();
    ChangeStream::start(engine, prepared)
}

/// Checks that a stream can be opened.
pub fn check(
    context: &Context<'_>,
    namespace: &Namespace,
    request: &StreamRequest<'_>,
) -> Result<(), CommandError> {
    prepare(context, namespace, request).map(drop)
}

/// The parsed stages of a change stream.
struct PreparedStream {
    options: ChangeStreamOptions,
    /// The stages after `$changeStream`.
    pipeline: EventPipeline,
    /// `true` if large events are split into fragments.
    splits: bool,
}

fn prepare(
    context: &Context<'_>,
    namespace: &Namespace,
    request: &StreamRequest<'_>,
) -> Result<PreparedStream, CommandError> {
    let first = request.stages.get(0).and_then(ValueRef::as_document);
    let Some((_, operand)) = first.filter(|it| it.count() == 1).and_then(Document::first) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(CommandError::new(ErrorCode(40_323), message));
    };
    check_read_concern(request)?;
    let defaults = Defaults::for_command(context, None);
    let environment = defaults.environment(request.variables, request.collation)?;
    let mut rest: Vec<ValueRef<'_>> = request.stages.iter().skip(1).collect();
    let splits = split::take_stage(&mut rest)?;
    let pipeline = EventPipeline::parse(rest.into_iter(), &environment).or_command_error()?;
    let options = ChangeStreamOptions::parse(namespace, operand)?;
    if matches!(options.scope, Scope::Collection(_)) {
        views::refuse_view(context, namespace)?;
    }
    Ok(PreparedStream {
        options,
        pipeline,
        splits,
    })
}

/// Checks the read concern. Events are only returned once they cannot be rolled back.
fn check_read_concern(request: &StreamRequest<'_>) -> Result<(), CommandError> {
    match request.read_concern {
        None | Some("majority") => Ok(()),
        Some(other) => {
            let message = format!(
                "$changeStream cannot run with a readConcern other than 'majority'. \
                 Current readConcern: {other}"
            );
            Err(CommandError::new(ErrorCode::InvalidOptions, message))
        }
    }
}

impl ChangeStream {
    fn start(engine: Arc<Engine>, prepared: PreparedStream) -> Result<ChangeStream, CommandError> {
        let PreparedStream {
            options,
            pipeline,
            splits,
        } = prepared;
        let scope = options.scope.clone();
        let wants = move |namespace: &Namespace| scope.wants(namespace);
        let (time, after) = match options.start {
            Start::Now => (None, None),
            Start::At(time) => (Some(time), None),
            Start::Resume(Token::Event(event)) if event.ends => {
                return Err(resume_after_end(&event));
            }
            Start::Resume(token) | Start::After(token) => {
                let event = match token {
                    Token::Event(event) => Some(event),
                    Token::Before(_) => None,
                };
                (Some(token.time()), event)
            }
        };
        let events = match time {
            None => engine.events(wants),
            Some(time) => engine.events_since(time, wants),
        };
        let events = events.map_err(from_log_error)?;
        let token = Token::Before(events.until());
        let mut stream = ChangeStream {
            engine,
            options,
            pipeline,
            splits,
            known: None,
            events,
            waiting: VecDeque::new(),
            token,
            given: None,
            has_ended: false,
        };
        if let Some(event) = after {
            stream.skip_to(event)?;
        }
        Ok(stream)
    }

    /// Skips the events that a client has seen if it has seen this one.
    fn skip_to(&mut self, last: EventToken) -> Result<(), CommandError> {
        while let Step::Event(event) = self.events.step().map_err(from_log_error)? {
            if event.time != last.time || event.number > last.number {
                break;
            }
            if event.number < last.number {
                continue;
            }
            self.token = Token::Event(last);
            if last.fragment.is_some() {
                self.known = last.fragment;
                self.take(&event)?;
                self.known = None;
                return Ok(());
            }
            if self.ends_with(&event) && !last.ends {
                self.end_with(&event)?;
            }
            return Ok(());
        }
        let message = "cannot resume stream; the resume token was not found";
        Err(fatal(message))
    }

    /// Runs an event through the pipeline and stores the result in `waiting`.
    fn take(&mut self, event: &Event) -> Result<(), CommandError> {
        if self.shows(event) {
            let engine = &self.engine;
            let look_up =
                |event: &Event, id: ValueRef<'_>| look_up(engine, &event.namespace, event.uuid, id);
            let document = event::document(event, &self.options, &look_up)?;
            self.push(event::token(event), document)?;
        }
        if self.ends_with(event) {
            self.end_with(event)?;
        }
        Ok(())
    }

    fn end_with(&mut self, event: &Event) -> Result<(), CommandError> {
        let token = EventToken {
            ends: true,
            ..event::token(event)
        };
        self.has_ended = true;
        self.push(token, event::invalidate(event))
    }

    fn push(&mut self, of_event: EventToken, document: DocumentBuf) -> Result<(), CommandError> {
        let token = Token::Event(of_event);
        let made = self.pipeline.apply(document).or_command_error()?;
        if let Some(made) = &made {
            let own = token.to_document();
            if made.get("_id") != Some(ValueRef::Document(own.as_document())) {
                return Err(fatal(
                    "Encountered an event whose _id field, which contains the resume token, was \
                     modified by the pipeline. Only transformations that retain the unmodified \
                     _id field are allowed",
                ));
            }
        }
        let bytes = made.as_ref().map_or(0, |made| made.as_bytes().len());
        match made {
            Some(made) if bytes > EVENT_BYTES_MAX => self.push_large(of_event, &made),
            _ if self.known.is_some() => Err(fatal(
                "cannot resume stream; the resume token is for a fragment, but the event is not split",
            )),
            made => {
                self.waiting.push_back((token, made));
                Ok(())
            }
        }
    }

    /// Splits a large event, and stores those fragments that the client does not have.
    fn push_large(&mut self, token: EventToken, event: &DocumentBuf) -> Result<(), CommandError> {
        let split = split::fragments(event.as_document(), token, EVENT_BYTES_MAX);
        let Some(fragments) = split.filter(|_| self.splits) else {
            let bytes = event.as_bytes().len();
            let message = format!(
                "BSONObj size: {bytes} is invalid. Size must be between 0 and {EVENT_BYTES_MAX}"
            );
            let error = CommandError::new(ErrorCode::BSONObjectTooLarge, message);
            return Err(error.with_label(NON_RESUMABLE));
        };
        let passed = self.known.map_or(0, |known| known as usize + 1);
        let fragments = fragments.into_iter().skip(passed);
        self.waiting
            .extend(fragments.map(|(token, fragment)| (token, Some(fragment))));
        Ok(())
    }

    /// Returns `true` if the stream contains the event. Events of documents are already filtered by
    /// collection.
    fn shows(&self, event: &Event) -> bool {
        let EventKind::Catalog { operation, to, .. } = &event.kind else {
            return true;
        };
        let is_classic = matches!(
            operation,
            DdlKind::Drop | DdlKind::DropDatabase | DdlKind::Rename
        );
        if !is_classic && !self.options.expanded {
            return false;
        }
        let scope = &self.options.scope;
        match (operation, scope) {
            // The events of its collections come before this event.
            (DdlKind::DropDatabase, Scope::Collection(_)) => false,
            (DdlKind::DropDatabase, Scope::Database(database)) => {
                *database == event.namespace.database
            }
            _ => {
                let wants_target = to.as_ref().is_some_and(|to| scope.wants(to));
                scope.wants(&event.namespace) || wants_target
            }
        }
    }

    /// Returns `true` if the event drops or renames the namespace that the stream watches.
    fn ends_with(&self, event: &Event) -> bool {
        let EventKind::Catalog { operation, .. } = &event.kind else {
            return false;
        };
        let is_end = match &self.options.scope {
            Scope::Collection(_) => matches!(operation, DdlKind::Drop | DdlKind::Rename),
            Scope::Database(_) => *operation == DdlKind::DropDatabase,
            Scope::Deployment => false,
        };
        is_end && self.shows(event)
    }

    /// Reads the next result, and whether there may be more now.
    fn read(&mut self) -> Result<ReadStatus, CommandError> {
        Ok(match self.events.step().map_err(from_log_error)? {
            Step::Event(event) => {
                self.take(&event)?;
                ReadStatus::More
            }
            step => {
                self.token = self.token_after_read();
                match step {
                    Step::AtEnd => ReadStatus::AtEnd,
                    _ => ReadStatus::More,
                }
            }
        })
    }

    /// Returns the position after everything that was read: the last event, if nothing has come
    /// after it.
    fn token_after_read(&self) -> Token {
        let until = self.events.until();
        let given = self.given.filter(|it| it.time().0 + 1 >= until.0);
        given.unwrap_or(Token::Before(until))
    }
}

enum ReadStatus {
    More,
    AtEnd,
}

fn look_up(
    engine: &Engine,
    namespace: &Namespace,
    uuid: CollectionUuid,
    id: ValueRef<'_>,
) -> Result<Option<DocumentBuf>, CommandError> {
    let collection = engine.collection(namespace);
    let Some(collection) = collection.filter(|it| it.uuid() == uuid) else {
        return Ok(None);
    };
    let reader = collection.reader().or_command_error()?;
    let Some(record) = reader.find_id(id).or_command_error()? else {
        return Ok(None);
    };
    let found = reader.get(record).or_command_error()?;
    Ok(found.map(|bytes| Document::from_validated(&bytes).to_buf()))
}

/// Returns `true` if the command opens a change stream.
pub fn opens_stream(command: Document<'_>) -> bool {
    let stages = command.get("pipeline").and_then(ValueRef::as_array);
    stages.is_some_and(starts_with_stream)
}

/// Returns `true` if the first stage of a pipeline is `$changeStream`.
pub fn starts_with_stream(stages: Array<'_>) -> bool {
    let first = stages.get(0).and_then(ValueRef::as_document);
    first.is_some_and(|stage| stage.get(STAGE).is_some())
}

fn fatal(message: &str) -> CommandError {
    CommandError::new(ErrorCode::ChangeStreamFatalError, message).with_label(NON_RESUMABLE)
}

fn resume_after_end(event: &EventToken) -> CommandError {
    let message = format!(
        "the stream ended at {}: it can be opened with 'startAfter', not with 'resumeAfter'",
        event.time
    );
    CommandError::new(ErrorCode::InvalidResumeToken, message)
}

/// Returns an error of the log. History that the log no longer has cannot be resumed.
fn from_log_error(error: CollectionError) -> CommandError {
    let is_lost = matches!(
        &error,
        CollectionError::Storage(StorageError::NotKept { .. })
    );
    let error = error.into_command_error();
    if is_lost {
        error.with_label(NON_RESUMABLE)
    } else {
        error
    }
}

impl BatchSource for ChangeStream {
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        let mut documents = Batch::new();
        let deadline = Instant::now() + SCAN_MAX;
        let mut finished = false;
        while documents.count() < limit {
            let Some((token, document)) = self.waiting.pop_front() else {
                operation.check()?;
                finished = self.has_ended;
                let is_late = Instant::now() > deadline;
                if finished || is_late || matches!(self.read()?, ReadStatus::AtEnd) {
                    break;
                }
                continue;
            };
            if let Some(document) = document {
                if !documents.has_room(document.as_document(), bytes_max) {
                    self.waiting.push_front((token, Some(document)));
                    break;
                }
                documents.push(document.as_document());
                self.given = Some(token);
            }
            self.token = token;
        }
        let is_last = finished && documents.is_empty();
        Ok(SourceBatch {
            documents,
            finished,
            resume_token: self.resume_token().filter(|_| !is_last),
        })
    }

    fn resume_token(&self) -> Option<DocumentBuf> {
        Some(self.token.to_document())
    }

    fn wait(&mut self, operation: &Operation, until: Instant) -> Result<bool, CommandError> {
        operation.wait_until(until, |time_max| Ok(self.events.wait(time_max)))
    }
}
