//! Parses schema documents into rules: the table of keywords.

use std::collections::HashSet;

use windrow_document::{Array, Decimal128, Document, Type, ValueRef};

use super::{Dependency, Items, Range, Rest, Rules, UnorderedSet};
use crate::Error;
use crate::filter::compare::Comparison;
use crate::filter::regex::Regex;
use crate::filter::type_set::TypeSet;

/// A keyword, its value, and the schema that contains it.
struct Keyword<'a> {
    name: &'a str,
    value: ValueRef<'a>,
    schema: Document<'a>,
}

type Parser = fn(&Keyword<'_>, &mut Rules) -> Result<(), Error>;

/// The keywords, sorted by name for binary search.
const KEYWORDS: &[(&str, Parser)] = &[
    ("additionalItems", additional_items),
    ("additionalProperties", |one, rules| {
        set(&mut rules.object.rest, one.rest())
    }),
    ("allOf", |one, rules| set(&mut rules.all_of, one.schemas())),
    ("anyOf", |one, rules| set(&mut rules.any_of, one.schemas())),
    ("bsonType", bson_type),
    ("dependencies", dependencies),
    ("description", |one, _| one.string().map(drop)),
    ("enum", one_of_values),
    ("exclusiveMaximum", |one, _| one.exclusive("maximum")),
    ("exclusiveMinimum", |one, _| one.exclusive("minimum")),
    ("items", items),
    ("maxItems", |one, rules| {
        one.limit(&mut rules.item_count, false)
    }),
    ("maxLength", |one, rules| {
        one.limit(&mut rules.length, false)
    }),
    ("maxProperties", |one, rules| {
        one.limit(&mut rules.object.count, false)
    }),
    ("maximum", |one, rules| {
        one.bound(rules, "exclusiveMaximum", Comparison::Lte, Comparison::Lt)
    }),
    ("minItems", |one, rules| {
        one.limit(&mut rules.item_count, true)
    }),
    ("minLength", |one, rules| one.limit(&mut rules.length, true)),
    ("minProperties", |one, rules| {
        one.limit(&mut rules.object.count, true)
    }),
    ("minimum", |one, rules| {
        one.bound(rules, "exclusiveMinimum", Comparison::Gte, Comparison::Gt)
    }),
    ("multipleOf", multiple_of),
    ("not", |one, rules| {
        set(&mut rules.not, one.schema().map(Some))
    }),
    ("oneOf", |one, rules| set(&mut rules.one_of, one.schemas())),
    ("pattern", |one, rules| {
        set(&mut rules.pattern, one.regex().map(Some))
    }),
    ("patternProperties", pattern_properties),
    ("properties", properties),
    ("required", |one, rules| {
        set(&mut rules.object.required, one.names())
    }),
    ("title", |one, _| one.string().map(drop)),
    ("type", json_type),
    ("uniqueItems", |one, rules| {
        set(&mut rules.unique_items, one.flag())
    }),
];

/// Keywords of draft 4 that MongoDB knows but does not support.
const UNSUPPORTED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

fn set<T>(slot: &mut T, value: Result<T, Error>) -> Result<(), Error> {
    *slot = value?;
    Ok(())
}

pub(super) fn rules(schema: Document<'_>) -> Result<Rules, Error> {
    if schema.contains("type") && schema.contains("bsonType") {
        return Err(Error::failed_to_parse(
            "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'",
        ));
    }
    let mut rules = Rules::default();
    for (name, value) in schema {
        let place = KEYWORDS.binary_search_by(|(one, _)| (*one).cmp(name)).ok();
        let Some((_, parser)) = place.and_then(|place| KEYWORDS.get(place)) else {
            return Err(Error::failed_to_parse(if UNSUPPORTED.contains(&name) {
                format!("$jsonSchema keyword '{name}' is not currently supported")
            } else {
                format!("Unknown $jsonSchema keyword: {name}")
            }));
        };
        parser(
            &Keyword {
                name,
                value,
                schema,
            },
            &mut rules,
        )?;
    }
    Ok(rules)
}

impl<'a> Keyword<'a> {
    fn wrong_type(&self, expected: &str) -> Error {
        Error::type_mismatch(format!(
            "$jsonSchema keyword '{}' must be {expected}",
            self.name
        ))
    }

    fn wrong_value(&self, expected: &str) -> Error {
        Error::failed_to_parse(format!(
            "$jsonSchema keyword '{}' {expected}, found {}",
            self.name, self.value
        ))
    }

    fn string(&self) -> Result<&'a str, Error> {
        self.value
            .as_str()
            .ok_or_else(|| self.wrong_type("a string"))
    }

    fn flag(&self) -> Result<bool, Error> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong_type("a boolean"))
    }

    fn document(&self) -> Result<Document<'a>, Error> {
        self.value
            .as_document()
            .ok_or_else(|| self.wrong_type("an object"))
    }

    fn array(&self) -> Result<Array<'a>, Error> {
        self.value
            .as_array()
            .ok_or_else(|| self.wrong_type("an array"))
    }

    fn schema(&self) -> Result<Box<Rules>, Error> {
        rules(self.document()?).map(Box::new)
    }

    fn regex(&self) -> Result<Regex, Error> {
        Regex::new(self.string()?, "")
    }

    /// A non-empty list of schemas.
    fn schemas(&self) -> Result<Vec<Rules>, Error> {
        let list = self.array()?;
        if list.is_empty() {
            let message = format!(
                "$jsonSchema keyword '{}' must be a non-empty array",
                self.name
            );
            return Err(Error::bad_value(message));
        }
        self.schema_list(list)
    }

    fn schema_list(&self, list: Array<'_>) -> Result<Vec<Rules>, Error> {
        let parse = |item: ValueRef<'_>| match item {
            ValueRef::Document(schema) => rules(schema),
            _ => Err(self.wrong_type("an array of objects")),
        };
        list.iter().map(parse).collect()
    }

    /// A non-empty list of distinct names.
    fn names(&self) -> Result<Vec<String>, Error> {
        self.name_list(self.array()?)
    }

    fn name_list(&self, list: Array<'_>) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        for item in list {
            let name = item
                .as_str()
                .ok_or_else(|| self.wrong_type("an array of strings"))?;
            if !seen.insert(name) {
                return Err(self.wrong_value("cannot contain duplicate values"));
            }
            names.push(name.to_owned());
        }
        if names.is_empty() {
            return Err(self.wrong_value("cannot be an empty array"));
        }
        Ok(names)
    }

    /// A document of schemas by name.
    fn schemas_by_name(&self) -> Result<Vec<(String, Rules)>, Error> {
        let parse = |(name, value): (&str, ValueRef<'_>)| match value {
            ValueRef::Document(schema) => Ok((name.to_owned(), rules(schema)?)),
            _ => Err(self.wrong_type("an object of objects")),
        };
        self.document()?.iter().map(parse).collect()
    }

    fn rest(&self) -> Result<Rest, Error> {
        match self.value {
            ValueRef::Bool(true) => Ok(Rest::Any),
            ValueRef::Bool(false) => Ok(Rest::None),
            ValueRef::Document(schema) => Ok(Rest::Rules(Box::new(rules(schema)?))),
            _ => Err(self.wrong_type("either an object or a boolean")),
        }
    }

    fn limit(&self, range: &mut Range, is_min: bool) -> Result<(), Error> {
        let whole = self
            .value
            .as_whole()
            .and_then(|number| usize::try_from(number).ok());
        let limit = whole.ok_or_else(|| self.wrong_value("must be a non-negative integer"))?;
        *(if is_min {
            &mut range.min
        } else {
            &mut range.max
        }) = Some(limit);
        Ok(())
    }

    fn bound(
        &self,
        rules: &mut Rules,
        exclusive: &str,
        with_equal: Comparison,
        without: Comparison,
    ) -> Result<(), Error> {
        if !self.value.is_number() {
            return Err(self.wrong_type("a number"));
        }
        let exclusive = self.schema.get(exclusive).and_then(ValueRef::as_bool) == Some(true);
        let operator = if exclusive { without } else { with_equal };
        rules.bounds.push((operator, self.value.to_value()));
        Ok(())
    }

    /// `exclusiveMinimum` and `exclusiveMaximum` are read with the bound. Without it they are
    /// refused.
    fn exclusive(&self, bound: &str) -> Result<(), Error> {
        self.flag()?;
        if self.schema.contains(bound) {
            return Ok(());
        }
        Err(self.wrong_value(&format!("needs the keyword '{bound}'")))
    }
}

fn json_type(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let mut types = TypeSet::default();
    for name in type_names(one)? {
        match name.as_str() {
            "array" => types.insert(Type::Array),
            "boolean" => types.insert(Type::Bool),
            "null" => types.insert(Type::Null),
            "number" => types.insert_numbers(),
            "object" => types.insert(Type::Document),
            "string" => types.insert(Type::String),
            "integer" => {
                let message = "$jsonSchema type 'integer' is not currently supported.";
                return Err(Error::failed_to_parse(message));
            }
            other => {
                return Err(Error::bad_value(format!(
                    "Unknown type name alias: {other}"
                )));
            }
        }
    }
    rules.types = Some(types);
    Ok(())
}

fn bson_type(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let mut types = TypeSet::default();
    for name in type_names(one)? {
        let named = TypeSet::parse(ValueRef::String(&name))?;
        named.iter().for_each(|type_of| types.insert(type_of));
    }
    rules.types = Some(types);
    Ok(())
}

/// A type name or a list of type names.
fn type_names(one: &Keyword<'_>) -> Result<Vec<String>, Error> {
    match one.value {
        ValueRef::String(name) => Ok(vec![name.to_owned()]),
        ValueRef::Array(list) => one.name_list(list),
        _ => Err(one.wrong_type("either a string or an array of strings")),
    }
}

fn one_of_values(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let mut values = UnorderedSet::default();
    for value in one.array()? {
        if !values.insert(value)? {
            return Err(one.wrong_value("cannot contain duplicate values"));
        }
    }
    if values.is_empty() {
        return Err(one.wrong_value("cannot be an empty array"));
    }
    rules.one_of_values = Some(values);
    Ok(())
}

fn multiple_of(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let divisor = match one.value {
        ValueRef::Int32(number) => Decimal128::from_i64(i64::from(number)),
        ValueRef::Int64(number) => Decimal128::from_i64(number),
        ValueRef::Double(number) => Decimal128::from_f64(number),
        ValueRef::Decimal128(number) => number,
        _ => return Err(one.wrong_type("a number")),
    };
    if divisor.is_nan() || divisor.is_infinite() || divisor.is_zero() || divisor.is_negative() {
        return Err(one.wrong_value("must have a positive value"));
    }
    rules.multiple_of = Some(divisor);
    Ok(())
}

fn items(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let rest = match one.schema.get("additionalItems") {
        Some(value) => Keyword {
            name: "additionalItems",
            value,
            schema: one.schema,
        }
        .rest()?,
        None => Rest::Any,
    };
    rules.items = Some(match one.value {
        ValueRef::Document(schema) => Items::All(Box::new(self::rules(schema)?)),
        ValueRef::Array(list) => Items::List {
            first: one.schema_list(list)?,
            rest,
        },
        _ => return Err(one.wrong_type("an array or an object")),
    });
    Ok(())
}

/// `additionalItems` is read with `items`. Without it, it has no effect.
fn additional_items(one: &Keyword<'_>, _: &mut Rules) -> Result<(), Error> {
    one.rest().map(drop)
}

fn properties(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    rules.object.properties = one.schemas_by_name()?;
    Ok(())
}

fn pattern_properties(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let schemas = one.schemas_by_name()?.into_iter();
    let patterns = schemas.map(|(pattern, rules)| Ok((Regex::new(&pattern, "")?, rules)));
    rules.object.patterns = patterns.collect::<Result<_, Error>>()?;
    Ok(())
}

fn dependencies(one: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let parse = |(name, value): (&str, ValueRef<'_>)| {
        let dependency = match value {
            ValueRef::Document(schema) => Dependency::Rules(Box::new(self::rules(schema)?)),
            ValueRef::Array(list) => Dependency::Fields(one.name_list(list)?),
            _ => return Err(one.wrong_type("an object of objects or arrays")),
        };
        Ok((name.to_owned(), dependency))
    };
    rules.object.dependencies = one
        .document()?
        .iter()
        .map(parse)
        .collect::<Result<_, Error>>()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(KEYWORDS.is_sorted_by_key(|(name, _)| *name));
    }
}
