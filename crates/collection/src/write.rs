//! Writing: inserts, and changes of single documents.
//!
//! The durable write, in order: make sure that every index can take the document → claim its unique
//! keys and look them up → append one log record → it is published → let go of the claims.

mod batch;
mod checks;
mod entries;
mod plan;
mod trim;
mod unique;

pub use batch::{Batch, Change, Outcome};
pub use checks::DocumentValidation;
pub(crate) use entries::entries_of;

use bytes::Bytes;
use windrow_index::Scratch;

use crate::claims::Claim;
use crate::collection::Collection;
use crate::error::Error;
use crate::record;
use crate::state::IndexState;
use checks::Checks;
use plan::{IdKeys, InsertPlan};

/// What an insert did.
#[derive(Debug, Default)]
pub struct Inserted {
    pub count: usize,
    /// Which documents were not inserted, by their number, and why.
    pub errors: Vec<(usize, Error)>,
}

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
        let Some(cap) = self.cap() else {
            return self.insert_untrimmed(documents, ordered, validation);
        };
        let inserting = self.arrivals.begin();
        let inserted = self.insert_untrimmed(documents, ordered, validation)?;
        self.trim(&cap)?;
        drop(inserting);
        self.arrivals.note();
        Ok(inserted)
    }

    fn insert_untrimmed(
        &self,
        documents: Bytes,
        ordered: bool,
        validation: DocumentValidation,
    ) -> Result<Inserted, Error> {
        self.admit()?;
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
            self.append_insert(kept, count)?;
        }
        Ok(Inserted {
            count,
            errors: plan.errors,
        })
    }

    fn append_insert(&self, documents: Bytes, count: usize) -> Result<(), Error> {
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
        self.append(&[&header, &documents], operations, bytes, effect)
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
