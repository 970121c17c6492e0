//! The interface to the query engine: snapshots of collections, cursors as sources of batches, and
//! arguments that several reading commands have in common.

use std::sync::Arc;

use windrow_collection::{Namespace, Position};
use windrow_document::{Collation, Document, DocumentBuf, Timestamp, Value, ValueRef, doc};
use windrow_mql::expression::{
    CLUSTER_TIME, Context as ExpressionContext, Expression, Scope, Variables,
    check_variable_definition,
};
use windrow_mql::filter::{Environment, Filter};
use windrow_query::operators::{self, BoxOperator, Operator};
use windrow_query::plan::Plan;
use windrow_query::print::print_run;
use windrow_query::{
    Aggregate, Content, Cursor, EngineCollections, Error as QueryError, Find, Hint, Interrupt,
    Interrupted, PlannedFind, Row, Source, check_size,
};
use windrow_wire::{Batch, CommandError, ErrorCode};

use crate::clock::now_millis;
use crate::context::{Context, Times};
use crate::cursors::{BatchSource, CursorOptions, CursorOwner, SourceBatch};
use crate::errors::OrCommandError;
use crate::operations::Operation;
use crate::parameters::DISK_USE;
use crate::shown_command::{names_users, without_credentials};
use crate::transaction_context::TransactionContext;
use crate::{collation, plan_summary, snapshot_reads};

impl Interrupt for Operation {
    fn check(&self) -> Result<(), Interrupted> {
        let checked = Operation::check(self);
        checked.map_err(|error| Interrupted::with_code(error.code.number(), error.message))
    }

    fn across_threads(&self) -> Option<&(dyn Interrupt + Sync)> {
        Some(self)
    }
}

/// Returns the source of a namespace: a snapshot of a collection, a view, which is read by its
/// parts only, or a source without documents if the namespace does not exist.
pub fn source(
    context: &Context<'_>,
    namespace: &Namespace,
) -> Result<Arc<dyn Source>, CommandError> {
    collections(context).open(namespace).or_command_error()
}

/// Returns the other collections that a pipeline can read.
pub fn collections(context: &Context<'_>) -> Arc<EngineCollections> {
    Arc::new(EngineCollections {
        engine: Arc::clone(&context.state.services.engine),
        planner_settings: Some(Arc::clone(&context.state.planner_settings)),
        transaction: context.transaction().cloned(),
        cluster_snapshot: context.snapshot.cloned(),
        statistics_provider: Some(context.state.statistics.clone()),
    })
}

/// A running query. Its plan is in `currentOp` and in the log of slow operations.
pub struct RunningQuery {
    operator: BoxOperator,
    plan: Arc<Plan>,
    source: Arc<dyn Source>,
    indexes: Vec<String>,
}

impl RunningQuery {
    /// Chooses a plan and starts the query.
    pub fn start(
        find: &Find,
        source: &Arc<dyn Source>,
        operation: &Operation,
    ) -> Result<RunningQuery, CommandError> {
        let choice = find.plan(&**source).or_command_error()?;
        record_choice(&choice.winner, operation);
        let operator = operators::open(&choice.winner, source).or_command_error()?;
        let mut indexes = Vec::new();
        plan_summary::collect_indexes(&choice.winner, &mut indexes);
        let running = RunningQuery {
            operator,
            plan: Arc::new(choice.winner),
            source: source.clone(),
            indexes,
        };
        Ok(running)
    }

    /// Returns the plan that is executed.
    pub fn plan(&self) -> Arc<Plan> {
        self.plan.clone()
    }

    /// Returns the result of [`Find::stored_at`] for the source of the query.
    pub fn stored_at(&self, find: &Find) -> Option<Position> {
        find.stored_at(&*self.source)
    }

    /// Records the hashes of the query and its plan, if the operation is recorded.
    pub fn record_hashes(&self, find: &Find, operation: &Operation) {
        record_hashes(find, &*self.source, &self.plan, operation);
    }

    /// Records the statistics of each step for the profile, if the operation is recorded.
    fn record_steps(&self, operation: &Operation) {
        if operation.is_recorded() {
            operation.record("execStats", print_run(&self.plan, &*self.operator));
        }
    }

    /// Returns the next row, or `None` at the end.
    pub fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, CommandError> {
        self.operator.next(interrupt).or_command_error()
    }

    /// Returns the names of the indexes that are read.
    pub fn indexes(&self) -> &[String] {
        &self.indexes
    }

    /// Returns the numbers of examined index keys and documents.
    pub fn examined(&self) -> ExaminedCounts {
        examined(&*self.operator)
    }
}

/// Records the plan of a query, if the operation is recorded.
pub fn record_plan(find: &Find, source: &dyn Source, operation: &Operation) {
    if !operation.is_recorded() {
        return;
    }
    // The query is planned again when it runs, and then reports the error.
    if let Ok(choice) = find.plan(source) {
        record_choice(&choice.winner, operation);
        record_hashes(find, source, &choice.winner, operation);
    }
}

fn record_choice(plan: &Plan, operation: &Operation) {
    operation.set_plan_summary(&plan_summary::summarize(plan));
    if plan_summary::sorts(plan) {
        operation.record("hasSortStage", true);
    }
}

/// Opens a pipeline. The plan of its first query is in `currentOp` and in the log of slow
/// operations.
pub fn open_pipeline(
    context: &Context<'_>,
    aggregate: &Aggregate,
    source: &Arc<dyn Source>,
) -> Result<Cursor, CommandError> {
    let cursor = aggregate.open(source, &collections(context));
    opened(cursor, context)
}

/// Opens a query. Its plan is in `currentOp` and in the log of slow operations.
pub fn open_query(
    context: &Context<'_>,
    find: Find,
    source: &Arc<dyn Source>,
) -> Result<Cursor, CommandError> {
    opened(find.open(source), context)
}

fn opened(
    cursor: Result<Cursor, QueryError>,
    context: &Context<'_>,
) -> Result<Cursor, CommandError> {
    let cursor = cursor.or_command_error()?;
    if let Some(front) = cursor.planned_find() {
        record_choice(&front.plan, context.operation);
    }
    if let Some(summary) = cursor.plan_summary() {
        context.operation.set_plan_summary(summary);
    }
    Ok(cursor)
}

/// Records the hashes of the query that a pipeline starts with: see [`record_hashes`].
pub fn record_first_query(front: &PlannedFind, operation: &Operation) {
    record_hashes(&front.find, &*front.source, &front.plan, operation);
}

/// Records the hashes of a query and its plan, if the operation is recorded. Called when the work
/// is done, because the duration may be the reason for recording it.
pub fn record_hashes(find: &Find, source: &dyn Source, plan: &Plan, operation: &Operation) {
    if !operation.is_recorded() {
        return;
    }
    let Ok(cache_status) = find.cache_status(source, plan) else {
        return;
    };
    let shape = cache_status.shape.hash();
    operation.set_hashes(doc! {
        "planCacheShapeHash": (shape.as_str()), "queryHash": (shape.as_str()),
        "planCacheKey": (cache_status.key.text()), "queryFramework": "classic",
    });
}

/// The numbers of examined index keys and documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExaminedCounts {
    pub keys: u64,
    pub documents: u64,
}

impl ExaminedCounts {
    /// Returns the counts of an operator and all operators below it.
    pub fn from_operator(operator: &dyn Operator) -> ExaminedCounts {
        examined(operator)
    }

    /// Records what was examined since `before` in the log of slow operations.
    pub fn record(self, before: ExaminedCounts, operation: &Operation) {
        operation.record("keysExamined", (self.keys - before.keys) as i64);
        operation.record("docsExamined", (self.documents - before.documents) as i64);
    }
}

impl std::ops::AddAssign for ExaminedCounts {
    fn add_assign(&mut self, other: ExaminedCounts) {
        self.keys += other.keys;
        self.documents += other.documents;
    }
}

fn examined(operator: &dyn Operator) -> ExaminedCounts {
    let own = operator.counters();
    let start = ExaminedCounts {
        keys: own.keys_examined,
        documents: own.documents_examined,
    };
    let inputs = operator.inputs().into_iter().map(examined);
    inputs.fold(start, |sum, input| ExaminedCounts {
        keys: sum.keys + input.keys,
        documents: sum.documents + input.documents,
    })
}

/// The source of a cursor's documents.
enum Rows {
    Query(Box<RunningQuery>),
    Pipeline(Cursor),
}

impl Rows {
    fn next(&mut self, operation: &Operation) -> Result<Option<Content>, CommandError> {
        match self {
            Rows::Query(running) => {
                let Some(row) = running.next(operation)? else {
                    return Ok(None);
                };
                check_size(row.document()).or_command_error()?;
                Ok(Some(row.content))
            }
            Rows::Pipeline(cursor) => cursor.next(operation).or_command_error(),
        }
    }

    fn examined(&self) -> ExaminedCounts {
        match self {
            Rows::Query(running) => running.examined(),
            Rows::Pipeline(cursor) => examined(cursor.operator()),
        }
    }
}

/// The result of a query as the source of a cursor.
pub struct QueryBatches {
    rows: Rows,
    /// The number of rows that are left of the query's limit.
    left: Option<u64>,
    /// A document that did not fit in the last batch.
    waiting: Option<Content>,
}

impl QueryBatches {
    /// Returns the result of a query with this limit.
    pub fn from_query(running: RunningQuery, limit: Option<u64>) -> QueryBatches {
        QueryBatches {
            rows: Rows::Query(Box::new(running)),
            left: limit,
            waiting: None,
        }
    }

    /// Returns the result of a pipeline.
    pub fn from_pipeline(cursor: Cursor) -> QueryBatches {
        QueryBatches {
            rows: Rows::Pipeline(cursor),
            left: None,
            waiting: None,
        }
    }

    fn fill(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        let mut documents = Batch::new();
        let mut finished = false;
        while documents.count() < limit {
            let Some(content) = self.next(operation)? else {
                finished = true;
                break;
            };
            if !documents.has_room(content.as_document(), bytes_max) {
                self.waiting = Some(content);
                break;
            }
            documents.push(content.as_document());
        }
        let at_limit = self.left == Some(0) && self.waiting.is_none();
        Ok(SourceBatch {
            documents,
            finished: finished || at_limit,
            ..SourceBatch::default()
        })
    }

    fn next(&mut self, operation: &Operation) -> Result<Option<Content>, CommandError> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(Some(waiting));
        }
        if self.left == Some(0) {
            return Ok(None);
        }
        self.left = self.left.map(|left| left - 1);
        self.rows.next(operation)
    }
}

impl BatchSource for QueryBatches {
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        Operation::check(operation)?;
        let before = self.rows.examined();
        let batch = self.fill(operation, limit, bytes_max);
        self.rows.examined().record(before, operation);
        if let Rows::Query(running) = &self.rows {
            running.record_steps(operation);
        }
        batch
    }
}

/// Returns the owner of the cursor of this command.
pub fn owner(context: &Context<'_>, namespace: String, command: Document<'_>) -> CursorOwner {
    CursorOwner {
        namespace,
        session: context.common.session,
        user: context.authority.user().cloned(),
        requirement: context.requirement.clone(),
        transaction: context
            .transaction_context
            .and_then(TransactionContext::transaction_number),
        api: context.common.api,
        options: CursorOptions {
            read_at: context
                .snapshot
                .map(|snapshot| snapshot_reads::time_of(snapshot)),
            ..CursorOptions::default()
        },
        command: shown_in_cursors(context, command),
        plan_summary: context.operation.plan_summary(),
        indexes: Vec::new(),
        time_left: None,
        returned: 0,
    }
}

/// Returns the command of a cursor, as `currentOp` and the log show it.
fn shown_in_cursors(context: &Context<'_>, command: Document<'_>) -> DocumentBuf {
    let mut fields = command.iter();
    match fields.next().filter(|_| context.hides_arguments) {
        Some((name, value)) => {
            let mut shown = DocumentBuf::new();
            shown.push(name, value);
            shown
        }
        None if names_users(command) => without_credentials(command),
        None => command.to_buf(),
    }
}

/// The defaults of a command.
#[derive(Clone)]
pub struct Defaults {
    /// The collation of its collection.
    collation: Option<Arc<Collation>>,
    times: Times,
    /// The value of `$$USER_ROLES`, if the user is known.
    user_roles: Option<Arc<Value>>,
}

impl Defaults {
    /// Defaults if the server that runs the command is not known yet. Variables of all kinds of
    /// servers are accepted.
    pub fn new(collation: Option<Arc<Collation>>) -> Defaults {
        Defaults {
            collation,
            times: Times {
                now: now_millis(),
                cluster: Some(Timestamp::from_bits(0)),
            },
            user_roles: None,
        }
    }

    /// Returns the defaults of a command on a collection with this collation.
    pub fn for_command(context: &Context<'_>, collation: Option<Arc<Collation>>) -> Defaults {
        let identity = context.authority.identity();
        Defaults {
            collation,
            times: context.times(),
            user_roles: identity.map(|identity| identity.shown_roles.clone()),
        }
    }

    /// Returns the defaults of a command on a collection. Fails if a transaction cannot use the
    /// collection.
    pub fn for_collection(
        context: &Context<'_>,
        namespace: &Namespace,
    ) -> Result<Defaults, CommandError> {
        let collation = collation::default_for(context, namespace)?;
        Ok(Defaults::for_command(context, collation))
    }

    /// Returns the environment of a command's expressions: the variables of its `let`, the time,
    /// and the collation.
    pub fn environment(
        self,
        variables: Option<Document<'_>>,
        collation: Option<Document<'_>>,
    ) -> Result<Environment, CommandError> {
        let collation = collation::parse_or_default(collation, self.collation)?;
        let mut known = Variables::new();
        if let Some(time) = self.times.cluster {
            known.set(CLUSTER_TIME, Some(Value::Timestamp(time)));
        }
        known.set_user_roles(self.user_roles);
        let mut environment = Environment {
            now: self.times.now,
            collation,
            ..Environment::default()
        };
        let_variables(
            variables.unwrap_or(Document::EMPTY),
            &environment,
            &mut known,
        )?;
        environment.variables = Arc::new(known);
        Ok(environment)
    }
}

/// Returns `true` if the steps of a query may write temporary files: as `allowDiskUse` of the
/// command says, by default as the parameter says.
pub fn may_use_disk(context: &Context<'_>, allow_disk_use: Option<bool>) -> bool {
    allow_disk_use.unwrap_or_else(|| context.state.parameters.flag(DISK_USE))
}

/// Parses the `hint` of a command or statement.
pub fn hint(value: Option<ValueRef<'_>>) -> Result<Option<Hint>, CommandError> {
    let hint = value.map(Hint::parse).transpose().or_command_error()?;
    Ok(hint.flatten())
}

/// MongoDB's error code for a `let` that reads a document.
const LET_READS_DOCUMENT: ErrorCode = ErrorCode(4_890_500);

/// Evaluates a `let`. Its expressions cannot read a document, only earlier variables.
fn let_variables(
    definitions: Document<'_>,
    environment: &Environment,
    variables: &mut Variables,
) -> Result<(), CommandError> {
    for (name, definition) in definitions {
        check_variable_definition(name).or_command_error()?;
        let scope = Scope::with_variables(variables);
        let expression = Expression::parse(definition, &scope).or_command_error()?;
        let read = expression.dependencies();
        if read.whole || !read.paths.is_empty() {
            let message = "Command let Expression tried to access a field, but this is not allowed \
                           because command let expressions run before the query examines any \
                           documents.";
            return Err(CommandError::new(LET_READS_DOCUMENT, message));
        }
        let context = ExpressionContext::new(Document::EMPTY)
            .with_now(environment.now)
            .with_collation(environment.collation.as_deref())
            .with_variables(variables);
        let value = expression.evaluate(&context).or_command_error()?;
        variables
            .set_constant(name, value.into_value())
            .or_command_error()?;
    }
    Ok(())
}

/// Returns the filter of a command.
pub fn filter(
    document: Option<Document<'_>>,
    environment: &Environment,
) -> Result<Filter, CommandError> {
    let document = document.unwrap_or(Document::EMPTY);
    Filter::parse_with(document, environment).or_command_error()
}

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, doc};

    use super::*;

    #[test]
    fn let_reads_earlier_variables_but_no_documents() {
        let values = |definitions: DocumentBuf| {
            let found = let_variables(
                definitions.as_document(),
                &Environment::default(),
                &mut Variables::new(),
            );
            found.map(drop).map_err(|error| error.code.number())
        };
        let cases = [
            (doc! { "a": 1, "b": { "$add": ["$$a", 1] } }, Ok(())),
            (doc! { "b": "$$a", "a": 1 }, Err(17276)),
            (doc! { "a": "$x" }, Err(4_890_500)),
            (doc! { "a": "$$ROOT" }, Err(4_890_500)),
            (doc! { "1a": 1 }, Err(16867)),
            (doc! { "a-b": 1 }, Err(9)),
        ];
        for (definitions, expected) in cases {
            assert_eq!(values(definitions.clone()), expected, "{definitions}");
        }
    }
}
