//! The operand of `$lookup`.

use std::sync::Arc;

use windrow_document::{Array, Document, Value, ValueRef};
use windrow_mql::expression::{Variables, check_variable_for_writing};
use windrow_mql::filter::Environment;

use super::{Equality, Lookup, SubPipeline};
use crate::Error;
use crate::aggregate::documents;
use crate::aggregate::operand;
use crate::aggregate::output::refuse_within;
use crate::aggregate::stage::{Kind, NO_COLLECTION, ParsePipeline};

fn wrong<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(9, message))
}

/// Parses `{from, localField, foreignField, let, pipeline, as}`. Errors: 9 for fields that are wrong or
/// missing, 14 for a pipeline that is none, 16410 for a wrong `as`, 16867 for a wrong variable, 51047
/// for `$out` and `$merge` within.
pub fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
    parse: ParsePipeline,
) -> Result<Vec<Kind>, Error> {
    let Some(document) = operand.as_document() else {
        return wrong("the $lookup stage specification must be an object");
    };
    let (mut from, mut into, mut local, mut foreign) = (None, None, None, None);
    let (mut variables, mut stages) = (Vec::new(), None);
    for (name, value) in document {
        match (name, value) {
            ("pipeline", ValueRef::Array(array)) => stages = Some(array),
            ("pipeline", _) => {
                return Err(Error::new(
                    14,
                    "$lookup argument 'pipeline' must be an array",
                ));
            }
            ("let", ValueRef::Document(document)) => variables = parse_let(document, environment)?,
            ("from", ValueRef::String(text)) => from = Some(text.to_owned()),
            ("as", ValueRef::String(text)) => into = Some(operand::check_path(text)?),
            ("localField", ValueRef::String(text)) => local = Some(operand::check_path(text)?),
            ("foreignField", ValueRef::String(text)) => foreign = Some(operand::check_path(text)?),
            ("let" | "from" | "as" | "localField" | "foreignField", other) => {
                return wrong(format!(
                    "$lookup argument '{name}: {other}' has the wrong type"
                ));
            }
            _ => return wrong(format!("unknown argument to $lookup: {name}")),
        }
    }
    let Some(into) = into else {
        return wrong("must specify 'as' field for a $lookup");
    };
    let without = stages.is_some_and(documents::begins);
    let Some(from) = from.or_else(|| without.then(|| NO_COLLECTION.to_owned())) else {
        return wrong("must specify 'from' field for a $lookup");
    };
    let equality = match (local, foreign) {
        (Some(local), Some(foreign)) => Some(Equality { local, foreign }),
        (None, None) if stages.is_some() => None,
        _ => return wrong("$lookup requires both or neither of 'localField' and 'foreignField'"),
    };
    if stages.is_none() && !variables.is_empty() {
        return wrong("$lookup with a 'let' argument must also specify a 'pipeline'");
    }
    let names = variables.iter().map(|(name, _)| name.as_str());
    let pipeline = match stages {
        Some(stages) => Some(parse_pipeline(stages, names, environment, parse)?),
        None => None,
    };
    Ok(vec![Kind::of(Lookup {
        from,
        into,
        equality,
        variables,
        pipeline,
        unwind: None,
    })])
}

fn parse_let(
    document: Document<'_>,
    environment: &Environment,
) -> Result<Vec<(String, windrow_mql::expression::Expression)>, Error> {
    let mut variables = Vec::new();
    for (name, value) in document {
        check_variable_for_writing(name)?;
        variables.push((name.to_owned(), operand::expression(value, environment)?));
    }
    Ok(variables)
}

/// Parses once with variables that have no value, for the errors; that is the pipeline where it uses
/// none.
fn parse_pipeline<'n>(
    stages: Array<'_>,
    names: impl Iterator<Item = &'n str>,
    environment: &Environment,
    parse: ParsePipeline,
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
    let fixed = (count == 0).then_some(parsed);
    Ok(SubPipeline {
        stages: Value::Array(stages.to_buf()),
        fixed,
    })
}
