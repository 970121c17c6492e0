//! The first batch of a result.

use windrow_document::DocumentBuf;
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{CommandError, Reply};

use crate::context::Context;
use crate::cursors::{BatchSource, CursorOwner, SourceBatch};

/// The default number of documents in the first batch.
pub const FIRST_BATCH_COUNT: usize = 101;

/// The options of the first batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstBatch {
    /// Maximum number of documents. 0 opens the cursor without reading.
    pub limit: usize,
    /// The cursor is closed after the first batch.
    pub single: bool,
}

impl Default for FirstBatch {
    fn default() -> FirstBatch {
        FirstBatch {
            limit: FIRST_BATCH_COUNT,
            single: false,
        }
    }
}

/// Returns the reply with the first batch, and a cursor for the rest, if there may be one.
pub fn reply(
    context: &Context<'_>,
    mut owner: CursorOwner,
    mut source: Box<dyn BatchSource>,
    first: FirstBatch,
) -> Result<Reply, CommandError> {
    let SourceBatch {
        documents,
        finished,
        resume_token,
    } = match first.limit {
        0 => SourceBatch {
            resume_token: source.resume_token(),
            ..SourceBatch::default()
        },
        limit => source.next_batch(context.operation, limit, DOCUMENT_BYTES_MAX)?,
    };
    context
        .operation
        .record("nreturned", documents.count() as i32);
    let namespace = owner.namespace.clone();
    if finished || first.single {
        context.operation.record("cursorExhausted", finished);
        let reply = Reply::first_batch(&namespace, 0, documents);
        return Ok(resumable(reply, resume_token));
    }
    owner.time_left = context.operation.time_left();
    owner.returned = documents.count();
    let id = context.state.cursors.open(owner, source)?;
    context.operation.record("cursorid", id);
    let reply = Reply::first_batch(&namespace, id, documents);
    Ok(resumable(reply, resume_token))
}

/// Adds the position of a change stream to the reply.
pub fn resumable(reply: Reply, token: Option<DocumentBuf>) -> Reply {
    match token {
        Some(token) => reply.with_resume_token(token.as_document()),
        None => reply,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use windrow_document::ValueRef;

    use super::*;
    use crate::access::{Authority, Requirement};
    use crate::client::Client;
    use crate::common_arguments::CommonArguments;
    use crate::cursors::tests::{Numbers, owner, with_operation};
    use crate::state::Services;
    use crate::{Config, Log};

    #[test]
    fn unfinished_results_open_a_cursor() {
        let check = |count: i32, limit: usize, single: bool, given: usize, opens: bool| {
            let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
            let state = crate::State::new(Config::default(), services, 27017);
            let (client, common) = (Client::for_tests(), CommonArguments::default());
            with_operation(|operation| {
                let context = Context {
                    state: &state,
                    client: &client,
                    authority: &Authority::Unrestricted,
                    requirement: &Requirement::Nothing,
                    operation,
                    common: &common,
                    transaction_context: None,
                    own_transaction: None,
                    hides_arguments: false,
                    snapshot: None,
                    times: &OnceLock::new(),
                };
                let source = Box::new(Numbers(0..count));
                let first = FirstBatch { limit, single };
                let reply = reply(&context, owner(None, false), source, first).unwrap();
                let reply = reply.to_document();
                let cursor = reply.get("cursor").unwrap().as_document().unwrap();
                let batch = cursor.get("firstBatch").unwrap().as_array().unwrap();
                let is_open = cursor.get("id") != Some(ValueRef::Int64(0));
                assert_eq!(
                    (batch.count(), is_open),
                    (given, opens),
                    "{count} {limit} {single}"
                );
                assert_eq!(state.cursors.counts().open, usize::from(opens));
            });
        };
        check(5, 101, false, 5, false);
        check(500, 101, false, 101, true);
        check(500, 0, false, 0, true);
        check(500, 7, true, 7, false);
        check(0, 101, false, 0, false);
    }
}
