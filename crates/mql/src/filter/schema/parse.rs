//! Parses schema documents into rules: the table of keywords.

use std::collections::HashSet;

use windrow_document::{Array, Decimal128, Document, Type, ValueRef};

use super::encryption::{EncryptKeyword, check_metadata};
use super::{AdditionalRule, Dependency, Items, Rules, UnorderedSet};
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

type ParseKeyword = fn(&Keyword<'_>, &mut Rules) -> Result<(), Error>;

/// The keywords, sorted by name for binary search.
const KEYWORDS: &[(&str, ParseKeyword)] = &[
    ("additionalItems", additional_items),
    ("additionalProperties", |keyword, rules| {
        set(&mut rules.object.additional, keyword.additional())
    }),
    ("allOf", |keyword, rules| {
        set(&mut rules.all_of, keyword.schemas())
    }),
    ("anyOf", |keyword, rules| {
        set(&mut rules.any_of, keyword.schemas())
    }),
    ("bsonType", bson_type),
    ("dependencies", dependencies),
    ("description", |keyword, _| keyword.string().map(drop)),
    ("encrypt", encrypt),
    ("encryptMetadata", encrypt_metadata),
    ("enum", one_of_values),
    ("exclusiveMaximum", |keyword, _| {
        keyword.exclusive("maximum")
    }),
    ("exclusiveMinimum", |keyword, _| {
        keyword.exclusive("minimum")
    }),
    ("items", items),
    ("maxItems", |keyword, rules| {
        keyword.limit(&mut rules.item_count.max)
    }),
    ("maxLength", |keyword, rules| {
        keyword.limit(&mut rules.length.max)
    }),
    ("maxProperties", |keyword, rules| {
        keyword.limit(&mut rules.object.count.max)
    }),
    ("maximum", |keyword, rules| {
        keyword.bound(rules, "exclusiveMaximum", Comparison::Lte, Comparison::Lt)
    }),
    ("minItems", |keyword, rules| {
        keyword.limit(&mut rules.item_count.min)
    }),
    ("minLength", |keyword, rules| {
        keyword.limit(&mut rules.length.min)
    }),
    ("minProperties", |keyword, rules| {
        keyword.limit(&mut rules.object.count.min)
    }),
    ("minimum", |keyword, rules| {
        keyword.bound(rules, "exclusiveMinimum", Comparison::Gte, Comparison::Gt)
    }),
    ("multipleOf", multiple_of),
    ("not", |keyword, rules| {
        set(&mut rules.not, keyword.schema().map(Some))
    }),
    ("oneOf", |keyword, rules| {
        set(&mut rules.one_of, keyword.schemas())
    }),
    ("pattern", |keyword, rules| {
        set(&mut rules.pattern, keyword.regex().map(Some))
    }),
    ("patternProperties", pattern_properties),
    ("properties", properties),
    ("required", |keyword, rules| {
        set(&mut rules.object.required, keyword.names())
    }),
    ("title", |keyword, _| keyword.string().map(drop)),
    ("type", json_type),
    ("uniqueItems", |keyword, rules| {
        set(&mut rules.unique_items, keyword.flag())
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
    if schema.contains("encrypt") {
        check_encrypt_alone(schema)?;
    }
    let mut rules = Rules::default();
    for (name, value) in schema {
        let index = KEYWORDS
            .binary_search_by(|(keyword, _)| (*keyword).cmp(name))
            .ok();
        let Some((_, parser)) = index.and_then(|index| KEYWORDS.get(index)) else {
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

/// `encrypt` states the type of a value, and how it is encrypted.
fn check_encrypt_alone(schema: Document<'_>) -> Result<(), Error> {
    if let Some(other) = ["type", "bsonType"]
        .iter()
        .find(|name| schema.contains(name))
    {
        return Err(Error::failed_to_parse(format!(
            "$jsonSchema keyword 'encrypt' cannot be used in conjunction with '{other}', \
             'encrypt' implies type 'bsonType::BinData'"
        )));
    }
    if schema.contains("encryptMetadata") {
        return Err(Error::failed_to_parse(
            "Cannot specify both $jsonSchema keywords 'encrypt' and 'encryptMetadata'",
        ));
    }
    Ok(())
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

    /// Returns a non-empty list of schemas.
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

    /// Returns a non-empty list of distinct names.
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

    /// Returns a document of schemas by name.
    fn schemas_by_name(&self) -> Result<Vec<(String, Rules)>, Error> {
        let parse = |(name, value): (&str, ValueRef<'_>)| match value {
            ValueRef::Document(schema) => Ok((name.to_owned(), rules(schema)?)),
            _ => Err(self.wrong_type("an object of objects")),
        };
        self.document()?.iter().map(parse).collect()
    }

    fn additional(&self) -> Result<AdditionalRule, Error> {
        match self.value {
            ValueRef::Bool(true) => Ok(AdditionalRule::Any),
            ValueRef::Bool(false) => Ok(AdditionalRule::None),
            ValueRef::Document(schema) => Ok(AdditionalRule::Rules(Box::new(rules(schema)?))),
            _ => Err(self.wrong_type("either an object or a boolean")),
        }
    }

    fn limit(&self, limit: &mut Option<usize>) -> Result<(), Error> {
        let whole = self
            .value
            .as_whole()
            .and_then(|number| usize::try_from(number).ok());
        let number = whole.ok_or_else(|| self.wrong_value("must be a non-negative integer"))?;
        *limit = Some(number);
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

fn json_type(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let mut types = TypeSet::default();
    for name in type_names(keyword)? {
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

fn bson_type(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    rules.types = Some(bson_types(keyword)?);
    Ok(())
}

fn bson_types(keyword: &Keyword<'_>) -> Result<TypeSet, Error> {
    let mut types = TypeSet::default();
    for name in type_names(keyword)? {
        let named = TypeSet::parse(ValueRef::String(&name))?;
        named.iter().for_each(|type_of| types.insert(type_of));
    }
    Ok(types)
}

fn encrypt(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let schema = keyword.document()?;
    check_metadata(keyword.name, schema, &["bsonType"])?;
    let types = schema.get("bsonType").map(|value| {
        let name = "bsonType";
        bson_types(&Keyword {
            name,
            value,
            schema,
        })
    });
    rules.encrypted = Some(EncryptKeyword {
        types: types.transpose()?,
    });
    Ok(())
}

fn encrypt_metadata(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let metadata = keyword.document()?;
    if metadata.is_empty() {
        return Err(keyword.wrong_value("cannot be an empty object"));
    }
    rules.has_encryption_metadata = true;
    check_metadata(keyword.name, metadata, &[])
}

/// Returns a type name or a list of type names.
fn type_names(keyword: &Keyword<'_>) -> Result<Vec<String>, Error> {
    match keyword.value {
        ValueRef::String(name) => Ok(vec![name.to_owned()]),
        ValueRef::Array(list) => keyword.name_list(list),
        _ => Err(keyword.wrong_type("either a string or an array of strings")),
    }
}

fn one_of_values(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let mut values = UnorderedSet::default();
    for value in keyword.array()? {
        if !values.insert(value)? {
            return Err(keyword.wrong_value("cannot contain duplicate values"));
        }
    }
    if values.is_empty() {
        return Err(keyword.wrong_value("cannot be an empty array"));
    }
    rules.one_of_values = Some(values);
    Ok(())
}

fn multiple_of(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let divisor = match keyword.value {
        ValueRef::Int32(number) => Decimal128::from_i64(i64::from(number)),
        ValueRef::Int64(number) => Decimal128::from_i64(number),
        ValueRef::Double(number) => Decimal128::from_f64(number),
        ValueRef::Decimal128(number) => number,
        _ => return Err(keyword.wrong_type("a number")),
    };
    if divisor.is_nan() || divisor.is_infinite() || divisor.is_zero() || divisor.is_negative() {
        return Err(keyword.wrong_value("must have a positive value"));
    }
    rules.multiple_of = Some(divisor);
    Ok(())
}

fn items(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let additional = match keyword.schema.get("additionalItems") {
        Some(value) => Keyword {
            name: "additionalItems",
            value,
            schema: keyword.schema,
        }
        .additional()?,
        None => AdditionalRule::Any,
    };
    rules.items = Some(match keyword.value {
        ValueRef::Document(schema) => Items::All(Box::new(self::rules(schema)?)),
        ValueRef::Array(list) => Items::List {
            first: keyword.schema_list(list)?,
            additional,
        },
        _ => return Err(keyword.wrong_type("an array or an object")),
    });
    Ok(())
}

/// `additionalItems` is read with `items`. Without it, it has no effect.
fn additional_items(keyword: &Keyword<'_>, _: &mut Rules) -> Result<(), Error> {
    keyword.additional().map(drop)
}

fn properties(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    rules.object.properties = keyword.schemas_by_name()?;
    Ok(())
}

fn pattern_properties(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let schemas = keyword.schemas_by_name()?.into_iter();
    let patterns = schemas.map(|(pattern, rules)| Ok((Regex::new(&pattern, "")?, rules)));
    rules.object.patterns = patterns.collect::<Result<_, Error>>()?;
    Ok(())
}

fn dependencies(keyword: &Keyword<'_>, rules: &mut Rules) -> Result<(), Error> {
    let parse = |(name, value): (&str, ValueRef<'_>)| {
        let dependency = match value {
            ValueRef::Document(schema) => Dependency::Rules(Box::new(self::rules(schema)?)),
            ValueRef::Array(list) => Dependency::Fields(keyword.name_list(list)?),
            _ => return Err(keyword.wrong_type("an object of objects or arrays")),
        };
        Ok((name.to_owned(), dependency))
    };
    rules.object.dependencies = keyword
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
