//! Changes the documents that a query finds.
//!
//! Candidates come from a snapshot. Each of them is locked and read in its newest version. If that
//! is not the version of the snapshot, it has to match again. So no document is changed twice, and
//! none that no longer matches.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Batch, Change, Collection, DocumentValidation, Error as CollectionError, InsertOrder, Outcome,
    StatementResult, WriteOptions,
};
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::update::{Update, UpdateContext, UpdateOutcome};
use windrow_query::{Find, Interrupt, Interrupted, Row, Snapshot};
use windrow_wire::{CommandError, ErrorCode};

use crate::clock;
use crate::collection_uuid::Target;
use crate::context::{Context, StatementOptions};
use crate::errors::{IntoCommandError, OrCommandError};
use crate::insert_preparation::{check_depth, with_id_in_front};
use crate::operations::Operation;
use crate::queries::{ExaminedCounts, RunningQuery};
use crate::retries;

/// The counts of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub matched: u64,
    pub changed: u64,
    pub examined: ExaminedCounts,
}

/// Returns the change of a document, given its newest version.
pub type Decide<'d> = dyn FnMut(Document<'_>) -> Result<Change, CommandError> + 'd;

/// Changes every document that the query finds. Documents that were changed before an error stay
/// changed.
pub fn change_all(
    context: &Context<'_>,
    collection: &Collection,
    find: &Find,
    saving: StatementOptions<'_>,
    decide: &mut Decide<'_>,
) -> Result<Tally, CommandError> {
    let mut tally = Tally::default();
    let mut running = start(context, collection, find)?;
    let mut batch = collection.batch_with(context.write_options(saving));
    batch.trust_snapshot(running.stored_at(find));
    let changed = change_rows(context, &mut running, find, &mut batch, decide, &mut tally);
    let committed = batch.commit().map_err(from_write_error);
    tally.examined = running.examined();
    running.record_hashes(find, context.operation);
    changed.and(committed)?;
    Ok(tally)
}

fn change_rows(
    context: &Context<'_>,
    running: &mut RunningQuery,
    find: &Find,
    batch: &mut Batch<'_>,
    decide: &mut Decide<'_>,
    tally: &mut Tally,
) -> Result<(), CommandError> {
    let interrupt = SearchInterrupt {
        operation: context.operation,
        batch: RefCell::new(batch),
    };
    while let Some(row) = running.next(&interrupt)? {
        let batch = &mut interrupt.batch.borrow_mut();
        if let Some(outcome) = change_row(&row, find, batch, decide)? {
            tally.matched += 1;
            tally.changed += u64::from(outcome != Outcome::Unchanged);
        }
    }
    Ok(())
}

/// The interrupt of a search for documents to change. Each check also commits the batch if its
/// oldest change is old, because a search for more documents can take long.
struct SearchInterrupt<'a, 'b> {
    operation: &'a Operation,
    batch: RefCell<&'a mut Batch<'b>>,
}

impl Interrupt for SearchInterrupt<'_, '_> {
    fn check(&self) -> Result<(), Interrupted> {
        let committed = self.batch.borrow_mut().commit_if_old();
        committed.map_err(|error| {
            let error = from_write_error(error);
            Interrupted::with_code(error.code.number(), error.message)
        })?;
        Interrupt::check(self.operation)
    }
}

/// Changes the first document that the query finds. The query has a limit of one. If another writer
/// changes the document first, the query runs again.
pub fn change_one(
    context: &Context<'_>,
    collection: &Collection,
    find: &Find,
    saving: StatementOptions<'_>,
    decide: &mut Decide<'_>,
) -> Result<Tally, CommandError> {
    loop {
        context.check()?;
        let mut running = start(context, collection, find)?;
        let row = running.next(context.operation)?;
        let examined = running.examined();
        running.record_hashes(find, context.operation);
        let Some(row) = row else {
            return Ok(Tally {
                examined,
                ..Tally::default()
            });
        };
        let mut batch = collection.batch_with(context.write_options(saving));
        batch.trust_snapshot(running.stored_at(find));
        if let Some(outcome) = change_row(&row, find, &mut batch, decide)? {
            batch.commit().map_err(from_write_error)?;
            return Ok(Tally {
                matched: 1,
                changed: u64::from(outcome != Outcome::Unchanged),
                examined,
            });
        }
    }
}

/// Changes the first document that the query finds, once and outside of transactions. Returns
/// `None` if there is none. The server itself runs this query on a unique index, so its plan is not
/// limited.
pub fn change_found(
    operation: &Operation,
    collection: &Collection,
    find: &Find,
    validation: DocumentValidation,
    decide: &mut Decide<'_>,
) -> Result<Option<FoundOutcome>, CommandError> {
    let source = Snapshot::open(collection).or_command_error()?;
    let mut running = RunningQuery::start(find, &source, operation)?;
    let Some(row) = running.next(operation)? else {
        return Ok(None);
    };
    let mut batch = collection.batch_with(WriteOptions {
        validation,
        wait_control: operation,
        ..WriteOptions::default()
    });
    batch.trust_snapshot(running.stored_at(find));
    let outcome = change_row(&row, find, &mut batch, decide)?;
    batch.commit().map_err(from_write_error)?;
    Ok(Some(match outcome {
        Some(_) => FoundOutcome::Changed,
        None => FoundOutcome::Overtaken,
    }))
}

/// The result for a document that a query found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundOutcome {
    Changed,
    /// The document was deleted, or its newest version does not match.
    Overtaken,
}

fn start(
    context: &Context<'_>,
    collection: &Collection,
    find: &Find,
) -> Result<RunningQuery, CommandError> {
    let transaction = context.transaction().map(|it| &**it);
    collection.check_writes_of(transaction).or_command_error()?;
    let planner_settings = Some(Arc::clone(&context.state.planner_settings));
    let source = Snapshot::within(collection, transaction, planner_settings).or_command_error()?;
    RunningQuery::start(find, &source, context.operation)
}

/// Changes one document. Returns `None` if it was deleted or no longer matches.
fn change_row(
    row: &Row,
    find: &Find,
    batch: &mut Batch<'_>,
    decide: &mut Decide<'_>,
) -> Result<Option<Outcome>, CommandError> {
    let mut matches = true;
    let outcome = batch.change_seen(
        row.id,
        row.document(),
        |newest| -> Result<Change, ChangeError> {
            if newest.as_bytes() != row.document().as_bytes() {
                matches = find.filter.matches(newest).or_command_error()?;
            }
            if !matches {
                return Ok(Change::Keep);
            }
            Ok(decide(newest)?)
        },
    );
    let outcome = outcome.map_err(|failure| failure.0)?;
    Ok(Some(outcome).filter(|outcome| matches && *outcome != Outcome::NotFound))
}

/// An error while a document is locked: of the command or of the collection.
struct ChangeError(CommandError);

impl From<CollectionError> for ChangeError {
    fn from(error: CollectionError) -> ChangeError {
        ChangeError(from_write_error(error))
    }
}

/// Returns an error of a write. If the collection is dropped meanwhile, the plan is killed, as in
/// MongoDB.
fn from_write_error(error: CollectionError) -> CommandError {
    match error {
        CollectionError::NamespaceNotFound(name) => CommandError::new(
            ErrorCode::QueryPlanKilled,
            format!("collection dropped while it was changed: {name}"),
        ),
        other => other.into_command_error(),
    }
}

impl From<CommandError> for ChangeError {
    fn from(error: CommandError) -> ChangeError {
        ChangeError(error)
    }
}

/// An update of the documents that a query finds.
pub struct UpdateOperation<'a> {
    pub find: &'a Find,
    pub update: &'a Update,
    pub context: UpdateContext<'a>,
    pub many: bool,
    pub upsert: bool,
    pub saving: StatementOptions<'a>,
}

/// The result of an update.
#[derive(Debug, Default)]
pub struct UpdateResult {
    pub tally: Tally,
    /// The document before and after an update of one document.
    pub before: Option<DocumentBuf>,
    pub after: Option<DocumentBuf>,
    /// The document that was inserted because none matched.
    pub inserted: Option<DocumentBuf>,
}

/// Returns the result of an update that was executed before, for a retry.
pub fn updated_before(done: &StatementResult) -> Result<UpdateResult, CommandError> {
    let inserted = retries::as_update(done)?.cloned();
    let changed = u64::from(inserted.is_none());
    Ok(UpdateResult {
        tally: Tally {
            matched: changed,
            changed,
            ..Tally::default()
        },
        inserted,
        ..UpdateResult::default()
    })
}

/// Maximum number of attempts of an upsert if other writers insert its document.
pub const UPSERT_ATTEMPTS: usize = 4;

/// Updates documents, or inserts one if none matches.
pub fn update(
    context: &Context<'_>,
    target: &Target,
    updating: &UpdateOperation<'_>,
    keep_documents: bool,
) -> Result<UpdateResult, CommandError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut updated = update_matching(context, target, updating, keep_documents)?;
        if updated.tally.matched > 0 || !updating.upsert {
            return Ok(updated);
        }
        match insert(context, target, updating) {
            // It may only be repeated if nothing was changed.
            Err(error) if may_repeat_upsert(&error) && attempts < UPSERT_ATTEMPTS => {}
            inserted => {
                updated.inserted = Some(inserted?);
                return Ok(updated);
            }
        }
    }
}

/// Returns `true` for errors after which an upsert is repeated. A duplicate key most likely means
/// that another writer inserted the document in between. A dropped collection is created again.
pub fn may_repeat_upsert(error: &CommandError) -> bool {
    matches!(
        error.code,
        ErrorCode::DuplicateKey | ErrorCode::NamespaceNotFound
    )
}

fn update_matching(
    context: &Context<'_>,
    target: &Target,
    updating: &UpdateOperation<'_>,
    keep_documents: bool,
) -> Result<UpdateResult, CommandError> {
    let mut updated = UpdateResult::default();
    if let Some(collection) = existing(context, target, updating)? {
        let mut decide = |document: Document<'_>| {
            let applied = apply(updating, document)?;
            let (changed, description) = (applied.document, applied.description);
            if keep_documents {
                updated.before = Some(document.to_buf());
                updated.after = Some(changed.clone().unwrap_or_else(|| document.to_buf()));
            }
            Ok(changed.map_or(Change::Keep, |new| Change::described(new, description)))
        };
        let change = if updating.many {
            change_all
        } else {
            change_one
        };
        let (find, saving) = (updating.find, updating.saving);
        updated.tally = change(context, &collection, find, saving, &mut decide)?;
    }
    Ok(updated)
}

/// Returns the collection. If an upsert may need one, it is created before anything else can fail,
/// as in MongoDB. The query is checked even if there is no collection.
fn existing(
    context: &Context<'_>,
    target: &Target,
    updating: &UpdateOperation<'_>,
) -> Result<Option<Arc<Collection>>, CommandError> {
    if updating.upsert {
        return target.collection_or_create(context).map(Some);
    }
    let collection = target.collection(context)?;
    if collection.is_none() {
        let nothing = target.source(context)?;
        updating.find.clone().open(&nothing).or_command_error()?;
    }
    Ok(collection)
}

fn apply(
    updating: &UpdateOperation<'_>,
    document: Document<'_>,
) -> Result<UpdateOutcome, CommandError> {
    let applied = updating.update.apply(document, &updating.context);
    let applied = applied.or_command_error()?;
    if let Some(changed) = &applied.document {
        check_depth(changed.as_document())?;
    }
    Ok(applied)
}

fn insert(
    context: &Context<'_>,
    target: &Target,
    updating: &UpdateOperation<'_>,
) -> Result<DocumentBuf, CommandError> {
    let new = updating
        .update
        .upsert(&updating.find.filter, &updating.context);
    let new = new.or_command_error()?;
    check_depth(new.as_document())?;
    let new = match new.get("_id") {
        Some(_) => new,
        None => with_id_in_front(
            new.as_document(),
            &context.state.object_ids,
            updating.context.keeps_zero_timestamps,
        ),
    };
    let collection = target.collection_or_create(context)?;
    let bytes = Bytes::copy_from_slice(new.as_bytes());
    let write_options = context.write_options(updating.saving);
    let inserted = collection.insert_with(bytes, InsertOrder::Ordered, &write_options);
    let inserted = inserted.or_command_error()?;
    inserted.check_all_inserted().or_command_error()?;
    Ok(new)
}

/// Returns the `_id` of an inserted document. It always exists.
pub fn id(document: &DocumentBuf) -> ValueRef<'_> {
    let id = document.get("_id");
    debug_assert!(id.is_some(), "an inserted document has no _id: {document}");
    id.unwrap_or(ValueRef::Null)
}

/// Returns the context of an update: the time of the command, and a new timestamp.
pub fn update_context(now: i64) -> UpdateContext<'static> {
    UpdateContext::new(now, clock::timestamp())
}
