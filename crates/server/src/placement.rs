//! The placement of databases in data sets.
//!
//! A database is in the set that names it. If no set does, the name of the database decides: of all
//! sets, it is in the one for which the hash of both names is the highest. All servers of a cluster
//! compute the same. Only databases that existed before their set was added are stored by name.
//!
//! The first set has the databases `admin`, `config` and `local`, and so the users and roles.

mod stored;

use std::collections::BTreeMap;
use std::fmt;

pub use stored::StoredPlacement;

use crate::namespace::{check_database, is_internal_database};

/// The most data sets of a cluster.
const SETS_MAX: usize = 64;

/// The longest name of a data set, in bytes.
const NAME_BYTES_MAX: usize = 32;

/// The number of a data set. The first is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSetId(pub usize);

impl DataSetId {
    /// The set with users, roles and settings.
    pub const FIRST: DataSetId = DataSetId(0);
}

/// A data set and the databases that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DataSet {
    name: String,
    patterns: Vec<Pattern>,
}

/// A name of databases, in lower case: databases whose names differ only in case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exact(String),
    /// All databases whose names begin so.
    Prefix(String),
}

/// The placement of databases in data sets.
///
/// ```
/// use windrow_server::Placement;
/// let placement = Placement::parse(&["main", "logs=logs,metrics-*"])?;
/// let name = |database: &str| placement.name(placement.set_of(database));
/// assert_eq!((name("logs"), name("metrics-7"), name("admin")), ("logs", "logs", "main"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    sets: Vec<DataSet>,
    first_location: FirstSetLocation,
    /// The databases that are in a set for another reason than their names, in lower case.
    pinned: BTreeMap<String, DataSetId>,
}

/// The location of the objects of the first data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstSetLocation {
    /// In the folder of the set, as those of every other set.
    #[default]
    OwnFolder,
    /// Directly below the prefix: the set was a database without data sets before.
    Prefix,
}

impl Placement {
    /// Parses data sets: `NAME`, or `NAME=DATABASE,…`. A database that ends with `*` means all
    /// databases with this prefix.
    ///
    /// # Errors
    /// Fails with a sentence if a name is invalid, or if two sets have the same name or name the
    /// same databases.
    pub fn parse<S: AsRef<str>>(given: &[S]) -> Result<Placement, String> {
        let sets = given.iter().map(|set| DataSet::parse(set.as_ref()));
        let sets: Vec<DataSet> = sets.collect::<Result<_, _>>()?;
        if sets.is_empty() || sets.len() > SETS_MAX {
            let count = sets.len();
            return Err(format!("there are {count} data sets, not 1 to {SETS_MAX}"));
        }
        for (index, set) in sets.iter().enumerate() {
            let later = sets.get(index + 1..).unwrap_or_default();
            if later.iter().any(|other| other.name == set.name) {
                return Err(format!("two data sets have the name {:?}", set.name));
            }
            for pattern in &set.patterns {
                if later.iter().any(|other| other.patterns.contains(pattern)) {
                    return Err(format!("two data sets have the databases \"{pattern}\""));
                }
                if index > 0 && pattern.is_internal() {
                    return Err(format!(
                        "the database \"{pattern}\" is always in the first data set"
                    ));
                }
            }
        }
        Ok(Placement {
            sets,
            first_location: FirstSetLocation::default(),
            pinned: BTreeMap::new(),
        })
    }

    /// Returns the number of data sets.
    pub fn count(&self) -> usize {
        self.sets.len()
    }

    /// Returns the numbers of all data sets.
    pub fn ids(&self) -> impl Iterator<Item = DataSetId> + use<> {
        (0..self.sets.len()).map(DataSetId)
    }

    /// Returns the name of a data set. Empty if there is none with this number.
    pub fn name(&self, id: DataSetId) -> &str {
        self.sets.get(id.0).map_or("", |set| set.name.as_str())
    }

    /// Returns the data set with a name.
    pub fn find(&self, name: &str) -> Option<DataSetId> {
        let found = self.sets.iter().position(|set| set.name == name);
        found.map(DataSetId)
    }

    /// Returns `true` if the objects of a set are directly below the prefix, and not in a folder of
    /// the set: the set was a database without data sets before.
    pub fn is_at_prefix(&self, id: DataSetId) -> bool {
        id == DataSetId::FIRST && self.first_location == FirstSetLocation::Prefix
    }

    /// Returns the data set of a database.
    pub fn set_of(&self, database: &str) -> DataSetId {
        let database = database.to_lowercase();
        if is_internal_database(&database) {
            return DataSetId::FIRST;
        }
        if let Some(set) = self.pinned.get(&database) {
            return *set;
        }
        self.named(&database).unwrap_or_else(|| {
            let of_hash = |id: &DataSetId| hash(self.name(*id), &database);
            self.ids().max_by_key(of_hash).unwrap_or(DataSetId::FIRST)
        })
    }

    /// Returns the data set that names a database: by its whole name, or by the longest beginning
    /// of it.
    fn named(&self, database: &str) -> Option<DataSetId> {
        let longest = |set: &DataSet| {
            let matching = set.patterns.iter().filter(|it| it.matches(database));
            matching.map(Pattern::rank).max()
        };
        let ranked = self.ids().zip(&self.sets);
        let ranked = ranked.filter_map(|(id, set)| Some((longest(set)?, id)));
        ranked.max().map(|(_, id)| id)
    }

    /// Returns the data set that has the whole name of a database.
    fn exactly_named(&self, database: &str) -> Option<DataSetId> {
        let is_exact = |pattern: &Pattern| matches!(pattern, Pattern::Exact(it) if it == database);
        let found = self
            .sets
            .iter()
            .position(|set| set.patterns.iter().any(is_exact));
        found.map(DataSetId)
    }

    /// Returns a sentence on the first difference from a stored placement.
    pub fn difference(&self, stored: &Placement) -> Option<String> {
        let shown = |set: Option<&DataSet>| {
            set.map_or("none".to_owned(), |set| format!("{:?}", set.to_string()))
        };
        let count = self.count().max(stored.count());
        (0..count).find_map(|index| {
            let (own, other) = (self.sets.get(index), stored.sets.get(index));
            let number = index + 1;
            (own != other).then(|| {
                format!(
                    "data set {number} is {} in the object store, and {} here",
                    shown(other),
                    shown(own)
                )
            })
        })
    }
}

impl DataSet {
    fn parse(given: &str) -> Result<DataSet, String> {
        let (name, databases) = given.split_once('=').unwrap_or((given, ""));
        let is_allowed = |letter: char| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter)
        };
        let length = 1..=NAME_BYTES_MAX;
        if !length.contains(&name.len()) || !name.chars().all(is_allowed) {
            return Err(format!(
                "{name:?} is no name of a data set: it has to have 1 to {NAME_BYTES_MAX} of a-z, 0-9, - and _"
            ));
        }
        let databases = databases.split(',').map(str::trim);
        let patterns = databases.filter(|it| !it.is_empty()).map(Pattern::parse);
        Ok(DataSet {
            name: name.to_owned(),
            patterns: patterns.collect::<Result<_, _>>()?,
        })
    }
}

/// As [`Placement::parse`] reads it.
impl fmt::Display for DataSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        for (index, pattern) in self.patterns.iter().enumerate() {
            let separator = if index == 0 { '=' } else { ',' };
            write!(formatter, "{separator}{pattern}")?;
        }
        Ok(())
    }
}

impl Pattern {
    fn parse(given: &str) -> Result<Pattern, String> {
        let lower = given.to_lowercase();
        let (name, pattern) = match lower.strip_suffix('*') {
            Some(prefix) => (prefix, Pattern::Prefix(prefix.to_owned())),
            None => (lower.as_str(), Pattern::Exact(lower.clone())),
        };
        let is_valid = lower == "*" || !name.contains('*') && check_database(name).is_ok();
        if is_valid {
            Ok(pattern)
        } else {
            Err(format!("{given:?} is no name of a database"))
        }
    }

    fn matches(&self, database: &str) -> bool {
        match self {
            Pattern::Exact(name) => name == database,
            Pattern::Prefix(prefix) => database.starts_with(prefix.as_str()),
        }
    }

    fn is_internal(&self) -> bool {
        matches!(self, Pattern::Exact(name) if is_internal_database(name))
    }

    /// Returns the rank of a pattern. If several patterns match a database, the one with the
    /// highest rank applies.
    fn rank(&self) -> usize {
        match self {
            Pattern::Exact(_) => usize::MAX,
            Pattern::Prefix(prefix) => prefix.len(),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Exact(name) => formatter.write_str(name),
            Pattern::Prefix(prefix) => write!(formatter, "{prefix}*"),
        }
    }
}

/// Returns the beginning of the SHA-256 digest of both names.
fn hash(set: &str, database: &str) -> u64 {
    let digest = hmac_sha256::Hash::hash(&[set.as_bytes(), &[0], database.as_bytes()].concat());
    digest.first_chunk().map_or(0, |it| u64::from_be_bytes(*it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(given: &[&str]) -> Placement {
        Placement::parse(given).unwrap()
    }

    #[test]
    fn databases_are_placed_by_name() {
        let sets = placement(&["main=shop", "logs=log*,logbook-2,shop-log", "rest=logbook*"]);
        let check = |database: &str, expected: &str| {
            assert_eq!(sets.name(sets.set_of(database)), expected, "{database}");
        };
        for internal in ["admin", "config", "local"] {
            check(internal, "main");
        }
        check("shop", "main");
        check("Shop", "main");
        check("log", "logs");
        check("LOG7", "logs");
        // The longest beginning counts, and a whole name before it.
        check("logbook", "rest");
        check("logbook-1", "rest");
        check("logbook-2", "logs");
        check("shop-log", "logs");
        let all = placement(&["main", "rest=*"]);
        assert_eq!(all.name(all.set_of("x")), "rest");
    }

    /// The placement of stored databases depends on these results, so they must never change.
    #[test]
    fn other_databases_are_spread_by_their_hash() {
        let sets = placement(&["a", "b", "c"]);
        let mut counts = [0; 3];
        for number in 0..3000 {
            let set = sets.set_of(&format!("db{number}"));
            assert_eq!(set, sets.set_of(&format!("DB{number}")));
            counts[set.0] += 1;
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
        let named = ["test", "shop", "orders", "users", "x"]
            .map(|it| sets.name(sets.set_of(it)).to_owned());
        assert_eq!(named.concat(), "ccccb");
        // With one more set, a database stays or moves to the new one.
        let more = placement(&["a", "b", "c", "d"]);
        for number in 0..300 {
            let database = format!("db{number}");
            let (before, after) = (sets.set_of(&database), more.set_of(&database));
            assert!(before == after || after == DataSetId(3), "{database}");
        }
    }

    #[test]
    fn differences_are_named() {
        let stored = placement(&["main", "logs=logs"]);
        let check = |given: &[&str], expected: Option<&str>| {
            let found = placement(given).difference(&stored);
            assert_eq!(found.as_deref(), expected);
        };
        check(&["main", "logs=logs"], None);
        check(
            &["main", "logs=logs,x"],
            Some(r#"data set 2 is "logs=logs" in the object store, and "logs=logs,x" here"#),
        );
        check(
            &["main"],
            Some(r#"data set 2 is "logs=logs" in the object store, and none here"#),
        );
    }

    #[test]
    fn invalid_sets_are_refused() {
        let check = |given: &[&str], expected: &str| {
            let error = Placement::parse(given).unwrap_err();
            assert!(error.contains(expected), "{given:?}: {error}");
        };
        check(&[], "0 data sets");
        check(&["a", "a"], "two data sets have the name");
        check(&["A"], "no name of a data set");
        check(&["a/b"], "no name of a data set");
        check(&["a=x", "b=X"], "two data sets have the databases");
        check(&["a", "b=admin"], "always in the first");
        check(&["a=x.y"], "no name of a database");
        check(&["a=*x"], "no name of a database");
    }
}
