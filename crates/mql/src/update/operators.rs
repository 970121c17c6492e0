//! Updates with operators: the table of operators, and the construction of the tree.

use std::cell::RefCell;
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};

use super::affected_fields::{AffectedFields, plain_path};
use super::apply;
use super::array_filter::{self, ArrayFilter};
use super::modifier::{Execution, Modifier};
use super::tree::{Fields, Leaf, WhenApplied};
use super::{
    add_to_set, arithmetic, bit, current_date, min_max, path, pop, pull, push, rename, set,
};
use crate::Error;
use crate::memory::depth;

/// Parses the operand for one path.
type ParseOperand = fn(&str, ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error>;

#[derive(Clone, Copy)]
enum OperatorForm {
    Plain(ParseOperand),
    OnInsert(ParseOperand),
    Rename,
}

/// All operators, sorted by name for binary search.
const OPERATORS: &[(&str, OperatorForm)] = &[
    ("$addToSet", OperatorForm::Plain(add_to_set::parse)),
    ("$bit", OperatorForm::Plain(bit::parse)),
    ("$currentDate", OperatorForm::Plain(current_date::parse)),
    ("$inc", OperatorForm::Plain(arithmetic::parse_inc)),
    ("$max", OperatorForm::Plain(min_max::parse_max)),
    ("$min", OperatorForm::Plain(min_max::parse_min)),
    ("$mul", OperatorForm::Plain(arithmetic::parse_mul)),
    ("$pop", OperatorForm::Plain(pop::parse)),
    ("$pull", OperatorForm::Plain(pull::parse_pull)),
    ("$pullAll", OperatorForm::Plain(pull::parse_pull_all)),
    ("$push", OperatorForm::Plain(push::parse)),
    ("$rename", OperatorForm::Rename),
    ("$set", OperatorForm::Plain(set::parse_set)),
    ("$setOnInsert", OperatorForm::OnInsert(set::parse_set)),
    ("$unset", OperatorForm::Plain(set::parse_unset)),
];

/// A parsed update with operators.
#[derive(Debug)]
pub(super) struct Operators {
    tree: Fields,
    /// `true` if a path contains `$`.
    is_positional: bool,
    affected_fields: AffectedFields,
}

impl Operators {
    /// Parses `{$set: {…}, …}`.
    ///
    /// # Errors
    ///
    /// - 9: an operator is unknown, its operand is not a document, or an array filter is not used.
    /// - Errors of the operators and of [`path::parse`].
    pub fn parse(document: Document<'_>, filters: &[Document<'_>]) -> Result<Operators, Error> {
        let filters = array_filter::parse(filters)?;
        let mut builder = Builder::new(&filters);
        for (name, operand) in document {
            let form = find(name)?;
            let ValueRef::Document(fields) = operand else {
                return Err(Error::failed_to_parse(format!(
                    "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{name}: {operand}}}",
                    operand.type_of().name()
                )));
            };
            for (path, value) in fields {
                builder.add(form, path, value)?;
            }
        }
        builder.finish()
    }

    /// Returns `true` if the array index that the filter matched is needed.
    pub fn is_positional(&self) -> bool {
        self.is_positional
    }

    pub fn affected_fields(&self) -> &AffectedFields {
        &self.affected_fields
    }

    /// Applies the operators. `position` is the array index that `$` stands for. Fails with 2 if it
    /// is needed and missing.
    pub fn apply(
        &self,
        execution: &Execution<'_>,
        position: Option<usize>,
    ) -> Result<Option<DocumentBuf>, Error> {
        if !self.is_positional {
            return apply::apply(&self.tree, execution);
        }
        let Some(position) = position else {
            return Err(Error::bad_value(
                "The positional operator did not find the match needed from the query.",
            ));
        };
        apply::apply(&self.tree.with_match(position)?, execution)
    }
}

fn find(name: &str) -> Result<OperatorForm, Error> {
    let at = OPERATORS.binary_search_by_key(&name, |(known, _)| known);
    match at.ok().and_then(|at| OPERATORS.get(at)) {
        Some((_, form)) => Ok(*form),
        None => Err(Error::failed_to_parse(format!(
            "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
        ))),
    }
}

struct Builder<'f> {
    tree: Fields,
    filters: &'f [Arc<ArrayFilter>],
    used: RefCell<Vec<bool>>,
    is_positional: bool,
    affected_fields: Vec<Path>,
}

impl<'f> Builder<'f> {
    fn new(filters: &'f [Arc<ArrayFilter>]) -> Builder<'f> {
        Builder {
            tree: Fields::default(),
            filters,
            used: RefCell::new(vec![false; filters.len()]),
            is_positional: false,
            affected_fields: Vec::new(),
        }
    }

    fn add(&mut self, form: OperatorForm, path: &str, operand: ValueRef<'_>) -> Result<(), Error> {
        match form {
            OperatorForm::Plain(parse) => {
                self.add_leaf(path, Some(operand), WhenApplied::Always, parse)
            }
            OperatorForm::OnInsert(parse) => {
                self.add_leaf(path, Some(operand), WhenApplied::OnInsert, parse)
            }
            OperatorForm::Rename => {
                self.add_leaf(path, Some(operand), WhenApplied::Always, set::parse_unset)?;
                let Some(target) = operand.as_str() else {
                    return Err(Error::bad_value(format!(
                        "The 'to' field for $rename must be a string: {path}: {operand}"
                    )));
                };
                if target.contains('\0') {
                    return Err(Error::bad_value(
                        "The 'to' field for $rename cannot contain an embedded null byte",
                    ));
                }
                let modifier = |_: &str, _: ValueRef<'_>| rename::target(path, target);
                self.add_leaf(target, None, WhenApplied::Always, modifier)
            }
        }
    }

    fn add_leaf(
        &mut self,
        path: &str,
        operand: Option<ValueRef<'_>>,
        when: WhenApplied,
        parse: impl FnOnce(&str, ValueRef<'_>) -> Result<Arc<dyn Modifier>, Error>,
    ) -> Result<(), Error> {
        let names = path::parse(path)?;
        let leaf = Leaf {
            path: path.into(),
            modifier: parse(path, operand.unwrap_or(ValueRef::Null))?,
            when,
            depth: operand.map(depth),
        };
        self.is_positional |= names.iter().any(path::Name::is_positional);
        self.affected_fields.push(plain_path(&names));
        let (filters, used) = (self.filters, &self.used);
        let find = |identifier: &str| find_filter(filters, used, identifier);
        self.tree.insert(&names, leaf, &find)
    }

    fn finish(self) -> Result<Operators, Error> {
        let used = self.used.borrow();
        let unused = self
            .filters
            .iter()
            .zip(used.iter())
            .find(|(_, used)| !**used);
        if let Some((filter, _)) = unused {
            return Err(Error::failed_to_parse(format!(
                "The array filter for identifier '{}' was not used in the update",
                filter.identifier()
            )));
        }
        Ok(Operators {
            tree: self.tree,
            is_positional: self.is_positional,
            affected_fields: AffectedFields::Paths(self.affected_fields.into()),
        })
    }
}

fn find_filter(
    filters: &[Arc<ArrayFilter>],
    used: &RefCell<Vec<bool>>,
    identifier: &str,
) -> Option<Arc<ArrayFilter>> {
    let at = filters
        .iter()
        .position(|filter| filter.identifier() == identifier)?;
    if let Some(used) = used.borrow_mut().get_mut(at) {
        *used = true;
    }
    filters.get(at).cloned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_operators_is_sorted() {
        assert!(super::OPERATORS.is_sorted_by_key(|(name, _)| *name));
    }
}
