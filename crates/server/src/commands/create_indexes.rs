//! `createIndexes`: builds indexes while other operations read and write.
//!
//! A build has its own thread, and the command waits for it. If the client disconnects, the build
//! continues. `killOp` and `maxTimeMS` end it. If the server stops, the next start continues it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use windrow_access::Action;
use windrow_collection::{Collection, CreatedIndexes, Index};
use windrow_document::order::compare_documents;
use windrow_document::{Document, DocumentBuf, Type, ValueRef};
use windrow_index::{Definition, without_unknown_options};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::audit::IndexTrail;
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::index_builds::{self, Build};
use crate::{namespace, queryable_encryption, stable_api, views};

/// Unknown arguments are checked in this file, because MongoDB has a separate error code for them.
pub const CREATE_INDEXES: Command = Command {
    name: "createIndexes",
    help: "builds indexes on a collection, which is created if it does not exist",
    needs: Needs::OnCollection(&[Action::createIndex]),
    write_concern: true,
    in_api_version_1: true,
    outside_api_version_1: stable_api::unsupported_in_create_indexes,
    arguments: AcceptedArguments::Any,
    in_transactions: InTransactions::AllowedIfLocal,
    run,
    ..Command::EMPTY
};

/// Maximum number of indexes of a collection, including that on `_id`.
const INDEXES_MAX: usize = 64;

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let target = Target::from_arguments(namespace.clone(), &Arguments::new(request))?;
    let existing = target.collection(context)?;
    let is_member = context.state.replica_set.is_some();
    let request = CreateIndexesRequest::parse(request, is_member)?;
    let definitions = request.definitions(existing.as_deref())?;
    namespace::check_creation(&namespace)?;
    views::refuse_view(context, &namespace)?;
    let is_created = existing.is_none();
    let collection = match existing {
        Some(collection) => collection,
        None => {
            // Invalid indexes are refused before a collection is created for them.
            missing_within_limit(&[], &definitions)?;
            context
                .collection_or_create(&namespace)
                .or_command_error()?
        }
    };
    for definition in &definitions {
        let options = collection.options();
        let specification = definition.specification.as_document();
        queryable_encryption::check_index(options.as_document(), specification)?;
    }
    let created = create(context, &collection, &definitions)?;
    Ok(reply(context, is_created, &created, definitions.len()))
}

/// Creates the missing indexes. Returns when all are ready. Other commands can start to build the
/// same indexes at any time, and their builds can fail, so the existing indexes are read again
/// after each wait.
fn create(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    definitions: &[Definition],
) -> Result<CreatedIndexes, CommandError> {
    let mut created: Option<CreatedIndexes> = None;
    loop {
        let indexes = collection.indexes();
        let missing = missing_within_limit(&indexes, definitions)?;
        let building = index_builds::unready(&indexes, definitions);
        if !building.is_empty() {
            check_may_wait(context, collection)?;
            index_builds::wait_ready(collection, &building, context.operation)?;
            continue;
        }
        if missing.is_empty() {
            let count = collection.index_count();
            return Ok(created.unwrap_or(CreatedIndexes {
                before: count,
                after: count,
                created: Vec::new(),
            }));
        }
        if let Some(transaction) = context.transaction() {
            let trail = context.trail();
            let trail = trail.map(|trail| IndexTrail::new(trail, collection, &missing));
            let created = transaction.create_indexes(collection, missing);
            if let Some(trail) = trail {
                trail.record_end(created.is_ok());
            }
            return created.or_command_error();
        }
        let mut built = build(context, collection, missing)?;
        if let Some(before) = created {
            built.before = before.before;
            built.created.extend(before.created);
        }
        created = Some(built);
    }
}

/// Fails in a transaction, because the end of a build waits for all operations that use its
/// collection.
fn check_may_wait(context: &Context<'_>, collection: &Collection) -> Result<(), CommandError> {
    if context.transaction().is_none() {
        return Ok(());
    }
    let message = format!(
        "cannot perform operation: an index build is currently running for collection '{}'",
        collection.namespace()
    );
    let code = ErrorCode::BackgroundOperationInProgressForNamespace;
    Err(CommandError::new(code, message))
}

fn build(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    definitions: Vec<Definition>,
) -> Result<CreatedIndexes, CommandError> {
    let services = &context.state.services;
    let build = Build {
        engine: services.engine.clone(),
        collection: collection.clone(),
        definitions,
        log: services.log.clone(),
        context: context.client.name(),
    };
    let metrics = &context.state.metrics;
    metrics.index_builds.fetch_add(1, Relaxed);
    let trail = context.trail();
    let trail = trail.map(|trail| IndexTrail::new(trail, &build.collection, &build.definitions));
    if let Some(trail) = &trail {
        trail.record_start();
    }
    let built = index_builds::run(build, context.operation);
    if let Some(trail) = &trail {
        trail.record_end(built.is_ok());
    }
    built.inspect_err(|_| _ = metrics.index_builds_failed.fetch_add(1, Relaxed))
}

/// Returns the reply to a command with `requested` indexes. `is_created` is `true` if the command
/// has created the collection.
fn reply(
    context: &Context<'_>,
    is_created: bool,
    indexes: &CreatedIndexes,
    requested: usize,
) -> Reply {
    let created = indexes.created.len();
    // A new collection has the index on `_id`, so the reply is that to a created index even if no
    // other one was requested.
    let has_changed = is_created || created > 0;
    let mut reply = DocumentBuf::new();
    if has_changed {
        let is_reported = is_created || context.transaction().is_some();
        reply.push("createdCollectionAutomatically", is_reported);
    }
    reply.push("numIndexesBefore", indexes.before as i32);
    reply.push("numIndexesAfter", indexes.after as i32);
    if indexes.before == indexes.after {
        reply.push("note", "all indexes already exist");
    } else if requested > created {
        reply.push("note", "index already exists");
    }
    if has_changed && context.state.replica_set.is_some() {
        reply.push("commitQuorum", "votingMembers");
    }
    Reply::ok(reply)
}

/// Returns the requested indexes that do not exist yet. Fails if the collection would have more than
/// [`INDEXES_MAX`].
fn missing_within_limit(
    known: &[Arc<Index>],
    requested: &[Definition],
) -> Result<Vec<Definition>, CommandError> {
    let new = windrow_collection::missing_indexes(known, requested.to_vec()).or_command_error()?;
    let before = match known {
        [] => 1,
        known => known.iter().filter(|it| !it.definition.clustered).count(),
    };
    if before + new.len() > INDEXES_MAX {
        let message = format!(
            "add index fails, too many indexes: {} and {before} others, the limit is {INDEXES_MAX}",
            new.len()
        );
        return Err(CommandError::new(ErrorCode::CannotCreateIndex, message));
    }
    Ok(new)
}

/// A parsed `createIndexes`.
struct CreateIndexesRequest<'a> {
    specifications: Vec<Document<'a>>,
    ignore_unknown_options: bool,
}

impl<'a> CreateIndexesRequest<'a> {
    fn parse(
        request: &'a Request,
        is_member: bool,
    ) -> Result<CreateIndexesRequest<'a>, CommandError> {
        check_names(request)?;
        let arguments = Arguments::new(request);
        let ignore_unknown_options = arguments.flag("ignoreUnknownIndexOptions")?;
        if let Some(quorum) = arguments.get("commitQuorum") {
            check_quorum(quorum, is_member)?;
        }
        let indexes = arguments.array("indexes")?.ok_or_else(|| {
            let message = "The 'indexes' field is a required argument of the createIndexes command";
            CommandError::new(ErrorCode::FailedToParse, message)
        })?;
        if indexes.is_empty() {
            let message = "Must specify at least one index to create";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        let specification = |index: ValueRef<'a>| {
            let wrong = || arguments.wrong_type("indexes", index.type_of(), &[Type::Document]);
            index.as_document().ok_or_else(wrong)
        };
        Ok(CreateIndexesRequest {
            specifications: indexes
                .iter()
                .map(specification)
                .collect::<Result<_, _>>()?,
            ignore_unknown_options,
        })
    }

    /// Parses the indexes. The collation of the collection is their default.
    fn definitions(&self, existing: Option<&Collection>) -> Result<Vec<Definition>, CommandError> {
        let collation = existing.and_then(Collection::collation);
        let collation = collation.as_ref();
        let parse = |specification: &Document<'_>| {
            if let Some(clustered) = specification.get("clustered") {
                return existing_clustered_index(*specification, clustered, existing);
            }
            if self.ignore_unknown_options {
                let known = without_unknown_options(*specification);
                return Definition::parse_within(known.as_document(), collation).or_command_error();
            }
            Definition::parse_within(*specification, collation).or_command_error()
        };
        self.specifications.iter().map(parse).collect()
    }
}

/// MongoDB's error codes for indexes with `clustered`.
const NOT_CLUSTERED_BY: ErrorCode = ErrorCode(6_243_700);
const CREATES_CLUSTERED: ErrorCode = ErrorCode(6_100_900);
const CLUSTERED_FALSE: ErrorCode = ErrorCode(6_492_800);

/// Handles an index with `clustered`. It must be the existing clustered index of the collection.
fn existing_clustered_index(
    specification: Document<'_>,
    clustered: ValueRef<'_>,
    existing: Option<&Collection>,
) -> Result<Definition, CommandError> {
    let refuse = |code, message: &str| Err(CommandError::new(code, message));
    if !clustered.is_truthy() {
        return refuse(CLUSTERED_FALSE, "'clustered: false' is not a valid option");
    }
    let Some(existing) = existing else {
        let message = "the 'clustered' option is not supported for implicit collection creation";
        return refuse(CREATES_CLUSTERED, message);
    };
    let id_index = existing.indexes().into_iter().next();
    let key = specification.get("key").and_then(ValueRef::as_document);
    let is_meant = |one: &Arc<Index>| {
        let same = |key| compare_documents(one.definition.key_pattern(), key).is_eq();
        one.definition.clustered && key.is_some_and(same)
    };
    match id_index.filter(is_meant) {
        Some(index) => Ok(Definition::clone(&index.definition)),
        None => refuse(
            NOT_CLUSTERED_BY,
            "The 'clustered' option is only supported for the index that a clustered collection is created with",
        ),
    }
}

/// Checks `commitQuorum`: the number of members that must be ready. A replica set has one member.
fn check_quorum(quorum: ValueRef<'_>, is_member: bool) -> Result<(), CommandError> {
    let refuse = |code: ErrorCode, message: &str| Err(CommandError::new(code, message));
    match quorum {
        _ if !is_member => refuse(
            ErrorCode::BadValue,
            "Standalones don't support commitQuorum",
        ),
        ValueRef::String("majority" | "votingMembers") => Ok(()),
        number
            if number
                .as_whole()
                .is_some_and(|number| (0..=1).contains(&number)) =>
        {
            Ok(())
        }
        number if number.is_number() => refuse(
            ErrorCode::UnsatisfiableCommitQuorum,
            "Not enough data-bearing nodes for the commitQuorum",
        ),
        ValueRef::String(_) => refuse(
            ErrorCode::UnknownReplWriteConcern,
            "No commit quorum of that name is configured",
        ),
        _ => refuse(
            ErrorCode::FailedToParse,
            "commitQuorum must be a number or a string",
        ),
    }
}

fn check_names(request: &Request) -> Result<(), CommandError> {
    let known = [
        COLLECTION_UUID,
        "commitQuorum",
        "ignoreUnknownIndexOptions",
        "indexes",
    ];
    let mut names = request.body().iter().skip(1).map(|(name, _)| name);
    match names.find(|name| !known.contains(name) && !is_generic(name)) {
        None => Ok(()),
        Some(name) => Err(CommandError::new(
            ErrorCode::BadValue,
            format!("Invalid field specified for createIndexes command: {name}"),
        )),
    }
}
