//! `$bucket`: a group by the boundaries that a value lies between, then a sort.

use windrow_document::{Array, Value, ValueRef, doc};
use windrow_mql::expression::{Computed, Context, Expression};
use windrow_mql::filter::Environment;
use windrow_mql::sort::Sort;

use super::group::{self, Group, GroupId};
use super::stage::{self, Kind};
use crate::Error;

/// Where values go: into the last boundary that is not above them.
#[derive(Clone, Debug)]
pub struct Boundaries {
    pub group_by: Expression,
    boundaries: Vec<Value>,
    default: Option<Value>,
}

impl Boundaries {
    /// The boundary below the value. 40066 for a value outside where there is no default.
    pub fn place<'a>(&'a self, context: &Context<'a>) -> Result<Computed<'a>, Error> {
        let value = self.group_by.evaluate(context)?;
        let value = value.or_null();
        let below = self
            .boundaries
            .partition_point(|one| one.as_ref().compare(value).is_le());
        let found = below
            .checked_sub(1)
            .filter(|_| below < self.boundaries.len());
        let boundary = found
            .and_then(|place| self.boundaries.get(place))
            .or(self.default.as_ref());
        let boundary = boundary.ok_or_else(|| {
            Error::new(
                40066,
                "$switch could not find a matching branch for an input, and no default was specified.",
            )
        })?;
        Ok(Computed::Borrowed(boundary.as_ref()))
    }
}

/// Parses `{groupBy, boundaries, default, output}`. Errors 40191 to 40202, one for every rule.
pub(super) fn parse(operand: ValueRef<'_>, environment: &Environment) -> Result<Vec<Kind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            40201,
            "Argument to $bucket stage must be an object",
        ));
    };
    let (mut group_by, mut boundaries, mut default, mut fields) = (None, None, None, None);
    for (name, value) in document {
        match name {
            "groupBy" if !stage::is_expression(value) => {
                return Err(Error::new(
                    40202,
                    format!(
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {value}"
                    ),
                ));
            }
            "groupBy" => group_by = Some(stage::expression(value, environment)?),
            "boundaries" => boundaries = Some(parse_boundaries(value, environment)?),
            "default" => default = Some(constant(value, environment, 40195)?),
            "output" => match value.as_document() {
                Some(output) => fields = Some(group::output_fields(output, environment)?),
                None => {
                    return Err(Error::new(
                        40196,
                        "The $bucket 'output' field must be an object",
                    ));
                }
            },
            other => {
                return Err(Error::new(
                    40197,
                    format!("Unrecognized option to $bucket: {other}."),
                ));
            }
        }
    }
    let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
        let message = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(Error::new(40198, message));
    };
    check_default(&boundaries, default.as_ref())?;
    let fields = fields.map_or_else(
        || Ok(vec![group::count_field(environment)?]),
        Ok::<_, Error>,
    )?;
    let id = GroupId::Bucket(Boundaries {
        group_by,
        boundaries,
        default,
    });
    let order = Sort::parse(doc! { "_id": 1 }.as_document())?;
    Ok(vec![
        Kind::Group(Group { id, fields }),
        Kind::Sort(order, None),
    ])
}

fn constant(value: ValueRef<'_>, environment: &Environment, code: i32) -> Result<Value, Error> {
    let expression = stage::expression(value, environment)?;
    expression.constant().cloned().ok_or_else(|| {
        Error::new(
            code,
            format!("The $bucket bounds and default must be constant values, but found: {value}"),
        )
    })
}

fn parse_boundaries(value: ValueRef<'_>, environment: &Environment) -> Result<Vec<Value>, Error> {
    let Some(array): Option<Array<'_>> = value.as_array() else {
        return Err(Error::new(
            40200,
            "The $bucket 'boundaries' field must be an array",
        ));
    };
    let values: Vec<Value> = array
        .iter()
        .map(|one| constant(one, environment, 40191))
        .collect::<Result<_, _>>()?;
    if values.len() < 2 {
        return Err(Error::new(
            40192,
            "The $bucket 'boundaries' field must have at least 2 values",
        ));
    }
    for (low, high) in values.iter().zip(values.iter().skip(1)) {
        if low.type_of().rank() != high.type_of().rank() {
            let message =
                "All values in the 'boundaries' option to $bucket must have the same type.";
            return Err(Error::new(40193, message));
        }
        if low.as_ref().compare(high.as_ref()).is_ge() {
            let message =
                "The 'boundaries' option to $bucket must be sorted, but elements are not.";
            return Err(Error::new(40194, message));
        }
    }
    Ok(values)
}

/// A default must lie outside of the boundaries.
fn check_default(boundaries: &[Value], default: Option<&Value>) -> Result<(), Error> {
    let (Some(default), Some(first), Some(last)) = (default, boundaries.first(), boundaries.last())
    else {
        return Ok(());
    };
    let inside = first.as_ref().compare(default.as_ref()).is_le()
        && default.as_ref().compare(last.as_ref()).is_lt();
    match inside {
        true => Err(Error::new(
            40199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or \
             equal to the highest boundary.",
        )),
        false => Ok(()),
    }
}
