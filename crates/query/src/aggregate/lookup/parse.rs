//! Parses the operand of `$lookup`.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, Document, ValueRef};
use windrow_mql::expression::{Variables, check_variable_definition};
use windrow_mql::filter::Environment;

use super::{Equality, Lookup, SubPipeline, condition_follows};
use crate::Error;
use crate::aggregate::documents;
use crate::aggregate::operand;
use crate::aggregate::output::refuse_within;
use crate::aggregate::stage::{NO_COLLECTION, ParsePipeline, StageKind, check_following};

fn wrong<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(9, message))
}

/// The fields of a `$lookup` before validation.
#[derive(Default)]
struct LookupFields<'a> {
    from: Option<&'a str>,
    into: Option<Path>,
    local: Option<Path>,
    foreign: Option<Path>,
    variables: Option<Document<'a>>,
    stages: Option<Array<'a>>,
}

const KNOWN: [&str; 6] = [
    "from",
    "as",
    "localField",
    "foreignField",
    "let",
    "pipeline",
];

impl<'a> LookupFields<'a> {
    /// Collects the fields. A field that is null counts as missing, except for the pipeline. Fails
    /// with 14 for values of the wrong type, with 40413 for duplicate and 40415 for unknown fields,
    /// and as paths do.
    fn parse(document: Document<'a>) -> Result<LookupFields<'a>, Error> {
        let mut fields = LookupFields::default();
        let mut seen = Vec::new();
        for (name, value) in document {
            if !KNOWN.contains(&name) {
                return Err(operand::unknown_field(format_args!("$lookup.{name}")));
            }
            if seen.contains(&name) {
                return Err(operand::duplicate_field(format_args!("$lookup.{name}")));
            }
            seen.push(name);
            fields.set(name, value)?;
        }
        Ok(fields)
    }

    fn set(&mut self, name: &str, value: ValueRef<'a>) -> Result<(), Error> {
        match (name, value) {
            ("pipeline", ValueRef::Array(array)) => self.stages = Some(array),
            ("pipeline", other) => {
                return Err(operand::wrong_type(format_args!("$lookup.{name}"), other));
            }
            (_, ValueRef::Null | ValueRef::Undefined) => {}
            ("let", ValueRef::Document(document)) => self.variables = Some(document),
            ("from", ValueRef::String(text)) => self.from = Some(text),
            ("from", ValueRef::Document(document)) => return Err(other_database_error(document)),
            ("as", ValueRef::String(text)) => self.into = Some(operand::check_path(text)?),
            // Empty strings count as missing.
            ("localField" | "foreignField", ValueRef::String("")) => {}
            ("localField", ValueRef::String(text)) => {
                self.local = Some(operand::check_path(text)?);
            }
            ("foreignField", ValueRef::String(text)) => {
                self.foreign = Some(operand::check_path(text)?);
            }
            (_, other) => return Err(operand::wrong_type(format_args!("$lookup.{name}"), other)),
        }
        Ok(())
    }
}

/// The error for a collection in another database. Errors in the document come first.
fn other_database_error(from: Document<'_>) -> Error {
    for (name, value) in from {
        match (name, value) {
            ("db" | "coll", ValueRef::String(_)) => {}
            ("db" | "coll", other) => {
                return operand::wrong_type(format_args!("$lookup.from.{name}"), other);
            }
            _ => return operand::unknown_field(format_args!("$lookup.from.{name}")),
        }
    }
    Error::new(9, "$lookup from another database is not supported")
}

/// Parses `{from, localField, foreignField, let, pipeline, as}`. Fails with 9 for invalid
/// combinations and missing fields, with 73 for a collection in addition to `$documents`, with
/// 16867 for an invalid variable, with 17313 or 40602 if an equality precedes a stage that has to
/// be the first, with 51047 for `$out` and `$merge` in the pipeline, and as [`LookupFields::parse`]
/// does.
pub fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
    parse: ParsePipeline,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return wrong("the $lookup stage specification must be an object");
    };
    check_from(document)?;
    let fields = LookupFields::parse(document)?;
    let stages = fields.stages;
    let Some(into) = fields.into else {
        return wrong("must specify 'as' field for a $lookup");
    };
    let from = match (fields.from, stages.is_some_and(documents::begins)) {
        (Some(_), true) => {
            let message = "a $lookup that begins with $documents must not have 'from'";
            return Err(Error::new(73, message));
        }
        (Some(from), false) => from.to_owned(),
        (None, _) => NO_COLLECTION.to_owned(),
    };
    let equality = match (fields.local, fields.foreign) {
        (Some(local), Some(foreign)) => Some(Equality { local, foreign }),
        (None, None) if stages.is_some() => None,
        _ => return wrong("$lookup requires both or neither of 'localField' and 'foreignField'"),
    };
    let variables = match fields.variables {
        Some(document) => parse_let(document, environment)?,
        None => Vec::new(),
    };
    if stages.is_none() && !variables.is_empty() {
        return wrong("$lookup with a 'let' argument must also specify a 'pipeline'");
    }
    let names = variables.iter().map(|(name, _)| name.as_str());
    let pipeline = match stages {
        Some(stages) => {
            let follows_filter = equality.is_some() && !condition_follows(stages);
            Some(parse_pipeline(
                stages,
                names,
                environment,
                parse,
                follows_filter,
            )?)
        }
        None => None,
    };
    Ok(vec![StageKind::from_transformation(Lookup {
        from,
        into,
        equality,
        variables,
        pipeline,
        unwind: None,
    })])
}

/// Checks `from` before the other fields. Fails with 9 if it is missing or does not name a
/// collection.
fn check_from(document: Document<'_>) -> Result<(), Error> {
    let stages = document.get("pipeline").and_then(ValueRef::as_array);
    match document.get("from") {
        Some(ValueRef::String(_) | ValueRef::Document(_)) => Ok(()),
        None | Some(ValueRef::Null | ValueRef::Undefined) => {
            if stages.is_some_and(documents::begins) {
                Ok(())
            } else {
                wrong("must specify 'from' field for a $lookup")
            }
        }
        Some(other) => wrong(format!("$lookup argument 'from: {other}' must be a string")),
    }
}

fn parse_let(
    document: Document<'_>,
    environment: &Environment,
) -> Result<Vec<(String, windrow_mql::expression::Expression)>, Error> {
    let mut variables = Vec::new();
    for (name, value) in document {
        check_variable_definition(name)?;
        variables.push((name.to_owned(), operand::expression(value, environment)?));
    }
    Ok(variables)
}

/// Parses the pipeline once, with variables that have no value, to find errors. If it uses no
/// variables, this is the pipeline for all rows. `follows_filter` is `true` if the condition of an
/// equality is put before it.
fn parse_pipeline<'n>(
    stages: Array<'_>,
    names: impl Iterator<Item = &'n str>,
    environment: &Environment,
    parse: ParsePipeline,
    follows_filter: bool,
) -> Result<SubPipeline, Error> {
    refuse_within(stages, 51047, "$lookup")?;
    let mut variables: Variables = (*environment.variables).clone();
    let mut count = 0;
    for name in names {
        variables.set(name, None);
        count += 1;
    }
    let inner = Environment {
        variables: Arc::new(variables),
        ..environment.clone()
    };
    let parsed = parse(stages, &inner)?;
    if follows_filter {
        check_following(&parsed.stages)?;
    }
    let fixed = (count == 0).then_some(parsed);
    Ok(SubPipeline {
        stages: stages.to_buf(),
        fixed,
        is_random: is_random(ValueRef::Array(stages)),
    })
}

/// Returns `true` if the value contains an operator with a random result.
pub(super) fn is_random(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Array(array) => array.iter().any(is_random),
        ValueRef::Document(document) => document.iter().any(|(name, value)| {
            matches!(name, "$sample" | "$rand" | "$sampleRate") || is_random(value)
        }),
        _ => false,
    }
}
