//! A pipeline that ends with `$out` or `$merge`. Its documents are written into a collection when
//! the first batch is read. The client gets no documents.

use windrow_collection::{DocumentValidation, Namespace};
use windrow_mql::filter::Environment;
use windrow_query::Cursor;
use windrow_query::aggregate::output::{Output, OutputKind};
use windrow_wire::CommandError;

use super::merge::{MergeWriter, PreparedMerge};
use super::out::OutCollection;
use super::output_target::OutputTarget;
use crate::acknowledgment;
use crate::context::Context;
use crate::cursors::{BatchSource, SourceBatch};
use crate::errors::OrCommandError;
use crate::operations::Operation;
use crate::writes;

/// Documents are merged in batches of at most this many bytes or documents.
const WAITING_BYTES: usize = 16 << 20;
const WAITING_MAX: usize = 10_000;

/// The documents of the pipeline, and the stage that writes them.
pub struct OutputWriter {
    cursor: Cursor,
    /// `true` if the write concern requires that they are durable. The writes may be those of a
    /// `getMore`, which has no write concern of its own.
    waits: bool,
    target: OutputTarget,
    mode: OutputMode,
}

enum OutputMode {
    Merge(Box<MergeWriter>),
    Out,
}

impl OutputWriter {
    pub fn new(
        context: &Context<'_>,
        own: &Namespace,
        output: &Output,
        environment: &Environment,
        validation: DocumentValidation,
        cursor: Cursor,
    ) -> Result<OutputWriter, CommandError> {
        let target = OutputTarget::new(context, own, output, validation)?;
        let mode = match &output.kind {
            OutputKind::Out => OutputMode::Out,
            OutputKind::Merge(merge) => {
                OutputMode::Merge(Box::new(MergeWriter::new(&target, merge, environment)?))
            }
        };
        Ok(OutputWriter {
            cursor,
            waits: acknowledgment::requires_wait(
                &context.state.services.engine,
                &context.common.write_concern,
            ),
            target,
            mode,
        })
    }
}

impl BatchSource for OutputWriter {
    fn next_batch(
        &mut self,
        operation: &Operation,
        _: usize,
        _: usize,
    ) -> Result<SourceBatch, CommandError> {
        match &self.mode {
            OutputMode::Merge(writer) => {
                // An invalid document is detected before the documents before it are written.
                let (mut waiting, mut bytes) = (Vec::new(), 0);
                while let Some(content) = self.cursor.next(operation).or_command_error()? {
                    let prepared = writer.prepare(&self.target, content.as_document())?;
                    bytes += prepared.bytes();
                    waiting.push(prepared);
                    if bytes >= WAITING_BYTES || waiting.len() >= WAITING_MAX {
                        merge_all(writer, &self.target, &mut waiting, operation)?;
                        bytes = 0;
                    }
                }
                merge_all(writer, &self.target, &mut waiting, operation)?;
            }
            OutputMode::Out => {
                let mut collection = OutCollection::begin(&self.target, operation)?;
                while let Some(content) = self.cursor.next(operation).or_command_error()? {
                    operation.check()?;
                    collection.add(content.as_document(), operation)?;
                }
                collection.finish(operation)?;
            }
        }
        if self.waits {
            acknowledgment::wait_durable(&self.target.engine, operation, None)?;
        }
        Ok(SourceBatch {
            finished: true,
            ..SourceBatch::default()
        })
    }
}

/// Merges a batch. A failure does not stop the merge of the following documents, as in unordered
/// writes: the first error is returned after all were tried. An error that ends a command is
/// returned immediately.
fn merge_all(
    writer: &MergeWriter,
    target: &OutputTarget,
    waiting: &mut Vec<PreparedMerge>,
    operation: &Operation,
) -> Result<(), CommandError> {
    let mut merged = Ok(());
    for prepared in waiting.drain(..) {
        operation.check()?;
        match writer.merge(target, &prepared, operation) {
            Err(error) if writes::ends_command(&error) => return Err(error),
            tried => merged = merged.and(tried),
        }
    }
    merged
}
