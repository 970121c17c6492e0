//! `$currentDate`: `true`, `{$type: "date"}` or `{$type: "timestamp"}`.

use std::sync::Arc;

use windrow_document::{Value, ValueRef};

use super::modifier::{Change, FieldTarget, Modifier, NewValue};
use crate::Error;

#[derive(Debug)]
enum CurrentDate {
    Date,
    Timestamp,
}

/// Parses the operand. Both boolean values mean a date.
pub(super) fn parse(path: &str, operand: ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error> {
    let kind = match operand {
        ValueRef::Bool(_) => Some(CurrentDate::Date),
        ValueRef::Document(options) => match options.first() {
            Some(("$type", kind)) if options.count() == 1 => from_name(kind),
            _ => None,
        },
        _ => None,
    };
    match kind {
        Some(kind) => Ok(Arc::new(kind)),
        None => Err(Error::bad_value(format!(
            "{operand} is not a valid type for $currentDate of '{path}'. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}})."
        ))),
    }
}

fn from_name(kind: ValueRef<'_>) -> Option<CurrentDate> {
    match kind.as_str()? {
        "date" => Some(CurrentDate::Date),
        "timestamp" => Some(CurrentDate::Timestamp),
        _ => None,
    }
}

impl CurrentDate {
    fn value(&self, at: &FieldTarget<'_>) -> Value {
        match self {
            CurrentDate::Date => Value::DateTime(at.execution.now_millis),
            CurrentDate::Timestamp => Value::Timestamp(at.execution.timestamp),
        }
    }
}

impl Modifier for CurrentDate {
    fn change<'a>(
        &'a self,
        _current: ValueRef<'a>,
        at: &FieldTarget<'a>,
    ) -> Result<Change<'a>, Error> {
        Ok(Change::owned(self.value(at)))
    }

    fn create<'a>(&'a self, at: &FieldTarget<'a>) -> Result<Option<NewValue<'a>>, Error> {
        Ok(Some(NewValue::owned(self.value(at))))
    }
}
