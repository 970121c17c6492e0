//! What is looked at before a document is written: limits, the validator, whether every index can
//! take it.

use windrow_document::{Document, ValueRef};
use windrow_index::{Definition, Scratch};

use crate::cap::Cap;
use crate::error::Error;
use crate::rules::{Rules, Verdict};
use crate::state::IndexState;

/// Whether a collection's validator is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentValidation {
    #[default]
    Asked,
    Bypassed,
}

impl DocumentValidation {
    /// As a client's `bypassDocumentValidation` says.
    pub fn bypassed_if(bypassed: bool) -> DocumentValidation {
        if bypassed {
            DocumentValidation::Bypassed
        } else {
            DocumentValidation::Asked
        }
    }

    pub(crate) fn is_asked(self) -> bool {
        self == DocumentValidation::Asked
    }
}

/// Documents smaller than this cannot have more entries than an index takes.
const HARMLESS_BYTES: usize = 200;

/// What has to be seen to before a document is written, of all indexes together.
pub(crate) struct Checks<'i> {
    /// The validator that is asked.
    pub rules: Option<&'i Rules>,
    pub cap: Option<Cap>,
    /// Indexes whose entries can fail to be made.
    can_fail: Vec<&'i Definition>,
    pub unique: bool,
}

impl<'i> Checks<'i> {
    pub fn of(indexes: &'i [IndexState]) -> Checks<'i> {
        let definitions = indexes.iter().map(|state| state.index.definition.as_ref());
        Checks {
            rules: None,
            cap: None,
            can_fail: definitions.filter(|it| !it.is_of_ids()).collect(),
            unique: indexes
                .iter()
                .any(|it| it.index.enforces_uniqueness() && !it.index.definition.is_of_ids()),
        }
    }

    pub fn validate(&self, document: Document<'_>, warn: impl FnOnce(&Error)) -> Result<(), Error> {
        if let Some(cap) = &self.cap {
            cap.check(document)?;
        }
        match self.rules.map(|rules| rules.check(document, None)) {
            None => Ok(()),
            Some(verdict) => match verdict? {
                Verdict::Accepted => Ok(()),
                Verdict::Warned(warning) => {
                    warn(&warning);
                    Ok(())
                }
                Verdict::Refused(error) => Err(error),
            },
        }
    }

    pub fn check(&mut self, document: Document<'_>, scratch: &mut Scratch) -> Result<(), Error> {
        self.can_fail
            .iter()
            .try_for_each(|definition| check_fits(definition, document, scratch))
    }
}

/// Whether the document's entries can be made.
pub(crate) fn check_fits(
    definition: &Definition,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    if definition.is_search() {
        // It leaves out what it cannot index.
        return Ok(());
    }
    if let Some(text) = &definition.text {
        text.strings(document, &mut |_, _, _| {})?;
        if definition.fields.len() == 1 {
            return Ok(());
        }
    } else if takes_all_values(definition) && !may_have_too_many(definition, document) {
        return Ok(());
    }
    Ok(definition.keys(document, scratch, &mut |_, _| {})?)
}

/// Whether only the number of entries can be too much.
fn takes_all_values(definition: &Definition) -> bool {
    // Fields beside a wildcard hold no arrays.
    let is_compound_wildcard = definition.is_wildcard() && definition.fields.len() > 1;
    let is_choosy = definition.is_hashed() || definition.is_geo() || definition.has_places();
    !is_choosy && !is_compound_wildcard
}

fn may_have_too_many(definition: &Definition, document: Document<'_>) -> bool {
    let is_large = document.as_bytes().len() >= HARMLESS_BYTES;
    is_large && (definition.is_wildcard() || is_wide(definition, document))
}

/// Whether the document may have more entries than are allowed: counted only where paths meet
/// arrays, and only as many as a limit needs.
fn is_wide(definition: &Definition, document: Document<'_>) -> bool {
    let mut product = 1usize;
    for field in &definition.fields {
        // What has no name is not known to be narrow.
        let Some(first) = field.path.components().first() else {
            return true;
        };
        let bytes = match document.get(first.name()) {
            Some(ValueRef::Array(array)) => array.as_bytes().len(),
            Some(ValueRef::Document(inner)) => inner.as_bytes().len(),
            _ => continue,
        };
        // An element has at least three bytes.
        product = product.saturating_mul((bytes / 3).max(1));
    }
    product > windrow_index::ENTRIES_PER_DOCUMENT_MAX
}
