//! Cursors over lists that are created at once, such as collections and indexes.

use std::collections::VecDeque;

use windrow_document::{DocumentBuf, Value, doc};
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{Batch, CommandError, ErrorCode, Request};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::cursors::{BatchSource, CursorOptions, CursorOwner, SourceBatch};
use crate::operations::Operation;
use crate::transaction_context::TransactionContext;

/// The rest of a list.
struct ListCursor(VecDeque<DocumentBuf>);

impl ListCursor {
    /// Takes up to `limit` documents with at most `bytes_max` bytes, but at least one.
    fn take(&mut self, limit: usize, bytes_max: usize) -> Vec<DocumentBuf> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < limit {
            let next = self.0.front().map_or(0, |next| next.as_bytes().len());
            let next = next + Batch::ELEMENT_BYTES_MAX;
            if !taken.is_empty() && bytes + next > bytes_max {
                break;
            }
            let Some(document) = self.0.pop_front() else {
                break;
            };
            bytes += next;
            taken.push(document);
        }
        taken
    }
}

impl BatchSource for ListCursor {
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        operation.check()?;
        let taken = self.take(limit, bytes_max);
        Ok(SourceBatch {
            documents: taken
                .iter()
                .map(DocumentBuf::as_document)
                .collect::<Batch>(),
            finished: self.0.is_empty(),
            ..SourceBatch::default()
        })
    }
}

/// Opens a cursor over a list. Returns the reply `{cursor: {id, ns, firstBatch}}`, in MongoDB's
/// field order for lists. The batch has at most `batch_size` documents, by default as many as fit
/// in a reply.
pub fn open(
    request: &Request,
    context: &Context<'_>,
    namespace: &str,
    documents: Vec<DocumentBuf>,
    batch_size: Option<usize>,
) -> Result<DocumentBuf, CommandError> {
    let limit = batch_size.unwrap_or(usize::MAX);
    let mut listed = ListCursor(documents.into());
    let first = listed.take(limit, DOCUMENT_BYTES_MAX);
    let id = if listed.0.is_empty() {
        0
    } else {
        context.state.cursors.open(
            owner(request, context, namespace, first.len()),
            Box::new(listed),
        )?
    };
    let first: Vec<Value> = first.into_iter().map(Value::from).collect();
    Ok(doc! {
        "cursor": { "id": id, "ns": namespace, "firstBatch": first },
    })
}

/// Parses `cursor: {batchSize}`.
pub fn parse_batch_size(arguments: &Arguments<'_>) -> Result<Option<usize>, CommandError> {
    let Some(cursor) = arguments.document("cursor")? else {
        return Ok(None);
    };
    if let Some((name, _)) = cursor.iter().find(|(name, _)| *name != "batchSize") {
        let message =
            format!("cursor object can't contain fields other than batchSize, but has {name}");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let size = Arguments::within("cursor", cursor).count("batchSize")?;
    Ok(size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)))
}

fn owner(
    request: &Request,
    context: &Context<'_>,
    namespace: &str,
    returned: usize,
) -> CursorOwner {
    CursorOwner {
        namespace: namespace.to_owned(),
        session: context.common.session,
        user: context.authority.user().cloned(),
        requirement: context.requirement.clone(),
        transaction: context
            .transaction_context
            .and_then(TransactionContext::transaction_number),
        api: context.common.api,
        options: CursorOptions::default(),
        command: request.body().to_buf(),
        plan_summary: None,
        indexes: Vec::new(),
        time_left: context.operation.time_left(),
        returned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_into_batches() {
        let check = |limit: usize, bytes: usize, expected: usize| {
            let all: Vec<DocumentBuf> = (0..5).map(|n| doc! { "n": n }).collect();
            let mut listed = ListCursor(all.into());
            assert_eq!(listed.take(limit, bytes).len(), expected, "{limit} {bytes}");
            assert_eq!(listed.0.len(), 5 - expected);
        };
        check(0, 1000, 0);
        check(2, 1000, 2);
        check(9, 1000, 5);
        check(9, 2 * (12 + Batch::ELEMENT_BYTES_MAX), 2);
        check(9, 1, 1);
    }
}
