//! Wildcard indexes: for each path with a condition, the index acts as an index on that path.
//!
//! An index scan can answer the conditions of only one path. The values of a path have the path as
//! the first part of their key. If the condition accepts documents, the paths within it are read as
//! well. A numeric component of a path can also be an array position, which is not part of the path
//! in the index. In this case the path of the array is read as well, and nested arrays are treated
//! as single values.

use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Type, Value};
use windrow_index::{Definition, Multikey};
use windrow_invariant::Bug;

use super::interval::{Coverage, Interval, Intervals};
use super::leaf::Certainty;
use super::{IndexBounds, Predicates};
use crate::Error;
use crate::source::{Source, SourceIndex};

/// A path with more names than this is not answered by a wildcard index.
const NAMES_MAX: usize = 64;

/// An index that can answer a query. For a wildcard index, with the names of the path.
#[derive(Clone, Debug)]
pub struct CandidateIndex {
    /// The index, as it is for the path.
    pub index: SourceIndex,
    /// The names of the path, for a wildcard index.
    pub paths: Option<PathNames>,
}

impl From<SourceIndex> for CandidateIndex {
    fn from(index: SourceIndex) -> CandidateIndex {
        CandidateIndex { index, paths: None }
    }
}

/// The names in a wildcard index that have the values of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathNames {
    names: Vec<String>,
    /// The names of the arrays in which numeric components of the path can be positions.
    arrays: Vec<String>,
    /// The position of the path in the fields of the index.
    path_field: usize,
    /// All paths are needed: each document has an entry for some path, or without a path.
    includes_all: bool,
}

/// Returns the index as it is for each path that has a condition.
pub fn expand(
    source: &dyn Source,
    number: usize,
    definition: &Definition,
    predicates: &Predicates,
) -> Result<Vec<CandidateIndex>, Error> {
    let mut found: Vec<CandidateIndex> = Vec::new();
    for predicate in &predicates.list {
        let path = &predicate.path;
        let value = definition.path_place().map(|place| place + 1);
        let is_known = |one: &CandidateIndex| {
            let field = value.and_then(|value| one.index.definition.fields.get(value));
            field.is_some_and(|field| field.path == *path)
        };
        if !found.iter().any(is_known) {
            found.extend(at_path(source, number, definition, path)?);
        }
    }
    found.extend(prefix(number, definition, predicates));
    Ok(found)
}

/// Returns a compound index as it is for conditions on the fields before the wildcard.
fn prefix(
    number: usize,
    definition: &Definition,
    predicates: &Predicates,
) -> Option<CandidateIndex> {
    let path_field = definition.path_place().filter(|field| *field > 0)?;
    let first = definition.fields.first()?;
    let is_asked = predicates.list.iter().any(|one| one.path == first.path);
    is_asked.then(|| CandidateIndex {
        index: SourceIndex {
            number,
            definition: Arc::new(definition.prefix_definition()),
            multikey: Multikey::new(definition.fields.len()),
        },
        paths: Some(PathNames {
            path_field,
            includes_all: true,
            ..PathNames::default()
        }),
    })
}

fn at_path(
    source: &dyn Source,
    number: usize,
    definition: &Definition,
    path: &Path,
) -> Result<Option<CandidateIndex>, Error> {
    // The index does not distinguish components with empty names.
    if path.components().iter().any(|part| part.name().is_empty()) {
        return Ok(None);
    }
    let is_array = |name: &str| -> Result<bool, Error> {
        let key = definition.array_key(name);
        let mut cursor = source.postings(number, &key)?;
        Ok(cursor.next()? && cursor.key() == key)
    };
    let Some(NamesAtPath { mut paths, arrays }) = names(path, &is_array)? else {
        return Ok(None);
    };
    paths.path_field = definition.path_place().ok_or_else(|| {
        let name = &definition.name;
        Bug::new(format!(
            "the wildcard index '{name}' does not have a field for the path"
        ))
    })?;
    let wildcard = definition.wildcard.as_ref();
    let all = paths.names.iter().chain(&paths.arrays);
    if !all
        .into_iter()
        .all(|name| wildcard.is_some_and(|it| it.has(name)))
    {
        return Ok(None);
    }
    Ok(Some(CandidateIndex {
        index: SourceIndex {
            number,
            definition: Arc::new(definition.at_path(path)),
            multikey: multikey(definition, arrays),
        },
        paths: Some(paths),
    }))
}

/// The arrays in the path. The other fields of the index contain none.
fn multikey(definition: &Definition, arrays: u32) -> Multikey {
    let mut multikey = Multikey::new(definition.fields.len());
    let value = definition.path_place().map(|place| place + 1);
    if let Some(parts) = value.and_then(|value| multikey.0.get_mut(value)) {
        *parts = arrays;
    }
    multikey
}

/// The names of a path.
struct NamesAtPath {
    paths: PathNames,
    /// The components of the path that contain arrays: bit `n` is set for component `n`.
    arrays: u32,
}

/// Returns the names of a path. `None` if there are too many.
fn names(
    path: &Path,
    is_array: &dyn Fn(&str) -> Result<bool, Error>,
) -> Result<Option<NamesAtPath>, Error> {
    let mut paths = PathNames::default();
    let (mut current, mut bits) = (vec![String::new()], 0u32);
    let mut arrays: Vec<String> = Vec::new();
    for (number, component) in path.components().iter().enumerate() {
        let join = |name: &String| match name.as_str() {
            "" => component.name().to_owned(),
            name => format!("{name}.{}", component.name()),
        };
        let mut next: Vec<String> = current.iter().map(join).collect();
        if component.index().is_some() {
            next.extend(arrays.iter().cloned());
            paths.arrays.append(&mut arrays);
        }
        if next.len() > NAMES_MAX {
            return Ok(None);
        }
        current = next;
        arrays.clear();
        for name in &current {
            if is_array(name)? {
                arrays.push(name.clone());
            }
        }
        if !arrays.is_empty() {
            bits |= 1 << number.min(31);
        }
    }
    paths.names = current;
    Ok(Some(NamesAtPath {
        paths,
        arrays: bits,
    }))
}

impl PathNames {
    /// Adds the names to the bounds. Returns `false` if the index does not contain all values
    /// within the bounds: it contains the fields of documents and the elements of arrays, not the
    /// documents and arrays themselves.
    pub fn restrict(&self, index: &SourceIndex, bounds: &mut IndexBounds) -> bool {
        let fields = bounds.fields.get_mut(self.path_field..).unwrap_or_default();
        let [names, values, ..] = fields else {
            return false;
        };
        if self.includes_all {
            let none = Interval::point(Value::MinKey);
            *names = Intervals::union([none, Interval::from_type(Type::String)]);
            return true;
        }
        if values.coverage_of(Type::Array) == Coverage::Some {
            return false;
        }
        if !self.arrays.is_empty() {
            let arrays = std::iter::once(Interval::from_type(Type::Array));
            *values = Intervals::union(values.as_slice().iter().cloned().chain(arrays));
            bounds.certainty = Certainty::Document;
        }
        let all = || self.names.iter().chain(&self.arrays);
        let own = all().map(|name| Interval::point(name.as_str().into()));
        match values.coverage_of(Type::Document) {
            Coverage::None => *names = Intervals::union(own),
            Coverage::Some => return false,
            Coverage::All => {
                let wildcard = index.definition.wildcard.as_ref();
                let has = |name: &String| wildcard.is_some_and(|it| it.has_all_within(name));
                if !all().all(has) {
                    return false;
                }
                *names = Intervals::union(own.chain(all().map(|name| within(name))));
                *values = Intervals::full();
                bounds.certainty = Certainty::Document;
            }
        }
        true
    }
}

/// The names of the paths within a path.
fn within(name: &str) -> Interval {
    let with = |last: char| Value::String(format!("{name}{last}"));
    // The character after the dot is the slash.
    Interval::new(Included(with('.')), Excluded(with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::predicates;
    use windrow_document::{Array, DocumentBuf, array, doc};
    use windrow_mql::filter::Filter;

    /// Checks the bounds of an index on all fields. `arrays` are the names that have arrays.
    fn check(filter: DocumentBuf, arrays: Array<'_>, expected: Option<&str>) {
        let specification = doc! { "key": { "$**": 1 }, "name": "w" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let parsed = Filter::parse(filter.as_document()).unwrap();
        let predicates = predicates(parsed.root(), None);
        let path = predicates.list[0].path.clone();
        let is_array = |name: &str| Ok(arrays.iter().any(|one| one.as_str() == Some(name)));
        let found = names(&path, &is_array).unwrap().unwrap();
        let index = SourceIndex {
            number: 0,
            definition: Arc::new(definition.at_path(&path)),
            multikey: Multikey(vec![0, found.arrays]),
        };
        let mut bounds = IndexBounds::new(&index, &predicates);
        let print = |intervals: &Intervals| {
            let parts = intervals.as_slice().iter().map(|one| one.print(false));
            parts.collect::<Vec<_>>().join(" ")
        };
        let found = found.paths.restrict(&index, &mut bounds).then(|| {
            let printed: Vec<String> = bounds.fields.iter().map(print).collect();
            printed.join(" | ")
        });
        assert_eq!(found.as_deref(), expected, "{filter}");
    }

    #[test]
    fn values_are_stored_under_their_paths() {
        let none = array![];
        let none = || none.as_array();
        check(
            doc! { "a.b": 1 },
            none(),
            Some("[\"a.b\", \"a.b\"] | [1, 1]"),
        );
        check(
            doc! { "a": { "$gt": 1, "$lt": 5 } },
            none(),
            Some("[\"a\", \"a\"] | (1, 5)"),
        );
        check(
            doc! { "a": { "$gt": 1, "$lt": 5 } },
            array!["a"].as_array(),
            Some("[\"a\", \"a\"] | (1, inf.0]"),
        );
        check(
            doc! { "a": { "$exists": true } },
            none(),
            Some("[\"a\", \"a\"] [\"a.\", \"a/\") | [MinKey, MaxKey]"),
        );
        check(
            doc! { "a": doc! {} },
            none(),
            Some("[\"a\", \"a\"] | [{}, {}]"),
        );
        check(doc! { "a": { "b": 1 } }, none(), None);
        check(doc! { "a": [1, 2] }, none(), None);
        check(doc! { "a": [[]] }, none(), None);
        check(
            doc! { "a": [] },
            array!["a"].as_array(),
            Some("[\"a\", \"a\"] | [undefined, undefined] [[], []]"),
        );
        check(doc! { "a": { "$gt": { "b": 1 } } }, none(), None);
    }

    #[test]
    fn numeric_components_may_be_array_positions() {
        check(
            doc! { "a.0": 1 },
            array![].as_array(),
            Some("[\"a.0\", \"a.0\"] | [1, 1]"),
        );
        check(
            doc! { "a.0": 1 },
            array!["a"].as_array(),
            Some("[\"a\", \"a\"] [\"a.0\", \"a.0\"] | [1, 1] [[], BinData(0, ))"),
        );
        check(
            doc! { "a.0.b": 1 },
            array!["a"].as_array(),
            Some(
                "[\"a\", \"a\"] [\"a.0.b\", \"a.0.b\"] [\"a.b\", \"a.b\"] | [1, 1] \
                 [[], BinData(0, ))",
            ),
        );
    }
}
