//! Names of collections: "database.collection".

use std::fmt;

use crate::error::Error;

/// A database's and a collection's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    pub database: String,
    pub collection: String,
}

/// The collection that has the views of its database.
pub const VIEWS: &str = "system.views";

/// The longest namespace, in bytes, and the longest name of a database.
const NAMESPACE_BYTES_MAX: usize = 255;
const DATABASE_BYTES_MAX: usize = 63;

impl Namespace {
    /// Checks both names.
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

    /// The collection that has the views of its database.
    pub(crate) fn views_of(database: &str) -> Namespace {
        Namespace {
            database: database.to_owned(),
            collection: VIEWS.to_owned(),
        }
    }

    /// Splits at the first dot.
    pub fn parse(text: &str) -> Result<Namespace, Error> {
        match text.split_once('.') {
            Some((database, collection)) => Namespace::new(database, collection),
            None => Err(Error::InvalidNamespace(format!(
                "{text}: a namespace has a dot"
            ))),
        }
    }
}

/// Fails where the name of a database differs from one of these in the case of letters alone.
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
            wanted: database.to_owned(),
        }),
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Piece by piece: every command shows one.
        formatter.write_str(&self.database)?;
        formatter.write_str(".")?;
        formatter.write_str(&self.collection)
    }
}
