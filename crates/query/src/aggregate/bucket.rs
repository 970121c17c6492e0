//! `$bucket`: a `$group` by buckets, then a sort.

use windrow_document::{Array, Collation, Value, ValueRef, collation, doc};
use windrow_mql::expression::Expression;
use windrow_mql::filter::Environment;
use windrow_mql::sort::Sort;

use super::boundaries::Boundaries;
use super::group::{self, Group, GroupId};
use super::operand;
use super::stage::StageKind;
use crate::Error;

/// Parses `{groupBy, boundaries, default, output}`. Fails with 40191 to 40202, one code for each
/// rule.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        return Err(Error::new(
            40201,
            "Argument to $bucket stage must be an object",
        ));
    };
    let (mut group_by, mut boundaries, mut default, mut fields) = (None, None, None, None);
    for (name, value) in document {
        match name {
            "groupBy" if !operand::is_expression(value) => {
                return Err(Error::new(
                    40202,
                    format!(
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {value}"
                    ),
                ));
            }
            "groupBy" => group_by = Some(operand::expression(value, environment)?),
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
    let collation = environment.collation.as_deref();
    check_default(&boundaries, default.as_ref(), collation)?;
    let fields = fields.map_or_else(
        || Ok(vec![group::count_field(environment)?]),
        Ok::<_, Error>,
    )?;
    let id = GroupId::Bucket(Boundaries {
        group_by,
        boundaries,
        default,
    });
    let order =
        Sort::parse(doc! { "_id": 1 }.as_document())?.with_collation(environment.collation.clone());
    Ok(vec![
        StageKind::from_transformation(Group { id, fields }),
        StageKind::sort(order),
    ])
}

fn constant(value: ValueRef<'_>, environment: &Environment, code: i32) -> Result<Value, Error> {
    let scope = operand::scope(environment);
    let constant = Expression::parse(value, &scope)?.to_constant(&scope)?;
    constant.ok_or_else(|| {
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
        let collation = environment.collation.as_deref();
        if collation::compare(collation, low.as_ref(), high.as_ref()).is_ge() {
            let message =
                "The 'boundaries' option to $bucket must be sorted, but elements are not.";
            return Err(Error::new(40194, message));
        }
    }
    Ok(values)
}

/// The default must be outside of the boundaries.
fn check_default(
    boundaries: &[Value],
    default: Option<&Value>,
    collation: Option<&Collation>,
) -> Result<(), Error> {
    let (Some(default), Some(first), Some(last)) = (default, boundaries.first(), boundaries.last())
    else {
        return Ok(());
    };
    let against = |end: &Value| collation::compare(collation, default.as_ref(), end.as_ref());
    let inside = against(first).is_ge() && against(last).is_lt();
    if inside {
        Err(Error::new(
            40199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or \
             equal to the highest boundary.",
        ))
    } else {
        Ok(())
    }
}
