//! Collection names in addresses.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::request::Request;

/// The full name of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The name of the database.
    pub database: String,
    /// The name of the collection.
    pub collection: String,
}

impl Namespace {
    /// Returns the collection that the path of a request names.
    pub fn from_request(request: &Request) -> Namespace {
        Namespace {
            database: request.parameter("database").to_owned(),
            collection: request.parameter("collection").to_owned(),
        }
    }

    /// Returns the address of the page with the documents.
    pub fn address(&self) -> String {
        let encode = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
        format!(
            "/collections/{}/{}",
            encode(&self.database),
            encode(&self.collection)
        )
    }

    /// Returns the address of another page of the collection.
    pub fn page_address(&self, page: &str) -> String {
        match page {
            "" => self.address(),
            page => format!("{}/{page}", self.address()),
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.database, self.collection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded() {
        let namespace = Namespace {
            database: "a".to_owned(),
            collection: "b/c?#.ä".to_owned(),
        };
        assert_eq!(
            namespace.page_address("schema"),
            "/collections/a/b%2Fc%3F%23%2E%C3%A4/schema"
        );
        assert_eq!(namespace.to_string(), "a.b/c?#.ä");
    }
}
