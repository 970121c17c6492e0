//! Collection names: `database.collection`.

use std::fmt;

use crate::error::Error;

/// The name of a database and of a collection in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    /// The database.
    pub database: String,
    /// The collection, without the database. It may contain dots.
    pub collection: String,
}

/// The name of the collection that stores the views of its database.
pub const VIEWS: &str = "system.views";

/// The maximal length of a namespace, and of a database name, in bytes.
const NAMESPACE_BYTES_MAX: usize = 255;
const DATABASE_BYTES_MAX: usize = 63;

impl Namespace {
    /// Checks both names. Fails with [`Error::InvalidNamespace`] if one of them is not allowed.
    pub fn new(database: &str, collection: &str) -> Result<Namespace, Error> {
        let wrong = |why: &str| {
            Err(Error::InvalidNamespace(format!(
                "{database}.{collection}: {why}"
            )))
        };
        if database.is_empty() || database.len() > DATABASE_BYTES_MAX {
            return wrong("a database's name has 1 to 63 bytes");
        }
        if database.contains(['/', '\\', '.', ' ', '"', '$', '\0']) {
            return wrong("a database's name holds none of /\\. \"$ and NUL");
        }
        if collection.is_empty() || collection.starts_with('.') {
            return wrong("a collection's name is not empty and begins with no dot");
        }
        if collection.contains(['\0', '$']) {
            return wrong("a collection's name holds no $ and no NUL");
        }
        if database.len() + 1 + collection.len() > NAMESPACE_BYTES_MAX {
            return wrong("a namespace has at most 255 bytes");
        }
        Ok(Namespace {
            database: database.to_owned(),
            collection: collection.to_owned(),
        })
    }

    /// Returns the namespace of the collection that stores the views of a database.
    pub(crate) fn views_of(database: &str) -> Namespace {
        Namespace {
            database: database.to_owned(),
            collection: VIEWS.to_owned(),
        }
    }

    /// Splits the text at the first dot, and checks both names.
    pub fn parse(text: &str) -> Result<Namespace, Error> {
        match text.split_once('.') {
            Some((database, collection)) => Namespace::new(database, collection),
            None => Err(Error::InvalidNamespace(format!(
                "{text}: a namespace has a dot"
            ))),
        }
    }
}

/// Fails with [`Error::DatabaseDifferCase`] if the name differs from an existing database name only
/// in the case of letters.
pub(crate) fn check_case<'n>(
    database: &str,
    mut names: impl Iterator<Item = &'n Namespace>,
) -> Result<(), Error> {
    let differs = |name: &&Namespace| {
        name.database != database && name.database.eq_ignore_ascii_case(database)
    };
    match names.find(differs) {
        None => Ok(()),
        Some(existing) => Err(Error::DatabaseDifferCase {
            existing: existing.database.clone(),
            requested: database.to_owned(),
        }),
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written piece by piece, without a temporary string: every command formats a namespace.
        formatter.write_str(&self.database)?;
        formatter.write_str(".")?;
        formatter.write_str(&self.collection)
    }
}
