//! `$unionWith`: appends the rows of another collection.

use windrow_document::{Array, DocumentBuf, Value, ValueRef, doc};
use windrow_interrupt::Interrupt;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;

use super::documents;
use super::operand;
use super::output::refuse_within;
use super::rows::Rows;
use super::stage::{
    ExplainContext, NO_COLLECTION, ParsePipeline, Pipeline, PipelineContext, StageKind,
    Transformation,
};
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, ReadCounters, counted};
use crate::row::{Row, check_size};
use crate::source::split_namespace;

/// A parsed `$unionWith`.
#[derive(Clone, Debug)]
pub struct UnionWith {
    collection: String,
    pipeline: Pipeline,
}

/// Parses a name, or `{coll, pipeline}`. Fails as [`operands`] does, and with 31441 for `$out` and
/// `$merge` in the pipeline.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
    parse: ParsePipeline,
) -> Result<Vec<StageKind>, Error> {
    let UnionOperands { collection, stages } = operands(operand)?;
    refuse_within(stages, 31441, "$unionWith")?;
    let pipeline = parse(stages, environment)?;
    Ok(vec![StageKind::from_transformation(UnionWith {
        collection: collection.to_owned(),
        pipeline,
    })])
}

/// The operands of a `$unionWith`.
pub(super) struct UnionOperands<'o> {
    /// The name of the other collection, or [`NO_COLLECTION`].
    pub collection: &'o str,
    /// The stages that run on it.
    pub stages: Array<'o>,
}

/// Parses the operands, but not the stages. Fails with 9 if the operand is neither a name nor a
/// document, or if a pipeline without `coll` does not begin with `$documents`, with 40414 without
/// both, with 40415 for unknown fields, with 14 if the name is not a string, with 73 if it is
/// empty.
pub(super) fn operands(operand: ValueRef<'_>) -> Result<UnionOperands<'_>, Error> {
    let (mut collection, mut stages) = (None, Array::EMPTY);
    match operand {
        ValueRef::String(name) => collection = Some(name),
        ValueRef::Document(document) => {
            for (name, value) in document {
                match (name, value) {
                    ("coll", ValueRef::String(name)) => collection = Some(name),
                    ("pipeline", ValueRef::Array(array)) => stages = array,
                    ("coll" | "pipeline", other) => {
                        let field = format_args!("$unionWith.{name}");
                        return Err(operand::wrong_type(field, other));
                    }
                    _ => return Err(operand::unknown_field(format_args!("$unionWith.{name}"))),
                }
            }
        }
        _ => {
            return Err(Error::new(
                9,
                "the $unionWith stage specification must be an object or string",
            ));
        }
    }
    let has_documents = documents::begins(stages);
    if has_documents && collection.is_some() {
        let message = "a $unionWith that begins with $documents must not have 'coll'";
        return Err(Error::new(73, message));
    }
    let collection = collection.or_else(|| has_documents.then_some(NO_COLLECTION));
    let Some(collection) = collection else {
        if !stages.is_empty() {
            let message = "$unionWith stage without explicit collection must have a pipeline with \
                           $documents as first stage";
            return Err(Error::new(9, message));
        }
        return Err(operand::missing_field("$unionWith.coll"));
    };
    if collection.is_empty() {
        return Err(Error::new(73, "Invalid namespace specified"));
    }
    Ok(UnionOperands { collection, stages })
}

impl Transformation for UnionWith {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        let operator = Union::new(
            self.clone(),
            context.deeper().with_search_of(&self.pipeline),
            input,
        );
        Ok(Box::new(operator))
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies::default()
    }

    fn collect_collections(&self, names: &mut Vec<String>) {
        names.push(self.collection.clone());
        names.extend(self.pipeline.other_collections());
    }

    /// Explains the pipeline by itself, unless the run did not reach it.
    fn explained(
        &self,
        _: DocumentBuf,
        reads: Option<&ReadCounters>,
        how: &ExplainContext<'_>,
    ) -> Result<DocumentBuf, Error> {
        let how = &ExplainContext {
            context: &how.context.deeper(),
            ..*how
        };
        let source = how.context.source(&self.collection)?;
        let over = self.pipeline.collection_stages(&source, how.context)?;
        let is_reached = !how.verbosity.runs() || reads.is_some();
        let mut shown = if is_reached {
            self.pipeline.explained(&source, None, how)?
        } else {
            let stages = over.stages.iter();
            stages.map(|stage| stage.source.clone()).collect()
        };
        let mut operands = DocumentBuf::new();
        if self.collection == NO_COLLECTION {
            // No collection is read.
            shown.drain(..usize::from(is_reached));
        } else {
            let namespace = over.source.namespace();
            operands.push("coll", split_namespace(&namespace)?.collection);
        }
        let shown = shown.into_iter().map(Value::Document);
        operands.push("pipeline", Value::Array(shown.collect()));
        let explained = doc! { "$unionWith": operands };
        // The output grows with each nested view. Fails when it is too large.
        check_size(explained.as_document())?;
        Ok(explained)
    }
}

pub(super) struct Union {
    union: UnionWith,
    context: PipelineContext,
    input: BoxOperator,
    other: Option<BoxOperator>,
    counters: Counters,
}

impl Union {
    pub fn new(union: UnionWith, context: PipelineContext, input: BoxOperator) -> Union {
        Union {
            union,
            context,
            input,
            other: None,
            counters: Counters::default(),
        }
    }

    fn other(&mut self, interrupt: &dyn Interrupt) -> Result<&mut BoxOperator, Error> {
        let other = match self.other.take() {
            Some(other) => other,
            None => {
                // Nested views may contain nothing but further views, and no rows at which the
                // interrupt is checked.
                interrupt.check()?;
                let context = &self.context;
                let name = &self.union.collection;
                let source = context.source(name)?;
                let rows = self.union.pipeline.over_source(&source, None, context)?;
                rows.into_operator()
            }
        };
        Ok(self.other.insert(other))
    }
}

impl Operator for Union {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.other.is_none()
            && let Some(row) = self.input.next(interrupt)?
        {
            self.counters.returned += 1;
            return Ok(Some(row));
        }
        let row = self.other(interrupt)?.next(interrupt)?;
        if row.is_none() {
            // Drops the operators and their snapshot as soon as they are at the end.
            self.other = Some(Box::new(Rows::new(Vec::new())));
        }
        self.counters.record(&row);
        Ok(row)
    }

    fn reads(&self) -> Option<ReadCounters> {
        self.other.as_ref().map(|_| ReadCounters::default())
    }

    counted!(counters, input);
}
