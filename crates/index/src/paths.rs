//! Which paths a wildcard index has.

/// The paths that a wildcard index has.
#[derive(Clone, Debug, PartialEq)]
pub enum Wildcard {
    /// These and what lies within them.
    Only(Vec<String>),
    /// All but these and what lies within them.
    Without(Vec<String>),
}

/// How a path lies to those that the index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inside,
    /// Something within it is inside.
    Above,
    Outside,
}

impl Wildcard {
    /// Whether both have the same paths by name, in whatever order.
    pub(crate) fn says_the_same(&self, other: &Wildcard) -> bool {
        let is_one_of = |list: &[String], path: &String| list.contains(path);
        match (self, other) {
            (Wildcard::Only(ours), Wildcard::Only(theirs))
            | (Wildcard::Without(ours), Wildcard::Without(theirs)) => {
                ours.len() == theirs.len() && ours.iter().all(|path| is_one_of(theirs, path))
            }
            _ => false,
        }
    }

    pub(crate) fn place(&self, path: &str) -> Place {
        match self {
            Wildcard::Without(out) if out.iter().any(|one| is_within(path, one)) => Place::Outside,
            Wildcard::Without(_) => Place::Inside,
            Wildcard::Only(list) if list.iter().any(|one| is_within(path, one)) => Place::Inside,
            Wildcard::Only(list) if list.iter().any(|one| is_within(one, path)) => Place::Above,
            Wildcard::Only(_) => Place::Outside,
        }
    }

    /// Whether the index has every value at the path.
    pub fn has(&self, path: &str) -> bool {
        self.place(path) == Place::Inside
    }

    /// Whether it has every value at the path and within it.
    pub fn has_all_within(&self, path: &str) -> bool {
        let leaves_out = match self {
            Wildcard::Only(_) => false,
            Wildcard::Without(out) => out.iter().any(|one| is_within(one, path)),
        };
        self.has(path) && !leaves_out
    }
}

/// Whether a path is this one or leads through it.
pub(crate) fn is_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
