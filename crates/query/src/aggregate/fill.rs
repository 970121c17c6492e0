//! `$fill`: values for fields that are null or missing. It becomes `$setWindowFields` for values
//! from other rows, and `$addFields` for other values.

use windrow_document::path::Path;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_mql::expression::Expression;
use windrow_mql::filter::Environment;
use windrow_mql::reshape::Reshape;
use windrow_mql::sort::Sort;
use windrow_mql::window::WindowFunction;

use super::densify::{list, parse_paths};
use super::operand;
use super::stage::StageKind;
use super::window_fields::{WindowField, WindowFields, check_conflicts};
use crate::Error;

/// Parses `{partitionBy, partitionByFields, sortBy, output}`. Fails with 9 if the operand is not a
/// document, with 6050200 to 6050204 for invalid combinations, with 40414 without `output`, with
/// 40415 for unknown fields, with 14 for values of the wrong type, and as window functions do.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        let found = operand.type_of().name();
        let message = format!("The $fill stage specification must be an object, found {found}");
        return Err(Error::new(9, message));
    };
    let names = ["partitionBy", "partitionByFields", "sortBy", "output"];
    let [by, by_fields, sort, output] = operand::fields("$fill", document, names)?;
    if let Some(other) = by
        && !matches!(other, ValueRef::String(_) | ValueRef::Document(_))
    {
        return Err(operand::wrong_type("$fill.partitionBy", other));
    }
    let output = output.ok_or_else(|| operand::missing_field("$fill.output"))?;
    let wrong_type = || operand::wrong_type("$fill.output", output);
    let output = output.as_document().ok_or_else(wrong_type)?;
    let order = match sort {
        None => None,
        Some(ValueRef::Document(order)) => Some(order),
        Some(other) => return Err(operand::wrong_type("$fill.sortBy", other)),
    };
    if output.is_empty() {
        let message = "'output' of $fill must contain an object with at least one element";
        return Err(Error::new(6050203, message));
    }
    let output = parse_output(output)?;
    if by.is_some() && by_fields.is_some() {
        let message = "Maximum one of 'partitionBy' and 'partitionByFields' can be specified";
        return Err(Error::new(6050204, message));
    }
    let partition_by = match (by, by_fields) {
        (Some(by), _) => Some(operand::expression(by, environment)?),
        (None, by_fields) => {
            let paths = list("$fill.partitionByFields", by_fields)?;
            paths_expression(&parse_paths(paths)?, environment)?
        }
    };
    let collated = |sort: Sort| sort.with_collation(environment.collation.clone());
    let sort = order.map(Sort::parse).transpose()?.map(collated);
    stages(&output, partition_by, sort, environment)
}

/// How a field is filled.
enum FillMethod<'v> {
    /// From other rows, by the window function with this name.
    Method(&'static str),
    /// With the value of this expression.
    Value(ValueRef<'v>),
}

/// Fails with 6050200 if a field is not a document, with 6050201 if it has both or neither of
/// `method` and `value`, with 6050202 for an unknown method.
fn parse_output(output: Document<'_>) -> Result<Vec<(&str, FillMethod<'_>)>, Error> {
    let mut parsed = Vec::new();
    for (name, how) in output {
        let Some(how) = how.as_document() else {
            let message = "Each fill output specification must be an object";
            return Err(Error::new(6050200, message));
        };
        let how = match operand::fields("$fill", how, ["method", "value"])? {
            [None, Some(value)] => FillMethod::Value(value),
            [Some(ValueRef::String(method)), None] => FillMethod::Method(match method {
                "linear" => "$linearFill",
                "locf" => "$locf",
                _ => return Err(Error::new(6050202, "Method must be either locf or linear")),
            }),
            [Some(ValueRef::String(_)), Some(_)] | [None, None] => {
                let message = "Each fill output specification must have exactly one of 'method' \
                               or 'value' fields";
                return Err(Error::new(6050201, message));
            }
            [Some(other), _] => return Err(operand::wrong_type("$fill.method", other)),
        };
        parsed.push((name, how));
    }
    Ok(parsed)
}

fn paths_expression(
    paths: &[Path],
    environment: &Environment,
) -> Result<Option<Expression>, Error> {
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
    output: &[(&str, FillMethod<'_>)],
    partition_by: Option<Expression>,
    sort: Option<Sort>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let (mut from_others, mut own) = (Vec::new(), DocumentBuf::new());
    for (name, how) in output {
        match how {
            FillMethod::Value(value) => {
                let filled = [Value::from(format!("${name}")), value.to_value()];
                let filled: ArrayBuf = filled.into_iter().collect();
                own.push(name, doc! { "$ifNull": filled });
            }
            FillMethod::Method(function) => {
                check_conflicts(&from_others, name)?;
                let function = parse_function(name, function, sort.as_ref(), environment)?;
                from_others.push(WindowField {
                    path: operand::check_path(name)?,
                    function,
                });
            }
        }
    }
    let mut kinds = Vec::new();
    if !from_others.is_empty() {
        let fields = WindowFields::new(partition_by, sort, from_others)?;
        kinds.push(StageKind::from_transformation(fields));
    }
    if own.iter().next().is_some() {
        let own = ValueRef::Document(own.as_document());
        let reshape = Reshape::parse_add_fields(own, &operand::scope(environment))?;
        kinds.push(StageKind::Reshape(reshape));
    }
    Ok(kinds)
}

fn parse_function(
    field: &str,
    name: &str,
    sort: Option<&Sort>,
    environment: &Environment,
) -> Result<WindowFunction, Error> {
    let mut specification = DocumentBuf::new();
    specification.push(name, format!("${field}"));
    let specification = ValueRef::Document(specification.as_document());
    Ok(WindowFunction::parse(
        specification,
        sort,
        &operand::scope(environment),
    )?)
}
