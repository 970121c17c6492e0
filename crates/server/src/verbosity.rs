//! The log verbosity of components: `logComponentVerbosity`, and `logLevel`, which is that of the
//! root. A component without its own level has the level of its parent.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

/// A component of the log, as its index in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component(usize);

impl Component {
    pub const ROOT: Component = Component(0);
    pub const COMMAND: Component = Component(2);
    pub const INDEX: Component = Component(6);
    pub const WRITE: Component = Component(NAMES.len() - 1);
}

/// The names. Dots separate a component from its parts. Each component follows its parent.
const NAMES: [&str; 22] = [
    "",
    "accessControl",
    "command",
    "control",
    "ftdc",
    "geo",
    "index",
    "network",
    "query",
    "query.optimizer",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "storage",
    "storage.journal",
    "storage.recovery",
    "storage.wt",
    "transaction",
    "write",
];

/// The component has no level of its own.
const INHERITED: i32 = -1;
const LEVEL_MAX: i64 = 5;
const LEVEL: &str = "verbosity";

/// The levels of all components.
#[derive(Debug)]
pub struct Verbosity {
    levels: [AtomicI32; NAMES.len()],
}

impl Default for Verbosity {
    fn default() -> Verbosity {
        let levels = [const { AtomicI32::new(INHERITED) }; NAMES.len()];
        levels
            .iter()
            .take(1)
            .for_each(|root| root.store(0, Relaxed));
        Verbosity { levels }
    }
}

/// Returns the index of the parent of a component.
fn parent(place: usize) -> usize {
    let name = NAMES.get(place).copied().unwrap_or_default();
    let of = name.rsplit_once('.').map_or("", |(of, _)| of);
    NAMES.iter().position(|it| *it == of).unwrap_or(0)
}

/// Returns the last part of a component's name.
fn own_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}

impl Verbosity {
    fn own(&self, place: usize) -> i32 {
        self.levels
            .get(place)
            .map_or(INHERITED, |it| it.load(Relaxed))
    }

    /// Returns `true` if lines of this level are logged for a component. Lines of level 0 always
    /// are.
    pub fn logs(&self, component: Component, level: i32) -> bool {
        let mut place = component.0;
        loop {
            let own = self.own(place);
            if own != INHERITED || place == 0 {
                return own >= level;
            }
            place = parent(place);
        }
    }

    /// Returns the level of a component itself. -1 if it has none.
    pub fn level(&self, component: Component) -> i32 {
        self.own(component.0)
    }

    /// Sets the level of a component.
    pub fn set_level(&self, component: Component, level: i32) {
        if let Some(own) = self.levels.get(component.0) {
            own.store(level, Relaxed);
        }
    }

    /// Returns the levels of all components: `{verbosity: 0, accessControl: {verbosity: -1}, …}`.
    pub fn describe(&self) -> DocumentBuf {
        self.describe_part(0)
    }

    fn describe_part(&self, of: usize) -> DocumentBuf {
        let mut described = doc! { "verbosity": (self.own(of)) };
        let parts = (1..NAMES.len()).filter(|place| parent(*place) == of);
        for place in parts {
            let name = NAMES.get(place).copied().unwrap_or_default();
            described.push(own_name(name), self.describe_part(place));
        }
        described
    }

    /// Sets the levels in a document. If one is invalid, none is set.
    pub fn set(&self, given: Document<'_>) -> Result<(), CommandError> {
        let mut levels = Vec::new();
        read(given, "", &mut levels)?;
        for (component, level) in levels {
            self.set_level(component, level);
        }
        Ok(())
    }
}

/// Reads the levels of a component and its parts from a document.
fn read(
    given: Document<'_>,
    of: &str,
    levels: &mut Vec<(Component, i32)>,
) -> Result<(), CommandError> {
    let bad = |message: String| Err(CommandError::new(ErrorCode::BadValue, message));
    let named = |name: &str| NAMES.iter().position(|it| *it == name);
    for (name, value) in given {
        if name == LEVEL {
            let least = if of.is_empty() {
                0
            } else {
                i64::from(INHERITED)
            };
            let Some(level) = number(value) else {
                let found = value.type_of().name();
                return bad(format!(
                    "Expected {of}.{LEVEL} to be a 32-bit number, but it is the {found} {value}"
                ));
            };
            let level = level.clamp(least, LEVEL_MAX) as i32;
            levels.extend(named(of).map(|place| (Component(place), level)));
            continue;
        }
        let path = match of {
            "" => name.to_owned(),
            of => format!("{of}.{name}"),
        };
        let Some(place) = named(&path) else {
            return bad(format!("Invalid component name {path}"));
        };
        match value {
            ValueRef::Document(part) => read(part, &path, levels)?,
            other if other.is_number() => {
                let Some(level) = number(other) else {
                    return bad(format!(
                        "The level of {path} is not a 32-bit number: {other}"
                    ));
                };
                let level = level.clamp(i64::from(INHERITED), LEVEL_MAX) as i32;
                levels.push((Component(place), level));
            }
            other => {
                let found = other.type_of().name();
                return bad(format!(
                    "Invalid type for component {path}: expected an object or a number, found {found}"
                ));
            }
        }
    }
    Ok(())
}

/// Returns a number without its fraction.
fn number(value: ValueRef<'_>) -> Option<i64> {
    let level = value.as_f64().filter(|_| value.is_number())?;
    let is_small = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&level);
    is_small.then_some(level as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_inherited_from_the_nearest_parent() {
        let check = |given: DocumentBuf, component: Component, expected: i32| {
            let verbosity = Verbosity::default();
            verbosity.set(given.as_document()).unwrap();
            let logged = (0..=5).filter(|level| verbosity.logs(component, *level));
            assert_eq!(logged.max(), Some(expected), "{given}");
        };
        let journal = Component(17);
        check(doc! {}, Component::COMMAND, 0);
        check(doc! { "verbosity": 2 }, Component::COMMAND, 2);
        check(
            doc! { "command": { "verbosity": 1 } },
            Component::COMMAND,
            1,
        );
        check(doc! { "command": 3 }, Component::COMMAND, 3);
        check(doc! { "command": { "verbosity": 1 } }, Component::WRITE, 0);
        check(doc! { "storage": { "verbosity": 4 } }, journal, 4);
        let both = doc! { "storage": { "verbosity": 4, "journal": { "verbosity": 0 } } };
        check(both, journal, 0);
        check(doc! { "verbosity": 9 }, Component::INDEX, 5);
    }

    #[test]
    fn invalid_levels_are_refused_and_none_is_set() {
        let verbosity = Verbosity::default();
        for given in [
            doc! { "command": { "verbosity": 1 }, "foo": { "verbosity": 1 } },
            doc! { "verbosity": "x" },
            doc! { "storage": { "command": { "verbosity": 1 } } },
            doc! { "command": "x" },
        ] {
            let error = verbosity.set(given.as_document()).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadValue, "{given}");
        }
        let described = verbosity.describe();
        assert_eq!(described, Verbosity::default().describe());
        let part = described.get("storage").and_then(|it| it.as_document());
        let journal = doc! { "verbosity": (-1) };
        assert_eq!(
            part.unwrap().get("journal").unwrap().to_value(),
            journal.into()
        );
    }

    #[test]
    fn component_constants_match_their_names() {
        for (component, name) in [
            (Component::ROOT, ""),
            (Component::COMMAND, "command"),
            (Component::INDEX, "index"),
            (Component::WRITE, "write"),
        ] {
            assert_eq!(NAMES[component.0], name);
        }
    }
}
