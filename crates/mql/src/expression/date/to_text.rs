//! `$dateToString`.

use windrow_document::Value;

use super::argument::{prepare_zone, zone_argument};
use super::constants::Constants;
use super::format::{Format, PRINTED};
use super::millis;
use crate::Error;
use crate::expression::parse::Named;
use crate::expression::tree::{Answer, Call, Prepared};
use crate::expression::{Computed, Context};

pub(crate) static NAMES: Named = Named {
    not_document: 18629,
    unknown: 18534,
    names: &[
        ("date", Some(18628)),
        ("timezone", None),
        ("format", None),
        ("onNull", None),
    ],
};

pub(crate) fn prepare(call: &mut Call) -> Result<(), Error> {
    let format = match call.argument(2).constant() {
        Some(Value::String(text)) => Some(Format::parse(text, PRINTED)?),
        Some(other) if !other.as_ref().is_nullish() => {
            return Err(not_string(other.type_of().name()));
        }
        _ if call.argument(2).is_absent() => Some(Format::default()),
        _ => None,
    };
    let constants = Constants {
        zone: prepare_zone(call, 1)?,
        format,
    };
    call.prepared = Prepared::Date(Box::new(constants));
    Ok(())
}

fn not_string(found: &str) -> Error {
    let message = format!("$dateToString requires that 'format' be a string, found: {found}");
    Error::new(18533, message)
}

pub(crate) fn date_to_string<'a>(call: &'a Call, context: &Context<'a>) -> Answer<'a> {
    let date = call.value(0, context)?;
    let given;
    let format = match &call.prepared {
        Prepared::Date(constants) if constants.format.is_some() => constants.format.as_ref(),
        _ => {
            let value = call.value(2, context)?;
            if value.is_nullish() {
                return Ok(Computed::NULL);
            }
            let text = value
                .as_str()
                .ok_or_else(|| not_string(value.type_name()))?;
            given = Format::parse(text, PRINTED)?;
            Some(&given)
        }
    };
    let Some(zone) = zone_argument(call, 1, context)? else {
        return Ok(Computed::NULL);
    };
    if date.is_nullish() {
        return match call.argument(3).is_absent() {
            true => Ok(Computed::NULL),
            false => call.value(3, context),
        };
    }
    let local = zone.local(millis(&date)?);
    match format {
        Some(format) => Ok(format.print(&local)?.into()),
        None => Ok(Computed::NULL),
    }
}
