//! `getMore`: the next batch of an open cursor.

use std::time::{Duration, Instant};

use windrow_document::{Type, ValueRef};
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::aggregate;
use crate::access::Needs;
use crate::arguments::Arguments;
use crate::change_stream::opens_stream;
use crate::command::{AcceptedArguments, Command, InTransactions, SnapshotReads};
use crate::context::Context;
use crate::cursors::{CheckedOutCursor, CursorClient, CursorOptions, SourceBatch};
use crate::error_labels::{FailureKind, with_label_for};
use crate::fail_points::FAIL_GET_MORE;
use crate::first_batch::resumable;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::namespace;
use crate::operations::Operation;
use crate::transaction_context::TransactionContext;

pub const GET_MORE: Command = Command {
    name: "getMore",
    help: "returns the next documents of a cursor",
    needs: Needs::Login,
    kind: Kind::GetMore,
    class: LatencyClass::Read,
    // Drivers send the read concern of their session with each command.
    read_concern: true,
    snapshot_reads: SnapshotReads::OfCursor,
    in_transactions: InTransactions::Allowed,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&[
        "batchSize",
        "collection",
        "lastKnownCommittedOpTime",
        "term",
    ]),
    run,
    ..Command::EMPTY
};

/// The parsed arguments.
struct GetMoreRequest {
    cursor: i64,
    namespace: String,
    /// Maximum number of documents. The default is as many as fit in a reply.
    limit: usize,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let parsed = parse(request)?;
    let operation = context.operation;
    let client = CursorClient {
        session: context.common.session,
        transaction: context
            .transaction_context
            .and_then(TransactionContext::transaction_number),
        api: context.common.api,
    };
    operation.set_namespace(&parsed.namespace);
    let cursors = &context.state.cursors;
    let mut cursor = cursors.take(
        parsed.cursor,
        &parsed.namespace,
        client,
        context.authority,
        operation,
    )?;
    if let Err(error) = check_time_limit(cursor.owner.options, context) {
        cursor.put_back();
        return Err(error);
    }
    // Each command sets how long a tailable cursor waits for data.
    if let Some(left) = cursor
        .time_left
        .filter(|_| !cursor.owner.options.await_data)
    {
        let limit = context.state.fail_points.limit(Some(left));
        operation.limit_time(limit.unwrap_or(left));
    }
    describe_operation(operation, &cursor, parsed.cursor);
    let SourceBatch {
        documents,
        finished,
        resume_token,
    } = next_batch(&mut cursor, &parsed, context).map_err(|error| {
        if opens_stream(cursor.owner.command.as_document()) {
            with_label_for(error, FailureKind::ChangeStream)
        } else {
            error
        }
    })?;
    operation.record("nreturned", documents.count() as i32);
    let read_at = cursor.owner.options.read_at;
    let timed = |reply: Reply| match read_at {
        Some(time) => reply.with_cursor_time(time),
        None => reply,
    };
    if finished {
        operation.record("cursorExhausted", true);
        let reply = Reply::next_batch(&parsed.namespace, 0, documents);
        return Ok(resumable(timed(reply), resume_token));
    }
    cursor.time_left = operation.time_left();
    cursor.put_back();
    let reply = Reply::next_batch(&parsed.namespace, parsed.cursor, documents);
    let reply = resumable(timed(reply), resume_token);
    Ok(if request.exhaust_allowed() {
        reply.with_more_to_come()
    } else {
        reply
    })
}

/// Describes the operation by the command that opened the cursor.
fn describe_operation(operation: &Operation, cursor: &CheckedOutCursor<'_>, id: i64) {
    let command = cursor.owner.command.as_document();
    operation.inherit_comment(command);
    let shown = cursor.shown.clone();
    operation.set_cursor(move || shown.describe());
    if let Some(summary) = &cursor.owner.plan_summary {
        operation.set_plan_summary(summary);
    }
    operation.record("originatingCommand", cursor.owner.command.clone());
    operation.record("cursorid", id);
    if !aggregate::writes_documents(command) {
        operation.end_with_client();
    }
}

fn next_batch(
    cursor: &mut CheckedOutCursor<'_>,
    request: &GetMoreRequest,
    context: &Context<'_>,
) -> Result<SourceBatch, CommandError> {
    context.meet_fail_point(FAIL_GET_MORE)?;
    context.check()?;
    let (operation, limit) = (context.operation, request.limit);
    let time_limit = context.common.time_limit.unwrap_or(AWAIT_DATA);
    let until = Instant::now() + time_limit;
    loop {
        let batch = cursor.next_batch(operation, limit, DOCUMENT_BYTES_MAX)?;
        let waits = cursor.owner.options.await_data && !batch.finished;
        if !batch.documents.is_empty() || !waits {
            return Ok(batch);
        }
        let began = Instant::now();
        let slots = &context.state.operation_slots;
        let has_more = slots.without_slot(operation, || cursor.wait(operation, until))?;
        operation.record_wait(began.elapsed());
        if !has_more {
            return Ok(batch);
        }
    }
}

/// The default time that a cursor waits for data.
const AWAIT_DATA: Duration = Duration::from_secs(1);

fn parse(request: &Request) -> Result<GetMoreRequest, CommandError> {
    let arguments = Arguments::new(request);
    let cursor = match arguments.get("getMore") {
        Some(ValueRef::Int64(0)) => {
            let message = "Cursor id for getMore must be nonzero";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Some(ValueRef::Int64(cursor)) => cursor,
        other => {
            let found = other.map_or(Type::Null, ValueRef::type_of);
            return Err(arguments.wrong_type("getMore", found, &[Type::Int64]));
        }
    };
    let collection = arguments
        .string("collection")?
        .ok_or_else(|| arguments.missing("collection"))?;
    namespace::check_collection(request.database(), collection)?;
    check_replication(&arguments)?;
    let limit = match arguments.whole_number("batchSize")? {
        None => usize::MAX,
        Some(limit) if limit > 0 => limit as usize,
        Some(limit) => {
            let message = format!("Batch size for getMore must be positive, but received: {limit}");
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
    };
    Ok(GetMoreRequest {
        cursor,
        namespace: format!("{}.{collection}", request.database()),
        limit,
    })
}

/// Checks the fields of replica sets, the last known commit time and the term. They have no effect,
/// so only their types are checked.
fn check_replication(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    match arguments.get("term").map(ValueRef::type_of) {
        None | Some(Type::Int64 | Type::Null) => {}
        Some(found) => return Err(arguments.wrong_type("term", found, &[Type::Int64])),
    }
    let Some(time) = arguments.document("lastKnownCommittedOpTime")? else {
        return Ok(());
    };
    let time = Arguments::within("getMore.lastKnownCommittedOpTime", time);
    for (name, expected) in [("ts", Type::Timestamp), ("t", Type::Int64)] {
        match time.get(name).map(ValueRef::type_of) {
            Some(found) if found != expected => {
                return Err(time.wrong_type(name, found, &[expected]));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks `maxTimeMS`. In a getMore it is the time to wait for data, and only cursors with
/// `awaitData` wait.
fn check_time_limit(options: CursorOptions, context: &Context<'_>) -> Result<(), CommandError> {
    if context.common.time_limit.is_some() && !options.await_data {
        let message = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_document::{DocumentBuf, Value, doc};

    use super::*;
    use crate::client::Client;
    use crate::connection::request_for_tests;
    use crate::cursors::CursorOwner;
    use crate::cursors::tests::{Numbers, owner};
    use crate::state::{Services, State};
    use crate::{Config, Log, dispatch};

    /// A getMore with these arguments on a cursor over 0 to 4.
    fn check(arguments: DocumentBuf, expected: Result<(usize, bool), i32>) {
        let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
        let state = State::new(Config::default(), services, 27017);
        let owner = CursorOwner {
            namespace: "a.c".into(),
            ..owner(None, false)
        };
        let id = state.cursors.open(owner, Box::new(Numbers(0..5))).unwrap();
        let mut body = DocumentBuf::new();
        for (name, value) in arguments.iter() {
            let is_cursor = value == ValueRef::String("cursor");
            body.push(
                name,
                if is_cursor {
                    Value::Int64(id)
                } else {
                    value.to_value()
                },
            );
        }
        body.push("$db", "a");
        let reply = dispatch::run(&state, &Client::for_tests(), &request_for_tests(&body));
        let reply = reply.to_document();
        let found = match reply.get("cursor").and_then(ValueRef::as_document) {
            Some(cursor) => {
                let batch = cursor.get("nextBatch").unwrap().as_array().unwrap().count();
                Ok((batch, cursor.get("id") != Some(ValueRef::Int64(0))))
            }
            None => Err(reply.get("code").unwrap().as_whole().unwrap() as i32),
        };
        assert_eq!(found, expected, "{body} -> {reply}");
    }

    #[test]
    fn a_cursor_returns_its_documents() {
        check(
            doc! { "getMore": "cursor", "collection": "c" },
            Ok((5, false)),
        );
        check(
            doc! { "getMore": "cursor", "collection": "c", "batchSize": 2 },
            Ok((2, true)),
        );
        check(
            doc! { "getMore": "cursor", "collection": "c", "batchSize": 2.0 },
            Ok((2, true)),
        );
        check(
            doc! { "getMore": "cursor", "collection": "c", "batchSize": 2i64 },
            Ok((2, true)),
        );
        check(
            doc! { "getMore": "cursor", "collection": "c", "term": 1i64 },
            Ok((5, false)),
        );
    }

    #[test]
    fn invalid_settings_are_refused() {
        let refused = |arguments: DocumentBuf, code: i32| check(arguments, Err(code));
        refused(
            doc! { "getMore": "cursor", "collection": "c", "batchSize": 0 },
            2,
        );
        refused(
            doc! { "getMore": "cursor", "collection": "c", "batchSize": "2" },
            14,
        );
        refused(doc! { "getMore": "cursor", "collection": "d" }, 13);
        refused(doc! { "getMore": "cursor", "collection": "" }, 73);
        refused(doc! { "getMore": "cursor", "collection": "$x" }, 13);
        refused(doc! { "getMore": 12345i64, "collection": "c" }, 43);
        refused(doc! { "getMore": (-5i64), "collection": "c" }, 43);
        refused(doc! { "getMore": 12345, "collection": "c" }, 14);
        refused(doc! { "getMore": 1.0, "collection": "c" }, 14);
        refused(doc! { "getMore": null, "collection": "c" }, 14);
        refused(
            doc! { "getMore": "cursor", "collection": "c", "maxTimeMS": 100 },
            2,
        );
        refused(
            doc! { "getMore": "cursor", "collection": "c", "maxTimeMS": (-1) },
            2,
        );
        refused(
            doc! { "getMore": "cursor", "collection": "c", "foo": 1 },
            40415,
        );
    }
}
