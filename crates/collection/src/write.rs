//! Writing: inserts, and changes of single documents.
//!
//! The durable write, in order: make sure that every index can take the document → claim its unique
//! keys and look them up → append one log record → it is published → let go of the claims.

mod batch;
mod unique;

pub use batch::{Batch, Change, Outcome};
pub(crate) use unique::keys_of;

use bytes::Bytes;
use windrow_document::{Document, ValueRef};
use windrow_index::{Definition, Multikey, Scratch};

use crate::capped::Cap;
use crate::claims::Claim;
use crate::collection::{Collection, IndexState};
use crate::core::Core;
use crate::error::Error;
use crate::record;
use crate::rules::{Rules, Verdict};

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
        match bypassed {
            true => DocumentValidation::Bypassed,
            false => DocumentValidation::Asked,
        }
    }

    fn is_asked(self) -> bool {
        self == DocumentValidation::Asked
    }
}

/// What an insert did.
#[derive(Debug, Default)]
pub struct Inserted {
    pub count: usize,
    /// Which documents were not inserted, by their number, and why.
    pub errors: Vec<(usize, Error)>,
}

/// Documents smaller than this cannot have more entries than an index takes.
const HARMLESS_BYTES: usize = 200;

impl Collection {
    /// Inserts documents that stand in one buffer one after the other, validated, each with its
    /// `_id`. `ordered`: the first that cannot be inserted ends it.
    pub fn insert(&self, documents: Bytes, ordered: bool) -> Result<Inserted, Error> {
        self.insert_checked(documents, ordered, DocumentValidation::Asked)
    }

    /// As [`insert`](Self::insert), with or without the collection's validator.
    pub fn insert_checked(
        &self,
        documents: Bytes,
        ordered: bool,
        validation: DocumentValidation,
    ) -> Result<Inserted, Error> {
        match self.cap() {
            Some(cap) => self.insert_capped(&cap, documents, ordered, validation),
            None => self.insert_uncapped(documents, ordered, validation),
        }
    }

    pub(crate) fn insert_uncapped(
        &self,
        documents: Bytes,
        ordered: bool,
        validation: DocumentValidation,
    ) -> Result<Inserted, Error> {
        let core = self.core()?;
        core.admit(self);
        let _schema = self.schema.read();
        let state = self.state();
        if state.dropped {
            return Err(Error::NamespaceNotFound(self.namespace().to_string()));
        }
        let mut claim = self.claims.begin();
        let mut checks = Checks::of(&state.indexes);
        let rules = self.rules();
        checks.cap = rules.cap();
        checks.rules = Some(&*rules).filter(|rules| rules.validates() && validation.is_asked());
        let plan = self.plan_insert(&documents, ordered, checks, &state.indexes, &mut claim)?;
        let count = plan.count;
        if count > 0 {
            let kept = plan.kept_bytes(&documents);
            self.append_insert(&core, kept, count)?;
        }
        Ok(Inserted {
            count,
            errors: plan.errors,
        })
    }

    /// Tells of a document that was written though the validator does not accept it.
    pub(crate) fn warn(&self, warning: &Error) {
        if let Ok(core) = self.core() {
            let what = format!("Document would fail validation, in {}", self.namespace());
            (core.options.on_problem)(&what, warning);
        }
    }

    fn append_insert(&self, core: &Core, documents: Bytes, count: usize) -> Result<(), Error> {
        let first = self.take_records(count as u64);
        let bytes = documents.len();
        let header = record::insert_header(self.id, first, count as u32, bytes as u32);
        let effect = record::Effect {
            documents: count as i64,
            bytes: bytes as i64,
            next_record: first + count as u64,
        };
        let operations = vec![record::Operation::Insert {
            first,
            documents: documents.clone(),
        }];
        core.append(self, &[&header, &documents], operations, bytes, effect)
    }

    /// Decides for every document whether it can be inserted, and claims its unique keys.
    fn plan_insert(
        &self,
        documents: &Bytes,
        ordered: bool,
        mut checks: Checks<'_>,
        indexes: &[IndexState],
        claim: &mut Claim<'_>,
    ) -> Result<InsertPlan, Error> {
        let mut ids = IdKeys::default();
        let of_ids = indexes.first().map(|state| &*state.index.definition);
        let mut plan = InsertPlan::default();
        let mut scratch = Scratch::default();
        for (offset, document) in record::documents(documents) {
            let fits = checks
                .validate(document, |warning| self.warn(warning))
                .and_then(|()| checks.check(document, &mut scratch));
            plan.add(offset, document.as_bytes().len(), fits);
            if plan.refused(ordered) {
                break;
            }
            if let (true, Some(of_ids)) = (plan.last_is_kept(), of_ids) {
                ids.push(of_ids, document);
            }
        }
        let growing = ids.grows() && claim.grow(ids.first(), ids.last());
        if !growing || checks.unique {
            self.claim_unique(documents, ordered, growing, indexes, claim, &mut plan)?;
        }
        Ok(plan)
    }
}

/// Which documents of a buffer go in.
#[derive(Debug, Default)]
pub(crate) struct InsertPlan {
    /// Offset and length of the kept ones, with their numbers in the buffer.
    kept: Vec<(usize, usize, usize)>,
    seen: usize,
    pub count: usize,
    pub errors: Vec<(usize, Error)>,
}

impl InsertPlan {
    fn add(&mut self, offset: usize, length: usize, fits: Result<(), Error>) {
        match fits {
            Ok(()) => {
                self.kept.push((offset, length, self.seen));
                self.count += 1;
            }
            Err(error) => self.errors.push((self.seen, error)),
        }
        self.seen += 1;
    }

    fn refused(&self, ordered: bool) -> bool {
        ordered && !self.errors.is_empty()
    }

    fn last_is_kept(&self) -> bool {
        self.kept
            .last()
            .is_some_and(|(_, _, number)| number + 1 == self.seen)
    }

    /// The kept documents one after the other: the same buffer where none is left out.
    fn kept_bytes(&self, documents: &Bytes) -> Bytes {
        let length: usize = self.kept.iter().map(|(_, length, _)| length).sum();
        if length == documents.len() {
            return documents.clone();
        }
        let mut bytes = Vec::with_capacity(length);
        for (offset, length, _) in &self.kept {
            bytes.extend_from_slice(documents.get(*offset..offset + length).unwrap_or_default());
        }
        Bytes::from(bytes)
    }
}

/// The `_id` keys of a batch, to see whether they grow.
#[derive(Debug, Default)]
struct IdKeys {
    first: Vec<u8>,
    last: Vec<u8>,
    next: Vec<u8>,
    count: usize,
    unordered: bool,
}

impl IdKeys {
    fn push(&mut self, of_ids: &Definition, document: Document<'_>) {
        if self.unordered {
            return;
        }
        self.next.clear();
        let id = document.get("_id").unwrap_or(ValueRef::Null);
        of_ids.append_only_value(&mut self.next, id);
        if self.count == 0 {
            self.first.clone_from(&self.next);
        } else if self.next <= self.last {
            self.unordered = true;
        }
        std::mem::swap(&mut self.last, &mut self.next);
        self.count += 1;
    }

    fn grows(&self) -> bool {
        self.count > 0 && !self.unordered
    }

    fn first(&self) -> &[u8] {
        &self.first
    }

    fn last(&self) -> &[u8] {
        &self.last
    }
}

/// What has to be seen to before a document is written, of all indexes together.
struct Checks<'i> {
    /// The validator that is asked.
    rules: Option<&'i Rules>,
    cap: Option<Cap>,
    /// Indexes whose entries can fail to be made.
    can_fail: Vec<&'i Definition>,
    unique: bool,
}

impl<'i> Checks<'i> {
    fn of(indexes: &'i [IndexState]) -> Checks<'i> {
        let definitions = indexes.iter().map(|state| state.index.definition.as_ref());
        Checks {
            rules: None,
            cap: None,
            can_fail: definitions.clone().filter(|it| !it.is_of_ids()).collect(),
            unique: definitions.clone().any(|it| it.unique && !it.is_of_ids()),
        }
    }

    fn validate(&self, document: Document<'_>, warn: impl FnOnce(&Error)) -> Result<(), Error> {
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

    fn check(&mut self, document: Document<'_>, scratch: &mut Scratch) -> Result<(), Error> {
        self.can_fail
            .iter()
            .try_for_each(|definition| check_fits(definition, document, scratch))
    }
}

/// Whether the document's entries can be made.
fn check_fits(
    definition: &Definition,
    document: Document<'_>,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    if let Some(text) = &definition.text {
        text.strings(document, &mut |_, _, _| {})?;
        if definition.fields.len() == 1 {
            return Ok(());
        }
    } else if !definition.is_hashed() && !may_have_too_many(definition, document) {
        return Ok(());
    }
    let mut multikey = Multikey::of(definition.fields.len());
    Ok(definition.entries(document, scratch, &mut multikey, &mut |_, _| {})?)
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
        let Some(first) = field.path.components().first() else {
            continue;
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
