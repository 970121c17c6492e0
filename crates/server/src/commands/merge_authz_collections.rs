//! `_mergeAuthzCollections`: replaces or adds users and roles by those of two collections, into
//! which mongorestore has inserted them.

use std::collections::HashSet;

use windrow_access::{Action, Resource};
use windrow_collection::{Engine, Namespace};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::events::{self, Event};
use crate::access::store::{AuthCollection, find_in, parse_role, parse_user, store_schema_version};
use crate::access::{AccessRequest, Needs, Requirement, audited_document, audited_name, editing};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};

pub const MERGE_AUTHZ_COLLECTIONS: Command = Command {
    name: "_mergeAuthzCollections",
    help: "takes over the users and roles that mongorestore has read",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    admin_only: true,
    write_concern: true,
    arguments: AcceptedArguments::Only(&[
        "db",
        "drop",
        "tempRolesCollection",
        "tempUsersCollection",
    ]),
    run,
    ..Command::EMPTY
};

fn requirement(request: &AccessRequest<'_>) -> Requirement {
    // The users and roles that are merged may have any roles and privileges, so the rights on one
    // database are not enough.
    let resource = Resource::AnyNormal;
    let actions = [
        Action::createRole,
        Action::createUser,
        Action::dropRole,
        Action::dropUser,
        Action::grantRole,
        Action::revokeRole,
    ];
    let sources = ["tempUsersCollection", "tempRolesCollection"];
    let sources = sources
        .iter()
        .filter_map(|name| request.string(name)?.split_once('.'));
    sources.fold(
        Requirement::on(&resource, &actions),
        |needed, (database, name)| {
            needed.and(Requirement::on_namespace(database, name, &[Action::find]))
        },
    )
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let database = arguments.string("db")?.unwrap_or_default();
    let drops = arguments.bool("drop")?.unwrap_or(false);
    let users = arguments.string("tempUsersCollection")?.unwrap_or_default();
    let roles = arguments.string("tempRolesCollection")?.unwrap_or_default();
    if users.is_empty() && roles.is_empty() {
        let message = "Must provide at least one of \"tempUsersCollection\" and \
                       \"tempRolesCollection\"";
        return refuse(ErrorCode::BadValue, message);
    }
    let engine = &context.state.services.engine;
    let _changing = editing::begin(context);
    let merge = Merge {
        context,
        engine,
        database,
        drops,
    };
    store_schema_version(engine)?;
    // Users follow the roles that they have.
    if !roles.is_empty() {
        merge.run(&ROLES, roles, |role| parse_role(role).map(drop))?;
    }
    if !users.is_empty() {
        merge.run(&USERS, users, |user| parse_user(user).map(drop))?;
    }
    events::record(
        context.state,
        context.client,
        &Event::Change {
            command: "_mergeAuthzCollections",
            target: database,
        },
    );
    Ok(Reply::ok(DocumentBuf::new()))
}

/// A kind of documents to merge, with its events in the audit log.
struct MergedKind {
    stored: AuthCollection,
    created: &'static str,
    changed: &'static str,
    dropped: &'static str,
}

const USERS: MergedKind = MergedKind {
    stored: AuthCollection::Users,
    created: "createUser",
    changed: "updateUser",
    dropped: "dropUser",
};

const ROLES: MergedKind = MergedKind {
    stored: AuthCollection::Roles,
    created: "createRole",
    changed: "updateRole",
    dropped: "dropRole",
};

struct Merge<'a> {
    context: &'a Context<'a>,
    engine: &'a Engine,
    /// Only users and roles of this database are replaced. Empty for all.
    database: &'a str,
    /// `true` if those that do not come are dropped.
    drops: bool,
}

impl Merge<'_> {
    /// Takes over the documents of a collection.
    fn run(
        &self,
        kind: &MergedKind,
        source: &str,
        check: impl Fn(&DocumentBuf) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let stored = kind.stored;
        let namespace = Namespace::parse(source).or_command_error()?;
        let documents = match self.engine.collection(&namespace) {
            None => Vec::new(),
            Some(collection) => find_in(&collection, self.filter().as_document())?,
        };
        documents.iter().try_for_each(check)?;
        let mut kept = HashSet::new();
        for document in documents {
            let Some(id) = document.get("_id").and_then(ValueRef::as_str) else {
                let message = format!("a document of {source} has no name as its _id");
                return refuse(ErrorCode::BadValue, message);
            };
            let id = id.to_owned();
            let is_known = stored.replace(self.engine, &id, document.clone())?;
            if !is_known {
                stored.insert(self.engine, document.clone())?;
            }
            let kind = if is_known { kind.changed } else { kind.created };
            self.context
                .audit(kind, || audited_document(document.as_document()));
            kept.insert(id);
        }
        if self.drops {
            for old in stored.find(self.engine, self.filter().as_document())? {
                let id = old
                    .get("_id")
                    .and_then(ValueRef::as_str)
                    .unwrap_or_default();
                if !kept.contains(id) {
                    stored.delete(self.engine, id)?;
                    self.context
                        .audit(kind.dropped, || audited_name(old.as_document()));
                }
            }
        }
        Ok(())
    }

    fn filter(&self) -> DocumentBuf {
        if self.database.is_empty() {
            return DocumentBuf::new();
        }
        doc! { "db": (self.database) }
    }
}
