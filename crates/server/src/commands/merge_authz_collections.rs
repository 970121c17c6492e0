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

/// A parsed `_mergeAuthzCollections`.
struct MergeRequest<'a> {
    /// Only users and roles of this database are replaced. Empty for all.
    database: &'a str,
    /// `true` if users and roles that the collections do not have are dropped.
    drop_others: bool,
    /// The namespace of the collection with the users. `None` if users stay as they are.
    users: Option<Namespace>,
    /// The same for roles.
    roles: Option<Namespace>,
}

impl<'a> MergeRequest<'a> {
    fn parse(request: &'a Request) -> Result<MergeRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let namespace = |argument: &str| {
            let name = arguments.string(argument)?.filter(|name| !name.is_empty());
            name.map(Namespace::parse).transpose().or_command_error()
        };
        let request = MergeRequest {
            database: arguments.string("db")?.unwrap_or_default(),
            drop_others: arguments.bool("drop")?.unwrap_or(false),
            users: namespace("tempUsersCollection")?,
            roles: namespace("tempRolesCollection")?,
        };
        if request.users.is_none() && request.roles.is_none() {
            let message = "Must provide at least one of \"tempUsersCollection\" and \
                           \"tempRolesCollection\"";
            return refuse(ErrorCode::BadValue, message);
        }
        Ok(request)
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let request = MergeRequest::parse(request)?;
    let engine = &context.state.services.engine;
    let _editing_guard = editing::begin(context);
    let merge = Merge {
        context,
        engine,
        request: &request,
    };
    store_schema_version(engine)?;
    // Users follow the roles that they have.
    if let Some(roles) = &request.roles {
        merge.run(&ROLES, roles, |role| parse_role(role).map(drop))?;
    }
    if let Some(users) = &request.users {
        merge.run(&USERS, users, |user| parse_user(user).map(drop))?;
    }
    events::record(
        context.state,
        context.client,
        &Event::Change {
            command: "_mergeAuthzCollections",
            target: request.database,
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
    request: &'a MergeRequest<'a>,
}

impl Merge<'_> {
    /// Takes over the documents of a collection.
    fn run(
        &self,
        kind: &MergedKind,
        source: &Namespace,
        check: impl Fn(&DocumentBuf) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let stored = kind.stored;
        let documents = match self.engine.collection(source) {
            None => Vec::new(),
            Some(collection) => find_in(&collection, self.filter().as_document())?,
        };
        documents.iter().try_for_each(check)?;
        let mut merged_ids = HashSet::new();
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
            merged_ids.insert(id);
        }
        if self.request.drop_others {
            for old in stored.find(self.engine, self.filter().as_document())? {
                let id = old
                    .get("_id")
                    .and_then(ValueRef::as_str)
                    .unwrap_or_default();
                if !merged_ids.contains(id) {
                    stored.delete(self.engine, id)?;
                    self.context
                        .audit(kind.dropped, || audited_name(old.as_document()));
                }
            }
        }
        Ok(())
    }

    fn filter(&self) -> DocumentBuf {
        match self.request.database {
            "" => DocumentBuf::new(),
            database => doc! { "db": database },
        }
    }
}
