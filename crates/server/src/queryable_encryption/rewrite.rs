//! Rewrites the queries of a command: those on encrypted fields become queries on tags.

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef};
use windrow_queryable_encryption::{kind, kind_of};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::collections::EncryptedCollection;
use super::filter;
use super::operands::TagFinder;
use crate::command::{Command, ENCRYPTION_INFORMATION};
use crate::context::Context;
use crate::errors::refuse;

/// Runs a command of which only the queries are about encrypted fields.
pub fn run_query(
    command: &Command,
    request: &Request,
    context: &Context<'_>,
    _: fn(&str) -> Option<&'static Command>,
) -> Result<Reply, CommandError> {
    let mut body = request.body().to_buf();
    for name in request.sequence_names() {
        if let Some(documents) = request.documents(name)? {
            let documents = documents
                .iter()
                .map(|document| Value::from(document.to_buf()));
            body.push(name, Value::Array(documents.collect()));
        }
    }
    let body = rewrite_command(context, request.database(), body.as_document())?;
    (command.run)(&request.with_body(body)?, context)
}

/// Returns the command without `encryptionInformation`, and with queries on tags.
pub fn rewrite_command(
    context: &Context<'_>,
    database: &str,
    command: Document<'_>,
) -> Result<DocumentBuf, CommandError> {
    let target = EncryptedCollection::from_command(context, database, command)?;
    let mut rewriter = Rewriter::new(context, &target)?;
    let mut rewritten = DocumentBuf::new();
    for (name, value) in command {
        match (name, value) {
            (ENCRYPTION_INFORMATION, _) => {}
            ("filter" | "query", ValueRef::Document(query)) => {
                rewritten.push(name, rewriter.filter(query)?);
            }
            ("pipeline", ValueRef::Array(stages)) => {
                rewritten.push(name, Value::Array(rewriter.pipeline(stages)?));
            }
            ("deletes" | "updates", ValueRef::Array(statements)) => {
                rewritten.push(name, Value::Array(rewriter.statements(statements)?));
            }
            _ => rewritten.push(name, value),
        }
    }
    Ok(rewritten)
}

/// MongoDB's error code if a delete has several statements.
const SEVERAL_DELETES: ErrorCode = ErrorCode(6_371_302);

/// Rewrites the queries of one command.
pub struct Rewriter<'c> {
    finder: TagFinder<'c>,
}

impl<'c> Rewriter<'c> {
    pub fn new(
        context: &'c Context<'c>,
        target: &EncryptedCollection,
    ) -> Result<Rewriter<'c>, CommandError> {
        let finder = TagFinder::new(context, &target.state)?;
        Ok(Rewriter { finder })
    }

    /// Returns the query with tags in place of encrypted operands.
    pub fn filter(&mut self, query: Document<'_>) -> Result<DocumentBuf, CommandError> {
        let rewritten = filter::rewrite(&mut self.finder, query)?;
        check_no_payloads(ValueRef::Document(rewritten.as_document()))?;
        Ok(rewritten)
    }

    /// Returns a pipeline with rewritten `$match` stages.
    fn pipeline(&mut self, stages: Array<'_>) -> Result<ArrayBuf, CommandError> {
        let rewritten = stages.iter().map(|stage| match stage {
            ValueRef::Document(stage) => self.stage(stage).map(Value::from),
            other => Ok(other.to_value()),
        });
        rewritten.collect()
    }

    fn stage(&mut self, stage: Document<'_>) -> Result<DocumentBuf, CommandError> {
        let mut rewritten = DocumentBuf::new();
        for (name, operand) in stage {
            match (name, operand) {
                ("$match", ValueRef::Document(query)) => {
                    rewritten.push(name, self.filter(query)?);
                }
                ("$facet", ValueRef::Document(pipelines)) => {
                    let mut facets = DocumentBuf::new();
                    for (facet, stages) in pipelines {
                        match stages {
                            ValueRef::Array(stages) => {
                                facets.push(facet, Value::Array(self.pipeline(stages)?));
                            }
                            other => facets.push(facet, other),
                        }
                    }
                    rewritten.push(name, facets);
                }
                _ => {
                    check_no_payloads(operand)?;
                    rewritten.push(name, operand);
                }
            }
        }
        Ok(rewritten)
    }

    /// Returns the statements of a delete, or of an update that is explained, with rewritten
    /// queries.
    fn statements(&mut self, statements: Array<'_>) -> Result<ArrayBuf, CommandError> {
        if statements.count() != 1 {
            let message = "a delete of encrypted documents has one statement";
            return refuse(SEVERAL_DELETES, message);
        }
        let rewritten = statements.iter().map(|statement| {
            let Some(statement) = statement.as_document() else {
                return Ok(statement.to_value());
            };
            let mut rewritten = DocumentBuf::new();
            for (name, value) in statement {
                match value {
                    ValueRef::Document(query) if name == "q" => {
                        rewritten.push(name, self.filter(query)?);
                    }
                    _ => rewritten.push(name, value),
                }
            }
            Ok(Value::from(rewritten))
        });
        rewritten.collect()
    }
}

/// Fails if an encrypted operand is left: it would match nothing.
fn check_no_payloads(value: ValueRef<'_>) -> Result<(), CommandError> {
    match value {
        ValueRef::Document(inner) => inner
            .iter()
            .try_for_each(|(_, value)| check_no_payloads(value)),
        ValueRef::Array(list) => list.iter().try_for_each(check_no_payloads),
        _ => match kind_of(value) {
            Some(kind::FIND_TEXT_PAYLOAD) => {
                let message = "queries for parts of encrypted strings are not supported";
                refuse(ErrorCode::NotImplemented, message)
            }
            Some(kind::FIND_EQUALITY_PAYLOAD | kind::FIND_RANGE_PAYLOAD | kind::INSERT_PAYLOAD) => {
                let message = "an encrypted operand is only supported by $eq, $ne, $in, $nin, $gt, \
                               $gte, $lt and $lte of a query, of $match and of $expr";
                refuse(ErrorCode::BadValue, message)
            }
            _ => Ok(()),
        },
    }
}
