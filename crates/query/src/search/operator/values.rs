//! Parses the operators that compare values: `range`, `equals`, `in`, `near`.

use windrow_document::{Value, ValueRef};
use windrow_geo::SearchOrigin;
use windrow_index::search::is_uuid;

use super::{NearOrigin, OperatorKind, RangeEnd};
use crate::Error;
use crate::search::options::{Options, bad, optional_number};

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

pub(super) fn range(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "gt", "gte", "lt", "lte", "score"])?;
    let limit = |exclusive: &str, inclusive: &str| {
        let value = |name: &str| options.get(name);
        match (value(exclusive), value(inclusive)) {
            (Some(_), Some(_)) => Err(bad(format!(
                "\"range\" has both \"{exclusive}\" and \"{inclusive}\""
            ))),
            (Some(value), None) => Ok(Some((value, false))),
            (None, Some(value)) => Ok(Some((value, true))),
            (None, None) => Ok(None),
        }
    };
    let (lower, upper) = (limit("gt", "gte")?, limit("lt", "lte")?);
    let has_order = |value: ValueRef<'_>| {
        let has_type = matches!(
            value,
            ValueRef::DateTime(_) | ValueRef::String(_) | ValueRef::ObjectId(_) | ValueRef::Bool(_)
        );
        has_type || value.is_number() || is_uuid(value)
    };
    let values: Vec<ValueRef<'_>> = lower.iter().chain(&upper).map(|limit| limit.0).collect();
    let are_alike = match values.as_slice() {
        [] => {
            return Err(bad(
                "\"range\" needs \"gt\", \"gte\", \"lt\" or \"lte\"".to_owned()
            ));
        }
        [one, other] => one.is_number() && other.is_number() || one.type_of() == other.type_of(),
        _ => true,
    };
    if values.iter().any(|value| is_nan(*value)) {
        return Err(bad("a limit of \"range\" must not be NaN".to_owned()));
    }
    if !are_alike || !values.iter().all(|value| has_order(*value)) {
        let message = "the limits of \"range\" must be numbers, dates, strings, objectIds, UUIDs or booleans, \
                       both of one type";
        return Err(bad(message.to_owned()));
    }
    let made = |limit: Option<(ValueRef<'_>, bool)>| {
        limit.map(|(value, is_included)| RangeEnd {
            value: value.to_value(),
            is_included,
        })
    };
    Ok(OperatorKind::Range {
        paths: options.paths()?,
        lower: made(lower),
        upper: made(upper),
    })
}

/// Checks that a value is of a type that can be searched for.
fn check_value(name: &str, value: ValueRef<'_>) -> Result<Value, Error> {
    let can_be = value.is_number()
        || matches!(
            value,
            ValueRef::Bool(_)
                | ValueRef::ObjectId(_)
                | ValueRef::DateTime(_)
                | ValueRef::String(_)
                | ValueRef::Null
        )
        || matches!(value, ValueRef::Binary { .. });
    if can_be {
        Ok(value.to_value())
    } else {
        Err(bad(format!(
            "\"{name}.value\" must be a boolean, objectId, number, date, string, UUID or null"
        )))
    }
}

pub(super) fn equals(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "value", "score"])?;
    let value = options.required("value")?;
    Ok(OperatorKind::In {
        paths: options.paths()?,
        values: vec![check_value("equals", value)?],
    })
}

pub(super) fn within(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "value", "score"])?;
    let values = match options.required("value")? {
        ValueRef::Array(values) => values.iter().map(|it| check_value("in", it)).collect(),
        value => check_value("in", value).map(|value| vec![value]),
    };
    let values: Vec<Value> = values?;
    if values.is_empty() {
        return Err(bad("\"in.value\" must not be empty".to_owned()));
    }
    Ok(OperatorKind::In {
        paths: options.paths()?,
        values,
    })
}

/// Parses `near`: the nearer a value is to the origin, the higher is the score.
pub(super) fn near(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "origin", "pivot", "score"])?;
    let origin = match options.required("origin")? {
        point @ ValueRef::Document(_) => {
            let point = SearchOrigin::parse(point);
            NearOrigin::Point(point.map_err(|error| bad(format!("\"near\": {error}")))?)
        }
        date @ ValueRef::DateTime(_) => NearOrigin::Value(date.to_value()),
        number if number.as_f64().is_some_and(f64::is_finite) => {
            NearOrigin::Value(number.to_value())
        }
        _ => {
            let message = "\"near.origin\" must be a finite number, a date or a GeoJSON point";
            return Err(bad(message.to_owned()));
        }
    };
    let pivot = optional_number(options, "pivot")?;
    let pivot = pivot.filter(|pivot| pivot.is_finite() && *pivot > 0.0);
    let Some(pivot) = pivot else {
        return Err(bad("\"near.pivot\" must be a number above 0".to_owned()));
    };
    Ok(OperatorKind::Near {
        paths: options.paths()?,
        origin,
        pivot,
    })
}
