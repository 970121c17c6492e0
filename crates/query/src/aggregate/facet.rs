//! `$facet`: runs several pipelines on the same rows. Each result is an array in one document.

use windrow_document::{Array, ArrayBuilder, Document, DocumentBuilder, ValueRef};
use windrow_interrupt::Interrupt;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;

use super::operand;
use super::rows::{Rows, check_array};
use super::stage::{ParsePipeline, Pipeline, PipelineContext, Stage, StageKind, Transformation};
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, bytes_max, counted, over_memory};
use crate::row::Row;

/// A parsed `$facet`.
#[derive(Clone, Debug)]
pub struct Facet {
    pipelines: Vec<(String, Pipeline)>,
}

/// Stages that are not allowed in a facet.
const REFUSED: [&str; 16] = [
    "$out",
    "$merge",
    "$facet",
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$currentOp",
    "$documents",
    "$geoNear",
    "$indexStats",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$planCacheStats",
    "$queryStats",
    "$querySettings",
];

/// Stages that are not allowed in nested pipelines of a facet either.
const REFUSED_WITHIN: [&str; 5] = [
    "$facet",
    "$collStats",
    "$geoNear",
    "$indexStats",
    "$planCacheStats",
];

/// Returns the pipelines. All `$facet` stages are checked before any stage of the pipeline is
/// parsed. Fails with 40169 or 40170 if the operand does not consist of pipelines, with 40171 if an
/// element is not a stage.
pub(super) fn pipelines<'o>(operand: ValueRef<'o>) -> Result<Vec<(&'o str, Array<'o>)>, Error> {
    let document = operand
        .as_document()
        .filter(|document| !document.is_empty());
    let Some(document) = document else {
        return Err(Error::new(
            40169,
            "the $facet specification must be a non-empty object",
        ));
    };
    let pipeline = |(name, value): (&'o str, ValueRef<'o>)| {
        let Some(stages) = value.as_array() else {
            let message = format!("arguments to $facet must be arrays, {name} is not");
            return Err(Error::new(40170, message));
        };
        if stages.iter().any(|stage| stage.as_document().is_none()) {
            let message = "elements of arrays in $facet spec must be non-empty objects";
            return Err(Error::new(40171, message));
        }
        Ok((name, stages))
    };
    document.iter().map(pipeline).collect()
}

/// Fails with 40600 for stages that are not allowed.
pub(super) fn check_allowed(pipelines: &[(&str, Array<'_>)]) -> Result<(), Error> {
    pipelines
        .iter()
        .try_for_each(|(_, stages)| check_stages(*stages, &REFUSED))
}

fn check_stages(stages: Array<'_>, refused: &[&str]) -> Result<(), Error> {
    for stage in stages {
        let Some((name, operand)) = stage.as_document().and_then(Document::first) else {
            continue;
        };
        if refused.contains(&name) {
            let message = format!("{name} is not allowed to be used within a $facet stage");
            return Err(Error::new(40600, message));
        }
        if let ("$lookup" | "$unionWith", Some(within)) = (name, operand.as_document()) {
            let within = within.get("pipeline").and_then(ValueRef::as_array);
            check_stages(within.unwrap_or(Array::EMPTY), &REFUSED_WITHIN)?;
        }
    }
    Ok(())
}

/// Parses `{name: [stages], …}`. Fails with 40169 if the operand is empty or not a document, with
/// 40170 or 40171 if a value is not a pipeline, with 40600 for stages that are not allowed, and
/// with 40218 for `$text`.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
    parse: ParsePipeline,
) -> Result<Vec<StageKind>, Error> {
    let written = pipelines(operand)?;
    check_allowed(&written)?;
    let mut pipelines = Vec::new();
    for (name, stages) in written {
        check_name(name)?;
        let pipeline = parse(stages, environment)?;
        if pipeline.stages.first().is_some_and(Stage::has_text) {
            return Err(Error::new(
                40218,
                "$match with $text is not allowed within a $facet",
            ));
        }
        pipelines.push((name.to_owned(), pipeline));
    }
    Ok(vec![StageKind::from_transformation(Facet { pipelines })])
}

/// Checks the name of a facet, which becomes a field name.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    match name {
        "" => Err(Error::new(
            15998,
            "FieldPath field names may not be empty strings.",
        )),
        _ if name.contains('.') => Err(Error::new(
            16412,
            format!("FieldPath field names may not contain '.': {name}"),
        )),
        _ => operand::check_path(name).map(drop),
    }
}

impl Transformation for Facet {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        let operator = FacetOperator::new(self.clone(), context.clone(), input);
        Ok(Box::new(operator))
    }

    fn collect_collections(&self, names: &mut Vec<String>) {
        self.pipelines
            .iter()
            .for_each(|(_, pipeline)| names.extend(pipeline.other_collections()));
    }

    /// The paths that the pipelines read, if all of them end their dependencies.
    fn dependencies(&self) -> Dependencies {
        let mut found = Dependencies::default();
        for (_, pipeline) in &self.pipelines {
            let mut ends = false;
            for stage in &pipeline.stages {
                found.extend(stage.kind.dependencies());
                ends |= stage.kind.ends_dependencies();
                if ends {
                    break;
                }
            }
            found.whole |= !ends;
        }
        found
    }

    fn ends_dependencies(&self) -> bool {
        true
    }
}

pub(super) struct FacetOperator {
    facet: Facet,
    context: PipelineContext,
    input: BoxOperator,
    counters: Counters,
}

impl FacetOperator {
    pub fn new(facet: Facet, context: PipelineContext, input: BoxOperator) -> FacetOperator {
        FacetOperator {
            facet,
            context,
            input,
            counters: Counters::default(),
        }
    }

    /// Reads all rows, in a form that is cheap to clone.
    fn rows(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<Row>, Error> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = self.input.next(interrupt)? {
            bytes += row.bytes();
            if bytes > bytes_max(self.context.allow_disk_use) {
                return Err(over_memory("$facet"));
            }
            rows.push(row.into_shared());
        }
        Ok(rows)
    }
}

impl Operator for FacetOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.counters.at_end {
            return Ok(None);
        }
        let rows = self.rows(interrupt)?;
        let mut builder = DocumentBuilder::new();
        for (name, pipeline) in &self.facet.pipelines {
            let input = Box::new(Rows::new(rows.clone()));
            let mut chain = pipeline.over_rows(input, &self.context)?;
            let mut list = ArrayBuilder::new();
            while let Some(row) = chain.next(interrupt)? {
                list.push(ValueRef::Document(row.document()));
                check_array(builder.len() + list.len(), "$facet")?;
            }
            builder.append(name, ValueRef::Array(list.finish().as_array()));
        }
        self.counters.at_end = true;
        self.counters.returned = 1;
        Ok(Some(Row::new(builder.finish())))
    }

    counted!(counters, input);
}
