//! `$jsonSchema`: JSON Schema draft 4 as MongoDB supports it, with `bsonType`, and without
//! references, formats and defaults.

mod encryption;
mod keywords;
mod parse;
mod unordered;

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, Decimal128, Document, Value, ValueRef};

use super::compare::{Comparison, compares};
use super::regex::Regex;
use super::type_set::TypeSet;
use super::walk::MatchResult;
use crate::Error;
use crate::interrupt::count_work;

use encryption::EncryptKeyword;
pub(super) use encryption::is_encrypted;
use unordered::UnorderedSet;
pub(super) use unordered::repeated;

/// A parsed schema. Clones share it.
#[derive(Clone, Debug)]
pub struct Schema {
    rules: Arc<Rules>,
    source: Arc<Value>,
}

/// Schemas are equal if they are written alike.
impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.source == other.source
    }
}

impl Schema {
    /// Parses the operand of `$jsonSchema`.
    ///
    /// # Errors
    ///
    /// - 14: a keyword has a value of the wrong type.
    /// - 9: a keyword is unknown or has an invalid value.
    /// - 2: a list of schemas is empty, or a type is unknown.
    pub fn parse(operand: ValueRef<'_>) -> Result<Schema, Error> {
        let ValueRef::Document(document) = operand else {
            return Err(Error::type_mismatch("$jsonSchema must be an object"));
        };
        let rules = Arc::new(parse::rules(document)?);
        Ok(Schema {
            rules,
            source: Arc::new(operand.to_value()),
        })
    }

    /// Returns the operand of `$jsonSchema` as written.
    pub fn source(&self) -> ValueRef<'_> {
        (*self.source).as_ref()
    }

    /// Fields that every document has that the schema accepts.
    pub fn required(&self) -> impl Iterator<Item = Path> {
        let mut names = Vec::new();
        self.rules.add_required(&mut names);
        names.into_iter().map(Path::parse)
    }

    /// Returns `true` if a keyword in the schema is about encrypted values.
    pub(super) fn has_encryption(&self) -> bool {
        self.rules.has_encryption()
    }

    /// Returns the parsed keywords of the schema.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) fn matches(&self, document: Document<'_>) -> MatchResult {
        self.rules.accept(ValueRef::Document(document))
    }
}

/// The parsed keywords of a schema. A value must fulfil all of them. Keywords about numbers,
/// strings, arrays or objects accept every value of another type.
#[derive(Debug, Default)]
pub(super) struct Rules {
    types: Option<TypeSet>,
    encrypted: Option<EncryptKeyword>,
    /// `true` if the keyword `encryptMetadata` is there. It has no effect on values.
    has_encryption_metadata: bool,
    one_of_values: Option<UnorderedSet>,
    bounds: Vec<(Comparison, Value)>,
    multiple_of: Option<Decimal128>,
    length: Range,
    pattern: Option<Regex>,
    pub items: Option<Items>,
    item_count: Range,
    unique_items: bool,
    pub object: ObjectRules,
    pub all_of: Vec<Rules>,
    pub any_of: Vec<Rules>,
    pub one_of: Vec<Rules>,
    not: Option<Box<Rules>>,
}

/// The minimum and the maximum of a count.
#[derive(Debug, Default)]
struct Range {
    min: Option<usize>,
    max: Option<usize>,
}

impl Range {
    fn contains(&self, count: impl FnOnce() -> usize) -> bool {
        if self.min.is_none() && self.max.is_none() {
            return true;
        }
        let count = count();
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }
}

#[derive(Debug)]
pub(super) enum Items {
    /// One schema for every element.
    All(Box<Rules>),
    /// One schema for each of the first elements, and a rule for the elements after them.
    List {
        first: Vec<Rules>,
        additional: AdditionalRule,
    },
}

/// The rule for elements or fields that no other keyword covers.
#[derive(Debug, Default)]
pub(super) enum AdditionalRule {
    #[default]
    Any,
    None,
    Rules(Box<Rules>),
}

impl AdditionalRule {
    pub fn rules(&self) -> Option<&Rules> {
        match self {
            AdditionalRule::Rules(rules) => Some(rules),
            AdditionalRule::Any | AdditionalRule::None => None,
        }
    }

    fn accept(&self, value: ValueRef<'_>) -> MatchResult {
        match self {
            AdditionalRule::Any => Ok(true),
            AdditionalRule::None => Ok(false),
            AdditionalRule::Rules(rules) => rules.accept(value),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    count: Range,
    required: Vec<String>,
    pub properties: Vec<(String, Rules)>,
    pub patterns: Vec<(Regex, Rules)>,
    pub additional: AdditionalRule,
    pub dependencies: Vec<(String, Dependency)>,
}

/// What an object must fulfil if it has a field.
#[derive(Debug)]
pub(super) enum Dependency {
    Fields(Vec<String>),
    Rules(Box<Rules>),
}

impl Rules {
    /// Names with dots are skipped, because a schema does not read them as paths.
    fn add_required<'s>(&'s self, names: &mut Vec<&'s str>) {
        let required = self.object.required.iter().map(String::as_str);
        names.extend(required.filter(|name| !name.contains('.')));
        self.all_of.iter().for_each(|one| one.add_required(names));
    }

    fn has_encryption(&self) -> bool {
        self.encrypted.is_some()
            || self.has_encryption_metadata
            || self.subschemas().into_iter().any(Rules::has_encryption)
    }

    /// Returns the schemas directly within this one.
    fn subschemas(&self) -> Vec<&Rules> {
        let mut found: Vec<&Rules> = self.all_of.iter().collect();
        found.extend(&self.any_of);
        found.extend(&self.one_of);
        found.extend(self.not.as_deref());
        match &self.items {
            Some(Items::All(rules)) => found.push(rules),
            Some(Items::List { first, additional }) => {
                found.extend(first);
                found.extend(additional.rules());
            }
            None => {}
        }
        found.extend(self.object.properties.iter().map(|(_, rules)| rules));
        found.extend(self.object.patterns.iter().map(|(_, rules)| rules));
        found.extend(self.object.additional.rules());
        let dependencies = self.object.dependencies.iter();
        found.extend(dependencies.filter_map(|(_, dependency)| match dependency {
            Dependency::Rules(rules) => Some(&**rules),
            Dependency::Fields(_) => None,
        }));
        found
    }

    /// Returns `true` if the value fulfils all keywords.
    pub fn accept(&self, value: ValueRef<'_>) -> MatchResult {
        count_work(1)?;
        let plain = self.accepts_type(value)
            && self.accepts_encryption(value)
            && self.accepts_number(value);
        Ok(plain
            && self.accept_listed(value)?
            && self.accept_string(value)?
            && self.accept_array(value)?
            && self.accept_object(value)?
            && self.accept_combined(value)?)
    }

    fn accepts_type(&self, value: ValueRef<'_>) -> bool {
        self.types
            .is_none_or(|types| types.contains(value.type_of()))
    }

    fn accepts_encryption(&self, value: ValueRef<'_>) -> bool {
        let encrypted = self.encrypted.as_ref();
        encrypted.is_none_or(|encrypted| encrypted.accepts(value))
    }

    fn accept_listed(&self, value: ValueRef<'_>) -> MatchResult {
        match &self.one_of_values {
            Some(values) => values.contains(value).map_err(Box::new),
            None => Ok(true),
        }
    }

    fn accepts_number(&self, value: ValueRef<'_>) -> bool {
        if !value.is_number() {
            return true;
        }
        let mut bounds = self.bounds.iter();
        let within =
            bounds.all(|(operator, bound)| compares(Some(value), *operator, bound.as_ref(), None));
        within
            && self
                .multiple_of
                .is_none_or(|divisor| is_multiple(value, divisor))
    }

    fn accept_string(&self, value: ValueRef<'_>) -> MatchResult {
        let ValueRef::String(text) = value else {
            return Ok(true);
        };
        Ok(self.length.contains(|| text.chars().count()) && self.accept_pattern(text)?)
    }

    fn accept_pattern(&self, text: &str) -> MatchResult {
        let matches = |regex: &Regex| regex.is_match(text).map_err(Box::new);
        self.pattern.as_ref().map_or(Ok(true), matches)
    }

    fn accept_array(&self, value: ValueRef<'_>) -> MatchResult {
        let ValueRef::Array(array) = value else {
            return Ok(true);
        };
        if !self.item_count.contains(|| array.count())
            || (self.unique_items && repeated(array).map_err(Box::new)?.is_some())
        {
            return Ok(false);
        }
        Ok(self.accept_items(array)? && self.accept_additional_items(array)?)
    }

    fn accept_items(&self, array: Array<'_>) -> MatchResult {
        match &self.items {
            None => Ok(true),
            Some(Items::All(rules)) => all(array.iter().map(|item| rules.accept(item))),
            Some(Items::List { first, .. }) => {
                let listed = array.iter().zip(first);
                all(listed.map(|(item, rules)| rules.accept(item)))
            }
        }
    }

    /// Without a list of schemas in `items`, `additionalItems` has no effect.
    fn accept_additional_items(&self, array: Array<'_>) -> MatchResult {
        match &self.items {
            Some(Items::List { first, additional }) => {
                let rest = array.iter().skip(first.len());
                all(rest.map(|item| additional.accept(item)))
            }
            Some(Items::All(_)) | None => Ok(true),
        }
    }

    fn accept_object(&self, value: ValueRef<'_>) -> MatchResult {
        match value {
            ValueRef::Document(document) => self.object.accept(document),
            _ => Ok(true),
        }
    }

    fn accept_combined(&self, value: ValueRef<'_>) -> MatchResult {
        if !self.accept_all_of(value)? {
            return Ok(false);
        }
        if !self.any_of.is_empty() && count(&self.any_of, value)? == 0 {
            return Ok(false);
        }
        if !self.one_of.is_empty() && count(&self.one_of, value)? != 1 {
            return Ok(false);
        }
        self.accept_not(value)
    }

    fn accept_all_of(&self, value: ValueRef<'_>) -> MatchResult {
        all(self.all_of.iter().map(|rules| rules.accept(value)))
    }

    fn accept_not(&self, value: ValueRef<'_>) -> MatchResult {
        self.not
            .as_ref()
            .map_or(Ok(true), |rules| rules.accept(value).map(|found| !found))
    }
}

impl ObjectRules {
    fn accept(&self, document: Document<'_>) -> MatchResult {
        let sized = self.count.contains(|| document.count());
        if !sized || !self.has_required(document) {
            return Ok(false);
        }
        let checks_fields = !self.properties.is_empty()
            || !self.patterns.is_empty()
            || !matches!(self.additional, AdditionalRule::Any);
        if checks_fields && !all(document.iter().map(|(name, value)| self.field(name, value)))? {
            return Ok(false);
        }
        self.accept_dependencies(document)
    }

    fn has_required(&self, document: Document<'_>) -> bool {
        self.required.iter().all(|name| document.contains(name))
    }

    fn accept_dependencies(&self, document: Document<'_>) -> MatchResult {
        all(self
            .dependencies
            .iter()
            .map(|(name, dependency)| Ok(!document.contains(name) || dependency.accept(document)?)))
    }

    fn field(&self, name: &str, value: ValueRef<'_>) -> MatchResult {
        let mut named = false;
        for (_, rules) in self.properties.iter().filter(|(one, _)| one == name) {
            named = true;
            if !rules.accept(value)? {
                return Ok(false);
            }
        }
        for (regex, rules) in &self.patterns {
            if regex.is_match(name).map_err(Box::new)? {
                named = true;
                if !rules.accept(value)? {
                    return Ok(false);
                }
            }
        }
        if named {
            Ok(true)
        } else {
            self.additional.accept(value)
        }
    }
}

impl Dependency {
    fn accept(&self, document: Document<'_>) -> MatchResult {
        match self {
            Dependency::Fields(names) => Ok(names.iter().all(|name| document.contains(name))),
            Dependency::Rules(rules) => rules.accept(ValueRef::Document(document)),
        }
    }
}

fn all(mut outcomes: impl Iterator<Item = MatchResult>) -> MatchResult {
    outcomes.try_fold(true, |all, one| Ok(all && one?))
}

fn count(schemas: &[Rules], value: ValueRef<'_>) -> Result<usize, Box<Error>> {
    let outcomes = schemas.iter().map(|rules| rules.accept(value));
    outcomes
        .into_iter()
        .try_fold(0, |count, one| Ok(count + usize::from(one?)))
}

fn is_multiple(value: ValueRef<'_>, divisor: Decimal128) -> bool {
    let number = match value {
        ValueRef::Int32(number) => Decimal128::from_i64(i64::from(number)),
        ValueRef::Int64(number) => Decimal128::from_i64(number),
        ValueRef::Double(number) => Decimal128::from_f64(number),
        ValueRef::Decimal128(number) => number,
        _ => return true,
    };
    number.remainder(divisor).is_zero()
}
