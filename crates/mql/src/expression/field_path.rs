//! Field paths: `"$a.b"` and `"$$variable.a.b"`.
//!
//! Unlike the paths of filters they never name a place in an array: `$a.0` is the field "0". Through
//! an array a path gives the array of what its documents have.

use windrow_document::path::Component;
use windrow_document::{Array, ArrayBuilder, ValueRef};

use super::{Computed, Context, Scope, context::Source};
use crate::Error;
use crate::field_lineage::FieldLineage;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldPath {
    pub source: Source,
    pub names: Box<[Box<str>]>,
}

impl FieldPath {
    /// Parses text that begins with a dollar sign.
    pub fn parse(text: &str, scope: &Scope) -> Result<FieldPath, Error> {
        let path = text.strip_prefix('$').unwrap_or(text);
        if path.is_empty() {
            return Err(Error::new(16872, "'$' by itself is not a valid FieldPath"));
        }
        let Some(variable) = path.strip_prefix('$') else {
            return Ok(FieldPath {
                source: scope.resolve("CURRENT")?,
                names: split(path)?,
            });
        };
        let (name, rest) = match variable.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (variable, None),
        };
        check_variable_for_reading(name)?;
        let source = scope.resolve(name)?;
        let names = match rest {
            Some("") => return Err(ends_with_dot()),
            Some(rest) => split(rest)?,
            None => Box::default(),
        };
        Ok(FieldPath { source, names })
    }

    /// The path in the document, where it leads there.
    pub fn dotted(&self) -> Option<String> {
        let of_document = matches!(self.source, Source::Current | Source::Root);
        of_document.then(|| self.names.join("."))
    }

    /// The lineage of `rest` within the path's value, if the path leads into the document.
    pub fn lineage(&self, rest: &[Component]) -> Option<FieldLineage> {
        match self.source {
            Source::Current | Source::Root => FieldLineage::of_names(&self.names, rest),
            _ => None,
        }
    }

    pub fn evaluate<'a>(&self, context: &Context<'a>) -> Computed<'a> {
        match context.source(&self.source) {
            Some(value) => follow_value(value, &self.names),
            None => Computed::Missing,
        }
    }
}

/// Splits and checks the names of a path without its dollar sign.
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

/// The names that references to documents of other collections have (DBRefs), the only ones in paths that
/// begin with a dollar sign.
pub const OF_REFERENCES: [&str; 3] = ["$ref", "$id", "$db"];

/// A name that may stand in a path.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::new(
            15998,
            "FieldPath field names may not be empty strings.",
        ));
    }
    if name.starts_with('$') && !OF_REFERENCES.contains(&name) {
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

/// A name after `$$`: letters, digits, underscores, and whatever is not ASCII.
pub(crate) fn check_variable_for_reading(name: &str) -> Result<(), Error> {
    check_start(name, |first| first.is_ascii_alphabetic())
}

/// A name that `$let` and its like define: a small letter first; CURRENT alone may be redefined.
pub fn check_variable_for_writing(name: &str) -> Result<(), Error> {
    if name == "CURRENT" {
        return Ok(());
    }
    check_start(name, |first| first.is_ascii_lowercase())
}

/// Through documents step by step; an array on the way spreads the rest of the path over its
/// documents.
fn follow_value<'a>(mut value: ValueRef<'a>, names: &[Box<str>]) -> Computed<'a> {
    let mut rest = names;
    while let Some((name, below)) = rest.split_first() {
        value = match value {
            ValueRef::Document(document) => match document.get(name) {
                Some(value) => value,
                None => return Computed::Missing,
            },
            ValueRef::Array(array) => return spread(array, rest),
            _ => return Computed::Missing,
        };
        rest = below;
    }
    Computed::Borrowed(value)
}

/// What the documents of an array have at the path.
fn spread<'a>(array: Array<'_>, names: &[Box<str>]) -> Computed<'a> {
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
