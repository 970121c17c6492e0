//! Checks single keywords of a schema. A validation report names each keyword that a value does not
//! fulfil.

use windrow_document::{Array, Document, ValueRef};

use super::{ObjectRules, Range, Rules, all, count, is_multiple, repeated};
use crate::filter::compare::{Comparison, compares};
use crate::filter::walk::MatchResult;
use crate::interrupt::count_work;

impl Rules {
    /// Returns `true` if the value fulfils a keyword that the schema has. Keywords that depend on each other are checked
    /// together: `maximum` with `exclusiveMaximum`, `additionalItems` with `items`,
    /// `additionalProperties` with `properties` and `patternProperties`.
    pub fn accept_keyword(&self, keyword: &str, value: ValueRef<'_>) -> MatchResult {
        count_work(1)?;
        match (keyword, value) {
            ("type" | "bsonType", _) => Ok(self.accepts_type(value)),
            ("encrypt", _) => Ok(self.accepts_encryption(value)),
            ("enum", _) => self.accept_listed(value),
            ("allOf", _) => self.accept_all_of(value),
            ("anyOf", _) => Ok(count(&self.any_of, value)? != 0),
            ("oneOf", _) => Ok(count(&self.one_of, value)? == 1),
            ("not", _) => self.accept_not(value),
            (_, ValueRef::String(text)) => self.accept_string_keyword(keyword, text),
            (_, ValueRef::Array(array)) => self.accept_array_keyword(keyword, array),
            (_, ValueRef::Document(document)) => self.object.accept_keyword(keyword, document),
            _ if value.is_number() => Ok(self.accepts_number_keyword(keyword, value)),
            _ => Ok(true),
        }
    }

    fn accepts_number_keyword(&self, keyword: &str, number: ValueRef<'_>) -> bool {
        let is_within = |operators: [Comparison; 2]| {
            let mut bounds = self
                .bounds
                .iter()
                .filter(|(operator, _)| operators.contains(operator));
            bounds.all(|(operator, bound)| compares(Some(number), *operator, bound.as_ref(), None))
        };
        match keyword {
            "maximum" => is_within([Comparison::Lt, Comparison::Lte]),
            "minimum" => is_within([Comparison::Gt, Comparison::Gte]),
            "multipleOf" => self
                .multiple_of
                .is_none_or(|divisor| is_multiple(number, divisor)),
            _ => true,
        }
    }

    fn accept_string_keyword(&self, keyword: &str, text: &str) -> MatchResult {
        match keyword {
            "maxLength" => Ok(self.length.upper().contains(|| text.chars().count())),
            "minLength" => Ok(self.length.lower().contains(|| text.chars().count())),
            "pattern" => self.accept_pattern(text),
            _ => Ok(true),
        }
    }

    fn accept_array_keyword(&self, keyword: &str, array: Array<'_>) -> MatchResult {
        match keyword {
            "maxItems" => Ok(self.item_count.upper().contains(|| array.count())),
            "minItems" => Ok(self.item_count.lower().contains(|| array.count())),
            "uniqueItems" => Ok(!self.unique_items || repeated(array).map_err(Box::new)?.is_none()),
            "items" => self.accept_items(array),
            "additionalItems" => self.accept_additional_items(array),
            _ => Ok(true),
        }
    }
}

impl ObjectRules {
    fn accept_keyword(&self, keyword: &str, document: Document<'_>) -> MatchResult {
        let fields = document.iter();
        match keyword {
            "maxProperties" => Ok(self.count.upper().contains(|| document.count())),
            "minProperties" => Ok(self.count.lower().contains(|| document.count())),
            "required" => Ok(self.has_required(document)),
            "properties" => {
                all(fields.map(|(name, value)| all(self.named(name).map(|it| it.accept(value)))))
            }
            "patternProperties" => {
                all(fields.map(|(name, value)| self.accept_patterns(name, value)))
            }
            "additionalProperties" => all(fields
                .map(|(name, value)| Ok(self.is_covered(name)? || self.additional.accept(value)?))),
            "dependencies" => self.accept_dependencies(document),
            _ => Ok(true),
        }
    }

    /// Returns the schemas of `properties` that apply to a field.
    fn named<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Rules> {
        let named = self.properties.iter().filter(move |(one, _)| one == name);
        named.map(|(_, rules)| rules)
    }

    fn accept_patterns(&self, name: &str, value: ValueRef<'_>) -> MatchResult {
        let patterns = self.patterns.iter();
        all(patterns.map(|(regex, rules)| {
            let applies = regex.is_match(name).map_err(Box::new)?;
            Ok(!applies || rules.accept(value)?)
        }))
    }

    /// Returns `true` if `properties` or `patternProperties` apply to a field.
    /// `additionalProperties` applies to the others.
    pub fn is_covered(&self, name: &str) -> MatchResult {
        if self.named(name).next().is_some() {
            return Ok(true);
        }
        for (regex, _) in &self.patterns {
            if regex.is_match(name).map_err(Box::new)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Range {
    /// The range without its minimum.
    fn upper(&self) -> Range {
        Range {
            min: None,
            max: self.max,
        }
    }

    /// The range without its maximum.
    fn lower(&self) -> Range {
        Range {
            min: self.min,
            max: None,
        }
    }
}
