//! Updates with a pipeline: stages that transform the document one after the other.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, DocumentBuf, ValueRef};

use super::affected_fields::AffectedFields;
use super::document_checks;
use super::modifier::Execution;
use super::replacement::replace;
use crate::Error;
use crate::expression::{Context, Scope, Variables};
use crate::memory::depth;
use crate::reshape::{ReplaceRoot, Reshape, ReshapeOutput, sets_removed_field};

/// A parsed pipeline.
#[derive(Debug)]
pub(super) struct Pipeline {
    stages: Vec<Stage>,
    affected_fields: AffectedFields,
}

#[derive(Debug)]
enum Stage {
    Reshape(Reshape),
    ReplaceRoot(ReplaceRoot),
    /// A stage whose constant operands fail. This is an error for the first document that is
    /// updated.
    Failing(Error),
}

/// The aggregation stages that are not allowed in updates, sorted by name for binary search.
const REFUSED: &[&str] = &[
    "$bucket",
    "$bucketAuto",
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$count",
    "$currentOp",
    "$densify",
    "$documents",
    "$facet",
    "$fill",
    "$geoNear",
    "$graphLookup",
    "$group",
    "$indexStats",
    "$limit",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$lookup",
    "$match",
    "$merge",
    "$out",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
    "$rankFusion",
    "$redact",
    "$sample",
    "$score",
    "$scoreFusion",
    "$search",
    "$searchMeta",
    "$setWindowFields",
    "$skip",
    "$sort",
    "$sortByCount",
    "$unionWith",
    "$unwind",
    "$vectorSearch",
];

impl Pipeline {
    /// Parses an array of stages.
    ///
    /// # Errors
    ///
    /// - 14: a stage is not a document.
    /// - 40323: a stage does not have exactly one field.
    /// - 40324: a stage is unknown.
    /// - 72: a stage is not allowed in updates.
    pub fn parse(stages: Array<'_>, variables: &Variables) -> Result<Pipeline, Error> {
        let scope = Scope::with_variables(variables);
        let parse = |stage| match parse_stage(stage, &scope) {
            Err(error) if error.is_constant_error => Ok(Stage::Failing(error)),
            parsed => parsed,
        };
        let stages = stages.iter().map(parse);
        let mut stages = stages.collect::<Result<Vec<Stage>, Error>>()?;
        record_removed_fields(&mut stages);
        let affected_fields = affected_fields(&stages);
        Ok(Pipeline {
            stages,
            affected_fields,
        })
    }

    pub fn affected_fields(&self) -> &AffectedFields {
        &self.affected_fields
    }

    pub fn apply(
        &self,
        execution: &Execution<'_>,
        variables: Option<&Variables>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let mut output = ReshapeOutput::from(execution.root.to_buf());
        for stage in &self.stages {
            output = stage.apply(&output, execution, variables)?;
        }
        let document = output.document;
        document_checks::check_depth(depth(ValueRef::Document(document.as_document())))?;
        replace(execution, document.as_document(), None)
    }
}

fn parse_stage(stage: ValueRef<'_>, scope: &Scope) -> Result<Stage, Error> {
    let Some(document) = stage.as_document() else {
        return Err(Error::type_mismatch(
            "Each element of the 'pipeline' array must be an object",
        ));
    };
    let (Some((name, value)), 1) = (document.first(), document.count()) else {
        return Err(Error::new(
            40323,
            "A pipeline stage specification object must contain exactly one field.",
        ));
    };
    Ok(match name {
        "$addFields" | "$set" => Stage::Reshape(Reshape::parse_add_fields(value, scope)?),
        "$project" => Stage::Reshape(Reshape::parse_project(value, scope)?),
        "$replaceRoot" => Stage::ReplaceRoot(ReplaceRoot::parse_replace_root(value, scope)?),
        "$replaceWith" => Stage::ReplaceRoot(ReplaceRoot::parse_replace_with(value, scope)?),
        "$unset" => Stage::Reshape(Reshape::parse_unset(value)?),
        _ if REFUSED.binary_search(&name).is_ok() => {
            return Err(Error::new(
                72,
                format!("{name} is not allowed to be used within an update"),
            ));
        }
        _ => {
            return Err(Error::new(
                40324,
                format!("Unrecognized pipeline stage name: '{name}'"),
            ));
        }
    })
}

/// Makes stages record the positions of removed fields that later stages set again.
fn record_removed_fields(stages: &mut [Stage]) {
    for group in stages.split_mut(|stage| stage.reshape().is_none()) {
        let records: Vec<bool> = (1..=group.len())
            .map(|count| {
                let (before, later) = group.split_at(count);
                sets_removed_field(reshapes(before), reshapes(later))
            })
            .collect();
        for (stage, records) in group.iter_mut().zip(records) {
            if let Stage::Reshape(reshape) = stage {
                *reshape = reshape.clone().recording_removed_fields(records);
            }
        }
    }
}

fn reshapes(stages: &[Stage]) -> impl Iterator<Item = &Reshape> {
    stages.iter().filter_map(Stage::reshape)
}

impl Stage {
    fn reshape(&self) -> Option<&Reshape> {
        match self {
            Stage::Reshape(reshape) => Some(reshape),
            Stage::ReplaceRoot(_) | Stage::Failing(_) => None,
        }
    }

    fn apply(
        &self,
        input: &ReshapeOutput,
        execution: &Execution<'_>,
        variables: Option<&Variables>,
    ) -> Result<ReshapeOutput, Error> {
        let document = input.document.as_document();
        let mut context = Context::new(document)
            .with_now(execution.now_millis)
            .with_collation(execution.collation);
        if let Some(variables) = variables {
            context = context.with_variables(variables);
        }
        match self {
            Stage::Reshape(reshape) => {
                reshape.apply_after(document, &input.removed_fields, &context)
            }
            Stage::ReplaceRoot(replace) => Ok(replace.apply(document, &context)?.into()),
            Stage::Failing(error) => Err(error.clone()),
        }
    }
}

/// Returns the top-level fields that the stages change, if all stages keep the other fields. Longer
/// paths would be wrong, because a computed field within an array changes all of its elements.
fn affected_fields(stages: &[Stage]) -> AffectedFields {
    let mut paths = Vec::new();
    for stage in stages {
        match stage {
            Stage::Reshape(reshape) if reshape.keeps_unnamed_fields() => {
                let changed = reshape.changed_paths();
                paths.extend(
                    changed
                        .iter()
                        .filter_map(|path| path.split('.').next().map(Path::parse)),
                );
            }
            _ => return AffectedFields::All,
        }
    }
    AffectedFields::Paths(Arc::from(paths))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_stages_is_sorted() {
        assert!(super::REFUSED.is_sorted());
    }
}
