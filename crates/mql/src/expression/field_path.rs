//! Field paths: `"$a.b"` and `"$$variable.a.b"`.
//!
//! Unlike a path of a filter, a field path never contains an array index: `$a.0` is the field "0".
//! If an array is on the path, the result is the array of the values in its documents.

use windrow_document::path::Component;
use windrow_document::{Array, ArrayBuilder, ValueRef};

use super::{Context, ExprValue, Scope, context::VariableSource};
use crate::Error;
use crate::field_lineage::FieldLineage;

/// A parsed field path: a variable, and the names of fields within it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VariablePath {
    pub source: VariableSource,
    pub names: Box<[Box<str>]>,
}

impl VariablePath {
    /// Parses a string that starts with a dollar sign.
    pub fn parse(text: &str, scope: &Scope) -> Result<VariablePath, Error> {
        let path = text.strip_prefix('$').unwrap_or(text);
        if path.is_empty() {
            return Err(Error::new(16872, "'$' by itself is not a valid FieldPath"));
        }
        let Some(variable) = path.strip_prefix('$') else {
            return Ok(VariablePath {
                source: scope.resolve("CURRENT")?,
                names: split(path)?,
            });
        };
        let (name, rest) = match variable.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (variable, None),
        };
        check_variable_reference(name)?;
        let source = scope.resolve(name)?;
        let names = match rest {
            Some("") => return Err(ends_with_dot()),
            Some(rest) => split(rest)?,
            None => Box::default(),
        };
        Ok(VariablePath { source, names })
    }

    /// Returns the dotted path in the document, or `None` if the path starts at another variable.
    pub fn dotted(&self) -> Option<String> {
        let of_document = matches!(self.source, VariableSource::Current | VariableSource::Root);
        of_document.then(|| self.names.join("."))
    }

    /// Returns the lineage of `rest` within the value at this path, or `None` if the path starts at
    /// another variable than the document.
    pub fn lineage(&self, rest: &[Component]) -> Option<FieldLineage> {
        match self.source {
            VariableSource::Current | VariableSource::Root => {
                FieldLineage::from_names(&self.names, rest)
            }
            _ => None,
        }
    }

    pub fn evaluate<'a>(&self, context: &Context<'a>) -> ExprValue<'a> {
        match context.source(&self.source) {
            Some(value) => follow_value(value, &self.names),
            None => ExprValue::Missing,
        }
    }
}

/// Splits a path without its dollar sign into names and checks them.
pub(crate) fn split(path: &str) -> Result<Box<[Box<str>]>, Error> {
    if path.ends_with('.') {
        return Err(ends_with_dot());
    }
    path.split('.')
        .map(|name| check_name(name).map(|()| name.into()))
        .collect()
}

fn ends_with_dot() -> Error {
    Error::new(40353, "FieldPath must not end with a '.'.")
}

/// The field names of a DBRef, a reference to a document of another collection. They are the only
/// names in paths that may start with a dollar sign.
pub const DBREF_FIELDS: [&str; 3] = ["$ref", "$id", "$db"];

/// Checks a name in a path.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::new(
            15998,
            "FieldPath field names may not be empty strings.",
        ));
    }
    if name.starts_with('$') && !DBREF_FIELDS.contains(&name) {
        let message = format!(
            "FieldPath field names may not start with '$'. Consider using $getField or $setField: '{name}'."
        );
        return Err(Error::new(16410, message));
    }
    if name.contains('\0') {
        return Err(Error::new(
            16411,
            "FieldPath field names may not contain '\\0'.",
        ));
    }
    Ok(())
}

fn check_rest(name: &str) -> Result<(), Error> {
    let wrong = name
        .chars()
        .find(|one| one.is_ascii() && !one.is_ascii_alphanumeric() && *one != '_');
    match wrong {
        None => Ok(()),
        Some(one) => {
            let message =
                format!("'{name}' contains an invalid character for a variable name: '{one}'");
            Err(Error::failed_to_parse(message))
        }
    }
}

fn check_start(name: &str, allowed: fn(char) -> bool) -> Result<(), Error> {
    match name.chars().next() {
        None => Err(Error::new(16866, "empty variable names are not allowed")),
        Some(first) if allowed(first) || !first.is_ascii() => check_rest(name),
        Some(_) => {
            let message =
                format!("'{name}' starts with an invalid character for a user variable name");
            Err(Error::new(16867, message))
        }
    }
}

/// Checks a variable name after `$$`: ASCII letters, digits, underscores, and any other characters
/// that are not ASCII.
pub(crate) fn check_variable_reference(name: &str) -> Result<(), Error> {
    check_start(name, |first| first.is_ascii_alphabetic())
}

/// Checks a variable name that `$let` or a similar operator defines. It must start with a lower
/// case letter. CURRENT is the only system variable that may be redefined.
///
/// # Errors
///
/// - 16866: the name is empty.
/// - 16867: the first character is not allowed.
/// - 9: another character is not allowed.
pub fn check_variable_definition(name: &str) -> Result<(), Error> {
    if name == "CURRENT" {
        return Ok(());
    }
    check_start(name, |first| first.is_ascii_lowercase())
}

/// Follows a path through documents. An array on the path applies the rest of the path to each of
/// its documents.
fn follow_value<'a>(mut value: ValueRef<'a>, names: &[Box<str>]) -> ExprValue<'a> {
    let mut rest = names;
    while let Some((name, below)) = rest.split_first() {
        value = match value {
            ValueRef::Document(document) => match document.get(name) {
                Some(value) => value,
                None => return ExprValue::Missing,
            },
            ValueRef::Array(array) => return spread(array, rest),
            _ => return ExprValue::Missing,
        };
        rest = below;
    }
    ExprValue::Borrowed(value)
}

/// Returns the values at the path in the documents of an array.
fn spread<'a>(array: Array<'_>, names: &[Box<str>]) -> ExprValue<'a> {
    let mut found = ArrayBuilder::new();
    for document in array
        .iter()
        .filter(|element| element.as_document().is_some())
    {
        if let Some(value) = follow_value(document, names).as_ref() {
            found.push(value);
        }
    }
    found.finish().into()
}
