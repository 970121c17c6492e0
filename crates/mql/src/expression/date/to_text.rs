//! `$dateToString`.

use super::argument::{FormatArgument, prepare_with, zone_argument};
use super::format::{DateFormat, PRINT_LETTERS};
use super::millis;
use crate::Error;
use crate::expression::parse::NamedArguments;
use crate::expression::tree::{Call, EvalResult};
use crate::expression::{Context, ExprValue};

pub(crate) static ARGUMENTS: NamedArguments = NamedArguments {
    not_document: 18629,
    unknown: 18534,
    names: &[
        ("date", Some(18628)),
        ("timezone", None),
        ("format", None),
        ("onNull", None),
    ],
};

const FORMAT: FormatArgument = FormatArgument {
    operator: "$dateToString",
    code: 18533,
    letters: PRINT_LETTERS,
};

pub(crate) fn prepare(call: &mut Call) -> Result<(), Error> {
    let format = if call.argument(2).is_absent() {
        Some(DateFormat::default())
    } else {
        FORMAT.constant(call)?
    };
    prepare_with(call, 1, format)
}

pub(crate) fn date_to_string<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let date = call.value(0, context)?;
    let Some(format) = FORMAT.evaluate(call, context)? else {
        return Ok(ExprValue::NULL);
    };
    let Some(zone) = zone_argument(call, 1, context)? else {
        return Ok(ExprValue::NULL);
    };
    if date.is_nullish() {
        return if call.argument(3).is_absent() {
            Ok(ExprValue::NULL)
        } else {
            call.value(3, context)
        };
    }
    let local = zone.local(millis(&date)?);
    Ok(format.print(&local)?.into())
}
