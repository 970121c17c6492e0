//! Arguments of calls.

use serde_json::{Map, Value};

use super::json_rpc::RequestError;

/// The arguments of a call.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Creates the arguments. Fails if one of them has an unknown name.
    pub fn new(
        values: &'a Map<String, Value>,
        known: &[&str],
    ) -> Result<Arguments<'a>, RequestError> {
        match values.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Arguments { values }),
            Some(name) => Err(RequestError::parameters(format!(
                "there is no argument {name:?}; the arguments are {}",
                known.join(", ")
            ))),
        }
    }

    /// Returns an optional string.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, RequestError> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(RequestError::parameters(format!(
                "{name:?} must be a string"
            ))),
        }
    }

    /// Returns a required string.
    pub fn required_text(&self, name: &str) -> Result<&'a str, RequestError> {
        let text = self.text(name)?;
        text.ok_or_else(|| RequestError::parameters(format!("{name:?} is missing")))
    }

    /// Returns an optional integer between `min` and `max`.
    pub fn number(&self, name: &str, min: u32, max: u32) -> Result<Option<u32>, RequestError> {
        let Some(value) = self.values.get(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(RequestError::parameters(format!(
                "{name:?} must be a whole number from {min} to {max}, not {value}"
            ))),
        }
    }
}
