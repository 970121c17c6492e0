//! `renameCollection`: renames a collection, within its database or into another one.

use windrow_access::{Action, Resource};
use windrow_collection::{CollectionUuid, Error, Namespace, Renaming};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::{Arguments, uuid_of};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::namespace;
use crate::queryable_encryption::check_renaming;

pub const RENAME_COLLECTION: Command = Command {
    name: "renameCollection",
    help: "renames a collection",
    routing: Routing::Databases,
    needs: Needs::Computed(requirement),
    admin_only: true,
    write_concern: true,
    arguments: AcceptedArguments::Only(&[COLLECTION_UUID, "dropTarget", "stayTemp", "to"]),
    run,
    ..Command::EMPTY
};

/// Returns the requirement. Renaming within a database is a separate action, which suffices if the
/// client does not gain access to documents that it could not read. Renaming into another database
/// copies the collection and drops it.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let name = |name: &str| request.string(name).and_then(|name| name.split_once('.'));
    let (Some((from, source)), Some((to, target))) = (name("renameCollection"), name("to")) else {
        // The names will be refused.
        return request.on_database(&[Action::renameCollectionSameDB]);
    };
    let on_source = |actions: &[Action]| Requirement::on_namespace(from, source, actions);
    let on_target = |actions: &[Action]| Requirement::on_namespace(to, target, actions);
    let needed = if from == to {
        let cannot_read = Requirement::Not(Box::new(on_target(&[Action::find])));
        Requirement::on(&Resource::database(from), &[Action::renameCollectionSameDB])
            .and(on_source(&[Action::find]).or(cannot_read))
    } else {
        on_source(&[Action::find, Action::dropCollection])
            .and(on_target(&[Action::insert, Action::createIndex]))
    };
    if request.flag("dropTarget")
        || matches!(
            request.body.get("dropTarget"),
            Some(ValueRef::Binary { .. })
        )
    {
        return needed.and(on_target(&[Action::dropCollection]));
    }
    needed
}

/// A parsed request.
struct RenameRequest {
    source: Namespace,
    target: Namespace,
    drop_target: DropTarget,
    stay_temporary: bool,
    /// The collection with the old name, and its expected UUID.
    collection: Target,
}

impl RenameRequest {
    fn parse(request: &Request) -> Result<RenameRequest, CommandError> {
        let arguments = Arguments::new(request);
        let source = named(&arguments, "renameCollection")?;
        let target = named(&arguments, "to")?;
        let drop_target = DropTarget::parse(&arguments)?;
        let stay_temporary = arguments.bool("stayTemp")?.unwrap_or(false);
        check(&source, &target)?;
        Ok(RenameRequest {
            collection: Target::from_arguments(source.clone(), &arguments)?,
            source,
            target,
            drop_target,
            stay_temporary,
        })
    }

    /// Renames the collection.
    fn apply(&self, context: &Context<'_>) -> Result<RenameResult, CommandError> {
        let RenameRequest { source, target, .. } = self;
        let engine = &context.state.services.engine;
        loop {
            let from = self.collection.collection(context)?;
            let to = engine.collection(target);
            check_renaming(from.as_deref(), to.as_deref())?;
            let drop_target = self.drop_target.check(context, source, target)?;
            let exclusions = from.iter().chain(&to).map(|it| context.exclude(it));
            let _ddl_guards = exclusions.collect::<Result<Vec<_>, CommandError>>()?;
            let renaming = Renaming {
                drop_target,
                stay_temporary: self.stay_temporary,
                source: self.collection.uuid(),
                target: self.drop_target.uuid(),
            };
            match engine.rename(source, target, &renaming) {
                // Another collection has the name now, so its options are checked again.
                Err(Error::CollectionChanged(_)) => {}
                renamed => {
                    renamed.or_command_error()?;
                    return Ok(RenameResult {
                        drop_target,
                        has_replaced: to.is_some(),
                    });
                }
            }
        }
    }
}

/// The result of renaming a collection.
struct RenameResult {
    drop_target: bool,
    /// A collection with the new name existed and was dropped.
    has_replaced: bool,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let parsed = RenameRequest::parse(request)?;
    context.operation.set_namespace(&parsed.source.to_string());
    let renamed = parsed.apply(context)?;
    let names = [parsed.source.to_string(), parsed.target.to_string()];
    let [old, new] = &names;
    if renamed.has_replaced {
        context.audit("dropCollection", || doc! { "ns": (new.as_str()) });
    }
    context.audit(
        "renameCollection",
        || doc! { "old": (old.as_str()), "new": (new.as_str()) },
    );
    let is_one = |name: &str| names.iter().any(|one| one == name);
    let cursors = &context.state.cursors;
    cursors.end_where(is_one, "collection renamed");
    let attr = doc! {
        "sourceNamespace": (old.as_str()), "targetNamespace": (new.as_str()),
        "dropTarget": (if renamed.drop_target { "yes" } else { "no" }),
    };
    let log = &context.state.services.log;
    let client = context.client.name();
    log.info(
        "COMMAND",
        20_400,
        &client,
        "renameCollectionForCommand",
        attr,
    );
    Ok(Reply::ok(DocumentBuf::new()))
}

/// The condition under which an existing collection with the new name is dropped.
enum DropTarget {
    No,
    Yes,
    /// It is dropped if it has this UUID.
    Only(CollectionUuid),
}

impl DropTarget {
    fn parse(arguments: &Arguments<'_>) -> Result<DropTarget, CommandError> {
        match arguments.present("dropTarget") {
            Some(ValueRef::Binary { subtype: 4, bytes }) => {
                let uuid = uuid_of(bytes)?;
                Ok(DropTarget::Only(CollectionUuid(uuid)))
            }
            Some(ValueRef::Binary { .. }) => {
                let message = "a UUID is binary data of subtype 4";
                Err(CommandError::new(ErrorCode::InvalidUUID, message))
            }
            _ => match arguments.bool("dropTarget")? {
                Some(true) => Ok(DropTarget::Yes),
                _ => Ok(DropTarget::No),
            },
        }
    }

    fn uuid(&self) -> Option<CollectionUuid> {
        match self {
            DropTarget::Only(uuid) => Some(*uuid),
            _ => None,
        }
    }

    /// Checks if an existing collection is dropped.
    fn check(
        &self,
        context: &Context<'_>,
        source: &Namespace,
        target: &Namespace,
    ) -> Result<bool, CommandError> {
        match self {
            DropTarget::No => Ok(false),
            DropTarget::Yes => Ok(true),
            DropTarget::Only(_) if source.database != target.database => {
                let message =
                    "a UUID in 'dropTarget' requires that both names are in the same database";
                Err(CommandError::new(ErrorCode::InvalidOptions, message))
            }
            DropTarget::Only(uuid) => Target::with_uuid(target, *uuid)
                .collection(context)
                .map(|_| true),
        }
    }
}

/// Returns the full namespace in an argument.
fn named(arguments: &Arguments<'_>, name: &str) -> Result<Namespace, CommandError> {
    let text = arguments.string(name)?;
    let text = text.ok_or_else(|| arguments.missing(name))?;
    let invalid = || {
        let message = format!("Invalid namespace specified '{text}'");
        CommandError::new(ErrorCode::InvalidNamespace, message)
    };
    let (database, collection) = text.split_once('.').ok_or_else(invalid)?;
    namespace::check_database(database)?;
    Ok(Namespace {
        database: database.to_owned(),
        collection: collection.to_owned(),
    })
}

fn check(source: &Namespace, target: &Namespace) -> Result<(), CommandError> {
    let illegal = |message: String| Err(CommandError::new(ErrorCode::IllegalOperation, message));
    namespace::check_collection(&source.database, &source.collection)?;
    if source == target {
        return illegal("Can't rename a collection to itself".to_owned());
    }
    if source.collection.starts_with("system.") || target.collection.starts_with("system.") {
        return illegal("cannot rename system collections".to_owned());
    }
    for (role, namespace) in [("source", source), ("target", target)] {
        let name = &namespace.collection;
        let allowed = namespace::check_collection(&namespace.database, name)
            .and_then(|()| namespace::check_creation(namespace));
        if let Err(error) = allowed {
            return illegal(format!("error with {role} namespace: {}", error.message));
        }
    }
    Ok(())
}
