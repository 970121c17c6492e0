//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use std::borrow::Cow;
use std::ops::Range;

use windrow_document::{DocumentBuf, Value, ValueRef};

use super::parse::NamedArguments;
use super::tree::{Call, EvalResult, PreparedArguments};
use super::{Context, ExprValue};
use crate::Error;
use crate::filter::regex::Regex;
use crate::memory::{LimitedArrayBuilder, LimitedDocumentBuilder};

pub(crate) static ARGUMENTS: NamedArguments = NamedArguments {
    not_document: 51103,
    unknown: 31024,
    names: &[
        ("input", Some(31022)),
        ("regex", Some(31023)),
        ("options", None),
    ],
};

/// Compiles a constant pattern with constant options.
pub(crate) fn prepare(call: &mut Call) -> Result<(), Error> {
    let constant = |index: usize| match call.argument(index).constant() {
        Some(value) => Some(ExprValue::Borrowed(value.as_ref())),
        None if call.argument(index).is_absent() => Some(ExprValue::Missing),
        None => None,
    };
    let prepared = match (constant(1), constant(2)) {
        (Some(pattern), Some(options)) => compile(call.operator.name, &pattern, &options)?,
        _ => return Ok(()),
    };
    call.prepared = PreparedArguments::Regex(prepared);
    Ok(())
}

/// Compiles a pattern. Returns `None` if the pattern is null.
fn compile(
    operator: &str,
    pattern: &ExprValue<'_>,
    options: &ExprValue<'_>,
) -> Result<Option<Regex>, Error> {
    let option_field = match options.or_null() {
        ValueRef::Null | ValueRef::Undefined => None,
        ValueRef::String(options) => Some(options),
        _ => {
            let message = format!("{operator} needs 'options' to be of type string");
            return Err(Error::new(51106, message));
        }
    };
    let (pattern, options) = match pattern.or_null() {
        ValueRef::Null | ValueRef::Undefined => return Ok(None),
        ValueRef::String(pattern) => (pattern, option_field.unwrap_or_default()),
        ValueRef::Regex { pattern, options } => match option_field {
            Some(_) if !options.is_empty() => {
                let message = format!(
                    "{operator}: found regex option(s) specified in both 'regex' and 'option' fields"
                );
                return Err(Error::new(51107, message));
            }
            given => (pattern, given.unwrap_or(options)),
        },
        _ => {
            let message = format!("{operator} needs 'regex' to be of type string or regex");
            return Err(Error::new(51105, message));
        }
    };
    let null_bytes = [(pattern, 51109), (options, 51110)];
    if let Some((_, code)) = null_bytes.into_iter().find(|(text, _)| text.contains('\0')) {
        let message =
            format!("{operator}: regular expression cannot contain an embedded null byte");
        return Err(Error::new(code, message));
    }
    match Regex::with_captures(pattern, options) {
        Ok(regex) => Ok(Some(regex)),
        Err(error) if error.code == 51108 => Err(error),
        Err(error) => Err(Error::new(
            51111,
            format!("Invalid Regex in {operator}: {error}"),
        )),
    }
}

/// Calls `find` with the input and the regular expression. Returns `None` if one of them is null.
fn with_input<'a, T>(
    call: &'a Call,
    context: &Context<'a>,
    find: impl FnOnce(&str, &Regex) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let input = call.value(0, context)?;
    let regex: Cow<'_, Option<Regex>> = match &call.prepared {
        PreparedArguments::Regex(regex) => Cow::Borrowed(regex),
        _ => {
            let (pattern, options) = (call.value(1, context)?, call.value(2, context)?);
            Cow::Owned(compile(call.operator.name, &pattern, &options)?)
        }
    };
    if input.is_nullish() {
        return Ok(None);
    }
    let Some(text) = input.as_str() else {
        let message = format!("{} needs 'input' to be of type string", call.operator.name);
        return Err(Error::new(51104, message));
    };
    regex
        .as_ref()
        .as_ref()
        .map(|regex| find(text, regex))
        .transpose()
}

pub(crate) fn regex_match<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let found = with_input(call, context, |text, regex| regex.is_match(text))?;
    Ok(found.unwrap_or(false).into())
}

pub(crate) fn regex_find<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let found = with_input(call, context, |text, regex| {
        let groups = regex.captures_at(text, 0)?;
        let found = groups.map(|groups| describe(call, text, &groups, &mut Position::default()));
        found.transpose()
    })?;
    Ok(found
        .flatten()
        .map_or(ExprValue::NULL, |found| found.into()))
}

/// `$regexFindAll`. After an empty match the search continues at the next character.
pub(crate) fn regex_find_all<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let found = with_input(call, context, |text, regex| {
        let mut all = LimitedArrayBuilder::new(call.operator.name);
        let (mut start, mut position) = (0, Position::default());
        while start <= text.len() {
            let Some(groups) = regex.captures_at(text, start)? else {
                break;
            };
            let whole = groups.first().cloned().flatten().unwrap_or(start..start);
            let found = describe(call, text, &groups, &mut position)?;
            all.push(ValueRef::Document(found.as_document()))?;
            start = if whole.is_empty() {
                next_character(text, whole.end)
            } else {
                whole.end
            };
            if start >= text.len() {
                break;
            }
        }
        Ok(Value::Array(all.finish()))
    })?;
    Ok(found
        .unwrap_or_else(|| Value::Array(Default::default()))
        .into())
}

fn next_character(text: &str, byte: usize) -> usize {
    let rest = text.get(byte..).unwrap_or_default();
    byte + rest.chars().next().map_or(1, char::len_utf8)
}

/// Converts ascending byte offsets into code point offsets, reading each byte once.
#[derive(Default)]
struct Position {
    byte: usize,
    points: usize,
}

impl Position {
    fn at(&mut self, text: &str, byte: usize) -> usize {
        let between = text.get(self.byte..byte).unwrap_or_default();
        self.points += between.chars().count();
        self.byte = byte;
        self.points
    }
}

/// Returns the match as `{match, idx, captures}`. The index counts code points.
fn describe(
    call: &Call,
    text: &str,
    groups: &[Option<Range<usize>>],
    position: &mut Position,
) -> Result<DocumentBuf, Error> {
    let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
    let whole = groups.first().cloned().flatten().unwrap_or(0..0);
    let mut captures = LimitedArrayBuilder::new(call.operator.name);
    for group in groups.iter().skip(1) {
        captures.push(
            group
                .as_ref()
                .map_or(ValueRef::Null, |range| ValueRef::String(part(range))),
        )?;
    }
    let mut found = LimitedDocumentBuilder::new(call.operator.name);
    found.append("match", ValueRef::String(part(&whole)))?;
    found.append(
        "idx",
        ValueRef::Int32(position.at(text, whole.start) as i32),
    )?;
    found.append("captures", ValueRef::Array(captures.finish().as_array()))?;
    Ok(found.finish())
}
