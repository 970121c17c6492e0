//! `$meta` and `$rand`: values that are not in the document.

use windrow_document::json::{BASE64, to_base64};
use windrow_document::{Value, ValueRef};

use super::parse::{Parser, finish};
use super::tree::{Call, EvalResult, Operator};
use super::{Context, ExprValue, Expression};
use crate::{Error, Meta, random};

/// The names that `$meta` accepts.
const NAMES: [&str; 14] = [
    "textScore",
    "indexKey",
    "recordId",
    "randVal",
    "searchScore",
    "searchHighlights",
    "searchScoreDetails",
    "searchSequenceToken",
    "vectorSearchScore",
    "score",
    "scoreDetails",
    "sortKey",
    "geoNearDistance",
    "geoNearPoint",
];

/// Parses `$meta`. Arguments: the name.
///
/// # Errors
///
/// - 17307: the operand is not a string.
/// - 17308: the name is unknown.
pub(crate) fn parse(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    _: &Parser,
) -> Result<Expression, Error> {
    let Some(name) = operand.as_str() else {
        return Err(Error::new(17307, "$meta only supports string arguments"));
    };
    if !NAMES.contains(&name) {
        return Err(Error::new(
            17308,
            format!("Unsupported argument to $meta: {name}"),
        ));
    }
    finish(Call::new(
        operator,
        vec![Expression::from_constant(Value::from(name))],
    ))
}

pub(crate) fn meta<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let name = call.value(0, context)?;
    let meta = context.meta;
    let origin = meta.origin.as_deref();
    Ok(match name.as_str() {
        Some("textScore") => meta.text_score.map_or(ExprValue::Missing, ExprValue::from),
        Some("searchScore") => meta
            .search_score
            .map_or(ExprValue::Missing, ExprValue::from),
        Some("searchHighlights") => {
            let highlights = meta.search.as_deref();
            let highlights = highlights.and_then(|search| search.highlights.clone());
            highlights.map_or(ExprValue::Missing, ExprValue::from)
        }
        Some("searchScoreDetails") => score_details(meta),
        Some("searchSequenceToken") => {
            let token = meta.sequence_token.as_deref();
            token.map_or(ExprValue::Missing, |token| {
                ExprValue::from(Value::from(to_base64(token, BASE64, true)))
            })
        }
        Some("geoNearDistance") => {
            let nearest = meta.nearest.as_deref();
            nearest.map_or(ExprValue::Missing, |one| ExprValue::from(one.distance))
        }
        Some("geoNearPoint") => {
            let nearest = meta.nearest.as_deref();
            nearest.map_or(ExprValue::Missing, |one| ExprValue::from(one.point.clone()))
        }
        Some("score") => {
            let fused = meta.fused.as_deref().map(|fused| fused.score);
            let score = fused.or(meta.search_score).or(meta.text_score);
            score.map_or(ExprValue::Missing, ExprValue::from)
        }
        Some("scoreDetails") => {
            let fused = meta.fused.as_deref();
            match fused.and_then(|fused| fused.details.clone()) {
                Some(details) => ExprValue::from(details),
                None => score_details(meta),
            }
        }
        Some("sortKey") => {
            let key = origin.and_then(|origin| origin.sort_key.clone());
            key.map_or(ExprValue::Missing, ExprValue::from)
        }
        Some("indexKey") => {
            let key = origin.and_then(|origin| origin.index_key.clone());
            key.map_or(ExprValue::Missing, ExprValue::from)
        }
        Some("recordId") => {
            let id = origin.and_then(|origin| origin.record_id);
            id.map_or(ExprValue::Missing, ExprValue::from)
        }
        _ => ExprValue::Missing,
    })
}

/// Returns how the score of `$search` came about.
fn score_details<'a>(meta: &Meta) -> ExprValue<'a> {
    let details = meta.search.as_deref();
    let details = details.and_then(|search| search.score_details.clone());
    details.map_or(ExprValue::Missing, ExprValue::from)
}

/// Parses `{$rand: {}}`. Fails with 10065 or 3040501 for another operand.
pub(crate) fn parse_rand(
    operator: &'static Operator,
    operand: ValueRef<'_>,
    _: &Parser,
) -> Result<Expression, Error> {
    let is_empty = match operand {
        ValueRef::Document(document) => document.is_empty(),
        ValueRef::Array(array) => array.is_empty(),
        _ => {
            return Err(Error::new(
                10065,
                "invalid parameter: expected an object ($rand)",
            ));
        }
    };
    if !is_empty {
        return Err(Error::new(
            3040501,
            "$rand does not currently accept arguments",
        ));
    }
    finish(Call::new(operator, Vec::new()))
}

/// `$rand`: uniformly distributed in [0, 1).
pub(crate) fn rand<'a>(_: &'a Call, _: &Context<'a>) -> EvalResult<'a> {
    Ok(random::fraction().into())
}
