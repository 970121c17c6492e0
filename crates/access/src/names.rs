//! Names of users and roles: a name and the database in which it is defined.

use std::fmt;

use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::error::Error;
use crate::fields::Fields;

/// The name of a user and the database that authenticates it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserName {
    /// The name.
    pub user: String,
    /// The database.
    pub database: String,
}

/// The name of a role and the database that defines it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName {
    /// The name.
    pub role: String,
    /// The database.
    pub database: String,
}

impl UserName {
    /// Creates a name from its parts.
    pub fn new(user: &str, database: &str) -> UserName {
        UserName {
            user: user.to_owned(),
            database: database.to_owned(),
        }
    }

    /// Returns the `_id` in `admin.system.users`: "database.user".
    pub fn id(&self) -> String {
        format!("{}.{}", self.database, self.user)
    }

    /// Returns `{user, db}`.
    pub fn to_document(&self) -> DocumentBuf {
        doc! { "user": (self.user.as_str()), "db": (self.database.as_str()) }
    }

    /// Parses a name that is a string, of the database `default`, or `{user, db}`.
    pub fn parse(value: ValueRef<'_>, default: &str) -> Result<UserName, Error> {
        let (user, database) = parse_pair(value, "user", default)?;
        Ok(UserName { user, database })
    }
}

impl RoleName {
    /// Creates a name from its parts.
    pub fn new(role: &str, database: &str) -> RoleName {
        RoleName {
            role: role.to_owned(),
            database: database.to_owned(),
        }
    }

    /// Returns the `_id` in `admin.system.roles`: "database.role".
    pub fn id(&self) -> String {
        format!("{}.{}", self.database, self.role)
    }

    /// Returns `{role, db}`.
    pub fn to_document(&self) -> DocumentBuf {
        doc! { "role": (self.role.as_str()), "db": (self.database.as_str()) }
    }

    /// Returns `{_id, role, db}`, as `$$USER_ROLES` shows it.
    pub fn to_document_with_id(&self) -> DocumentBuf {
        doc! { "_id": (self.id()), "role": (self.role.as_str()), "db": (self.database.as_str()) }
    }

    /// Parses a name that is a string, of the database `default`, or `{role, db}`.
    pub fn parse(value: ValueRef<'_>, default: &str) -> Result<RoleName, Error> {
        let (role, database) = parse_pair(value, "role", default)?;
        Ok(RoleName { role, database })
    }

    /// Parses a list of names. See [`parse`](Self::parse).
    pub fn parse_list<'a>(
        values: impl IntoIterator<Item = ValueRef<'a>>,
        default: &str,
    ) -> Result<Vec<RoleName>, Error> {
        let mut names: Vec<RoleName> = Vec::new();
        for value in values {
            let name = RoleName::parse(value, default)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

fn parse_pair(value: ValueRef<'_>, field: &str, default: &str) -> Result<(String, String), Error> {
    match value {
        ValueRef::String(name) => Ok((checked(name, field)?, default.to_owned())),
        ValueRef::Document(pair) => parse_document(pair, field),
        other => Err(Error::Invalid(format!(
            "{field} names must be strings or objects, not {}",
            other.type_of().name()
        ))),
    }
}

fn parse_document(pair: Document<'_>, field: &str) -> Result<(String, String), Error> {
    let fields = Fields::new(pair, field);
    fields.only(&[field, "db"])?;
    let name = fields.string(field)?;
    Ok((checked(name, field)?, fields.string("db")?.to_owned()))
}

fn checked(name: &str, field: &str) -> Result<String, Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::Invalid(format!(
            "{field} name {name:?} must not be empty or contain NUL"
        )));
    }
    Ok(name.to_owned())
}

impl fmt::Display for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.user, self.database)
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.role, self.database)
    }
}
