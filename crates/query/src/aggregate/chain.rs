//! Runs pipelines as chains of operators.

use std::borrow::Cow;
use std::sync::Arc;

use windrow_document::{Document, DocumentBuf};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::reshape::{Reshape, sets_removed_field};

use super::origin;
use super::query_pushdown;
use super::rows::Rows;
use super::stage::{Pipeline, PipelineContext, Stage, StageKind, check_after_view, not_first};
use super::statistics;
use super::transform::{Count, Match, NearRows, RedactRows, ReplaceRows, ReshapeRows};
use super::unwind::UnwindOperator;
use crate::Error;
use crate::cursor::Cursor;
use crate::find::{Find, Hint};
use crate::operators::{BoxOperator, Limit, Skip, SortOperator};
use crate::planner::hint;
use crate::row::Row;
use crate::source::Source;

/// The stages that run on a collection.
pub(super) struct CollectionStages<'s> {
    /// The collection. It is not a view.
    pub source: &'s Arc<dyn Source>,
    /// The stages of the view, if the pipeline reads one, and those of the pipeline.
    pub stages: Cow<'s, [Stage]>,
}

impl Pipeline {
    /// Opens the pipeline on a collection or view.
    pub(crate) fn over_source(
        &self,
        source: &Arc<dyn Source>,
        hint: Option<Hint>,
        context: &PipelineContext,
    ) -> Result<Cursor, Error> {
        if let Some(cursor) = own_access(&self.stages, source, hint.as_ref(), context) {
            return cursor;
        }
        let is_view = source.view().is_some();
        let CollectionStages { source, stages } = self.collection_stages(source, context)?;
        if is_view && let Some(cursor) = own_access(&stages, source, hint.as_ref(), context) {
            return cursor;
        }
        if let Some((statistics, rest)) = statistics::first(&stages) {
            let rows = statistics::rows(statistics, &**source, context)?;
            return chain(rest, rows, context).map(Cursor::new);
        }
        let (find, rest) = query_pushdown::split(&stages, &**source, hint, context)?;
        find.open(source)?
            .below(|rows, sort| chain(rest, origin::with_query_origin(rows, sort, rest), context))
    }

    /// Returns `true` if the first stage is `$search` or `$searchMeta`.
    pub(super) fn begins_with_search(&self) -> bool {
        match self.stages.first().map(|stage| &stage.kind) {
            Some(StageKind::Other(other)) => other.plan_summary().is_some(),
            _ => false,
        }
    }

    /// Returns the stages to run on the collection: those of the view, if the source is a view,
    /// followed by those of the pipeline.
    pub(super) fn collection_stages<'s>(
        &'s self,
        source: &'s Arc<dyn Source>,
        context: &PipelineContext,
    ) -> Result<CollectionStages<'s>, Error> {
        let Some(view) = source.view() else {
            return Ok(CollectionStages {
                source,
                stages: Cow::Borrowed(&self.stages),
            });
        };
        // A view does not see the variables of its reader, only those of the server.
        let environment = Environment {
            now: self.environment.now,
            variables: Arc::new(self.environment.variables.server_variables()),
            collation: source.collation(),
            ..Environment::default()
        };
        let mut stages = (context.parse)(view.stages, &environment)?.stages;
        check_after_view(&stages, &self.stages)?;
        stages.extend(self.stages.iter().cloned());
        Ok(CollectionStages {
            source: view.base,
            stages: query_pushdown::reorder(stages, &self.environment)?.into(),
        })
    }

    /// Puts a filter before the pipeline. `document` is the source of the filter.
    pub(super) fn after_filter(mut self, document: Document<'_>, filter: Filter) -> Pipeline {
        self.stages.insert(0, match_stage(document, filter));
        self
    }

    /// Runs the pipeline on records of a collection that have been found already.
    pub(super) fn over_records(
        &self,
        records: Vec<Row>,
        context: &PipelineContext,
    ) -> Result<BoxOperator, Error> {
        let records = Box::new(Rows::new(records));
        chain(
            &self.stages,
            origin::with_query_origin(records, None, &self.stages),
            context,
        )
    }

    /// Runs the pipeline on rows.
    pub(crate) fn over_rows(
        &self,
        rows: BoxOperator,
        context: &PipelineContext,
    ) -> Result<BoxOperator, Error> {
        chain(&self.stages, rows, context)
    }
}

/// Opens stages of which the first one reads the source by an access path of its own. Returns
/// `None` if it does not.
fn own_access(
    stages: &[Stage],
    source: &Arc<dyn Source>,
    hint: Option<&Hint>,
    context: &PipelineContext,
) -> Option<Result<Cursor, Error>> {
    let (first, rest) = stages.split_first()?;
    let StageKind::Other(other) = &first.kind else {
        return None;
    };
    let front = other.over_source(source, context)?;
    // Such a stage ignores the hint, but the hint must be valid.
    let base = source.view().map_or(source, |view| view.base);
    let cursor = hint::check_fits(hint, &**base)
        .and(front)
        .and_then(|front| chain(rest, front, context).map(Cursor::new));
    Some(cursor.map(|cursor| cursor.with_plan_summary(other.plan_summary())))
}

/// Builds the operators of stages on top of an input.
pub(crate) fn chain(
    stages: &[Stage],
    input: BoxOperator,
    context: &PipelineContext,
) -> Result<BoxOperator, Error> {
    let mut rows = input;
    let mut rest = stages;
    let mut reshapes = Vec::new();
    while let Some((stage, behind)) = rest.split_first() {
        let kind = match &stage.kind {
            StageKind::Reshape(reshape) => {
                reshapes.push(reshape);
                let records = sets_removed_field(reshapes.iter().copied(), later_reshapes(behind));
                Cow::Owned(StageKind::Reshape(
                    reshape.clone().recording_removed_fields(records),
                ))
            }
            kind => Cow::Borrowed(kind),
        };
        rows = open(&kind, rows, context)?;
        if !keeps_removed_fields(&stage.kind) {
            reshapes.clear();
        }
        if let StageKind::Sort { sort, .. } = &stage.kind {
            rows = origin::with_sort_key(rows, sort, behind);
        }
        rest = behind;
    }
    Ok(rows)
}

/// Returns `true` if the rows keep the positions of removed fields, because the stage does not
/// create other documents.
fn keeps_removed_fields(kind: &StageKind) -> bool {
    matches!(
        kind,
        StageKind::Reshape(_)
            | StageKind::Match(_)
            | StageKind::Limit(_)
            | StageKind::Skip(_)
            | StageKind::Sort { .. }
    )
}

/// Returns the later reshapes that the positions of removed fields reach.
fn later_reshapes(stages: &[Stage]) -> impl Iterator<Item = &Reshape> {
    let kinds = stages.iter().map(|stage| &stage.kind);
    kinds
        .take_while(|kind| keeps_removed_fields(kind))
        .filter_map(|kind| match kind {
            StageKind::Reshape(reshape) => Some(reshape),
            _ => None,
        })
}

fn open(
    kind: &StageKind,
    input: BoxOperator,
    context: &PipelineContext,
) -> Result<BoxOperator, Error> {
    let environment = || context.environment.clone();
    Ok(match kind {
        StageKind::Count(name) => Box::new(Count::new(name.clone(), input)),
        StageKind::GeoNear(near) => Box::new(NearRows::new(
            near.added_fields.clone(),
            environment(),
            input,
        )),
        StageKind::Limit(amount) => Box::new(Limit::new(*amount, input)),
        StageKind::Match(filter) => Box::new(Match::new(filter.clone(), input)),
        StageKind::Redact(redact) => {
            Box::new(RedactRows::new(redact.clone(), environment(), input))
        }
        StageKind::ReplaceRoot(replace) => {
            Box::new(ReplaceRows::new(replace.clone(), environment(), input))
        }
        StageKind::Reshape(reshape) => {
            Box::new(ReshapeRows::new(reshape.clone(), environment(), input))
        }
        StageKind::Skip(amount) => Box::new(Skip::new(*amount, input)),
        StageKind::Sort { sort, limit } => Box::new(SortOperator::new(
            sort.clone(),
            *limit,
            context.allow_disk_use,
            input,
        )),
        StageKind::Statistics(statistics) => return Err(not_first(statistics.stage())),
        StageKind::Unwind(unwind) => Box::new(UnwindOperator::new(unwind.clone(), input)),
        StageKind::Other(other) => other.open(input, context)?,
    })
}

/// Opens a cursor on the documents of a collection or view that match. `document` is the source of
/// the filter.
pub(crate) fn matching(
    document: Document<'_>,
    filter: Filter,
    source: &Arc<dyn Source>,
    context: &PipelineContext,
) -> Result<Cursor, Error> {
    if source.view().is_none() {
        return Find::new(filter).open(source);
    }
    let pipeline = Pipeline {
        stages: vec![match_stage(document, filter)],
        output: None,
        environment: context.environment.clone(),
    };
    pipeline.over_source(source, None, context)
}

/// The stage of a filter. `document` is its source, by which it can be joined with the filters of a
/// view.
fn match_stage(document: Document<'_>, filter: Filter) -> Stage {
    let mut printed = DocumentBuf::new();
    printed.push("$match", document);
    Stage::new(printed, StageKind::Match(filter))
}
