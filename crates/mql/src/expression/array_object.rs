//! `$arrayToObject` and `$objectToArray`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use windrow_document::{Document, DocumentBuilder, ValueRef};

use super::array::array;
use super::tree::{Call, EvalResult};
use super::{Context, ExprValue};
use crate::Error;
use crate::interrupt::count_work;
use crate::memory::{LimitedArrayBuilder, LimitedDocumentBuilder, LimitedVec, LiveBytes};

/// The form of an entry. All entries must have the form of the first.
#[derive(Clone, Copy, PartialEq)]
enum EntryForm {
    Pair,
    Entry,
}

type NamedValue<'v> = (&'v str, ValueRef<'v>);

/// `$arrayToObject`: from `[[name, value], …]` or `[{k: name, v: value}, …]`. The last value of a
/// name counts.
pub(crate) fn array_to_object<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let operator = call.operator.name;
    let mut fields: LimitedVec<'_, NamedValue<'_>> = LimitedVec::new(operator);
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    let mut live = LiveBytes::new(0);
    let mut form = None;
    for entry in array(&value, 40386, "$arrayToObject's input")? {
        count_work(1)?;
        let (name, value) = parse_entry(entry, &mut form)?;
        if name.contains('\0') {
            let code = match form {
                Some(EntryForm::Entry) => 4940401,
                _ => 4940400,
            };
            let message = "Key field cannot contain an embedded null byte";
            return Err(Error::new(code, message));
        }
        match indexes.entry(name) {
            Entry::Vacant(index) => {
                index.insert(fields.len());
                fields.push((name, value))?;
            }
            Entry::Occupied(index) => {
                if let Some(field) = fields.get_mut(*index.get()) {
                    field.1 = value;
                }
            }
        }
        live.grow_to(indexes.capacity() * size_of::<(&str, usize)>(), operator)?;
    }
    let mut object = LimitedDocumentBuilder::new(operator);
    for (name, value) in fields.iter().copied() {
        object.append(name, value)?;
    }
    Ok(object.finish().into())
}

fn parse_entry<'v>(
    entry: ValueRef<'v>,
    form: &mut Option<EntryForm>,
) -> Result<NamedValue<'v>, Error> {
    match entry {
        ValueRef::Array(pair) => {
            if *form.get_or_insert(EntryForm::Pair) != EntryForm::Pair {
                let message = "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: array";
                return Err(Error::new(40391, message));
            }
            let mut values = pair.iter();
            match (values.next(), values.next(), values.next()) {
                (Some(ValueRef::String(name)), Some(value), None) => Ok((name, value)),
                (Some(name), Some(_), None) => {
                    let found = name.type_of().name();
                    let message = format!(
                        "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: {found}"
                    );
                    Err(Error::new(40395, message))
                }
                _ => Err(Error::new(
                    40397,
                    "$arrayToObject requires an array of size 2 arrays",
                )),
            }
        }
        ValueRef::Document(entry) => {
            if *form.get_or_insert(EntryForm::Entry) != EntryForm::Entry {
                let message = "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: object";
                return Err(Error::new(40396, message));
            }
            parse_key_value(entry)
        }
        other => {
            let found = other.type_of().name();
            let message = format!("Unrecognised input type format for $arrayToObject: {found}");
            Err(Error::new(40398, message))
        }
    }
}

fn parse_key_value(entry: Document<'_>) -> Result<NamedValue<'_>, Error> {
    if entry.count() != 2 {
        let message =
            "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys";
        return Err(Error::new(40392, message));
    }
    match (entry.get("k"), entry.get("v")) {
        (Some(ValueRef::String(name)), Some(value)) => Ok((name, value)),
        (Some(name), Some(_)) => {
            let found = name.type_of().name();
            let message = format!(
                "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: {found}"
            );
            Err(Error::new(40394, message))
        }
        _ => {
            let message = "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys";
            Err(Error::new(40393, message))
        }
    }
}

pub(crate) fn object_to_array<'a>(call: &'a Call, context: &Context<'a>) -> EvalResult<'a> {
    let value = call.value(0, context)?;
    if value.is_nullish() {
        return Ok(ExprValue::NULL);
    }
    let Some(object) = value.as_document() else {
        let message = format!(
            "$objectToArray requires a document input, found: {}",
            value.type_name()
        );
        return Err(Error::new(40390, message));
    };
    let mut entries = LimitedArrayBuilder::new(call.operator.name);
    for (name, value) in object {
        let mut entry = DocumentBuilder::new();
        entry.append("k", ValueRef::String(name));
        entry.append("v", value);
        entries.push(ValueRef::Document(entry.finish().as_document()))?;
    }
    Ok(entries.finish().into())
}
