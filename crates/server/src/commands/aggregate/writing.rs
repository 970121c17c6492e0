//! A pipeline that ends in `$out` or `$merge`: its documents go into a collection, and the client
//! gets none. They are written when the first batch is asked for.

use windrow_collection::{DocumentValidation, Namespace};
use windrow_mql::filter::Environment;
use windrow_query::Cursor;
use windrow_query::aggregate::output::{Output, OutputKind};
use windrow_wire::CommandError;

use super::merging::{Merging, Prepared};
use super::replacing::Replacing;
use super::target::Target;
use crate::context::Context;
use crate::cursors::{BatchSource, SourceBatch};
use crate::errors::OrCommandError;
use crate::operations::Operation;
use crate::writes;

/// Documents wait to be merged until they have so many bytes, or are so many.
const WAITING_BYTES: usize = 16 << 20;
const WAITING_MAX: usize = 10_000;

/// The documents to come, and what is done with them.
pub struct Writing {
    cursor: Cursor,
    /// Whether the write concern wants them on the disk.
    synced: bool,
    target: Target,
    way: Way,
}

enum Way {
    Merge(Box<Merging>),
    Out,
}

impl Writing {
    pub fn new(
        context: &Context<'_>,
        own: &Namespace,
        output: &Output,
        environment: &Environment,
        validation: DocumentValidation,
        cursor: Cursor,
    ) -> Result<Writing, CommandError> {
        let target = Target::new(context, own, output, validation)?;
        let way = match &output.kind {
            OutputKind::Out => Way::Out,
            OutputKind::Merge(merge) => {
                Way::Merge(Box::new(Merging::new(&target, merge, environment)?))
            }
        };
        Ok(Writing {
            cursor,
            synced: context.generic.write_concern.synced,
            target,
            way,
        })
    }
}

impl BatchSource for Writing {
    fn next_batch(
        &mut self,
        operation: &Operation,
        _: usize,
        _: usize,
    ) -> Result<SourceBatch, CommandError> {
        match &self.way {
            Way::Merge(merging) => {
                // What is wrong with a document is known before those in front of it are written.
                let (mut waiting, mut bytes) = (Vec::new(), 0);
                while let Some(content) = self.cursor.next(operation).or_command_error()? {
                    let prepared = merging.prepare(&self.target, content.as_document())?;
                    bytes += prepared.bytes();
                    waiting.push(prepared);
                    if bytes >= WAITING_BYTES || waiting.len() >= WAITING_MAX {
                        merge_all(merging, &self.target, &mut waiting, operation)?;
                        bytes = 0;
                    }
                }
                merge_all(merging, &self.target, &mut waiting, operation)?;
            }
            Way::Out => {
                let mut replacing = Replacing::begin(&self.target, operation)?;
                while let Some(content) = self.cursor.next(operation).or_command_error()? {
                    operation.check()?;
                    replacing.add(content.as_document(), operation)?;
                }
                replacing.finish(operation)?;
            }
        }
        if self.synced {
            operation.wait_on_purpose();
            self.target.engine.sync().or_command_error()?;
        }
        Ok(SourceBatch {
            finished: true,
            ..SourceBatch::default()
        })
    }
}

/// Merges what waits. A document that cannot be merged keeps those behind it from nothing: the first
/// error is told when all have been tried, as of writes that are not ordered. One that ends a command
/// ends this one at once.
fn merge_all(
    merging: &Merging,
    target: &Target,
    waiting: &mut Vec<Prepared>,
    operation: &Operation,
) -> Result<(), CommandError> {
    let mut merged = Ok(());
    for prepared in waiting.drain(..) {
        operation.check()?;
        match merging.merge(target, &prepared, operation) {
            Err(error) if writes::ends_command(&error) => return Err(error),
            tried => merged = merged.and(tried),
        }
    }
    merged
}
