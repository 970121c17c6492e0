//! The resources on which actions act, and the patterns by which privileges describe them.

use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::error::Error;
use crate::fields::Fields;

/// A resource on which a command acts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// The server.
    Cluster,
    /// A database.
    Database(String),
    /// A collection or view.
    Namespace(String, String),
    /// All collections of all databases besides system collections, as a change stream of the whole
    /// deployment reads them.
    AnyNormal,
}

/// The resources of a privilege.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// `{cluster: true}`
    Cluster,
    /// `{anyResource: true}`
    Any,
    /// `{db: "", collection: ""}`: all databases besides `local` and `config`, and their
    /// collections besides system collections.
    AnyNormal,
    /// `{db: DB, collection: ""}`: the database and its collections besides system collections.
    Database(String),
    /// `{db: "", collection: NAME}`: the collections with this name in all databases.
    Collection(String),
    /// `{db: DB, collection: NAME}`
    Namespace(String, String),
    /// `{db: DB, system_buckets: NAME}`: buckets of time series. An empty name means all.
    SystemBuckets(String, String),
}

/// Databases that patterns for all databases do not include.
const SPECIAL_DATABASES: [&str; 2] = ["config", "local"];

const BUCKETS: &str = "system.buckets.";

impl Resource {
    /// Returns the resource that is a collection or view.
    pub fn namespace(database: &str, collection: &str) -> Resource {
        Resource::Namespace(database.to_owned(), collection.to_owned())
    }

    /// Returns the resource that is a database, without its collections.
    pub fn database(database: &str) -> Resource {
        Resource::Database(database.to_owned())
    }
}

/// Returns `true` if patterns for databases include a collection.
fn is_normal(database: &str, collection: &str) -> bool {
    let is_of_replication = database == "local" && collection.starts_with("replset.");
    !collection.starts_with("system.") && !is_of_replication
}

impl Pattern {
    /// Returns `true` if the pattern includes a resource.
    pub fn includes(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (Pattern::Any, _)
            | (Pattern::Cluster, Resource::Cluster)
            | (Pattern::AnyNormal, Resource::AnyNormal) => true,
            (_, Resource::Cluster | Resource::AnyNormal) => false,
            (_, Resource::Database(database)) => self.includes_database(database),
            (_, Resource::Namespace(database, name)) => self.includes_collection(database, name),
        }
    }

    fn includes_database(&self, database: &str) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::AnyNormal => !SPECIAL_DATABASES.contains(&database),
            Pattern::Database(name) => name == database,
            _ => false,
        }
    }

    fn includes_collection(&self, database: &str, collection: &str) -> bool {
        match self {
            Pattern::Collection(name) => name == collection,
            Pattern::Namespace(of, name) => of == database && name == collection,
            Pattern::SystemBuckets(of, name) => {
                let bucket = collection.strip_prefix(BUCKETS);
                (of.is_empty() || of == database)
                    && bucket.is_some_and(|bucket| name.is_empty() || name == bucket)
            }
            Pattern::Any => true,
            _ => is_normal(database, collection) && self.includes_database(database),
        }
    }

    /// Returns `true` if the pattern includes a database or any of its collections.
    pub fn reaches(&self, database: &str) -> bool {
        match self {
            Pattern::Cluster => false,
            Pattern::Collection(_) => true,
            Pattern::Namespace(of, _) => of == database,
            Pattern::SystemBuckets(of, _) => of.is_empty() || of == database,
            _ => self.includes_database(database),
        }
    }

    /// Returns the database whose administrators may grant privileges on the pattern. `None` if
    /// only those of `admin` may.
    pub fn database(&self) -> Option<&str> {
        match self {
            Pattern::Database(name) | Pattern::Namespace(name, _) => Some(name),
            Pattern::SystemBuckets(name, _) if !name.is_empty() => Some(name),
            _ => None,
        }
    }

    /// Returns the document of the pattern, which privileges contain.
    pub fn to_document(&self) -> DocumentBuf {
        match self {
            Pattern::Cluster => doc! { "cluster": true },
            Pattern::Any => doc! { "anyResource": true },
            Pattern::AnyNormal => doc! { "db": "", "collection": "" },
            Pattern::Database(name) => doc! { "db": (name.as_str()), "collection": "" },
            Pattern::Collection(name) => doc! { "db": "", "collection": (name.as_str()) },
            Pattern::Namespace(database, name) => {
                doc! { "db": (database.as_str()), "collection": (name.as_str()) }
            }
            Pattern::SystemBuckets(database, name) => {
                doc! { "db": (database.as_str()), "system_buckets": (name.as_str()) }
            }
        }
    }

    /// Parses the document of a privilege.
    pub fn parse(document: Document<'_>) -> Result<Pattern, Error> {
        let fields = Fields::new(document, "resource");
        let names: Vec<&str> = document.iter().map(|(name, _)| name).collect();
        let text = |name: &str| fields.string(name).map(str::to_owned);
        match names.as_slice() {
            ["cluster"] if is_true(document, "cluster") => Ok(Pattern::Cluster),
            ["anyResource"] if is_true(document, "anyResource") => Ok(Pattern::Any),
            ["db", "collection"] | ["collection", "db"] => {
                let (database, collection) = (text("db")?, text("collection")?);
                Ok(match (database.is_empty(), collection.is_empty()) {
                    (true, true) => Pattern::AnyNormal,
                    (false, true) => Pattern::Database(database),
                    (true, false) => Pattern::Collection(collection),
                    (false, false) => Pattern::Namespace(database, collection),
                })
            }
            ["db", "system_buckets"] | ["system_buckets", "db"] => {
                Ok(Pattern::SystemBuckets(text("db")?, text("system_buckets")?))
            }
            ["system_buckets"] => Ok(Pattern::SystemBuckets(
                String::new(),
                text("system_buckets")?,
            )),
            _ => {
                let message = "a resource must be {db, collection}, {db, system_buckets}, \
                               {cluster: true} or {anyResource: true}";
                Err(Error::Invalid(message.to_owned()))
            }
        }
    }
}

fn is_true(document: Document<'_>, name: &str) -> bool {
    document.get(name).is_some_and(ValueRef::is_truthy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_include_resources() {
        let check = |pattern: DocumentBuf, database: &str, collection: &str, expected: bool| {
            let parsed = Pattern::parse(pattern.as_document()).unwrap();
            let resource = if collection.is_empty() {
                Resource::database(database)
            } else {
                Resource::namespace(database, collection)
            };
            assert_eq!(
                parsed.includes(&resource),
                expected,
                "{pattern} {resource:?}"
            );
            let again = Pattern::parse(parsed.to_document().as_document()).unwrap();
            assert_eq!(again, parsed);
        };
        let of =
            |database: &str, collection: &str| doc! { "db": database, "collection": collection };
        check(of("a", ""), "a", "", true);
        check(of("a", ""), "a", "c", true);
        check(of("a", ""), "b", "c", false);
        check(of("a", ""), "a", "system.js", false);
        check(of("a", "system.js"), "a", "system.js", true);
        check(of("", "c"), "a", "c", true);
        check(of("", "c"), "a", "", false);
        check(of("", ""), "a", "c", true);
        check(of("", ""), "a", "", true);
        check(of("", ""), "a", "system.js", false);
        for special in SPECIAL_DATABASES {
            check(of("", ""), special, "c", false);
            check(of("", ""), special, "", false);
            check(of(special, ""), special, "c", true);
        }
        check(of("local", ""), "local", "replset.minvalid", false);
        let any = || doc! { "anyResource": true };
        check(any(), "config", "system.x", true);
        check(any(), "a", "", true);
        check(doc! { "cluster": true }, "a", "", false);
        let buckets = doc! { "db": "a", "system_buckets": "c" };
        check(buckets, "a", "system.buckets.c", true);
        check(doc! { "system_buckets": "" }, "a", "system.buckets.c", true);
        assert!(Pattern::Any.includes(&Resource::Cluster));
        assert!(Pattern::Cluster.includes(&Resource::Cluster));
        assert!(!Pattern::AnyNormal.includes(&Resource::Cluster));
        assert!(Pattern::AnyNormal.includes(&Resource::AnyNormal));
        assert!(!Pattern::Database("a".into()).includes(&Resource::AnyNormal));
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for document in [
            doc! {},
            doc! { "cluster": false },
            doc! { "db": "a" },
            doc! { "db": "a", "collection": 1 },
            doc! { "cluster": true, "db": "a", "collection": "" },
            doc! { "db": "a", "collection": "c", "x": 1 },
        ] {
            assert!(
                Pattern::parse(document.as_document()).is_err(),
                "{document}"
            );
        }
    }
}
