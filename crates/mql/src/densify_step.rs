//! The step of a `$densify` range.

use windrow_document::{Value, ValueRef};

use crate::Error;
use crate::expression::arithmetic::sum;
use crate::expression::date::shift::add_units;
use crate::expression::date::unit::Unit;
use crate::expression::date::zone::Zone;
use crate::expression::number::Number;

/// A positive distance between numbers or, with a unit, between dates.
///
/// ```
/// use windrow_document::{Value, ValueRef};
/// use windrow_mql::densify_step::DensifyStep;
/// let day = DensifyStep::parse(ValueRef::Int32(1), Some(ValueRef::String("day"))).unwrap();
/// let next = day.next_value(ValueRef::DateTime(0));
/// assert_eq!(next, Some(Value::DateTime(24 * 60 * 60 * 1000)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DensifyStep {
    amount: Number,
    unit: Option<Unit>,
}

impl DensifyStep {
    /// Parses `step` and `unit` of a range.
    ///
    /// # Errors
    ///
    /// - 14: `step` is not a number, or `unit` is not a string.
    /// - 9: the unit is unknown.
    /// - 5733401: `step` is not positive.
    /// - 6586400: `step` is not a whole number although there is a unit.
    pub fn parse(amount: ValueRef<'_>, unit: Option<ValueRef<'_>>) -> Result<DensifyStep, Error> {
        let Some(number) = Number::from_value(amount) else {
            return Err(Error::type_mismatch(
                "the 'step' of a range must be a number",
            ));
        };
        if !amount.as_f64().is_some_and(|amount| amount > 0.0) {
            let message = "the 'step' of a range must be positive";
            return Err(Error::new(5733401, message));
        }
        let unit = match unit {
            None => None,
            Some(unit) => {
                let Some(name) = unit.as_str() else {
                    return Err(Error::type_mismatch(
                        "the 'unit' of a range must be a string",
                    ));
                };
                let unknown = || Error::failed_to_parse(format!("unknown time unit value: {name}"));
                Some(Unit::parse(name).ok_or_else(unknown)?)
            }
        };
        if unit.is_some() && amount.as_whole().is_none() {
            let message = "the 'step' of a range of dates must be a whole number of units";
            return Err(Error::new(6586400, message));
        }
        Ok(DensifyStep {
            amount: number,
            unit,
        })
    }

    /// Returns `true` if the step can be added to this value: to dates if it has a unit, otherwise
    /// to numbers.
    pub fn applies_to(&self, value: ValueRef<'_>) -> bool {
        match self.unit {
            Some(_) => matches!(value, ValueRef::DateTime(_)),
            None => value.is_number(),
        }
    }

    /// Returns `true` if the step has a unit, so that it is added to dates.
    pub fn is_date_step(&self) -> bool {
        self.unit.is_some()
    }

    /// Returns the value plus one step, or `None` if the result is not greater than the value,
    /// because it exceeds the range of dates or the step is too small.
    pub fn next_value(&self, value: ValueRef<'_>) -> Option<Value> {
        let next = match (value, self.unit) {
            (ValueRef::DateTime(millis), Some(unit)) => {
                Value::DateTime(add_units(millis, unit, self.amount.to_i64(), &Zone::UTC)?)
            }
            (number, None) => sum(Number::from_value(number)?.pair(self.amount))
                .to_value_ref()
                .to_value(),
            _ => return None,
        };
        next.as_ref().compare(value).is_gt().then_some(next)
    }
}
