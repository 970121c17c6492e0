//! The placement that an object store contains, as a text.
//!
//! ```text
//! windrow data sets format 2
//! adding after 1
//! first at prefix
//! set main
//! set logs=logs,metrics-*
//! stays shop main
//! ```

use super::{DataSetId, FirstSetLocation, Placement};

/// The first line of a text that has nothing but data sets.
const TITLE: &str = "windrow data sets format 1";

/// The first line of every other text. Servers that know only the first format refuse it.
const TITLE_OF_ADDED: &str = "windrow data sets format 2";

/// The line of a database without data sets.
const UNDIVIDED: &str = "undivided";

/// The line of a first data set that has the objects of the prefix itself.
const FIRST_AT_PREFIX: &str = "first at prefix";

/// The placement that an object store contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPlacement {
    /// The database has no data sets.
    Undivided,
    /// Data sets are being added. It is not stored yet which databases the other sets have.
    Adding {
        /// All sets.
        placement: Placement,
        /// The number of sets that existed before, or 0 if a database without data sets is divided.
        existing: usize,
    },
    /// The database has these data sets.
    Complete(Placement),
}

impl StoredPlacement {
    /// Returns the text that is stored.
    pub fn to_text(&self) -> String {
        match self {
            StoredPlacement::Undivided => format!("{TITLE_OF_ADDED}\n{UNDIVIDED}\n"),
            StoredPlacement::Adding {
                placement,
                existing,
            } => {
                let lines = lines(placement);
                format!("{TITLE_OF_ADDED}\nadding after {existing}\n{lines}")
            }
            StoredPlacement::Complete(placement) => {
                let is_plain = placement.pinned.is_empty()
                    && placement.first_location == FirstSetLocation::OwnFolder;
                let title = if is_plain { TITLE } else { TITLE_OF_ADDED };
                format!("{title}\n{}", lines(placement))
            }
        }
    }

    /// Parses a stored text.
    ///
    /// # Errors
    /// Fails with a phrase if the text is invalid.
    pub fn from_text(text: &str) -> Result<StoredPlacement, String> {
        let mut lines = text.lines().peekable();
        let title = lines.next().unwrap_or_default();
        if title != TITLE && title != TITLE_OF_ADDED {
            return Err(format!(
                "it begins with {title:?}, not with {TITLE:?} or {TITLE_OF_ADDED:?}"
            ));
        }
        if lines.next_if_eq(&UNDIVIDED).is_some() {
            return Ok(StoredPlacement::Undivided);
        }
        let mut parts = Parts::default();
        for line in lines {
            parts
                .add(line)
                .ok_or_else(|| format!("it has the line {line:?}"))?;
        }
        parts.placement()
    }
}

/// Returns the lines of a placement.
fn lines(placement: &Placement) -> String {
    let mut text = String::new();
    if placement.first_location == FirstSetLocation::Prefix {
        text += &format!("{FIRST_AT_PREFIX}\n");
    }
    for set in &placement.sets {
        text += &format!("set {set}\n");
    }
    for (database, set) in &placement.pinned {
        text += &format!("stays {database} {}\n", placement.name(*set));
    }
    text
}

/// The lines of a text that were read so far.
#[derive(Default)]
struct Parts<'t> {
    existing: Option<usize>,
    first_location: FirstSetLocation,
    sets: Vec<&'t str>,
    /// The databases that stay in a set, with its name.
    pinned: Vec<(&'t str, &'t str)>,
}

impl<'t> Parts<'t> {
    /// Returns `None` if the line is invalid.
    fn add(&mut self, line: &'t str) -> Option<()> {
        if line == FIRST_AT_PREFIX {
            self.first_location = FirstSetLocation::Prefix;
        } else if let Some(set) = line.strip_prefix("set ") {
            self.sets.push(set);
        } else if let Some(count) = line.strip_prefix("adding after ") {
            self.existing = Some(count.parse().ok()?);
        } else {
            // The name of a database has no blanks.
            self.pinned
                .push(line.strip_prefix("stays ")?.split_once(' ')?);
        }
        Some(())
    }

    fn placement(self) -> Result<StoredPlacement, String> {
        let mut placement = Placement::parse(&self.sets)?;
        placement.first_location = self.first_location;
        for (database, name) in self.pinned {
            let set = placement.find(name);
            let set = set.ok_or_else(|| format!("it has no data set {name:?}"))?;
            placement.pinned.insert(database.to_owned(), set);
        }
        let count = placement.count();
        Ok(match self.existing {
            None => StoredPlacement::Complete(placement),
            Some(existing) if existing <= count => StoredPlacement::Adding {
                placement,
                existing,
            },
            Some(existing) => return Err(format!("it adds to {existing} of {count} data sets")),
        })
    }
}

impl Placement {
    /// Returns the placement of a database without data sets that is divided: its objects become
    /// those of the first set.
    #[must_use]
    pub fn with_first_set_at_prefix(mut self) -> Placement {
        self.first_location = FirstSetLocation::Prefix;
        self
    }

    /// Returns this placement with the sets that `given` adds at its end. No database is kept in
    /// its set yet.
    ///
    /// # Errors
    /// Fails with a sentence on the first difference if `given` does not begin with the same sets.
    pub fn extended(&self, given: &Placement) -> Result<Placement, String> {
        let mut known = given.clone();
        known.sets.truncate(self.count());
        if let Some(difference) = known.difference(self) {
            return Err(difference);
        }
        Ok(Placement {
            first_location: self.first_location,
            ..given.clone()
        })
    }

    /// Returns the first `count` sets of this placement.
    #[must_use]
    pub fn reduced(&self, count: usize) -> Placement {
        let mut reduced = self.clone();
        reduced.sets.truncate(count);
        reduced
    }

    /// Returns this placement with the databases of the first sets kept where they are, whatever
    /// their names say. `databases` has those of each set, in the order of the sets.
    ///
    /// # Errors
    /// Fails with a sentence if another set has the whole name of one of them.
    pub fn keeping(mut self, databases: &[Vec<String>]) -> Result<Placement, String> {
        for (set, databases) in self.ids().zip(databases) {
            for database in databases {
                self.keep(set, database.to_lowercase())?;
            }
        }
        Ok(self)
    }

    fn keep(&mut self, set: DataSetId, database: String) -> Result<(), String> {
        match self.exactly_named(&database) {
            Some(other) if other != set => Err(format!(
                "the database {database:?} is in the data set {:?}, so it cannot be in {:?}",
                self.name(set),
                self.name(other)
            )),
            _ => {
                if self.set_of(&database) != set {
                    self.pinned.insert(database, set);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(given: &[&str]) -> Placement {
        Placement::parse(given).unwrap()
    }

    fn check_text(stored: &StoredPlacement, lines: &str) {
        let text = stored.to_text();
        assert_eq!(text, format!("windrow data sets format {lines}"));
        assert_eq!(&StoredPlacement::from_text(&text).unwrap(), stored);
    }

    #[test]
    fn the_stored_text_is_read_again() {
        let sets = placement(&["main", "logs=Logs, metrics-*"]);
        let complete = StoredPlacement::Complete(sets.clone());
        check_text(&complete, "1\nset main\nset logs=logs,metrics-*\n");
        check_text(&StoredPlacement::Undivided, "2\nundivided\n");
        let found = [vec!["metrics-7".to_owned()]];
        let divided = sets.with_first_set_at_prefix().keeping(&found).unwrap();
        let lines = "first at prefix\nset main\nset logs=logs,metrics-*\nstays metrics-7 main\n";
        check_text(
            &StoredPlacement::Complete(divided.clone()),
            &format!("2\n{lines}"),
        );
        let adding = StoredPlacement::Adding {
            placement: divided,
            existing: 1,
        };
        check_text(&adding, &format!("2\nadding after 1\n{lines}"));
    }

    #[test]
    fn damaged_texts_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = StoredPlacement::from_text(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        };
        check("windrow data sets format 3\nset a\n", "it begins with");
        check("windrow data sets format 1\nset a\nlogs\n", "\"logs\"");
        check("windrow data sets format 1\n", "0 data sets");
        let text = "windrow data sets format 2\nset a\nstays x b\n";
        check(text, "no data set \"b\"");
        let text = "windrow data sets format 2\nadding after 2\nset a\n";
        check(text, "adds to 2 of 1");
        let text = "windrow data sets format 2\nadding after x\nset a\n";
        check(text, "\"adding after x\"");
    }

    #[test]
    fn sets_are_added_at_the_end() {
        let stored = placement(&["a=x", "b"]);
        let more = stored.extended(&placement(&["a=x", "b", "c=y"])).unwrap();
        assert_eq!(more, placement(&["a=x", "b", "c=y"]));
        assert_eq!(more.reduced(2), stored);
        for given in [&["a=x"][..], &["a", "b", "c"], &["c", "a=x", "b"]] {
            let error = stored.extended(&placement(given)).unwrap_err();
            assert!(error.starts_with("data set "), "{error}");
        }
    }

    #[test]
    fn existing_databases_stay() {
        let names: Vec<String> = (0..30).map(|number| format!("Db{number}")).collect();
        let first = ["metrics-1", "admin"].map(str::to_owned).to_vec();
        let found = [first, names.clone()];
        let sets = placement(&["a", "b", "c=metrics-*,shop"]);
        let sets = sets.keeping(&found).unwrap();
        for name in &names {
            assert_eq!(sets.set_of(name), DataSetId(1), "{name}");
        }
        assert_eq!(sets.set_of("METRICS-1"), DataSetId(0));
        assert_eq!(sets.set_of("metrics-2"), DataSetId(2));
        // Those that are in their set anyway are not stored.
        assert!(sets.pinned.len() < names.len());
        let found = [vec!["Shop".to_owned()]];
        let error = sets.keeping(&found).unwrap_err();
        assert!(
            error.contains("\"shop\" is in the data set \"a\""),
            "{error}"
        );
    }
}
