//! The paths that a wildcard index covers
//! (<https://www.mongodb.com/docs/manual/core/indexes/index-types/index-wildcard/>).

/// The paths that a wildcard index covers.
#[derive(Clone, Debug, PartialEq)]
pub enum Wildcard {
    /// These paths and all paths below them.
    Only(Vec<String>),
    /// All paths except for these and the paths below them.
    Without(Vec<String>),
}

/// The relation of a path to the covered paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathRelation {
    /// The path is covered.
    Inside,
    /// The path is not covered, but a path below it is.
    Above,
    /// Neither the path nor a path below it is covered.
    Outside,
}

impl Wildcard {
    /// Returns `true` if both list the same paths, in any order.
    pub(crate) fn has_same_paths(&self, other: &Wildcard) -> bool {
        let is_one_of = |list: &[String], path: &String| list.contains(path);
        match (self, other) {
            (Wildcard::Only(ours), Wildcard::Only(theirs))
            | (Wildcard::Without(ours), Wildcard::Without(theirs)) => {
                ours.len() == theirs.len() && ours.iter().all(|path| is_one_of(theirs, path))
            }
            _ => false,
        }
    }

    /// Returns the relation of a path to the covered paths.
    pub(crate) fn relation(&self, path: &str) -> PathRelation {
        match self {
            Wildcard::Without(out) if out.iter().any(|one| is_within(path, one)) => {
                PathRelation::Outside
            }
            Wildcard::Without(_) => PathRelation::Inside,
            Wildcard::Only(list) if list.iter().any(|one| is_within(path, one)) => {
                PathRelation::Inside
            }
            Wildcard::Only(list) if list.iter().any(|one| is_within(one, path)) => {
                PathRelation::Above
            }
            Wildcard::Only(_) => PathRelation::Outside,
        }
    }

    /// Returns `true` if the index contains every value at the path.
    pub fn has(&self, path: &str) -> bool {
        self.relation(path) == PathRelation::Inside
    }

    /// Returns `true` if the index contains every value at the path and at all paths below it.
    pub fn has_all_within(&self, path: &str) -> bool {
        let leaves_out = match self {
            Wildcard::Only(_) => false,
            Wildcard::Without(out) => out.iter().any(|one| is_within(one, path)),
        };
        self.has(path) && !leaves_out
    }
}

/// Returns `true` if `path` equals `of` or is below it.
pub(crate) fn is_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
