//! Parses pipelines: the table of stages.

use std::sync::Arc;

use windrow_document::{Array, Document, ValueRef};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::reshape::{Redact, ReplaceRoot, Reshape};
use windrow_mql::sort::Sort;

use super::geo_near::GeoNear;
use super::operand::{fits, scope, whole};
use super::output;
use super::stage::{
    NESTED_MAX, Pipeline, ScoreMetadata, Stage, StageKind, first_stage_name, not_first,
    text_is_late, too_nested,
};
use super::unwind::Unwind;
use super::{
    bucket, bucket_auto, densify, documents, facet, fill, graph_lookup, group_stage, lookup,
    query_pushdown, rank_fusion, sample, search, statistics, union, window_fields,
};
use crate::Error;

/// MongoDB's code NotImplemented.
const NOT_IMPLEMENTED: i32 = 238;
/// The largest number of stages of a pipeline.
const STAGES_MAX: usize = 1000;

/// Parses the operand of a stage. The result is usually one stage; `$bucket` and `$sortByCount`
/// become two.
type Parse = fn(ValueRef<'_>, &Environment) -> Result<Vec<StageKind>, Error>;

/// Returns the parser of the stage with this name. The stages are in alphabetical order.
fn find(name: &str) -> Option<Parse> {
    Some(match name {
        "$addFields" | "$set" => add_fields,
        "$bucket" => bucket::parse,
        "$bucketAuto" => bucket_auto::parse,
        "$collStats" => |operand, _| {
            Ok(vec![StageKind::Statistics(
                statistics::parse_collection_statistics(operand)?,
            )])
        },
        "$count" => count,
        "$densify" => densify::parse,
        "$documents" => documents::parse,
        "$facet" => {
            |operand, environment| facet::parse(operand, environment, Pipeline::parse_inner)
        }
        "$fill" => fill::parse,
        "$geoNear" => geo_near,
        "$graphLookup" => graph_lookup::parse,
        "$group" => group_stage::parse,
        "$indexStats" => |operand, _| {
            Ok(vec![StageKind::Statistics(
                statistics::parse_index_statistics(operand)?,
            )])
        },
        "$limit" => limit,
        "$listSearchIndexes" => |operand, _| {
            Ok(vec![StageKind::Statistics(
                statistics::parse_search_indexes(operand)?,
            )])
        },
        "$lookup" => |operand, environment| lookup::parse(operand, environment, Pipeline::parse),
        "$match" => parse_match,
        "$planCacheStats" => |operand, _| {
            Ok(vec![StageKind::Statistics(
                statistics::parse_plan_statistics(operand)?,
            )])
        },
        "$project" => project,
        "$rankFusion" => |operand, environment| {
            let pipelines = rank_fusion::PipelineParser {
                check_forms: Pipeline::check_forms,
                parse: Pipeline::parse,
            };
            rank_fusion::parse(operand, environment, pipelines)
        },
        "$redact" => redact,
        "$replaceRoot" => replace_root,
        "$replaceWith" => replace_with,
        "$sample" => sample::parse,
        "$search" => |operand, environment| {
            search::parse(search::SearchOutput::Documents, operand, environment)
        },
        "$searchMeta" => {
            |operand, environment| search::parse(search::SearchOutput::Meta, operand, environment)
        }
        "$setWindowFields" => window_fields::parse,
        "$skip" => skip,
        "$sort" => sort,
        "$sortByCount" => group_stage::parse_sort_by_count,
        "$unionWith" => |operand, environment| union::parse(operand, environment, Pipeline::parse),
        "$unset" => unset,
        "$unwind" => unwind,
        _ => return None,
    })
}

/// Stages that are not parsed here: stages that Windrow does not support, and stages whose rows the
/// server produces if a pipeline begins with them.
const NOT_SUPPORTED: [&str; 11] = [
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$currentOp",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSessions",
    "$queryStats",
    "$querySettings",
    "$score",
    "$scoreFusion",
];

/// The stages among them that fail here because they are only allowed elsewhere, with MongoDB's
/// codes.
const REFUSED: [(&str, i32, &str); 6] = [
    (
        "$changeStreamSplitLargeEvent",
        20,
        "is only allowed directly after $changeStream",
    ),
    ("$currentOp", 73, OF_NO_COLLECTION),
    ("$listClusterCatalog", 9_621_301, OF_NO_COLLECTION),
    ("$listLocalSessions", 73, OF_NO_COLLECTION),
    ("$listSessions", 73, OF_NO_COLLECTION),
    ("$querySettings", 73, OF_NO_COLLECTION),
];
const OF_NO_COLLECTION: &str = "must be run against the database with {aggregate: 1}";

/// Stages that use another service. MongoDB without that service refuses them with 31082.
const SEARCH_SERVICE_STAGES: [&str; 1] = ["$vectorSearch"];

const SEARCH_NOT_ENABLED: i32 = 31_082;

/// Stages that produce rows and therefore must be the first of a pipeline.
const FIRST: [&str; 14] = [
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$documents",
    "$geoNear",
    "$indexStats",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$querySettings",
    "$search",
    "$searchMeta",
];

impl Pipeline {
    /// Parses the stages. `environment` contains the variables of `let` and the time of the
    /// command. Fails with 40324 for unknown stages, with 238 for stages that are not supported,
    /// with 40323 for stages with several fields, with 14 for stages that are not documents, with
    /// 232 for more than 20 nested pipelines, with 17313 for `$text` after the first stage, with
    /// 40218 for a text score without `$text`, and as the stages do.
    pub fn parse(stages: Array<'_>, environment: &Environment) -> Result<Pipeline, Error> {
        Pipeline::parse_from(stages, environment, 0)
    }

    /// Parses the stages after a first one that the caller runs.
    pub fn parse_after_first(
        stages: Array<'_>,
        environment: &Environment,
    ) -> Result<Pipeline, Error> {
        Pipeline::parse_from(stages, environment, 1)
    }

    fn parse_from(
        stages: Array<'_>,
        environment: &Environment,
        position: usize,
    ) -> Result<Pipeline, Error> {
        if nesting(stages) > NESTED_MAX {
            return Err(too_nested());
        }
        let pipeline = Pipeline::parse_at(stages, environment, position)?;
        check_scores(&pipeline.stages)?;
        Ok(pipeline)
    }

    /// Returns `true` if there is a stage with this name, whether or not it is supported.
    pub fn has_stage(name: &str) -> bool {
        is_known(name) || SEARCH_SERVICE_STAGES.contains(&name)
    }

    /// Parses a nested pipeline. Its text scores are checked with the outer pipeline.
    pub(crate) fn parse_inner(
        stages: Array<'_>,
        environment: &Environment,
    ) -> Result<Pipeline, Error> {
        Pipeline::parse_at(stages, environment, 0)
    }

    /// Checks the stages independently of their source: their names, and the pipelines in `$facet`
    /// and `$unionWith`. These errors come before all others. Fails for the first stage that is
    /// invalid.
    pub fn check_forms(stages: Array<'_>) -> Result<(), Error> {
        if stages.iter().any(|stage| stage.as_document().is_none()) {
            return Err(no_object());
        }
        stages.iter().try_for_each(check_form)
    }

    /// Fails with 40600 if a `$facet` contains a stage that is not allowed. This check comes before
    /// that of the collection's name.
    pub fn check_facets(stages: Array<'_>) -> Result<(), Error> {
        let named = stages
            .iter()
            .filter_map(|stage| stage.as_document()?.first());
        let mut facets = named.filter(|(name, _)| *name == "$facet");
        facets.try_for_each(|(_, operand)| facet::check_allowed(&facet::pipelines(operand)?))
    }

    /// Parses a pipeline. `position` is that of the first of `stages` in the whole pipeline.
    fn parse_at(
        stages: Array<'_>,
        environment: &Environment,
        position: usize,
    ) -> Result<Pipeline, Error> {
        Pipeline::check_forms(stages)?;
        let environment = &within_search(stages, environment, position);
        let (others, output) = output::split(stages, environment)?;
        let parsed = parse_all(others.as_array(), environment, position);
        if parsed.as_ref().err().is_none_or(Error::is_constant_error) {
            output::check_last(stages)?;
        }
        Ok(Pipeline {
            stages: query_pushdown::reorder(parsed?, environment)?,
            output,
            environment: environment.clone(),
        })
    }
}

/// Returns the environment of a pipeline. A pipeline that begins with `$search` has a variable for
/// its metadata.
fn within_search(stages: Array<'_>, environment: &Environment, position: usize) -> Environment {
    let mut environment = environment.clone();
    if position == 0 && first_stage_name(stages) == Some("$search") {
        environment.variables = Arc::new(environment.variables.with_search());
    }
    environment
}

/// Returns the largest depth of nested pipelines.
fn nesting(stages: Array<'_>) -> usize {
    let operands = stages
        .iter()
        .filter_map(ValueRef::as_document)
        .filter_map(Document::first);
    let within = operands.filter_map(|(name, operand)| {
        let operand = operand.as_document()?;
        match name {
            "$lookup" | "$unionWith" => Some(1 + nesting(operand.get("pipeline")?.as_array()?)),
            "$facet" => operand
                .iter()
                .filter_map(|(_, inner)| inner.as_array())
                .map(nesting)
                .max(),
            _ => None,
        }
    });
    within.max().unwrap_or(0)
}

/// Parses the stages and checks their positions. Fails with 7749501 for more than 1,000 stages. An
/// error in the evaluation of a constant is reported only if there is no other error.
fn parse_all(
    stages: Array<'_>,
    environment: &Environment,
    position: usize,
) -> Result<Vec<Stage>, Error> {
    if stages.iter().count() > STAGES_MAX {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
        return Err(Error::new(7749501, message));
    }
    let mut parsed = Vec::new();
    let mut constant_error = None;
    for (number, stage) in (position..).zip(stages.iter()) {
        let document = stage.as_document().ok_or_else(no_object)?;
        check_position(number, document)?;
        let one = match parse_stage(document, environment) {
            Err(error) if error.is_constant_error() => {
                constant_error.get_or_insert(error);
                continue;
            }
            one => one?,
        };
        if number > 0 && one.iter().any(|stage| stage.has_text()) {
            return Err(text_is_late());
        }
        parsed.extend(one);
    }
    constant_error.map_or(Ok(parsed), Err)
}

fn no_object() -> Error {
    let message = "Each element of the 'pipeline' array must be an object";
    Error::new(14, message)
}

/// Checks a stage and the stages of nested pipelines.
fn check_form(stage: ValueRef<'_>) -> Result<(), Error> {
    check_name(stage)?;
    match stage.as_document().and_then(Document::first) {
        Some(("$facet", operand)) => facet::pipelines(operand)?
            .into_iter()
            .try_for_each(|(_, stages)| Pipeline::check_forms(stages)),
        Some(("$unionWith", operand)) => Pipeline::check_forms(union::operands(operand)?.stages),
        _ => Ok(()),
    }
}

/// Fails with 14, 40323 or 40324 if the name is invalid.
fn check_name(stage: ValueRef<'_>) -> Result<(), Error> {
    let document = stage.as_document().ok_or_else(no_object)?;
    let Some((name, _)) = document.first().filter(|_| document.count() == 1) else {
        return Err(not_one_field());
    };
    if is_known(name) || SEARCH_SERVICE_STAGES.contains(&name) {
        Ok(())
    } else {
        Err(unknown(name))
    }
}

fn not_one_field() -> Error {
    let message = "A pipeline stage specification object must contain exactly one field.";
    Error::new(40323, message)
}

fn unknown(name: &str) -> Error {
    Error::new(40324, format!("Unrecognized pipeline stage name: '{name}'"))
}

/// Fails with 40602 for a stage that produces rows and is not the first.
fn check_position(number: usize, stage: Document<'_>) -> Result<(), Error> {
    match stage.first() {
        Some((name, _))
            if number > 0 && [rank_fusion::NAME, rank_fusion::SCORE_FUSION].contains(&name) =>
        {
            let message = format!("{name} is only valid as the first stage in a pipeline");
            Err(Error::new(rank_fusion::NOT_FIRST, message))
        }
        Some((name, _)) if number > 0 && FIRST.contains(&name) => Err(not_first(name)),
        _ => Ok(()),
    }
}

/// Returns `true` if MongoDB has a stage with this name.
pub(super) fn is_known(name: &str) -> bool {
    find(name).is_some() || NOT_SUPPORTED.contains(&name) || output::writes(name)
}

/// Parses a stage. Some stages become two.
pub(super) fn parse_stage(
    document: Document<'_>,
    environment: &Environment,
) -> Result<Vec<Stage>, Error> {
    let Some((name, operand)) = document.first().filter(|_| document.count() == 1) else {
        return Err(not_one_field());
    };
    let Some(parse) = find(name) else {
        if NOT_SUPPORTED.contains(&name) {
            return Err(not_here(name));
        }
        if SEARCH_SERVICE_STAGES.contains(&name) {
            let message = format!(
                "Using Atlas Search, as {name} does, requires additional configuration, which Windrow does not have"
            );
            return Err(Error::new(SEARCH_NOT_ENABLED, message));
        }
        return Err(unknown(name));
    };
    let kinds = parse(operand, environment)?;
    let single = kinds.len() == 1;
    let stage = |kind: StageKind| Stage {
        source: if single {
            document.to_buf()
        } else {
            kind.print(name, operand)
        },
        kind,
    };
    Ok(kinds.into_iter().map(stage).collect())
}

/// The error for a stage that is not parsed here.
fn not_here(name: &str) -> Error {
    match REFUSED.iter().find(|(known, ..)| *known == name) {
        Some((_, code, why)) => Error::new(*code, format!("{name} {why}")),
        None => Error::new(NOT_IMPLEMENTED, format!("{name} is not supported yet")),
    }
}

/// Checks that metadata are available. A text score requires a `$match` with `$text` before, and is
/// not available to filters. A distance requires a `$geoNear` before, and a score or its details a
/// stage that computes them. Fails with 40218 otherwise.
pub(super) fn check_scores(stages: &[Stage]) -> Result<(), Error> {
    let first = stages.first();
    let has_text = first.is_some_and(Stage::has_text);
    let scores = first.and_then(Stage::scores);
    let is_measured = first.is_some_and(Stage::is_geo_near);
    let missing = |what: &str| {
        let message = format!("query requires {what} metadata, but it is not available");
        Err(Error::new(40218, message))
    };
    for stage in stages {
        let read = stage.kind.dependencies();
        let is_filter = matches!(stage.kind, StageKind::Match(_));
        if read.nearest && !is_measured {
            return missing("$geoNear distance");
        }
        if read.text_score && (is_filter || !has_text) {
            return missing("text score");
        }
        // A filter may become part of the query that finds the rows.
        if is_filter && read.needs_origin() {
            return missing("index key, record id or sort key");
        }
        if (read.score || read.search) && !has_text && scores.is_none() {
            return missing("score");
        }
        if read.score_details && scores != Some(ScoreMetadata::WithDetails) {
            return missing("score details");
        }
    }
    Ok(())
}

fn geo_near(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let parsed = GeoNear::parse(operand, environment)?;
    Ok(vec![StageKind::GeoNear(Arc::new(parsed))])
}

fn add_fields(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let reshape = Reshape::parse_add_fields(operand, &scope(environment))?;
    Ok(vec![StageKind::Reshape(reshape)])
}

fn project(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let reshape = Reshape::parse_project(operand, &scope(environment))?;
    Ok(vec![StageKind::Reshape(reshape)])
}

fn unset(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<StageKind>, Error> {
    Ok(vec![StageKind::Reshape(Reshape::parse_unset(operand)?)])
}

fn replace_root(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let replace = ReplaceRoot::parse_replace_root(operand, &scope(environment))?;
    Ok(vec![StageKind::ReplaceRoot(replace)])
}

fn replace_with(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let replace = ReplaceRoot::parse_replace_with(operand, &scope(environment))?;
    Ok(vec![StageKind::ReplaceRoot(replace)])
}

fn redact(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    Ok(vec![StageKind::Redact(Redact::parse(
        operand,
        &environment.variables,
    )?)])
}

fn parse_match(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            15959,
            "the match filter must be an expression in an object",
        ));
    };
    let filter = Filter::parse_with(document, environment)?.without_near()?;
    Ok(vec![StageKind::Match(filter)])
}

fn sort(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            15973,
            "the $sort key specification must be an object",
        ));
    };
    if document.is_empty() {
        return Err(Error::new(
            15976,
            "$sort stage must have at least one sort key",
        ));
    }
    let sort = Sort::parse(document)?.with_collation(environment.collation.clone());
    if sort.pattern().is_empty() {
        return Err(Error::new(
            15973,
            "$natural sort cannot be set in a pipeline",
        ));
    }
    Ok(vec![StageKind::sort(sort)])
}

fn limit(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<StageKind>, Error> {
    if !operand.is_number() {
        return Err(Error::new(15957, "the limit must be specified as a number"));
    }
    if !fits(operand) {
        return Err(Error::new(5_107_201, "the limit must fit 64 bits"));
    }
    match whole(operand) {
        amount if amount > 0 => Ok(vec![StageKind::Limit(amount as u64)]),
        _ => Err(Error::new(15958, "the limit must be positive")),
    }
}

fn skip(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<StageKind>, Error> {
    if !operand.is_number() {
        return Err(Error::new(15972, "Argument to $skip must be a number"));
    }
    if !fits(operand) {
        return Err(Error::new(5_107_200, "Argument to $skip must fit 64 bits"));
    }
    match whole(operand) {
        amount if amount >= 0 => Ok(vec![StageKind::Skip(amount as u64)]),
        _ => Err(Error::new(15956, "Argument to $skip cannot be negative")),
    }
}

/// Parses `{$count: "name"}`. Fails with 40156 to 40160 or 9039800 for invalid names.
fn count(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<StageKind>, Error> {
    let ValueRef::String(name) = operand else {
        return Err(Error::new(
            40156,
            "the count field must be a non-empty string",
        ));
    };
    let wrong = |code, message: &str| Err(Error::new(code, message.to_owned()));
    match name {
        "" => wrong(40157, "the count field must be a non-empty string"),
        "_id" => wrong(9_039_800, "the count field cannot be '_id'"),
        _ if name.starts_with('$') => wrong(40158, "the count field cannot be a $-prefixed path"),
        _ if name.contains('\0') => wrong(40159, "the count field cannot contain a null byte"),
        _ if name.contains('.') => wrong(40160, "the count field cannot contain '.'"),
        _ => Ok(vec![StageKind::Count(name.to_owned())]),
    }
}

fn unwind(operand: ValueRef<'_>, _: &Environment) -> Result<Vec<StageKind>, Error> {
    Ok(vec![StageKind::Unwind(Unwind::parse(operand)?)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, array, doc};

    #[test]
    fn pipelines_nest_to_a_limit() {
        let check = |depth: usize, name: &str, expected: Option<i32>| {
            let mut stages = array![{ "$match": {} }];
            for _ in 0..depth {
                let mut stage = doc! {};
                let operand = match name {
                    "$lookup" => doc! { "from": "c", "as": "r", "pipeline": stages },
                    _ => doc! { "coll": "c", "pipeline": stages },
                };
                stage.push(name, operand);
                stages = [Value::Document(stage)].into_iter().collect();
            }
            let parsed = Pipeline::parse(stages.as_array(), &Environment::default());
            assert_eq!(
                parsed.err().and_then(|error| error.code()),
                expected,
                "{depth} {name}"
            );
        };
        check(20, "$lookup", None);
        check(21, "$lookup", Some(232));
        check(20, "$unionWith", None);
        check(21, "$unionWith", Some(232));
    }
}
