//! Requirements: the actions that a client must be allowed to do.

use windrow_access::{Action, Resource};

/// The actions that a client must be allowed to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Nothing beyond a login.
    Nothing,
    /// An action on a resource.
    Action(Resource, Action),
    /// Any action in a database.
    AnythingIn(String),
    All(Vec<Requirement>),
    Any(Vec<Requirement>),
    Not(Box<Requirement>),
}

impl Requirement {
    /// Returns the requirement of these actions on a resource.
    pub fn on(resource: &Resource, actions: &[Action]) -> Requirement {
        let single = |action: &Action| Requirement::Action(resource.clone(), *action);
        match actions {
            [] => Requirement::Nothing,
            [action] => single(action),
            _ => Requirement::All(actions.iter().map(single).collect()),
        }
    }

    /// Returns the requirement of these actions on the server.
    pub fn on_server(actions: &[Action]) -> Requirement {
        Requirement::on(&Resource::Cluster, actions)
    }

    /// Returns the requirement of these actions on a collection or view.
    pub fn on_namespace(database: &str, collection: &str, actions: &[Action]) -> Requirement {
        Requirement::on(&Resource::namespace(database, collection), actions)
    }

    /// Returns the requirement of both.
    pub fn and(self, other: Requirement) -> Requirement {
        match (self, other) {
            (Requirement::Nothing, other) => other,
            (this, Requirement::Nothing) => this,
            (Requirement::All(mut all), other) => {
                all.push(other);
                Requirement::All(all)
            }
            (this, other) => Requirement::All(vec![this, other]),
        }
    }

    /// Returns the requirement of one of both.
    pub fn or(self, other: Requirement) -> Requirement {
        Requirement::Any(vec![self, other])
    }
}
