//! Steps along numbers or dates: what `$densify` goes by.

use windrow_document::{Value, ValueRef};

use crate::Error;
use crate::expression::arithmetic::sum;
use crate::expression::date::shift::shifted;
use crate::expression::date::unit::Unit;
use crate::expression::date::zone::Zone;
use crate::expression::number::Number;

/// A positive distance: between numbers, or with a unit between dates.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    amount: Number,
    unit: Option<Unit>,
}

impl Step {
    /// Errors: 14 for an amount that is no number or a unit that is no string, 9 for a unit that there
    /// is not, 5733401 for an amount that is not positive, 6586400 for parts of a unit.
    pub fn parse(amount: ValueRef<'_>, unit: Option<ValueRef<'_>>) -> Result<Step, Error> {
        let Some(number) = Number::of(amount) else {
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
        Ok(Step {
            amount: number,
            unit,
        })
    }

    /// Whether steps lead from this value: from dates with a unit, from numbers without.
    pub fn fits(&self, value: ValueRef<'_>) -> bool {
        match self.unit {
            Some(_) => matches!(value, ValueRef::DateTime(_)),
            None => value.is_number(),
        }
    }

    pub fn is_of_dates(&self) -> bool {
        self.unit.is_some()
    }

    /// The value one step on; None beyond the range of dates, and where a step is too small to lead
    /// anywhere.
    pub fn after(&self, value: ValueRef<'_>) -> Option<Value> {
        let next = match (value, self.unit) {
            (ValueRef::DateTime(millis), Some(unit)) => {
                Value::DateTime(shifted(millis, unit, self.amount.to_i64(), &Zone::UTC)?)
            }
            (number, None) => sum(Number::of(number)?.pair(self.amount))
                .to_value_ref()
                .to_value(),
            _ => return None,
        };
        next.as_ref().compare(value).is_gt().then_some(next)
    }
}
