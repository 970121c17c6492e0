//! The difference between two versions of a document: changed names, and the changes of each index.

use windrow_document::Document;
use windrow_document::document::{Element, Elements};
use windrow_index::Scratch;
use windrow_invariant::Bug;
use windrow_storage::StorageError;

use super::entries::{entries_of, entries_of_stored};
use crate::error::Error;
use crate::index::Index;
use crate::record::{AddedKey, IndexChange};

/// Returns the top-level names under which the documents may differ. All fields with other names
/// are the same in both, in the same order and number. An index on a name that is missing here
/// would keep stale entries.
pub(super) fn changed_names<'d>(
    old: Document<'d>,
    new: Document<'d>,
) -> Result<Vec<&'d str>, Error> {
    let old_name = |element: Element<'d>| element.name_str().ok_or_else(damaged_name);
    let new_name = |element: Element<'d>| {
        let not_text = || Bug::new("a document that was checked has a name that is not UTF-8");
        Ok::<_, Error>(element.name_str().ok_or_else(not_text)?)
    };
    let rest = |first: Option<Element<'d>>, mut others: Elements<'d>| {
        let others = std::iter::from_fn(move || others.next_raw());
        first.into_iter().chain(others)
    };
    let (mut olds, mut news) = (old.elements(), new.elements());
    let mut changed = Vec::new();
    loop {
        match (olds.next_raw(), news.next_raw()) {
            (None, None) => return Ok(changed),
            (Some(one), Some(other)) if one.name == other.name => {
                if (one.type_of, one.bytes) != (other.type_of, other.bytes) {
                    changed.push(old_name(one)?);
                }
            }
            (one, other) => {
                let olds = rest(one, olds).map(old_name);
                let all = olds.chain(rest(other, news).map(new_name));
                changed.extend(all.collect::<Result<Vec<_>, Error>>()?);
                return Ok(changed);
            }
        }
    }
}

/// Returns the keys that the change removes from and adds to an index.
pub(super) fn difference(
    index: &Index,
    old: Document<'_>,
    new: Document<'_>,
    scratch: &mut Scratch,
) -> Result<IndexChange, Error> {
    let before = entries_of_stored(index, old, scratch)?;
    let after = entries_of(index, new, scratch)?;
    let removed = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .cloned()
        .collect();
    let added = after
        .into_iter()
        .filter(|(key, payload)| before.get(key) != Some(payload))
        .map(|(key, payload)| AddedKey { key, payload });
    Ok(IndexChange {
        map: index.map,
        removed,
        added: added.collect(),
    })
}

#[cold]
fn damaged_name() -> Error {
    let (place, what) = ("a stored document", "a name is not UTF-8");
    StorageError::Damaged {
        place: place.to_owned(),
        what: what.to_owned(),
    }
    .into()
}
