//! Time zones as arguments.

use windrow_document::Value;

use super::zone::Zone;
use crate::Error;
use crate::expression::tree::{Call, Prepared};
use crate::expression::{Computed, Context};

/// The constant time zone of a call, parsed.
pub(crate) fn prepare_zone(call: &Call, place: usize) -> Result<Option<Zone>, Error> {
    match call.argument(place).constant() {
        Some(Value::String(name)) => Zone::parse(name).map(Some),
        _ => Ok(None),
    }
}

/// The time zone in an argument's place: UTC where it is absent, None where it is null. 40517 for what
/// is no string.
pub(crate) fn zone_argument<'a>(
    call: &'a Call,
    place: usize,
    context: &Context<'a>,
) -> Result<Option<Zone>, Error> {
    zone_argument_or(call, place, context, 40517)
}

/// The same with another code for what is no string.
pub(crate) fn zone_argument_or<'a>(
    call: &'a Call,
    place: usize,
    context: &Context<'a>,
    code: i32,
) -> Result<Option<Zone>, Error> {
    if let Prepared::Date(constants) = &call.prepared
        && let Some(zone) = &constants.zone
    {
        return Ok(Some(zone.clone()));
    }
    if call.argument(place).is_absent() {
        return Ok(Some(Zone::UTC));
    }
    of_value(&call.value(place, context)?, code)
}

fn of_value(value: &Computed<'_>, code: i32) -> Result<Option<Zone>, Error> {
    if value.is_nullish() {
        return Ok(None);
    }
    match value.as_str() {
        Some(name) => Zone::parse(name).map(Some),
        None => {
            let message = format!(
                "timezone must evaluate to a string, found {}",
                value.type_name()
            );
            Err(Error::new(code, message))
        }
    }
}
