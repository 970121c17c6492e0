//! Explains pipelines: the query at the start, and the counters of each later stage.

use std::sync::Arc;

use windrow_document::{DocumentBuf, Value};

use super::chain::{CollectionStages, chain};
use super::query_pushdown;
use super::rows::Rows;
use super::stage::{ExplainContext, Pipeline, Stage, StageKind};
use super::statistics;
use crate::Error;
use crate::explain::ExplainedCommand;
use crate::find::Hint;
use crate::operators::{BoxOperator, Operator, ReadCounters};
use crate::source::Source;

/// Opens the rows of the first stage.
pub(super) type Open<'o> = &'o dyn Fn() -> Result<BoxOperator, Error>;

/// What a stage has done.
#[derive(Clone, Default)]
struct StageWork {
    /// The number of rows that the stage has returned.
    returned: u64,
    /// What it has read from other collections.
    reads: Option<ReadCounters>,
}

impl Pipeline {
    /// Explains the stages on a collection or view. The first one is the query. Runs them if the
    /// verbosity requires it.
    pub(super) fn explained(
        &self,
        source: &Arc<dyn Source>,
        hint: Option<Hint>,
        how: &ExplainContext<'_>,
    ) -> Result<Vec<DocumentBuf>, Error> {
        how.interrupt.check()?;
        if let Some(shown) = self.own_access(&self.stages, source, how)? {
            return Ok(shown);
        }
        let is_view = source.view().is_some();
        let CollectionStages { source, stages } = self.collection_stages(source, how.context)?;
        if is_view && let Some(shown) = self.own_access(&stages, source, how)? {
            return Ok(shown);
        }
        if let (Some(first), Some((statistics, rest))) =
            (stages.first(), statistics::first(&stages))
        {
            let rows = || statistics::rows(statistics, &**source, how.context);
            return self.explain_after(first.source.clone(), rest, &rows, how);
        }
        let (find, rest) = query_pushdown::split(&stages, &**source, hint, how.context)?;
        let cursor = find.explain(
            source,
            how.verbosity,
            &ExplainedCommand::None,
            how.interrupt,
        )?;
        let front = cursor.iter().filter(|(name, _)| *name != "explainVersion");
        let mut first = DocumentBuf::new();
        first.push("$cursor", front.collect::<DocumentBuf>());
        let open = || Ok(find.clone().open(source)?.into_operator());
        self.explain_after(first, rest, &open, how)
    }

    /// Explains stages of which the first one reads the source by an access path of its own.
    /// Returns `None` if it does not.
    fn own_access(
        &self,
        stages: &[Stage],
        source: &Arc<dyn Source>,
        how: &ExplainContext<'_>,
    ) -> Result<Option<Vec<DocumentBuf>>, Error> {
        let Some((first, rest)) = stages.split_first() else {
            return Ok(None);
        };
        let StageKind::Other(other) = &first.kind else {
            return Ok(None);
        };
        let Some(shown) = other.explained_over(source, how)? else {
            return Ok(None);
        };
        let open = || {
            let rows = other.over_source(source, how.context);
            rows.unwrap_or_else(|| Ok(Box::new(Rows::new(Vec::new()))))
        };
        self.explain_after(shown, rest, &open, how).map(Some)
    }

    /// Explains the first stage and the stages after it.
    pub(super) fn explain_after(
        &self,
        first: DocumentBuf,
        rest: &[Stage],
        open: Open<'_>,
        how: &ExplainContext<'_>,
    ) -> Result<Vec<DocumentBuf>, Error> {
        let runs = how.verbosity.runs();
        let mut done = if runs {
            run(open()?, rest, how)?
        } else {
            Vec::new()
        };
        let mut first = first;
        if let Some(reads) = done.first().and_then(|work| work.reads.as_ref()) {
            let number = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
            first.push("totalDocsExamined", number(reads.documents_examined));
            first.push("totalKeysExamined", number(reads.keys_examined));
            first.push("keysSkipped", number(reads.keys_skipped));
            let indexes = reads.indexes.iter();
            let indexes = indexes.map(|name| Value::String(name.clone()));
            first.push("indexesUsed", Value::Array(indexes.collect()));
        }
        let mut shown = vec![first];
        for (number, stage) in (1..).zip(rest) {
            let reads = done.get(number).and_then(|work| work.reads.as_ref());
            shown.push(stage.explained(reads, how)?);
        }
        let output = self.output.as_ref();
        if runs && output.is_some() {
            // A stage that writes returns no rows. Explain does not run it.
            done.push(StageWork::default());
        }
        shown.extend(output.map(|output| output.to_document(&how.context.database)));
        for (document, work) in shown.iter_mut().zip(done) {
            let returned = i64::try_from(work.returned).unwrap_or(i64::MAX);
            document.push("nReturned", Value::whole(returned));
            document.push("executionTimeMillisEstimate", 0);
        }
        Ok(shown)
    }
}

/// Runs the first stage and all others, and returns the work of each.
fn run(
    front: BoxOperator,
    rest: &[Stage],
    how: &ExplainContext<'_>,
) -> Result<Vec<StageWork>, Error> {
    let mut rows = front;
    for stage in rest {
        rows = chain(std::slice::from_ref(stage), rows, how.context)?;
    }
    while rows.next(how.interrupt)?.is_some() {}
    let work = |operator: &dyn Operator| StageWork {
        returned: operator.counters().returned,
        reads: operator.reads(),
    };
    let mut all = vec![work(&*rows)];
    let mut inputs = rows.inputs();
    while let Some(input) = inputs.first().copied() {
        all.push(work(input));
        inputs = input.inputs();
    }
    // Stages before one that produces its own documents are not asked for rows.
    all.resize(rest.len() + 1, StageWork::default());
    all.reverse();
    Ok(all)
}
