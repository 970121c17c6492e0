//! Users, as `admin.system.users` has them.

use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};

use crate::error::Error;
use crate::fields::Fields;
use crate::names::{RoleName, UserName};
use crate::restrictions::Restrictions;
use crate::role::{documents, parse_restrictions};
use crate::scram::{Credentials, Mechanism};

/// The database of users that another service authenticates, such as X.509 certificates.
pub const EXTERNAL: &str = "$external";

/// The stored credentials of a user, one for each mechanism.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCredentials {
    /// For SCRAM-SHA-1.
    pub sha1: Option<Credentials>,
    /// For SCRAM-SHA-256.
    pub sha256: Option<Credentials>,
}

impl StoredCredentials {
    /// Returns the credentials for a mechanism.
    pub fn get(&self, mechanism: Mechanism) -> Option<&Credentials> {
        match mechanism {
            Mechanism::ScramSha1 => self.sha1.as_ref(),
            Mechanism::ScramSha256 => self.sha256.as_ref(),
        }
    }

    /// Sets the credentials for a mechanism.
    pub fn set(&mut self, mechanism: Mechanism, credentials: Credentials) {
        match mechanism {
            Mechanism::ScramSha1 => self.sha1 = Some(credentials),
            Mechanism::ScramSha256 => self.sha256 = Some(credentials),
        }
    }

    /// Removes the credentials for a mechanism.
    pub fn remove(&mut self, mechanism: Mechanism) {
        match mechanism {
            Mechanism::ScramSha1 => self.sha1 = None,
            Mechanism::ScramSha256 => self.sha256 = None,
        }
    }

    /// Returns the mechanisms that have credentials.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        let all = Mechanism::ALL.into_iter();
        all.filter(|one| self.get(*one).is_some()).collect()
    }
}

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: UserName,
    /// A random id. If it changes, the user was dropped and created again.
    pub id: Option<[u8; 16]>,
    /// The stored data with which logins are verified.
    pub credentials: StoredCredentials,
    /// Its roles.
    pub roles: Vec<RoleName>,
    /// The addresses from which it may log in.
    pub restrictions: Restrictions,
    /// Information of the user's administrator.
    pub custom_data: Option<DocumentBuf>,
}

impl User {
    /// Returns `true` if another service authenticates the user.
    pub fn is_external(&self) -> bool {
        self.name.database == EXTERNAL
    }

    /// Returns the names of the mechanisms by which the user can log in.
    pub fn mechanism_names(&self) -> Vec<&'static str> {
        if self.is_external() {
            return vec!["external"];
        }
        let mechanisms = self.credentials.mechanisms().into_iter();
        // MongoDB lists them in alphabetical order.
        let mut names: Vec<_> = mechanisms.map(Mechanism::name).collect();
        names.sort_unstable();
        names
    }

    /// Parses a stored document.
    pub fn parse(document: Document<'_>) -> Result<User, Error> {
        let fields = Fields::new(document, "user");
        let name = UserName::new(fields.string("user")?, fields.string("db")?);
        let id = match document.get("userId") {
            Some(ValueRef::Binary { subtype: 4, bytes }) => bytes.try_into().ok(),
            _ => None,
        };
        Ok(User {
            id,
            credentials: parse_credentials(fields.document("credentials")?)?,
            roles: RoleName::parse_list(fields.array("roles")?.iter(), &name.database)?,
            restrictions: parse_restrictions(&fields)?,
            custom_data: fields.document("customData")?.map(Document::to_buf),
            name,
        })
    }

    /// Returns the document to store.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = doc! { "_id": (self.name.id()) };
        if let Some(id) = self.id {
            document.push("userId", uuid(id));
        }
        document.push("user", self.name.user.as_str());
        document.push("db", self.name.database.as_str());
        document.push("credentials", self.credentials_document());
        if let Some(custom) = &self.custom_data {
            document.push("customData", custom.clone());
        }
        document.push("roles", documents(&self.roles, RoleName::to_document));
        if !self.restrictions.is_empty() {
            let restrictions = Value::Array(self.restrictions.to_array());
            document.push("authenticationRestrictions", restrictions);
        }
        document
    }

    /// Returns the stored credentials: one document for each mechanism.
    pub fn credentials_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        if self.is_external() {
            document.push("external", true);
        }
        for mechanism in [Mechanism::ScramSha1, Mechanism::ScramSha256] {
            if let Some(credentials) = self.credentials.get(mechanism) {
                document.push(mechanism.name(), credentials.to_document());
            }
        }
        document
    }
}

/// A UUID as a value.
fn uuid(bytes: [u8; 16]) -> Value {
    Value::Binary {
        subtype: 4,
        bytes: bytes.to_vec(),
    }
}

fn parse_credentials(document: Option<Document<'_>>) -> Result<StoredCredentials, Error> {
    let mut credentials = StoredCredentials::default();
    for mechanism in Mechanism::ALL {
        let stored = document.and_then(|all| all.get(mechanism.name())?.as_document());
        if let Some(stored) = stored {
            credentials.set(mechanism, Credentials::parse(mechanism, stored)?);
        }
    }
    Ok(credentials)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::array;

    #[test]
    fn a_stored_document_is_parsed_as_written() {
        let mechanism = Mechanism::ScramSha256;
        let mut credentials = StoredCredentials::default();
        let salt = vec![1; mechanism.salt_bytes()];
        credentials.set(mechanism, Credentials::new(mechanism, b"x", salt, 2));
        let restrictions = array![{ "clientSource": ["127.0.0.1"] }];
        let user = User {
            name: UserName::new("me", "kitchen"),
            id: Some([7; 16]),
            credentials,
            roles: vec![RoleName::new("read", "kitchen")],
            restrictions: Restrictions::parse(restrictions.as_array()).unwrap(),
            custom_data: Some(doc! { "a": 1 }),
        };
        let document = user.to_document();
        let again = User::parse(document.as_document()).unwrap();
        assert_eq!(again.to_document(), document);
        assert_eq!(document.get("_id"), Some(ValueRef::String("kitchen.me")));
        assert_eq!(again.mechanism_names(), ["SCRAM-SHA-256"]);
    }

    #[test]
    fn invalid_documents_are_refused() {
        for document in [
            doc! {},
            doc! { "user": "a" },
            doc! { "user": "a", "db": 1 },
            doc! { "user": "a", "db": "b", "roles": 1 },
            doc! { "user": "a", "db": "b", "roles": [{ "role": "x" }] },
            doc! { "user": "a", "db": "b", "credentials": { "SCRAM-SHA-1": {} } },
        ] {
            assert!(User::parse(document.as_document()).is_err(), "{document}");
        }
    }
}
