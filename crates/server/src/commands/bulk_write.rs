//! `bulkWrite`: inserts, updates and deletes in several collections, in order.

mod operation;
mod results;

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, Document, Value, ValueRef};
use windrow_invariant::Bug;
use windrow_wire::{CommandError, ErrorCode, Reply, Request, RequestDocuments};

use super::{delete, insert, update};
use crate::arguments::{Arguments, statements};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{Accepted, Command, InTransactions};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::writes::StorageOptions;
use crate::{list_cursor, writes};
use operation::{BulkAction, BulkOperation};
use results::BulkResults;

pub const BULK_WRITE: Command = Command {
    name: "bulkWrite",
    help: "inserts, updates and deletes documents of several collections",
    kind: Kind::Command,
    class: LatencyClass::Write,
    admin_only: true,
    write_concern: true,
    in_api_version_1: true,
    arguments: Accepted::Only(&[
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
        "cursor",
        "errorsOnly",
        "let",
        "nsInfo",
        "ops",
        "ordered",
    ]),
    in_transactions: InTransactions::Allowed,
    retryable: true,
    run,
    ..Command::EMPTY
};

/// The namespace of the cursor over the results.
const NAMESPACE: &str = "admin.$cmd.bulkWrite";

/// The options of all operations of a command.
struct BulkWrite<'a> {
    namespaces: Vec<Target>,
    variables: Option<Document<'a>>,
    storing: StorageOptions,
    ordered: bool,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let errors_only = arguments.bool("errorsOnly")?.unwrap_or(false);
    let namespaces = request
        .documents("nsInfo")?
        .ok_or_else(|| arguments.missing("nsInfo"))?;
    let bulk = BulkWrite {
        namespaces: parse_namespaces(&namespaces)?,
        variables: arguments.document("let")?,
        storing: StorageOptions::parse(&arguments)?,
        ordered: writes::are_ordered(context, &arguments)?,
    };
    let operations = statements(request, "ops")?;
    let operations: Vec<BulkOperation> = operations
        .iter()
        .map(|one| BulkOperation::parse(one, bulk.namespaces.len()))
        .collect::<Result<_, _>>()?;
    context.operation.set_namespace("admin.$cmd.bulkWrite");
    writes::check_statement_count(context, operations.len())?;
    for Target { namespace, .. } in &bulk.namespaces {
        writes::check_in_transaction(context, &namespace.database, &namespace.collection)?;
    }
    let mut results = BulkResults::new(errors_only);
    bulk.run(context, &operations, &mut results)?;
    writes::sync_if_wanted(context)?;
    let (documents, counts) = results.finish();
    counts.record(context.operation);
    let mut reply = list_cursor::cursor(request, context, NAMESPACE, documents)?;
    counts.add_to(&mut reply);
    Ok(Reply::ok(reply))
}

/// Parses the namespaces of `nsInfo`: `{ns: "database.collection", collectionUUID}`.
fn parse_namespaces(list: &RequestDocuments<'_>) -> Result<Vec<Target>, CommandError> {
    let mut namespaces = Vec::new();
    for information in list.iter() {
        let fields = Arguments::within("bulkWrite.nsInfo", information);
        fields.only(&["ns", COLLECTION_UUID])?;
        let name = fields.string("ns")?.ok_or_else(|| fields.missing("ns"))?;
        let namespace = parse_namespace(name)?;
        namespaces.push(Target::from_arguments(namespace, &fields)?);
    }
    Ok(namespaces)
}

fn parse_namespace(name: &str) -> Result<Namespace, CommandError> {
    let parts = name.split_once('.');
    match parts.filter(|(database, collection)| !database.is_empty() && !collection.is_empty()) {
        Some((database, collection)) => {
            crate::namespace::check_database(database)?;
            crate::namespace::check_collection(database, collection)?;
            Ok(Namespace {
                database: database.to_owned(),
                collection: collection.to_owned(),
            })
        }
        None => Err(CommandError::new(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified for bulkWrite: '{name}'"),
        )),
    }
}

/// The broken invariant that an operation was parsed although `nsInfo` does not have its namespace.
fn unknown_namespace(number: usize) -> Bug {
    Bug::new(format!(
        "an operation of a bulkWrite has namespace {number}, which is not in nsInfo"
    ))
}

impl BulkWrite<'_> {
    /// Runs the operations. Consecutive inserts into one collection are one insert. An ordered
    /// command ends at the first failure.
    fn run(
        &self,
        context: &Context<'_>,
        operations: &[BulkOperation],
        results: &mut BulkResults,
    ) -> Result<(), CommandError> {
        let mut place = 0;
        while let Some(rest @ [operation, ..]) = operations.get(place..) {
            let target = self.namespaces.get(operation.namespace);
            let target = target.ok_or_else(|| unknown_namespace(operation.namespace));
            let target = target.or_command_error()?;
            place += match &operation.action {
                BulkAction::Insert(_) => self.insert(context, target, (place, rest), results)?,
                BulkAction::Update(statement) => {
                    self.update(context, target, (place, statement.as_document()), results)?
                }
                BulkAction::Delete(statement) => {
                    self.delete(context, target, (place, statement.as_document()), results)?
                }
            };
            if self.ordered && results.has_errors() {
                break;
            }
        }
        Ok(())
    }

    /// Inserts the documents of the first operations that are inserts into one collection. Returns
    /// their number.
    fn insert(
        &self,
        context: &Context<'_>,
        target: &Target,
        (first, operations): (usize, &[BulkOperation]),
        results: &mut BulkResults,
    ) -> Result<usize, CommandError> {
        let own = operations.first().map(|one| one.namespace);
        let together = operations.iter().map_while(|one| match &one.action {
            BulkAction::Insert(document) if Some(one.namespace) == own => {
                Some(ValueRef::Document(document.as_document()))
            }
            _ => None,
        });
        let documents: ArrayBuf = together
            .map(ValueRef::to_value)
            .collect::<Vec<Value>>()
            .into_iter()
            .collect();
        let documents = RequestDocuments::from_array(documents.as_array(), "bulkWrite.ops")?;
        let count = documents.count();
        let how = insert::InsertOptions {
            ordered: self.ordered,
            storing: self.storing,
        };
        let (_, failed) = insert::insert_once(context, target, &documents, (first, how))?;
        let mut failed = failed.into_iter().peekable();
        for number in 0..count {
            match failed.next_if(|(place, _)| *place == number) {
                Some((_, error)) => {
                    results.failed(first + number, false, &error)?;
                    if self.ordered {
                        break;
                    }
                }
                None => results.inserted(first + number),
            }
        }
        Ok(count)
    }

    fn update(
        &self,
        context: &Context<'_>,
        target: &Target,
        (place, statement): (usize, Document<'_>),
        results: &mut BulkResults,
    ) -> Result<usize, CommandError> {
        let statement = update::UpdateStatement::parse(statement)?;
        let with = (self.variables, self.storing);
        match update::once(context, target, (place, &statement), with) {
            Ok(updated) => results.updated(place, &updated),
            Err(error) => results.failed(place, true, &error)?,
        }
        Ok(1)
    }

    fn delete(
        &self,
        context: &Context<'_>,
        target: &Target,
        (place, statement): (usize, Document<'_>),
        results: &mut BulkResults,
    ) -> Result<usize, CommandError> {
        let statement = delete::DeleteStatement::parse(statement)?;
        match delete::once(context, target, (place, &statement), self.variables) {
            Ok(tally) => results.deleted(place, tally.changed),
            Err(error) => results.failed(place, false, &error)?,
        }
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_have_a_database_and_a_collection() {
        let check = |name: &str, expected: Result<&str, i32>| {
            let found = parse_namespace(name).map(|namespace| namespace.to_string());
            let found = found.map_err(|error| error.code.number());
            assert_eq!(found, expected.map(str::to_owned), "{name}");
        };
        check("a.b", Ok("a.b"));
        check("a.b.c", Ok("a.b.c"));
        check("a", Err(73));
        check("a.", Err(73));
        check(".b", Err(73));
    }
}
