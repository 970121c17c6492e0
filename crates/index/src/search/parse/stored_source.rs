//! Parses the option `storedSource` of a definition
//! (<https://www.mongodb.com/docs/search/indexes/define-stored-source/>).

use windrow_document::{Document, ValueRef};
use windrow_mql::Error;

use super::super::mapping::StoredSource;
use super::{joined, malformed};

const OPTION: &str = "storedSource";

/// Parses the fields that searches can return alone. `None` if there are none.
pub(super) fn stored_source(definition: Document<'_>) -> Result<Option<StoredSource>, Error> {
    let fields = match definition.get(OPTION) {
        None | Some(ValueRef::Bool(false)) => return Ok(None),
        Some(ValueRef::Bool(true)) => return Ok(Some(StoredSource::All)),
        Some(ValueRef::Document(fields)) => fields,
        Some(_) => return Err(malformed(OPTION, "must be a boolean or a document")),
    };
    let mut parts = fields.iter();
    let (Some((name, list)), None) = (parts.next(), parts.next()) else {
        return Err(malformed(
            OPTION,
            "must have either \"include\" or \"exclude\"",
        ));
    };
    let at = joined(OPTION, name);
    let paths = |list: ValueRef<'_>| {
        let paths = list.as_array().and_then(|list| {
            let paths = list.iter().map(|path| path.as_str().map(str::to_owned));
            paths.collect::<Option<Vec<String>>>()
        });
        let is_given = |paths: &Vec<String>| {
            !paths.is_empty() && paths.iter().all(|path| !path.trim().is_empty())
        };
        let paths = paths.filter(is_given);
        paths.ok_or_else(|| malformed(&at, "must be an array of paths that is not empty"))
    };
    match name {
        "include" => Ok(Some(StoredSource::Include(outermost(paths(list)?)))),
        "exclude" => Ok(Some(StoredSource::Exclude(outermost(paths(list)?)))),
        _ => Err(malformed(
            &at,
            "is not an option: it must be \"include\" or \"exclude\"",
        )),
    }
}

/// Returns the paths without those that are below others, and without `_id`, which is always
/// stored.
fn outermost(mut paths: Vec<String>) -> Vec<String> {
    let is_below = |path: &str, other: &str| {
        let rest = path.strip_prefix(other);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    paths.sort();
    paths.dedup();
    let all = paths.clone();
    paths.retain(|path| {
        path != "_id" && !is_below(path, "_id") && !all.iter().any(|other| is_below(path, other))
    });
    paths
}
