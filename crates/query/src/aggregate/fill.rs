//! `$fill`: values for fields that are null or missing. It becomes `$setWindowFields` for values that
//! come from other rows, and `$addFields` for those that do not.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_mql::expression::Expression;
use windrow_mql::filter::Environment;
use windrow_mql::reshape::Reshape;
use windrow_mql::sort::Sort;
use windrow_mql::window::WindowFunction;

use super::densify::{fields, parse_paths};
use super::operand;
use super::stage::Kind;
use super::window_fields::WindowFields;
use crate::Error;

fn wrong(code: i32, message: impl Into<String>) -> Error {
    Error::new(code, message)
}

/// Parses `{partitionBy, partitionByFields, sortBy, output}`. Errors: 6050200 to 6050204 for what does
/// not go together, 40414 without `output`, 40415 for other fields, 14 for values of the wrong type.
pub(super) fn parse(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(wrong(
            6050200,
            "The $fill stage specification must be an object",
        ));
    };
    let names = ["partitionBy", "partitionByFields", "sortBy", "output"];
    let [by, by_fields, sort, output] = fields("$fill", document, names)?;
    if by.is_some() && by_fields.is_some() {
        let message = "Maximum one of 'partitionBy' and 'partitionByFields' can be specified";
        return Err(wrong(6050204, message));
    }
    let partition_by = match (by, by_fields) {
        (Some(by), _) => Some(parse_partition(by, environment)?),
        (None, by_fields) => of_paths(&parse_paths(by_fields)?, environment)?,
    };
    let sort = match sort {
        None => None,
        Some(ValueRef::Document(order)) => {
            Some(Sort::parse(order)?.with_collation(environment.collation.clone()))
        }
        Some(_) => return Err(wrong(14, "BSON field '$fill.sortBy' is the wrong type")),
    };
    let Some(output) = output else {
        let message = "BSON field '$fill.output' is missing but a required field";
        return Err(wrong(40414, message));
    };
    let Some(output) = output.as_document().filter(|output| !output.is_empty()) else {
        return Err(wrong(
            6050203,
            "'output' of $fill must be a non-empty object",
        ));
    };
    stages(output, partition_by, sort, environment)
}

/// Error 6050201 for what is neither a path nor an expression.
fn parse_partition(by: ValueRef<'_>, environment: &Environment) -> Result<Expression, Error> {
    match by {
        ValueRef::String(_) | ValueRef::Document(_) => operand::expression(by, environment),
        _ => Err(wrong(
            14,
            "BSON field '$fill.partitionBy' is the wrong type",
        )),
    }
}

fn of_paths(paths: &[Path], environment: &Environment) -> Result<Option<Expression>, Error> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut parts = DocumentBuf::new();
    for (number, path) in paths.iter().enumerate() {
        parts.push(&number.to_string(), format!("${path}"));
    }
    operand::expression(ValueRef::Document(parts.as_document()), environment).map(Some)
}

fn stages(
    output: Document<'_>,
    partition_by: Option<Expression>,
    sort: Option<Sort>,
    environment: &Environment,
) -> Result<Vec<Kind>, Error> {
    let (mut from_others, mut own) = (Vec::new(), DocumentBuf::new());
    for (name, how) in output {
        let field = how.as_document().filter(|how| how.count() == 1);
        match field.and_then(Document::first) {
            Some(("value", value)) => {
                let filled = [Value::from(format!("${name}")), value.to_value()];
                let filled: windrow_document::ArrayBuf = filled.into_iter().collect();
                own.push(name, doc! { "$ifNull": filled });
            }
            Some(("method", ValueRef::String(method))) => {
                let function = function(name, method, sort.as_ref(), environment)?;
                from_others.push((operand::check_path(name)?, function));
            }
            _ => {
                let message = "each output of $fill must have either 'value' or 'method'";
                return Err(wrong(6050203, message));
            }
        }
    }
    let mut kinds = Vec::new();
    if !from_others.is_empty() {
        let fields = WindowFields::of(partition_by, sort, from_others);
        kinds.push(Kind::of(fields));
    }
    if own.iter().next().is_some() {
        let own = ValueRef::Document(own.as_document());
        let reshape = Reshape::parse_add_fields(own, &operand::scope(environment))?;
        kinds.push(Kind::Reshape(reshape));
    }
    Ok(kinds)
}

fn function(
    field: &str,
    method: &str,
    sort: Option<&Sort>,
    environment: &Environment,
) -> Result<WindowFunction, Error> {
    let name = match method {
        "linear" => "$linearFill",
        "locf" => "$locf",
        _ => return Err(wrong(6050202, "Method must be either locf or linear")),
    };
    let mut specification = DocumentBuf::new();
    specification.push(name, format!("${field}"));
    let specification = ValueRef::Document(specification.as_document());
    Ok(WindowFunction::parse(
        specification,
        sort,
        &operand::scope(environment),
    )?)
}
