//! User-defined roles, as `admin.system.roles` has them.

use windrow_document::{Array, Document, DocumentBuf, Value, doc};

use crate::error::Error;
use crate::fields::Fields;
use crate::names::RoleName;
use crate::privilege::Privilege;
use crate::restrictions::Restrictions;

/// A user-defined role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: RoleName,
    /// Its own privileges.
    pub privileges: Vec<Privilege>,
    /// The roles from which it inherits.
    pub roles: Vec<RoleName>,
    /// The addresses from which users with this role may log in.
    pub restrictions: Restrictions,
}

impl Role {
    /// Parses a stored document.
    pub fn parse(document: Document<'_>) -> Result<Role, Error> {
        let fields = Fields::new(document, "role");
        let name = RoleName::new(fields.string("role")?, fields.string("db")?);
        Ok(Role {
            privileges: Privilege::parse_list(fields.array("privileges")?)?,
            roles: RoleName::parse_list(fields.array("roles")?.iter(), &name.database)?,
            restrictions: parse_restrictions(&fields)?,
            name,
        })
    }

    /// Returns the document to store.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = doc! {
            "_id": (self.name.id()), "role": (self.name.role.as_str()),
            "db": (self.name.database.as_str()),
            "privileges": (documents(&self.privileges, Privilege::to_document)),
            "roles": (documents(&self.roles, RoleName::to_document)),
        };
        if !self.restrictions.is_empty() {
            let restrictions = Value::Array(self.restrictions.to_array());
            document.push("authenticationRestrictions", restrictions);
        }
        document
    }
}

/// Returns an array with the documents of a list.
pub fn documents<T>(list: &[T], to_document: fn(&T) -> DocumentBuf) -> Value {
    let documents = list.iter().map(|one| Value::from(to_document(one)));
    Value::Array(documents.collect())
}

/// Returns the restrictions of a stored document. Older documents have null.
pub fn parse_restrictions(fields: &Fields<'_>) -> Result<Restrictions, Error> {
    let array = fields
        .array("authenticationRestrictions")
        .unwrap_or(Array::EMPTY);
    Restrictions::parse(array)
}
