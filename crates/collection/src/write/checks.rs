//! The checks before a document is written: limits, the validator, and whether each index can store
//! its entries.

use windrow_document::{Document, ValueRef};
use windrow_index::{Definition, Scratch};

use crate::cap::Cap;
use crate::error::Error;
use crate::rules::{DocumentValidation, Rules, Verdict};
use crate::state::IndexState;

/// Smaller documents cannot exceed the entries that an index allows.
const SMALL_DOCUMENT_BYTES: usize = 200;

/// The checks for one collection, derived from all its indexes.
pub(crate) struct WriteChecks<'i> {
    /// The validator, if it is used.
    pub rules: Option<(&'i Rules, DocumentValidation)>,
    pub cap: Option<Cap>,
    /// The indexes that cannot store every document.
    can_fail: Vec<&'i Definition>,
    /// An index other than that on `_id` enforces uniqueness.
    pub has_unique: bool,
}

impl<'i> WriteChecks<'i> {
    pub fn new(indexes: &'i [IndexState]) -> WriteChecks<'i> {
        let definitions = indexes.iter().map(|state| state.index.definition.as_ref());
        WriteChecks {
            rules: None,
            cap: None,
            can_fail: definitions.filter(|it| !it.is_of_ids()).collect(),
            has_unique: indexes
                .iter()
                .any(|it| it.index.enforces_uniqueness() && !it.index.definition.is_of_ids()),
        }
    }

    pub fn validate(&self, document: Document<'_>, warn: impl FnOnce(&Error)) -> Result<(), Error> {
        if let Some(cap) = &self.cap {
            cap.check(document)?;
        }
        let Some((rules, validation)) = self.rules else {
            return Ok(());
        };
        match rules.check(document, None, validation)? {
            Verdict::Accepted => Ok(()),
            Verdict::Warned(warning) => {
                warn(&warning);
                Ok(())
            }
            Verdict::Refused(error) => Err(error),
        }
    }

    pub fn check(&mut self, document: Document<'_>, scratch: &mut Scratch) -> Result<(), Error> {
        self.can_fail
            .iter()
            .try_for_each(|definition| check_fits(definition, document, scratch))
    }
}

/// Checks that the index can store the document's entries.
pub(crate) fn check_fits(
    definition: &Definition,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    if definition.is_search() {
        // Search indexes leave out what they cannot index.
        return Ok(());
    }
    if let Some(text) = &definition.text {
        text.strings(document, &mut |_, _, _| {})?;
        if definition.fields.len() == 1 {
            return Ok(());
        }
    } else if takes_all_values(definition) && !may_have_too_many_entries(definition, document) {
        return Ok(());
    }
    Ok(definition.keys(document, scratch, &mut |_, _| {})?)
}

/// Returns `true` if only the number of entries can exceed a limit.
fn takes_all_values(definition: &Definition) -> bool {
    // The other fields of a compound wildcard index reject arrays.
    let is_compound_wildcard = definition.is_wildcard() && definition.fields.len() > 1;
    let rejects_some_values =
        definition.is_hashed() || definition.is_geo() || definition.has_places();
    !rejects_some_values && !is_compound_wildcard
}

fn may_have_too_many_entries(definition: &Definition, document: Document<'_>) -> bool {
    let is_large = document.as_bytes().len() >= SMALL_DOCUMENT_BYTES;
    is_large && (definition.is_wildcard() || is_wide(definition, document))
}

/// Returns `true` if the document may have more entries than the index allows. Counts only where
/// paths meet arrays, and only up to the limit.
fn is_wide(definition: &Definition, document: Document<'_>) -> bool {
    let mut product = 1usize;
    for field in &definition.fields {
        // An unnamed path may meet anything.
        let Some(first) = field.path.components().first() else {
            return true;
        };
        let bytes = match document.get(first.name()) {
            Some(ValueRef::Array(array)) => array.as_bytes().len(),
            Some(ValueRef::Document(inner)) => inner.as_bytes().len(),
            _ => continue,
        };
        // An element takes at least three bytes.
        product = product.saturating_mul((bytes / 3).max(1));
    }
    product > windrow_index::ENTRIES_PER_DOCUMENT_MAX
}
