//! The users of the server with their privileges, in memory.
//!
//! The two collections have versions: the positions of their newest commits. A request compares
//! them with those of the directory. If they differ, it starts a new, empty directory. Users are
//! read into it when they are needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use windrow_access::{ResolvedRoles, RoleName, User, UserName, resolve};
use windrow_collection::{Collection, CollectionUuid, Engine, Namespace, Position};
use windrow_document::Value;
use windrow_wire::CommandError;

use super::store::{self, AuthCollection};
use crate::errors::IntoCommandError;
use crate::sessions::UserDigest;
use crate::sync::lock;

/// The condition under which clients have to log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessControl {
    /// As soon as there is a user, and from then on.
    #[default]
    WithUsers,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A user with what follows from its roles.
#[derive(Debug)]
pub struct Identity {
    pub user: User,
    pub resolved: ResolvedRoles,
    /// The digest of the name, by which sessions belong to the user.
    pub digest: UserDigest,
    /// The value of `$$USER_ROLES`.
    pub shown_roles: Arc<Value>,
}

/// The state of a collection: its UUID and its newest commit. `None` if it does not exist.
type Version = Option<(CollectionUuid, Position)>;

/// The users at one state of the two collections.
#[derive(Debug)]
pub struct Users {
    versions: [Version; 2],
    pub has_users: bool,
    /// `true` if there are or were users. Nothing removes their collection, so this outlives the
    /// last user. Otherwise a client that may drop users could give access to all clients.
    pub had_users: bool,
    pub has_roles: bool,
    own_users: Arc<[User]>,
    read: Mutex<HashMap<UserName, Option<Arc<Identity>>>>,
}

/// The most users that are kept in memory. More are read again when they are needed.
const USERS_MAX: usize = 100_000;

/// The directory of users.
#[derive(Debug)]
pub struct Directory {
    pub control: AccessControl,
    namespaces: [Namespace; 2],
    users: RwLock<Arc<Users>>,
    /// The users that are not stored.
    own_users: Arc<[User]>,
    /// Held while users or roles are changed by a command, which reads before it writes.
    pub changing: Mutex<()>,
}

impl Directory {
    pub fn new(control: AccessControl, own_users: Vec<User>) -> Directory {
        let own_users: Arc<[User]> = own_users.into();
        let users = Users {
            versions: [None; 2],
            has_users: false,
            had_users: false,
            has_roles: false,
            own_users: own_users.clone(),
            read: Mutex::default(),
        };
        Directory {
            control,
            namespaces: [AuthCollection::Users, AuthCollection::Roles]
                .map(AuthCollection::namespace),
            users: RwLock::new(Arc::new(users)),
            own_users,
            changing: Mutex::new(()),
        }
    }

    /// Returns the users at the current state of the collections.
    pub fn users(&self, engine: &Engine) -> Arc<Users> {
        let [users, roles] = &self.namespaces;
        let collections = [engine.collection(users), engine.collection(roles)];
        let versions = collections.each_ref().map(|it| it.as_deref().map(version));
        let known = self.users.read().unwrap_or_else(PoisonError::into_inner);
        if known.versions == versions {
            return Arc::clone(&known);
        }
        drop(known);
        let [had_users, _] = collections.each_ref().map(Option::is_some);
        let [has_users, has_roles] = collections.map(|it| it.is_some_and(|it| it.count() > 0));
        let users = Arc::new(Users {
            versions,
            has_users,
            had_users,
            has_roles,
            own_users: self.own_users.clone(),
            read: Mutex::default(),
        });
        let mut known = self.users.write().unwrap_or_else(PoisonError::into_inner);
        known.clone_from(&users);
        users
    }

    /// Returns `true` if clients have to log in.
    pub fn is_required(&self, engine: &Engine) -> bool {
        match self.control {
            AccessControl::Never => false,
            AccessControl::Always => true,
            AccessControl::WithUsers => self.users(engine).had_users,
        }
    }
}

fn version(collection: &Collection) -> (CollectionUuid, Position) {
    (collection.uuid(), collection.newest_commit())
}

impl Users {
    /// Returns the newest change of users and roles in the log.
    pub fn newest_change(&self) -> Position {
        let positions = self
            .versions
            .iter()
            .flatten()
            .map(|(_, position)| *position);
        positions.max().unwrap_or(Position::ZERO)
    }

    /// Returns the user with this name. Fails if stored documents cannot be read.
    pub fn get(
        &self,
        engine: &Engine,
        name: &UserName,
    ) -> Result<Option<Arc<Identity>>, CommandError> {
        if let Some(known) = lock(&self.read).get(name) {
            return Ok(known.clone());
        }
        let identity = self.read(engine, name)?.map(Arc::new);
        let mut read = lock(&self.read);
        // A client must not fill the memory with names that no user has.
        if identity.is_some() && read.len() < USERS_MAX {
            read.insert(name.clone(), identity.clone());
        }
        Ok(identity)
    }

    fn read(&self, engine: &Engine, name: &UserName) -> Result<Option<Identity>, CommandError> {
        let Some(user) = self.user(engine, name)? else {
            return Ok(None);
        };
        let resolved = resolve_roles(engine, &user.roles)?;
        let roles = resolved.roles.iter().map(RoleName::to_document_with_id);
        Ok(Some(Identity {
            shown_roles: Arc::new(Value::from(roles.collect::<Vec<_>>())),
            resolved,
            digest: UserDigest::new(name),
            user,
        }))
    }

    /// Returns the user with this name, as it is stored now.
    pub fn user(&self, engine: &Engine, name: &UserName) -> Result<Option<User>, CommandError> {
        match self.own_users.iter().find(|user| user.name == *name) {
            Some(user) => Ok(Some(user.clone())),
            None => store::user(engine, name),
        }
    }
}

/// The error of resolving roles.
enum RoleError {
    /// The inheritance is invalid.
    Access(windrow_access::Error),
    /// A role cannot be read.
    Stored(CommandError),
}

impl From<windrow_access::Error> for RoleError {
    fn from(error: windrow_access::Error) -> RoleError {
        RoleError::Access(error)
    }
}

impl From<RoleError> for CommandError {
    fn from(error: RoleError) -> CommandError {
        match error {
            RoleError::Access(error) => error.into_command_error(),
            RoleError::Stored(error) => error,
        }
    }
}

/// Resolves roles with those that are stored.
pub fn resolve_roles(engine: &Engine, roles: &[RoleName]) -> Result<ResolvedRoles, CommandError> {
    resolve(roles, |name| {
        store::role(engine, name).map_err(RoleError::Stored)
    })
    .map_err(Into::into)
}
