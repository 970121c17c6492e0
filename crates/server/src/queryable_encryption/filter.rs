//! Rewrites filters. A condition on an encrypted field becomes one on the tags of the document:
//!
//! ```text
//! {ssn: P}                      {__safeContent__: {$in: [tags of P]}}
//! {ssn: {$ne: P}}               {__safeContent__: {$nin: [tags of P]}}
//! {ssn: {$in: [P, Q]}}          {__safeContent__: {$in: [tags of P and Q]}}
//! {age: {$gte: P, $lt: P'}}     {__safeContent__: {$in: [tags of P]}}      P' stands for nothing
//! {ssn: {$not: {$eq: P}}}       {$nor: [{__safeContent__: {$in: [tags of P]}}]}
//! ```

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_queryable_encryption::SAFE_CONTENT;
use windrow_wire::{CommandError, ErrorCode};

use super::expression;
use super::operands::{TagFinder, is_equality, is_range};
use crate::errors::refuse;

/// MongoDB's error code for a list with some encrypted values.
const MIXED_LIST: ErrorCode = ErrorCode(6_329_400);

/// Rewrites a filter.
pub fn rewrite(
    finder: &mut TagFinder<'_>,
    filter: Document<'_>,
) -> Result<DocumentBuf, CommandError> {
    let mut rewritten = Conjunction::default();
    for (name, value) in filter {
        match (name, value) {
            ("$and", ValueRef::Array(list)) => {
                for condition in all(finder, list)?.iter() {
                    rewritten.conditions.push(condition.to_value());
                }
                rewritten.has_and = true;
            }
            ("$or" | "$nor", ValueRef::Array(list)) => {
                let list = all(finder, list)?;
                rewritten.plain.push(name, Value::Array(list));
            }
            ("$expr", _) => rewritten
                .plain
                .push(name, expression::rewrite(finder, value)?),
            _ if name.starts_with('$') => rewritten.plain.push(name, value),
            _ => field(finder, name, value, &mut rewritten)?,
        }
    }
    Ok(rewritten.finish())
}

/// The parts of a filter, of which all must match.
#[derive(Default)]
struct Conjunction {
    /// Conditions that stay as they are.
    plain: DocumentBuf,
    /// Conditions on tags, and those of `$and`.
    conditions: Vec<Value>,
    /// `true` if the filter has an `$and`, which may be empty.
    has_and: bool,
}

impl Conjunction {
    fn finish(mut self) -> DocumentBuf {
        let single = self.conditions.len() == 1 && self.plain.as_document().is_empty();
        match self.conditions.pop() {
            Some(Value::Document(only)) if single && !self.has_and => return only,
            Some(last) => self.conditions.push(last),
            None => {}
        }
        if self.has_and || !self.conditions.is_empty() {
            let all: ArrayBuf = self.conditions.into_iter().collect();
            self.plain.push("$and", Value::Array(all));
        }
        self.plain
    }
}

fn all(finder: &mut TagFinder<'_>, list: Array<'_>) -> Result<ArrayBuf, CommandError> {
    let rewritten = list.iter().map(|filter| match filter {
        ValueRef::Document(filter) => rewrite(finder, filter).map(Value::from),
        other => Ok(other.to_value()),
    });
    rewritten.collect()
}

/// Rewrites the condition on a field.
fn field(
    finder: &mut TagFinder<'_>,
    name: &str,
    value: ValueRef<'_>,
    rewritten: &mut Conjunction,
) -> Result<(), CommandError> {
    if is_equality(value) {
        let condition = tag_condition(finder, "$in", &[value])?;
        rewritten.conditions.extend(condition);
        return Ok(());
    }
    let operators = value.as_document().filter(|it| has_operators(*it));
    let Some(operators) = operators else {
        rewritten.plain.push(name, value);
        return Ok(());
    };
    let (mut plain, before) = (DocumentBuf::new(), rewritten.conditions.len());
    let mut is_dropped = false;
    for (operator, operand) in operators {
        match operator_condition(finder, name, operator, operand)? {
            RewrittenOperator::Plain => plain.push(operator, operand),
            RewrittenOperator::Tags(condition) => {
                is_dropped = true;
                rewritten.conditions.extend(condition);
            }
        }
    }
    debug_assert!(is_dropped || rewritten.conditions.len() == before);
    if !plain.as_document().is_empty() || !is_dropped {
        rewritten.plain.push(name, plain);
    }
    Ok(())
}

fn has_operators(document: Document<'_>) -> bool {
    document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$'))
}

/// An operator of a field, rewritten.
enum RewrittenOperator {
    /// It has no encrypted operand and stays as it is.
    Plain,
    /// Its condition on the tags of a document. `None` if every document fulfils it.
    Tags(Option<Value>),
}

/// Rewrites one operator of a field.
fn operator_condition(
    finder: &mut TagFinder<'_>,
    name: &str,
    operator: &str,
    operand: ValueRef<'_>,
) -> Result<RewrittenOperator, CommandError> {
    let list_operator = match operator {
        "$ne" | "$nin" => "$nin",
        _ => "$in",
    };
    match (operator, operand) {
        ("$eq" | "$ne", _) if is_equality(operand) => {
            tag_condition(finder, list_operator, &[operand]).map(RewrittenOperator::Tags)
        }
        ("$gt" | "$gte" | "$lt" | "$lte", _) if is_range(operand) => {
            tag_condition(finder, list_operator, &[operand]).map(RewrittenOperator::Tags)
        }
        ("$in" | "$nin", ValueRef::Array(list)) => {
            let operands: Vec<ValueRef<'_>> = list.iter().collect();
            match operands.iter().filter(|it| is_equality(**it)).count() {
                0 => Ok(RewrittenOperator::Plain),
                count if count == operands.len() => {
                    tag_condition(finder, list_operator, &operands).map(RewrittenOperator::Tags)
                }
                _ => refuse(
                    MIXED_LIST,
                    "the list of $in or $nin has encrypted and plain values",
                ),
            }
        }
        ("$not", ValueRef::Document(operators)) if has_operators(operators) => {
            let mut inner = Conjunction::default();
            field(finder, name, operand, &mut inner)?;
            if inner.conditions.is_empty() && inner.plain.get(name) == Some(operand) {
                return Ok(RewrittenOperator::Plain);
            }
            let inner = windrow_document::array![(inner.finish())];
            let negated = doc! { "$nor": (Value::Array(inner)) };
            Ok(RewrittenOperator::Tags(Some(Value::from(negated))))
        }
        _ => Ok(RewrittenOperator::Plain),
    }
}

/// Returns the condition that a document has one of the tags of the operands. `None` if every
/// document fulfils it.
fn tag_condition(
    finder: &mut TagFinder<'_>,
    operator: &str,
    operands: &[ValueRef<'_>],
) -> Result<Option<Value>, CommandError> {
    let mut all = Vec::new();
    for operand in operands {
        match finder.tags(*operand)? {
            Some(tags) => all.extend(tags),
            None => return Ok(None),
        }
    }
    let all: ArrayBuf = all.into_iter().collect();
    let condition = doc! { SAFE_CONTENT: { operator: (Value::Array(all)) } };
    Ok(Some(Value::from(condition)))
}
