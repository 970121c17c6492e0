//! `bulkWrite`: inserts, updates and deletes in several collections, in order.

mod operation;
mod results;

use windrow_access::Action;
use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, Document, Value, ValueRef};
use windrow_invariant::Bug;
use windrow_wire::{CommandError, ErrorCode, Reply, Request, RequestDocuments};

use super::delete::{self, DeleteStatement};
use super::insert;
use super::update::{self, UpdateStatement};
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::{Arguments, statements};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
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
    routing: Routing::Databases,
    needs: Needs::Computed(requirement),
    kind: Kind::Command,
    class: LatencyClass::Write,
    admin_only: true,
    write_concern: true,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&[
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

/// Returns the requirement of the operations: actions on the namespaces that they name.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let list = |name: &str| {
        let documents = request
            .request
            .and_then(|it| it.documents(name).ok().flatten());
        documents.map_or(Vec::new(), |all| all.iter().collect())
    };
    let namespaces: Vec<Document<'_>> = list("nsInfo");
    let mut needed = Requirement::Nothing;
    for operation in list("ops") {
        let Some((kind, number)) = operation.first() else {
            continue;
        };
        let mut actions = match kind {
            "insert" => vec![Action::insert],
            "update" => vec![Action::update],
            "delete" => vec![Action::remove],
            // It will be refused.
            _ => continue,
        };
        if operation.get("upsert").is_some_and(ValueRef::is_truthy) {
            actions.push(Action::insert);
        }
        if request.flag("bypassDocumentValidation") {
            actions.push(Action::bypassDocumentValidation);
        }
        let place = number
            .as_whole()
            .and_then(|number| usize::try_from(number).ok());
        let namespace = place.and_then(|place| namespaces.get(place)?.get("ns")?.as_str());
        if let Some((database, collection)) = namespace.and_then(|name| name.split_once('.')) {
            let one = Requirement::on_namespace(database, collection, &actions);
            needed = if needed == one {
                needed
            } else {
                needed.and(one)
            };
        }
    }
    needed
}

/// The namespace of the cursor over the results.
const NAMESPACE: &str = "admin.$cmd.bulkWrite";

/// A parsed `bulkWrite`.
struct BulkWriteRequest<'a> {
    /// The namespaces of `nsInfo`.
    namespaces: Vec<Target>,
    operations: Vec<BulkOperation<'a>>,
    /// The variables of `let`.
    variables: Option<Document<'a>>,
    storage: StorageOptions,
    ordered: bool,
    errors_only: bool,
    /// The documents in the first batch of the results.
    batch_size: Option<usize>,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let bulk = BulkWriteRequest::parse(request, context)?;
    context.operation.set_namespace(NAMESPACE);
    writes::check_statement_count(context, bulk.operations.len())?;
    for Target { namespace, .. } in &bulk.namespaces {
        writes::check_in_transaction(context, &namespace.database, &namespace.collection)?;
    }
    let mut results = BulkResults::new(bulk.errors_only);
    bulk.run(context, &mut results)?;
    let (documents, counts) = results.finish();
    counts.record(context.operation);
    let mut reply = list_cursor::open(request, context, NAMESPACE, documents, bulk.batch_size)?;
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
            Ok(crate::namespace::new(database, collection))
        }
        None => Err(CommandError::new(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified for bulkWrite: '{name}'"),
        )),
    }
}

/// Returns the broken invariant that an operation was parsed although `nsInfo` does not have its
/// namespace.
fn unknown_namespace(number: usize) -> Bug {
    Bug::new(format!(
        "an operation of a bulkWrite has namespace {number}, which is not in nsInfo"
    ))
}

impl<'a> BulkWriteRequest<'a> {
    fn parse(
        request: &'a Request,
        context: &Context<'_>,
    ) -> Result<BulkWriteRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let errors_only = arguments.bool("errorsOnly")?.unwrap_or(false);
        let namespaces = request
            .documents("nsInfo")?
            .ok_or_else(|| arguments.missing("nsInfo"))?;
        let namespaces = parse_namespaces(&namespaces)?;
        let variables = arguments.document("let")?;
        let storage = StorageOptions::parse(&arguments)?;
        let ordered = writes::are_ordered(context, &arguments)?;
        let operations = statements(request, "ops")?;
        let operations = operations
            .iter()
            .map(|one| BulkOperation::parse(one, namespaces.len()))
            .collect::<Result<_, _>>()?;
        Ok(BulkWriteRequest {
            namespaces,
            operations,
            variables,
            storage,
            ordered,
            errors_only,
            batch_size: list_cursor::parse_batch_size(&arguments)?,
        })
    }

    /// Runs the operations. Consecutive inserts into one collection are one insert. An ordered
    /// command ends at the first failure.
    fn run(&self, context: &Context<'_>, results: &mut BulkResults) -> Result<(), CommandError> {
        let mut index = 0;
        while let Some(rest @ [operation, ..]) = self.operations.get(index..) {
            let target = self.namespaces.get(operation.namespace);
            let target = target.ok_or_else(|| unknown_namespace(operation.namespace));
            let target = target.or_command_error()?;
            index += match &operation.action {
                BulkAction::Insert(_) => self.insert(context, target, index, rest, results)?,
                BulkAction::Update(statement) => {
                    self.update(context, target, index, statement, results)?;
                    1
                }
                BulkAction::Delete(statement) => {
                    self.delete(context, target, index, statement, results)?;
                    1
                }
            };
            if self.ordered && results.has_errors() {
                break;
            }
        }
        Ok(())
    }

    /// Inserts the documents of the first operations that are inserts into one collection. Returns
    /// their number. `first` is the index of the first operation in the command.
    fn insert(
        &self,
        context: &Context<'_>,
        target: &Target,
        first: usize,
        operations: &[BulkOperation<'_>],
        results: &mut BulkResults,
    ) -> Result<usize, CommandError> {
        let namespace = operations.first().map(|one| one.namespace);
        let together = operations.iter().map_while(|one| match &one.action {
            BulkAction::Insert(document) if Some(one.namespace) == namespace => {
                Some(ValueRef::Document(*document))
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
        let options = insert::InsertOptions {
            ordered: self.ordered,
            storage: self.storage,
        };
        let inserted = insert::insert_once(context, target, &documents, first, options)?;
        let mut failures = inserted.failures.into_iter().peekable();
        for number in 0..count {
            match failures.next_if(|failure| failure.index == number) {
                Some(failure) => {
                    results.failed(first + number, false, &failure.error)?;
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
        index: usize,
        statement: &UpdateStatement<'_>,
        results: &mut BulkResults,
    ) -> Result<(), CommandError> {
        let options = update::UpdateOptions {
            variables: self.variables,
            storage: self.storage,
        };
        match update::run_once(context, target, index, statement, options) {
            Ok(updated) => results.updated(index, &updated),
            Err(error) => results.failed(index, true, &error)?,
        }
        Ok(())
    }

    fn delete(
        &self,
        context: &Context<'_>,
        target: &Target,
        index: usize,
        statement: &DeleteStatement<'_>,
        results: &mut BulkResults,
    ) -> Result<(), CommandError> {
        match delete::run_once(context, target, index, statement, self.variables) {
            Ok(tally) => results.deleted(index, tally.changed),
            Err(error) => results.failed(index, false, &error)?,
        }
        Ok(())
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
