//! `$dateFromString`.

use windrow_document::ValueRef;

use super::argument::{FormatArgument, prepare_with, zone_argument};
use super::format::{DateFormat, PARSE_LETTERS};
use super::read;
use super::zone::Zone;
use crate::Error;
use crate::expression::parse::NamedArguments;
use crate::expression::tree::{Call, EvalResult};
use crate::expression::{Context, ExprValue};
use crate::interrupt::data_error;

pub(crate) static ARGUMENTS: NamedArguments = NamedArguments {
    not_document: 40540,
    unknown: 40541,
    names: &[
        ("dateString", Some(40542)),
        ("timezone", None),
        ("format", None),
        ("onError", None),
        ("onNull", None),
    ],
};

const FORMAT: FormatArgument = FormatArgument {
    operator: "$dateFromString",
    code: 40684,
    letters: PARSE_LETTERS,
};

pub(crate) fn prepare(call: &mut Call) -> Result<(), Error> {
    let format = FORMAT.constant(call)?;
    prepare_with(call, 1, format)
}

pub(crate) fn date_from_string<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let text = call.value(0, context)?;
    let zone = zone_argument(call, 1, context)?;
    let has_format = !call.argument(2).is_absent();
    let format = FORMAT.evaluate(call, context)?;
    if text.is_nullish() {
        return if call.argument(4).is_absent() {
            Ok(ExprValue::NULL)
        } else {
            call.value(4, context)
        };
    }
    let has_zone = !call.argument(1).is_absent();
    let read = string_argument(&text).and_then(|text| {
        let Some(zone) = zone.filter(|_| !has_format || format.is_some()) else {
            return Ok(ExprValue::NULL);
        };
        let millis = read_text(text, format.as_deref(), &zone, has_zone)?;
        Ok(ValueRef::DateTime(millis).into())
    });
    match read {
        Ok(date) => Ok(date),
        Err(error) if !call.argument(3).is_absent() => {
            data_error(error)?;
            call.value(3, context)
        }
        Err(error) => Err(error),
    }
}

fn string_argument<'v>(value: &'v ExprValue<'_>) -> Result<&'v str, Error> {
    value.as_str().ok_or_else(|| {
        let found = value.type_name();
        let message = format!(
            "$dateFromString requires that 'dateString' be a string, found: {found} with value {}",
            value.or_null()
        );
        Error::new(241, message)
    })
}

fn read_text(
    text: &str,
    format: Option<&DateFormat>,
    zone: &Zone,
    has_zone: bool,
) -> Result<i64, Error> {
    let parsed = match format {
        Some(format) => read::parse_with_format(text, format),
        None => read::parse_any_notation(text),
    };
    let parsed = parsed.ok_or_else(|| read::failure(text))?;
    match parsed.offset {
        Some(_) if has_zone => {
            let message = format!(
                "you cannot pass in a date/time string with time zone information ('{text}') together with a timezone argument"
            );
            Err(Error::new(241, message))
        }
        Some(offset) => Ok(parsed.local_millis - offset * 1000),
        None => Ok(zone.utc(parsed.local_millis)),
    }
}

/// Parses a date in UTC, as `$toDate` does.
pub(crate) fn to_date(text: &str) -> Result<i64, Error> {
    read_text(text, None, &Zone::UTC, false)
}
