//! Writes: inserts, and changes of single documents.
//!
//! The steps of a write:
//!
//! 1. Check that each index can store the document's entries.
//! 2. Claim the document's unique keys, and look them up.
//! 3. Append one log record.
//! 4. Publish the commit to readers.
//! 5. Release the claims.

mod batch;
mod checks;
mod difference;
mod entries;
mod insert_keys;
mod key_locking;
mod options;
mod plan;
mod snapshot_validity;
mod trim;
mod unique;

pub use crate::rules::DocumentValidation;
pub use batch::{Batch, Change, Outcome};
pub(crate) use entries::{Entries, entries_of, without_marks};
pub use options::WriteOptions;
pub(crate) use unique::key_value;

use std::sync::Arc;

use bytes::Bytes;
use windrow_fold::RecordId;
use windrow_index::Scratch;

use crate::collection::Collection;
use crate::error::Error;
use crate::record;
use crate::state::IndexState;
use crate::transaction::Transaction;
use crate::transaction_locks::{TransactionWaiter, while_waiting};
use checks::WriteChecks;
use plan::{IdKeys, InsertPlan};
use unique::{ClaimContext, PlanAttempt};

/// The result of an insert.
#[derive(Debug, Default)]
pub struct InsertResult {
    /// The number of inserted documents.
    pub count: usize,
    /// The documents that were not inserted, in the order of the request.
    pub errors: Vec<InsertError>,
}

/// A document that was not inserted.
#[derive(Debug)]
pub struct InsertError {
    /// The index of the document in the request.
    pub index: usize,
    /// Why it was not inserted.
    pub error: Error,
}

impl InsertResult {
    /// Fails with the first error if a document was not inserted.
    pub fn check_all_inserted(self) -> Result<(), Error> {
        match self.errors.into_iter().next() {
            Some(first) => Err(first.error),
            None => Ok(()),
        }
    }
}

/// The result of one attempt to insert.
enum Attempt {
    Done(InsertResult),
    /// Nothing was inserted, because a transaction has locked a key.
    HeldBy(Arc<TransactionWaiter>),
}

/// Whether an insert continues after a document that cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOrder {
    /// The documents behind it are not inserted.
    Ordered,
    /// The documents behind it are inserted.
    Unordered,
}

impl InsertOrder {
    fn is_ordered(self) -> bool {
        self == InsertOrder::Ordered
    }
}

impl Collection {
    /// Inserts consecutive documents, which are valid and have an `_id` each.
    ///
    /// When it returns, the commit is in the log and visible to new readers;
    /// [`Engine::sync`](crate::Engine::sync) makes it durable.
    pub fn insert(&self, documents: Bytes, order: InsertOrder) -> Result<InsertResult, Error> {
        self.insert_with(documents, order, &WriteOptions::default())
    }

    /// Inserts documents like [`insert`](Self::insert), with other options.
    pub fn insert_with(
        &self,
        documents: Bytes,
        order: InsertOrder,
        options: &WriteOptions<'_>,
    ) -> Result<InsertResult, Error> {
        let Some(cap) = self.cap() else {
            return self.insert_with_waits(&documents, order, options);
        };
        if let Err(error) = self.check_writes_of(options.transaction) {
            let errors = vec![InsertError { index: 0, error }];
            return Ok(InsertResult { count: 0, errors });
        }
        let inserting = self.capped_inserts.begin(options.wait_control);
        let inserted = self.insert_with_waits(&documents, order, options)?;
        if inserted.count > 0 {
            self.trim(&cap, inserted.count, options.wait_control)?;
        }
        drop(inserting);
        Ok(inserted)
    }

    /// Fails if a transaction is about to write to a capped collection.
    pub fn check_writes_of(&self, transaction: Option<&Transaction>) -> Result<(), Error> {
        if transaction.is_none() || self.cap().is_none() {
            return Ok(());
        }
        let name = self.namespace();
        let message = format!(
            "Collection '{name}' is a capped collection. Writes in transactions are not allowed on \
             capped collections."
        );
        Err(Error::NotInTransaction(message))
    }

    /// Inserts, and repeats after each wait for a transaction that has locked a key of the
    /// documents.
    fn insert_with_waits(
        &self,
        documents: &Bytes,
        order: InsertOrder,
        options: &WriteOptions<'_>,
    ) -> Result<InsertResult, Error> {
        loop {
            match self.insert_untrimmed(documents, order, options)? {
                Attempt::Done(inserted) => return Ok(inserted),
                Attempt::HeldBy(transaction) => transaction.wait(options.wait_control)?,
            }
        }
    }

    fn insert_untrimmed(
        &self,
        documents: &Bytes,
        order: InsertOrder,
        options: &WriteOptions<'_>,
    ) -> Result<Attempt, Error> {
        self.admit()?;
        let waiting = || while_waiting(options.wait_control, || self.schema.read());
        let _schema = self.schema.try_read().unwrap_or_else(waiting);
        let state = self.state();
        if state.dropped {
            return Err(Error::NamespaceNotFound(self.namespace().to_string()));
        }
        let mut claim = self.claims.begin();
        let mut checks = WriteChecks::new(&state.indexes);
        let rules = self.rules();
        checks.cap = rules.cap();
        checks.rules = Some((&*rules, options.validation))
            .filter(|(rules, validation)| rules.validates() && validation.is_enabled());
        let claiming = ClaimContext {
            claim: &mut claim,
            transaction: options.transaction,
        };
        let planned = self.plan_insert(documents, order, checks, &state.indexes, claiming)?;
        let mut plan = match planned {
            PlanAttempt::Plan(plan) => plan,
            PlanAttempt::HeldBy(transaction) => return Ok(Attempt::HeldBy(transaction)),
        };
        let count = plan.count;
        if count > 0 {
            let accepted = plan.accepted_bytes(documents)?;
            self.append_insert(accepted, &mut plan, options)?;
        }
        Ok(Attempt::Done(InsertResult {
            count,
            errors: plan.errors,
        }))
    }

    fn append_insert(
        &self,
        documents: Bytes,
        plan: &mut InsertPlan,
        options: &WriteOptions<'_>,
    ) -> Result<(), Error> {
        let count = plan.count;
        debug_assert_eq!(record::count_documents(&documents), Some(count));
        let first = self.take_records(count as u64);
        let bytes = documents.len();
        let mut header = record::begin(self.id);
        if let Some(statements) = &options.statements {
            let indexes = plan.accepted.iter().map(|document| document.index);
            record::statements::push_inserted(&mut header, statements, indexes)?;
        }
        record::push_insert(&mut header, first, count as u32, bytes as u32);
        let effect = record::Effect {
            documents: count as i64,
            bytes: bytes as i64,
            next_record: RecordId(first.0 + count as u64),
        };
        let hashes = plan
            .hashes
            .iter()
            .map(record::KeyHashes::bytes)
            .sum::<usize>();
        let operations = vec![record::Operation::Insert {
            first,
            documents: documents.clone(),
            hashes: std::mem::take(&mut plan.hashes),
        }];
        let header = Bytes::from(header);
        let statements = record::statements::read_own(&header, &operations)?;
        match options.transaction {
            None => self
                .append(
                    &[&header, &documents],
                    operations,
                    bytes + hashes,
                    effect,
                    statements,
                )
                .map(drop),
            Some(transaction) => {
                let header = header.slice(record::ID_BYTES..);
                transaction.write(self, vec![header, documents], operations, effect)
            }
        }
    }

    /// Decides for each document whether it can be inserted, and claims its unique keys.
    fn plan_insert(
        &self,
        documents: &Bytes,
        order: InsertOrder,
        mut checks: WriteChecks<'_>,
        indexes: &[IndexState],
        claiming: ClaimContext<'_, '_>,
    ) -> Result<PlanAttempt, Error> {
        let mut ids = IdKeys::default();
        let id_index = indexes.first().map(|state| &*state.index.definition);
        let mut plan = InsertPlan::default();
        let mut scratch = Scratch::default();
        for (offset, document) in record::documents(documents) {
            let fits = checks
                .validate(document, |warning| self.warn(warning))
                .and_then(|()| checks.check(document, &mut scratch));
            plan.add(offset, document.as_bytes().len(), fits);
            if plan.ends_with_error(order) {
                break;
            }
            if plan.last_is_accepted()
                && let Some(id_index) = id_index
            {
                ids.push(id_index, document);
            }
        }
        // A transaction locks each of its keys until its end, so it needs them one by one.
        let ids_are_claimed = claiming.transaction.is_none()
            && ids.are_increasing()
            && claiming.claim.add_range(ids.first(), ids.last());
        if ids_are_claimed && !checks.has_unique {
            return Ok(PlanAttempt::Plan(plan));
        }
        self.claim_unique(documents, order, ids_are_claimed, indexes, claiming, plan)
    }
}
