//! The privileges that commands need. Each command states them in its field `needs`.

use windrow_access::{Action, Resource, RoleName, UserName};
use windrow_collection::CollectionUuid;
use windrow_document::{Document, ValueRef};
use windrow_wire::Request;

use super::directory::Identity;
use super::requirement::Requirement;
use crate::arguments::uuid_of;
use crate::state::State;

/// A command as its requirement is computed from it.
#[derive(Clone, Copy)]
pub struct AccessRequest<'a> {
    pub state: &'a State,
    pub database: &'a str,
    pub body: Document<'a>,
    /// The user of the client.
    pub identity: Option<&'a Identity>,
    /// The request with its document sequences. `None` for a command within `explain`.
    pub request: Option<&'a Request>,
}

impl<'a> AccessRequest<'a> {
    /// Creates a request of a client.
    pub fn new(
        state: &'a State,
        request: &'a Request,
        identity: Option<&'a Identity>,
    ) -> AccessRequest<'a> {
        AccessRequest {
            state,
            identity,
            database: request.database(),
            body: request.body(),
            request: Some(request),
        }
    }

    /// Returns the user of the client.
    pub fn user(&self) -> Option<&'a UserName> {
        self.identity.map(|it| &it.user.name)
    }

    /// Returns `true` if the user of the client has a role, directly or by inheritance.
    pub fn has_role(&self, name: &RoleName) -> bool {
        let has = |identity: &Identity| identity.resolved.roles.binary_search(name).is_ok();
        self.identity.is_some_and(has)
    }

    /// Returns the argument that has the command's name.
    pub fn first(&self) -> Option<ValueRef<'a>> {
        self.body.first().map(|(_, value)| value)
    }

    /// Returns `true` if an argument is true or a number that is not zero.
    pub fn flag(&self, name: &str) -> bool {
        self.body.get(name).is_some_and(ValueRef::is_truthy)
    }

    /// Returns an argument that is a string.
    pub fn string(&self, name: &str) -> Option<&'a str> {
        self.body.get(name).and_then(ValueRef::as_str)
    }

    /// Returns the requirement of these actions on the database of the command.
    pub fn on_database(&self, actions: &[Action]) -> Requirement {
        Requirement::on(&Resource::database(self.database), actions)
    }

    /// Returns the requirement of these actions on a collection of the database of the command.
    pub fn on_named(&self, collection: &str, actions: &[Action]) -> Requirement {
        Requirement::on_namespace(self.database, collection, actions)
    }

    /// Returns the requirement of these actions on the collection that the command names, by name
    /// or by UUID. If it names none, the command will fail, and the actions on the database are
    /// required to see the error.
    pub fn on_collection(&self, actions: &[Action]) -> Requirement {
        match self.first() {
            Some(ValueRef::String(name) | ValueRef::Symbol(name)) => self.on_named(name, actions),
            Some(ValueRef::Binary { subtype: 4, bytes }) => {
                let by_uuid = Requirement::on_server(&[Action::useUUID]);
                match self.name_of_uuid(bytes) {
                    Some(name) => by_uuid.and(self.on_named(&name, actions)),
                    None => by_uuid,
                }
            }
            _ => self.on_database(actions),
        }
    }

    fn name_of_uuid(&self, bytes: &[u8]) -> Option<String> {
        let uuid = CollectionUuid(uuid_of(bytes).ok()?);
        let all = self.state.services.engine.collections(self.database);
        let found = all.iter().find(|collection| collection.uuid() == uuid);
        found.map(|collection| collection.namespace().collection)
    }
}

/// The privileges that a command needs.
#[derive(Clone, Copy)]
pub enum Needs {
    /// It does not say so, which does not compile.
    Unstated,
    /// Nothing, not even a login.
    Nothing,
    /// A login.
    Login,
    /// A login, and actions on the server.
    OnServer(&'static [Action]),
    /// Actions on the database of the command.
    OnDatabase(&'static [Action]),
    /// Actions on the collection that the command names in its first field.
    OnCollection(&'static [Action]),
    /// A requirement that depends on the request.
    Computed(fn(&AccessRequest<'_>) -> Requirement),
}

impl Needs {
    /// Returns `true` if the command runs without a login.
    pub const fn is_free(&self) -> bool {
        matches!(self, Needs::Nothing)
    }

    /// Returns `true` if the command states what it needs.
    pub const fn is_stated(&self) -> bool {
        !matches!(self, Needs::Unstated)
    }

    /// Returns the requirement of a request.
    pub fn requirement(&self, request: &AccessRequest<'_>) -> Requirement {
        match self {
            Needs::Nothing | Needs::Login => Requirement::Nothing,
            Needs::OnServer(actions) => Requirement::on_server(actions),
            Needs::OnDatabase(actions) => request.on_database(actions),
            Needs::OnCollection(actions) => request.on_collection(actions),
            Needs::Computed(compute) => compute(request),
            Needs::Unstated => Requirement::on_server(&[Action::internal]),
        }
    }
}
