//! The time zone and the format among the arguments of date operators.

use std::borrow::Cow;

use windrow_document::{Value, ValueRef};

use super::date_constants::DateConstants;
use super::format::DateFormat;
use super::zone::Zone;
use crate::Error;
use crate::expression::tree::{Call, PreparedArguments};
use crate::expression::{Context, ExprValue};

/// Parses the constant time zone of a call, which is its second argument, once for all documents.
pub(crate) fn prepare(call: &mut Call) -> Result<(), Error> {
    prepare_with(call, 1, None)
}

/// As [`prepare`], for another argument index and with a constant format.
pub(crate) fn prepare_with(
    call: &mut Call,
    index: usize,
    format: Option<DateFormat>,
) -> Result<(), Error> {
    let zone = match call.argument(index).constant() {
        Some(Value::String(name)) => Some(Zone::parse(name)?),
        _ => None,
    };
    call.prepared = PreparedArguments::Date(Box::new(DateConstants { zone, format }));
    Ok(())
}

/// The argument `format`, the third argument of its operator.
pub(crate) struct FormatArgument {
    pub operator: &'static str,
    /// The error code if the format is not a string.
    pub code: i32,
    /// The format letters that the operator accepts.
    pub letters: &'static str,
}

impl FormatArgument {
    const INDEX: usize = 2;

    /// Returns the format, if it is constant.
    pub fn constant(&self, call: &Call) -> Result<Option<DateFormat>, Error> {
        match call.argument(Self::INDEX).constant() {
            Some(value) => self.parse(value.as_ref()),
            None => Ok(None),
        }
    }

    /// Evaluates the format. Returns `None` if it is null.
    pub fn evaluate<'a>(
        &self,
        call: &'a Call,
        context: &Context<'a>,
    ) -> Result<Option<Cow<'a, DateFormat>>, Error> {
        if let PreparedArguments::Date(date_constants) = &call.prepared
            && let Some(format) = &date_constants.format
        {
            return Ok(Some(Cow::Borrowed(format)));
        }
        let value = call.value(Self::INDEX, context)?;
        Ok(self.parse(value.or_null())?.map(Cow::Owned))
    }

    fn parse(&self, value: ValueRef<'_>) -> Result<Option<DateFormat>, Error> {
        match value {
            ValueRef::String(text) => DateFormat::parse(text, self.letters).map(Some),
            value if value.is_nullish() => Ok(None),
            other => Err(Error::new(
                self.code,
                format!(
                    "{} requires that 'format' be a string, found: {}",
                    self.operator,
                    other.type_of().name()
                ),
            )),
        }
    }
}

/// Evaluates the time zone argument at an index. It is UTC if the argument is absent, and `None` if
/// it is null. Fails with 40517 if it is not a string.
pub(crate) fn zone_argument<'a>(
    call: &'a Call,
    index: usize,
    context: &Context<'a>,
) -> Result<Option<Zone>, Error> {
    zone_argument_or(call, index, context, 40517)
}

/// As [`zone_argument`], with another error code if the time zone is not a string.
pub(crate) fn zone_argument_or<'a>(
    call: &'a Call,
    index: usize,
    context: &Context<'a>,
    code: i32,
) -> Result<Option<Zone>, Error> {
    if let PreparedArguments::Date(date_constants) = &call.prepared
        && let Some(zone) = &date_constants.zone
    {
        return Ok(Some(zone.clone()));
    }
    if call.argument(index).is_absent() {
        return Ok(Some(Zone::UTC));
    }
    zone_from_value(&call.value(index, context)?, code)
}

fn zone_from_value(value: &ExprValue<'_>, code: i32) -> Result<Option<Zone>, Error> {
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
