//! `$firstN`, `$lastN`, `$minN`, `$maxN`, and `$top`, `$topN`, `$bottom`, `$bottomN`.

use std::collections::VecDeque;

use windrow_document::{ArrayBuf, Collation, Value, ValueRef, collation};

use super::bytes::value_bytes;
use super::operator::{AccumulatorOperator, InputDependence, ParsedAccumulator, Selection};
use crate::Error;
use crate::expression::{ExprValue, Expression, Scope, parse_count};
use crate::sort::Sort;

/// Parses the fields of an operand. All of `names` are required, and no others are allowed.
fn fields<'v, const N: usize>(
    operator: &str,
    operand: ValueRef<'v>,
    names: [(&str, i32); N],
    not_document: i32,
    unknown: i32,
) -> Result<[ValueRef<'v>; N], Error> {
    let Some(document) = operand.as_document() else {
        let message = format!("specification must be an object; found {operator}: {operand}");
        return Err(Error::new(not_document, message));
    };
    if let Some((name, _)) = document
        .iter()
        .find(|(name, _)| names.iter().all(|(known, _)| known != name))
    {
        return Err(Error::new(
            unknown,
            format!("Unknown argument for {operator} operator: {name}"),
        ));
    }
    let mut values = [ValueRef::Null; N];
    for (slot, (name, missing)) in values.iter_mut().zip(names) {
        *slot = document.get(name).ok_or_else(|| {
            Error::new(missing, format!("Missing value for '{name}' of {operator}"))
        })?;
    }
    Ok(values)
}

pub(super) fn parse_select_n(
    name: &str,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<ParsedAccumulator, Error> {
    let names = [("n", 5787906), ("input", 5787907)];
    let [count, input] = fields(name, operand, names, 5787900, 5787901)?;
    let selection = match name {
        "$firstN" => Selection::First,
        "$lastN" => Selection::Last,
        "$minN" => Selection::Least,
        _ => Selection::Greatest,
    };
    let count = Expression::parse(count, scope)?;
    let operator = AccumulatorOperator::SelectN { selection, count };
    Ok(ParsedAccumulator {
        operator,
        input: Expression::parse(input, scope)?,
    })
}

/// Up to `count` values, in the order of the result.
#[derive(Clone, Debug)]
pub(super) struct SelectN {
    selection: Selection,
    count: usize,
    values: VecDeque<Value>,
    bytes: usize,
}

impl SelectN {
    pub fn new(selection: Selection, count: ExprValue<'_>) -> Result<SelectN, Error> {
        let count = parse_count("the accumulator", &count)?;
        Ok(SelectN {
            selection,
            count,
            values: VecDeque::new(),
            bytes: 0,
        })
    }

    pub fn add(&mut self, value: ExprValue<'_>, collation: Option<&Collation>) {
        let is_full = self.values.len() >= self.count;
        match self.selection {
            Selection::First if is_full => {}
            Selection::First | Selection::Last => {
                self.insert(self.values.len(), value.into_value().unwrap_or(Value::Null));
                if self.values.len() > self.count {
                    self.drop_value(0);
                }
            }
            Selection::Least | Selection::Greatest => self.add_sorted(value, collation),
        }
    }

    fn insert(&mut self, index: usize, value: Value) {
        self.bytes += value_bytes(value.as_ref());
        self.values.insert(index, value);
    }

    fn drop_value(&mut self, index: usize) {
        if let Some(value) = self.values.remove(index) {
            self.bytes -= value_bytes(value.as_ref());
        }
    }

    /// Adds a value at its sorted position. Null and missing values are ignored.
    fn add_sorted(&mut self, value: ExprValue<'_>, collation: Option<&Collation>) {
        let Some(found) = value.as_ref().filter(|found| !found.is_nullish()) else {
            return;
        };
        let least = self.selection == Selection::Least;
        let before = |selected: &Value| {
            let order = collation::compare(collation, selected.as_ref(), found);
            if least { order.is_le() } else { order.is_ge() }
        };
        let index = self.values.partition_point(before);
        if index >= self.count {
            return;
        }
        if let Some(value) = value.into_value() {
            self.insert(index, value);
        }
        if self.values.len() > self.count {
            self.drop_value(self.count);
        }
    }

    pub fn merge(&mut self, other: SelectN, collation: Option<&Collation>) {
        other
            .values
            .into_iter()
            .for_each(|value| self.add(ExprValue::from(value), collation));
    }

    pub fn finish(self) -> Value {
        Value::Array(self.values.into_iter().collect::<ArrayBuf>())
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn input_dependence(&self) -> InputDependence {
        match self.selection {
            Selection::First => InputDependence::First(self.count),
            Selection::Last => InputDependence::Last(self.count),
            Selection::Least | Selection::Greatest => InputDependence::Bounded(self.count),
        }
    }

    /// Returns the name of the operator.
    pub fn name(&self) -> &'static str {
        match self.selection {
            Selection::First => "$firstN",
            Selection::Last => "$lastN",
            Selection::Least => "$minN",
            Selection::Greatest => "$maxN",
        }
    }
}

/// The sort key of a document.
pub(super) type SortKey = Vec<u8>;

fn parse_order(operator: &str, value: ValueRef<'_>) -> Result<Sort, Error> {
    let Some(document) = value.as_document() else {
        let message = format!("invalid parameter: expected an object (sortBy) in {operator}");
        return Err(Error::new(10065, message));
    };
    if document.is_empty() {
        return Err(Error::new(
            15976,
            "$sort stage must have at least one sort key",
        ));
    }
    Sort::parse(document)
}

pub(super) fn parse_top(
    name: &str,
    operand: ValueRef<'_>,
    scope: &Scope,
) -> Result<ParsedAccumulator, Error> {
    let (count, output, sort_by) = if name.ends_with('N') {
        let names = [("n", 5788003), ("output", 5788004), ("sortBy", 5788005)];
        let [count, output, sort_by] = fields(name, operand, names, 5788001, 5788002)?;
        (Some(Expression::parse(count, scope)?), output, sort_by)
    } else {
        let names = [("output", 5788004), ("sortBy", 5788005)];
        let [output, sort_by] = fields(name, operand, names, 5788001, 5788002)?;
        (None, output, sort_by)
    };
    let order = parse_order(name, sort_by)?;
    let operator = AccumulatorOperator::Top {
        order,
        bottom: name.starts_with("$bottom"),
        count,
    };
    Ok(ParsedAccumulator {
        operator,
        input: Expression::parse(output, scope)?,
    })
}

/// The first or the last values by a sort order.
#[derive(Clone, Debug)]
pub(super) struct Top {
    bottom: bool,
    /// `None` for `$top` and `$bottom`, whose result is one value and not an array.
    count: Option<usize>,
    values: Vec<(SortKey, Value)>,
    bytes: usize,
}

impl Top {
    pub fn new(bottom: bool, count: Option<ExprValue<'_>>) -> Result<Top, Error> {
        let count = count
            .map(|count| parse_count("the accumulator", &count))
            .transpose()?;
        Ok(Top {
            bottom,
            count,
            values: Vec::new(),
            bytes: 0,
        })
    }

    /// Returns the maximum number of values.
    pub fn count(&self) -> usize {
        self.count.unwrap_or(1)
    }

    /// Adds a value at its sorted position, after those with the same key. Drops the last (or, for
    /// `$bottom`, the first) value if there are too many.
    pub fn add(&mut self, key: SortKey, value: ExprValue<'_>) {
        let count = self.count();
        let index = self.values.partition_point(|(known, _)| *known <= key);
        if !self.bottom && index >= count {
            return;
        }
        let entry = (key, value.into_value().unwrap_or(Value::Null));
        self.bytes += entry_bytes(&entry);
        self.values.insert(index, entry);
        if self.values.len() > count {
            let dropped = if self.bottom { 0 } else { count };
            self.bytes -= entry_bytes(&self.values.remove(dropped));
        }
    }

    pub fn merge(&mut self, other: Top) {
        other
            .values
            .into_iter()
            .for_each(|(key, value)| self.add(key, ExprValue::from(value)));
    }

    pub fn finish(self) -> Value {
        let mut values = self.values.into_iter().map(|(_, value)| value);
        match self.count {
            None => values.next().unwrap_or(Value::Null),
            Some(_) => Value::Array(values.collect()),
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the name of the operator.
    pub fn name(&self) -> &'static str {
        match (self.bottom, self.count) {
            (false, None) => "$top",
            (false, Some(_)) => "$topN",
            (true, None) => "$bottom",
            (true, Some(_)) => "$bottomN",
        }
    }
}

fn entry_bytes((key, value): &(SortKey, Value)) -> usize {
    key.len() + value_bytes(value.as_ref())
}
