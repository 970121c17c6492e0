//! The authority of the client of a request.

use std::sync::Arc;

use windrow_access::{Action, ActionSet, Pattern, Privilege, Privileges, Resource, UserName};
use windrow_wire::{CommandError, ErrorCode};

use super::directory::Identity;
use super::requirement::Requirement;
use crate::sessions::{SessionId, UserDigest};

/// The authority of the client of a request.
#[derive(Clone, Debug)]
pub enum Authority {
    /// The client may do everything, because no login is necessary.
    Unrestricted,
    /// The client has logged in as this user.
    User(Arc<Identity>),
    /// The client may create the first user, because it is on the machine of the server.
    FirstUser(Arc<Privileges>),
    /// The client may only log in.
    Nobody,
}

impl Authority {
    /// Returns the authority of a client on the machine itself while there is no user: it may
    /// create the first user or role, with roles of `admin`.
    pub fn first_user() -> Authority {
        let privilege = |database: &str, actions: &[Action]| Privilege {
            pattern: Pattern::Database(database.to_owned()),
            actions: ActionSet::new(actions),
        };
        let mut privileges = Privileges::default();
        let admin_actions = [Action::createUser, Action::createRole, Action::grantRole];
        privileges.add(&privilege("admin", &admin_actions));
        privileges.add(&privilege("$external", &[Action::createUser]));
        Authority::FirstUser(Arc::new(privileges))
    }

    /// Returns the user with its privileges.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Authority::User(identity) => Some(identity),
            _ => None,
        }
    }

    /// Returns the name of the user, if there is one.
    pub fn user(&self) -> Option<&UserName> {
        match self {
            Authority::User(identity) => Some(&identity.user.name),
            _ => None,
        }
    }

    /// Returns the digest of the user, by which sessions belong to it.
    pub fn digest(&self) -> UserDigest {
        match self {
            Authority::User(identity) => identity.digest,
            _ => UserDigest::NOBODY,
        }
    }

    /// Returns `true` if no login is necessary.
    pub fn is_unrestricted(&self) -> bool {
        matches!(self, Authority::Unrestricted)
    }

    fn privileges(&self) -> Option<&Privileges> {
        match self {
            Authority::User(identity) => Some(&identity.resolved.privileges),
            Authority::FirstUser(privileges) => Some(privileges),
            Authority::Unrestricted | Authority::Nobody => None,
        }
    }

    /// Returns `true` if the client may do something.
    pub fn allows(&self, resource: &Resource, action: Action) -> bool {
        let allow = |privileges: &Privileges| privileges.allow(resource, action);
        self.is_unrestricted() || self.privileges().is_some_and(allow)
    }

    /// Returns `true` if the client may do anything with a resource.
    pub fn allows_any(&self, resource: &Resource) -> bool {
        let allow = |privileges: &Privileges| privileges.allow_any(resource);
        self.is_unrestricted() || self.privileges().is_some_and(allow)
    }

    /// Returns `true` if the client may do anything in a database.
    pub fn reaches(&self, database: &str) -> bool {
        let reach = |privileges: &Privileges| privileges.reach(database);
        self.is_unrestricted() || self.privileges().is_some_and(reach)
    }

    /// Returns `true` if the client fulfils a requirement.
    pub fn meets(&self, requirement: &Requirement) -> bool {
        match self {
            Authority::Unrestricted => true,
            Authority::Nobody => false,
            Authority::User(_) | Authority::FirstUser(_) => match requirement {
                Requirement::Nothing => true,
                Requirement::Action(resource, action) => self.allows(resource, *action),
                Requirement::AnythingIn(database) => self.reaches(database),
                Requirement::All(all) => all.iter().all(|one| self.meets(one)),
                Requirement::Any(any) => any.iter().any(|one| self.meets(one)),
                Requirement::Not(one) => !self.meets(one),
            },
        }
    }

    /// Returns `true` if something of a user, such as a cursor or an operation, belongs to the
    /// client.
    pub fn owns(&self, owner: Option<&UserName>) -> bool {
        self.is_unrestricted() || owner.is_some() && self.user() == owner
    }

    /// Returns the session of the client with an id that it sent. Fails with Unauthorized if the id
    /// names another user.
    pub fn session(&self, sent: SessionId) -> Result<SessionId, CommandError> {
        if self.is_unrestricted() || sent.user == UserDigest::NOBODY {
            return Ok(sent.with_user(self.digest()));
        }
        if sent.user == self.digest() || self.allows(&Resource::Cluster, Action::impersonate) {
            return Ok(sent);
        }
        let message = "Unauthorized to set user digest in LogicalSessionId";
        Err(CommandError::new(ErrorCode::Unauthorized, message))
    }
}
