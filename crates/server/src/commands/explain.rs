//! `explain`: the plan of another command.

use windrow_access::Action;
use windrow_document::{Document, ValueRef};
use windrow_query::{ExplainedCommand, Find, ReturnedDocument, Verbosity};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::aggregate::AggregateRequest;
use super::count::CountRequest;
use super::distinct::DistinctRequest;
use super::find::FindRequest;
use super::find_and_modify::FindAndModifyRequest;
use super::{aggregate, delete, update};
use crate::access::{AccessRequest, Requirement};
use crate::arguments::Arguments;
use crate::collation;
use crate::collection_uuid::Target;
use crate::command::{AcceptedArguments, Command, ENCRYPTION_INFORMATION, SnapshotReads};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::metrics::Kind;
use crate::queries::Defaults;
use crate::queryable_encryption::rewrite_command;
use crate::{explanation, namespace, views};

/// It needs the table of commands, which is in a higher module: see [`run`].
pub const EXPLAIN: Command = Command {
    name: "explain",
    help: "returns the plan of a command, and the statistics of its execution",
    kind: Kind::Command,
    read_concern: true,
    snapshot_reads: SnapshotReads::Unreported,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&["verbosity"]),
    ends_with_client: true,
    ..Command::EMPTY
};

/// Returns the requirement of the explained command.
pub fn requirement(
    request: &AccessRequest<'_>,
    find_command: fn(&str) -> Option<&'static Command>,
) -> Requirement {
    let explained = request.first().and_then(ValueRef::as_document);
    let named = explained.and_then(|body| Some((body, find_command(body.first()?.0)?)));
    match named {
        // A command that cannot be explained will be refused.
        Some((body, command)) if command.name != "explain" => {
            let within = AccessRequest {
                body,
                request: None,
                ..*request
            };
            command.needs.requirement(&within)
        }
        _ => request.on_database(&[Action::find]),
    }
}

/// A parsed `explain`.
struct ExplainRequest<'a> {
    /// The explained command.
    command: Document<'a>,
    verbosity: Verbosity,
}

impl<'a> ExplainRequest<'a> {
    fn parse(request: &'a Request) -> Result<ExplainRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let refuse = |message: &str| CommandError::new(ErrorCode::FailedToParse, message);
        let Some(ValueRef::Document(command)) = arguments.get("explain") else {
            return Err(refuse("explain command requires a nested object"));
        };
        let verbosity = match arguments.present("verbosity") {
            None => Verbosity::AllPlansExecution,
            Some(ValueRef::String(name)) => Verbosity::parse(name).or_command_error()?,
            Some(_) => return Err(refuse("explain verbosity must be a string")),
        };
        Ok(ExplainRequest { command, verbosity })
    }
}

/// Explains a command. `find_command` returns the command with a name, whose accepted arguments are
/// needed.
pub fn run(
    request: &Request,
    context: &Context<'_>,
    find_command: fn(&str) -> Option<&'static Command>,
) -> Result<Reply, CommandError> {
    let ExplainRequest { command, verbosity } = ExplainRequest::parse(request)?;
    let name = command.first().map_or("", |(name, _)| name);
    let explained = find_command(name).ok_or_else(|| {
        CommandError::new(
            ErrorCode::CommandNotFound,
            format!("Explain failed due to unknown command: {name}"),
        )
    })?;
    check_database(request.database(), command)?;
    let rewritten;
    let command = if explained.encrypted.is_some() && command.contains(ENCRYPTION_INFORMATION) {
        rewritten = rewrite_command(context, request.database(), command)?;
        rewritten.as_document()
    } else {
        command
    };
    explained.check_arguments(command, std::iter::empty())?;
    explain(context, request.database(), command, verbosity)
}

/// Fails if the explained command names another database.
fn check_database(database: &str, command: Document<'_>) -> Result<(), CommandError> {
    match Arguments::within("explain", command).string("$db")? {
        Some(other) if other != database => Err(CommandError::new(
            ErrorCode::InvalidNamespace,
            format!("Mismatched $db in explain command. Expected {database} but got {other}"),
        )),
        _ => Ok(()),
    }
}

/// Explains a command of this database.
fn explain(
    context: &Context<'_>,
    database: &str,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<Reply, CommandError> {
    let name = command.first().map_or("", |(name, _)| name);
    if name == "aggregate" {
        let request = AggregateRequest::parse(command)?;
        return aggregate::explain(context, database, &request, verbosity);
    }
    let target = parse_target(context, database, command, name);
    if let "find" | "count" | "distinct" = name {
        let target = target.as_ref().map_err(CommandError::clone)?;
        let source = explanation::open(context, target)?;
        if source.view().is_some() {
            let query = match name {
                "find" => FindRequest::parse(command)?.view_query()?,
                "count" => CountRequest::parse(command)?.view_query(),
                _ => DistinctRequest::parse(command)?.view_query(),
            };
            let aggregate = views::aggregate(context, query, &*source)?;
            return explanation::aggregate(context, &aggregate, &source, command, verbosity);
        }
    }
    let collation = match &target {
        Ok(target) => collation::default_for(context, &target.namespace)?,
        // An invalid name is reported after errors of the command's arguments.
        Err(_) => None,
    };
    let defaults = Defaults::for_command(context, collation);
    let (find, wrapping) = parse_query(command, name, defaults)?;
    let target = target?;
    let source = explanation::open(context, &target)?;
    views::refuse_view(context, &target.namespace)?;
    explanation::find(context, &find, &source, command, verbosity, &wrapping)
}

/// Returns the query of a command other than `aggregate`, and the stages above it.
fn parse_query(
    command: Document<'_>,
    name: &str,
    defaults: Defaults,
) -> Result<(Find, ExplainedCommand), CommandError> {
    Ok(match name {
        "find" => (
            FindRequest::parse(command)?.find(defaults)?,
            ExplainedCommand::None,
        ),
        "count" => (
            CountRequest::parse(command)?.count(defaults)?.find(),
            ExplainedCommand::Count,
        ),
        "distinct" => (
            DistinctRequest::parse(command)?.distinct(defaults)?.find(),
            ExplainedCommand::None,
        ),
        "delete" => {
            let returns = ReturnedDocument::None;
            (
                only_delete(command, defaults)?,
                ExplainedCommand::Delete { returns },
            )
        }
        "update" => only_update(command, defaults)?,
        "findAndModify" | "findandmodify" => {
            let request = FindAndModifyRequest::parse(command, defaults)?;
            let wrapping = request.wrapping();
            (request.find, wrapping)
        }
        other => {
            return Err(CommandError::new(
                ErrorCode::IllegalOperation,
                format!("Cannot explain cmd: {other}"),
            ));
        }
    })
}

/// Returns the collection that a command names, with the expected UUID if the command supports it.
fn parse_target(
    context: &Context<'_>,
    database: &str,
    command: Document<'_>,
    name: &str,
) -> Result<Target, CommandError> {
    let code = ErrorCode::InvalidNamespace;
    let target = match name {
        "find" | "count" | "distinct" => {
            Target::from_name_or_uuid(context, database, command, code)?
        }
        _ => Target::named(namespace::without_dollar(database, command, code)?),
    };
    match name {
        "find" | "update" | "delete" => {
            target.with_expected_uuid(&Arguments::within(name, command))
        }
        _ => Ok(target),
    }
}

/// Returns the only statement of an explained write.
fn only_statement<'a>(
    command: Document<'a>,
    name: &'a str,
    list: &str,
) -> Result<Document<'a>, CommandError> {
    let arguments = Arguments::within(name, command);
    let statements = arguments
        .array(list)?
        .ok_or_else(|| arguments.missing(list))?;
    let mut documents = statements.iter().filter_map(ValueRef::as_document);
    match (documents.next(), documents.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(CommandError::new(
            ErrorCode::InvalidLength,
            "explained write batches must be of size 1",
        )),
    }
}

fn only_delete(command: Document<'_>, default: Defaults) -> Result<Find, CommandError> {
    let statement = only_statement(command, "delete", "deletes")?;
    let variables = Arguments::within("delete", command).document("let")?;
    delete::DeleteStatement::parse(statement)?.find(variables, default)
}

fn only_update(
    command: Document<'_>,
    default: Defaults,
) -> Result<(Find, ExplainedCommand), CommandError> {
    let statement = only_statement(command, "update", "updates")?;
    let variables = Arguments::within("update", command).document("let")?;
    let statement = update::UpdateStatement::parse(statement)?;
    let wrapping = ExplainedCommand::Update {
        upserts: statement.upserts(),
        returns: ReturnedDocument::None,
    };
    Ok((statement.prepare(variables, default)?.find, wrapping))
}
