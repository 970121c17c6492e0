//! `$densify`: adds rows for missing values of a field.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Array, Collation, Document, DocumentBuf, Value, ValueRef, collation, key};
use windrow_interrupt::Interrupt;
use windrow_mql::densify_step::DensifyStep;
use windrow_mql::expression::Dependencies;
use windrow_mql::filter::Environment;

use super::operand;
use super::path_values::{value_at, with_value};
use super::stage::{PipelineContext, StageKind, Transformation};
use crate::Error;
use crate::operators::{BoxOperator, Counters, MemoryLimit, Operator, SortedRows, Sorter, counted};
use crate::row::Row;

/// A parsed `$densify`.
#[derive(Clone, Debug)]
pub struct Densify {
    field: Path,
    partition_by: Vec<Path>,
    /// The collation for the partitions.
    collation: Option<Arc<Collation>>,
    step: DensifyStep,
    bounds: DensifyBounds,
}

/// The range of the values of added rows.
#[derive(Clone, Debug)]
enum DensifyBounds {
    /// From the smallest to the largest value of all rows.
    Full,
    /// From the smallest to the largest value of each partition.
    Partition,
    /// From one value to another.
    Explicit {
        /// The lower end, inclusive.
        lower: Value,
        /// The upper end, exclusive.
        upper: Value,
    },
}

/// The largest number of rows that one stage adds.
const ADDED_ROWS_MAX: u64 = 500_000;

/// Parses `{field, partitionByFields, range: {step, unit, bounds}}`. Fails with 9 if the operand is
/// not a document, with 40414 for missing and 40415 for unknown fields, with 14 for values of the
/// wrong type, as [`parse_bounds`] and [`DensifyStep::parse`] do, with 5733408 for bounds of
/// partitions without partitions, and with 8993000 or 9554500 for a field that is also a partition
/// field.
pub(super) fn parse(
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let Some(document) = operand.as_document() else {
        let found = operand.type_of().name();
        let message = format!("The $densify stage specification must be an object, found {found}");
        return Err(Error::new(9, message));
    };
    let [field, partition_by, range] = operand::fields(
        "$densify",
        document,
        ["field", "partitionByFields", "range"],
    )?;
    let field = required("$densify.field", field, ValueRef::as_str)?;
    let partition_by = list("$densify.partitionByFields", partition_by)?;
    let range = required("$densify.range", range, ValueRef::as_document)?;
    let [step, unit, bounds] =
        operand::fields("$densify.range", range, ["step", "unit", "bounds"])?;
    let amount = required("$densify.range.step", step, Some)?;
    let bounds = required("$densify.range.bounds", bounds, Some)?;
    let step = DensifyStep::parse(amount, unit)?;
    let bounds = parse_bounds(bounds, amount, &step)?;
    let partition_by = parse_paths(partition_by)?;
    let field = operand::check_path(field)?;
    if matches!(bounds, DensifyBounds::Partition) && partition_by.is_empty() {
        let message = "one may not specify the bounds as 'partition' without specifying a \
                       non-empty array of partitionByFields. You may have meant to specify 'full' \
                       bounds.";
        return Err(Error::new(5733408, message));
    }
    check_partitions(&partition_by, &field)?;
    Ok(vec![StageKind::from_transformation(Densify {
        field,
        partition_by,
        collation: environment.collation.clone(),
        step,
        bounds,
    })])
}

impl Transformation for Densify {
    fn open(&self, input: BoxOperator, context: &PipelineContext) -> Result<BoxOperator, Error> {
        let operator = DensifyOperator::new(self.clone(), context.allow_disk_use, input);
        Ok(Box::new(operator))
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies {
            whole: true,
            ..Dependencies::default()
        }
    }
}

/// Returns a required field. Fails with 40414 if it is missing, with 14 if `read` rejects it.
fn required<'v, T>(
    name: &str,
    value: Option<ValueRef<'v>>,
    read: impl Fn(ValueRef<'v>) -> Option<T>,
) -> Result<T, Error> {
    let value = value.ok_or_else(|| operand::missing_field(name))?;
    read(value).ok_or_else(|| operand::wrong_type(name, value))
}

/// Returns an optional array. Fails with 14 for other types.
pub(super) fn list<'v>(
    name: &str,
    value: Option<ValueRef<'v>>,
) -> Result<Option<Array<'v>>, Error> {
    let array = |value| required(name, Some(value), ValueRef::as_array);
    value.map(array).transpose()
}

/// Parses the paths of `partitionByFields`.
pub(super) fn parse_paths(paths: Option<Array<'_>>) -> Result<Vec<Path>, Error> {
    let name = "partitionByFields";
    let paths = paths.unwrap_or(Array::EMPTY);
    let path = |path| operand::check_path(required(name, Some(path), ValueRef::as_str)?);
    paths.iter().map(path).collect()
}

/// Fails with 8993000 or 9554500 if the field overlaps with a partition field.
fn check_partitions(partition_by: &[Path], field: &Path) -> Result<(), Error> {
    let length = |path: &Path| path.components().len();
    let Some(path) = partition_by.iter().find(|path| path.overlaps(field)) else {
        return Ok(());
    };
    let (code, message) = if length(path) < length(field) {
        (9554500, "the field of $densify lies within one of")
    } else {
        (8993000, "the field of $densify cannot be one of")
    };
    Err(Error::new(code, format!("{message} 'partitionByFields'")))
}

/// Parses `'full'`, `'partition'`, or an array of two ends. Fails with 5733404 or 5946802 for
/// anything else, with 5733403 for other than two ends, with 5733402 if they descend, with 5733406
/// or 5733405 if their types differ, with 5946800 if they are neither numbers nor dates, with
/// 5733409 or 5733410 if they do not fit the unit, and with 5876900 if the numbers are not of the
/// type of the step.
fn parse_bounds(
    value: ValueRef<'_>,
    amount: ValueRef<'_>,
    step: &DensifyStep,
) -> Result<DensifyBounds, Error> {
    let wrong = |code: i32, message: &str| Err(Error::new(code, message));
    let array = match value {
        ValueRef::String("full") => return Ok(DensifyBounds::Full),
        ValueRef::String("partition") => return Ok(DensifyBounds::Partition),
        ValueRef::Array(array) => array,
        ValueRef::String(_) => {
            return wrong(5946802, "bounds must be 'full', 'partition', or an array");
        }
        _ => {
            return wrong(
                5733404,
                "bounds must be a string, or an array of two values",
            );
        }
    };
    let ends: Vec<ValueRef<'_>> = array.iter().collect();
    let [lower, upper] = ends.as_slice() else {
        let message = "a bounding array in a range statement must have exactly two elements";
        return wrong(5733403, message);
    };
    if lower.compare(*upper).is_gt() {
        let message = "a bounding array must be ascending, of two dates or two numbers";
        return wrong(5733402, message);
    }
    let of_both = "a bounding array must contain either both dates or both numeric types";
    match lower {
        lower if lower.is_number() => {
            if step.is_date_step() {
                return wrong(5733409, "numeric bounds may not have a unit");
            }
            if !upper.is_number() {
                return wrong(5733406, of_both);
            }
            let kind = amount.type_of();
            if lower.type_of() != kind || upper.type_of() != kind {
                let message = "upper bound, lower bound, and step must all have the same type";
                return wrong(5876900, message);
            }
        }
        ValueRef::DateTime(_) => {
            if !matches!(upper, ValueRef::DateTime(_)) {
                return wrong(5733405, of_both);
            }
            if !step.is_date_step() {
                return wrong(5733410, "a bounding array of dates must specify a unit");
            }
        }
        _ => return wrong(5946800, "explicit bounds must be numeric or dates"),
    }
    Ok(DensifyBounds::Explicit {
        lower: lower.to_value(),
        upper: upper.to_value(),
    })
}

impl Densify {
    /// Returns the value of the field. `None` if it is missing or null. Fails with 5733201 if it is
    /// neither a number nor a date, with 6053600 if the step applies only to the other kind.
    fn value<'d>(&self, document: Document<'d>) -> Result<Option<ValueRef<'d>>, Error> {
        match value_at(document, &self.field) {
            None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
            Some(value) if self.step.applies_to(value) => Ok(Some(value)),
            Some(value) => {
                let found = value.type_of().name();
                let is_either = value.is_number() || matches!(value, ValueRef::DateTime(_));
                Err(match (is_either, self.step.is_date_step()) {
                    (false, _) => Error::new(
                        5733201,
                        format!("the field of $densify must be a number or a date, not {found}"),
                    ),
                    (true, true) => Error::new(
                        6053600,
                        "the field of $densify is a number, but the step has a unit",
                    ),
                    (true, false) => Error::new(
                        6053600,
                        "the field of $densify is a date, but the step has no unit",
                    ),
                })
            }
        }
    }

    fn partition(&self, document: Document<'_>) -> Vec<Option<Value>> {
        let value = |path| value_at(document, path).map(ValueRef::to_value);
        self.partition_by.iter().map(value).collect()
    }

    fn is_one_partition(&self, one: &[Option<Value>], other: &[Option<Value>]) -> bool {
        let equal = |one: &Option<Value>, other: &Option<Value>| match (one, other) {
            (Some(one), Some(other)) => {
                let collation = self.collation.as_deref();
                collation::compare(collation, one.as_ref(), other.as_ref()).is_eq()
            }
            (one, other) => one.is_none() == other.is_none(),
        };
        let mut pairs = one.iter().zip(other);
        one.len() == other.len() && pairs.all(|(one, other)| equal(one, other))
    }

    fn append_key(&self, document: Document<'_>, key: &mut Vec<u8>) -> Result<(), Error> {
        for path in &self.partition_by {
            let value = value_at(document, path).unwrap_or(ValueRef::Null);
            key::append_with_collation(key, value, false, self.collation.as_deref());
        }
        key::append(key, self.value(document)?.unwrap_or(ValueRef::Null));
        Ok(())
    }
}

/// Sorts all rows and returns them together with the added ones.
pub(super) struct DensifyOperator {
    stage: Densify,
    input: BoxOperator,
    sorter: Option<Sorter>,
    sorted: SortedRows,
    /// The values of all rows. `None` if there are none.
    values: Option<ValueExtent>,
    partition: Option<Vec<Option<Value>>>,
    /// The value of the next row to add.
    next: Option<Value>,
    /// A row that comes after the rows to add.
    waiting: Option<Row>,
    /// The number of rows that were added.
    added: u64,
    counters: Counters,
}

impl DensifyOperator {
    pub fn new(stage: Densify, allow_disk_use: bool, input: BoxOperator) -> DensifyOperator {
        DensifyOperator {
            stage,
            input,
            sorter: Some(Sorter::new(None, MemoryLimit::new(allow_disk_use))),
            sorted: SortedRows::empty(),
            values: None,
            partition: None,
            next: None,
            waiting: None,
            added: 0,
            counters: Counters::default(),
        }
    }

    fn take_all(&mut self, mut sorter: Sorter, interrupt: &dyn Interrupt) -> Result<(), Error> {
        while let Some(row) = self.input.next(interrupt)? {
            if let Some(value) = self.stage.value(row.document())? {
                ValueExtent::extend(&mut self.values, value);
            }
            let stage = &self.stage;
            sorter.add_with(row, |row, key| stage.append_key(row.document(), key))?;
        }
        self.sorted = sorter.finish()?;
        if self.stage.partition_by.is_empty() {
            self.begin(Vec::new(), None);
        }
        Ok(())
    }

    /// Begins a partition whose first value is `first`.
    fn begin(&mut self, partition: Vec<Option<Value>>, first: Option<ValueRef<'_>>) {
        self.partition = Some(partition);
        self.next = match &self.stage.bounds {
            DensifyBounds::Full => self.values.as_ref().map(|values| values.least.clone()),
            DensifyBounds::Partition => first.map(ValueRef::to_value),
            DensifyBounds::Explicit { lower, .. } => Some(lower.clone()),
        };
    }

    /// Returns `true` if a row has to be added for `value`. `before` is the value of the next row
    /// of the partition, if there is one.
    fn is_missing(&self, value: ValueRef<'_>, before: Option<ValueRef<'_>>) -> bool {
        let in_bounds = match (&self.stage.bounds, &self.values) {
            (DensifyBounds::Full, Some(values)) => value.compare(values.greatest.as_ref()).is_le(),
            (DensifyBounds::Full, None) => false,
            (DensifyBounds::Partition, _) => before.is_some(),
            (DensifyBounds::Explicit { upper, .. }, _) => value.compare(upper.as_ref()).is_lt(),
        };
        in_bounds && before.is_none_or(|before| value.compare(before).is_lt())
    }

    /// Returns the next row to add before the waiting one. Fails with 5897900 after 500,000 rows.
    fn next_added(&mut self, before: Option<ValueRef<'_>>) -> Result<Option<Row>, Error> {
        let Some(next) = self.next.take() else {
            return Ok(None);
        };
        if !self.is_missing(next.as_ref(), before) {
            // The value exists and needs no row. The step continues from it, with its type of
            // number.
            let existing = before.filter(|before| before.equals(next.as_ref()));
            self.next = match existing {
                Some(existing) => self.stage.step.next_value(existing),
                None => Some(next),
            };
            return Ok(None);
        }
        self.added += 1;
        if self.added > ADDED_ROWS_MAX {
            let message =
                format!("Generated {ADDED_ROWS_MAX} documents in $densify, which is the limit");
            return Err(Error::new(5897900, message));
        }
        self.next = self.stage.step.next_value(next.as_ref());
        let mut document = DocumentBuf::new();
        let partition = self.partition.iter().flatten();
        for (path, value) in self.stage.partition_by.iter().zip(partition) {
            let value = value.as_ref().map(Value::as_ref);
            document = with_value(document.as_document(), path, value);
        }
        let field = &self.stage.field;
        let document = with_value(document.as_document(), field, Some(next.as_ref()));
        Ok(Some(Row::new(document)))
    }

    fn next_row(&mut self) -> Result<Option<Row>, Error> {
        loop {
            let waiting = match self.waiting.take() {
                Some(waiting) => Some(waiting),
                None => self.sorted.next()?.map(|keyed| keyed.row),
            };
            let Some(row) = waiting else {
                // The end of the last partition.
                return self.next_added(None);
            };
            let partition = self.stage.partition(row.document());
            let is_same = |one: &Vec<Option<Value>>| self.stage.is_one_partition(one, &partition);
            if !self.partition.as_ref().is_some_and(is_same) {
                if let Some(added) = self.next_added(None)? {
                    self.waiting = Some(row);
                    return Ok(Some(added));
                }
                let first = self.stage.value(row.document())?.map(ValueRef::to_value);
                if first.is_none() {
                    return Ok(Some(row));
                }
                self.begin(partition, first.as_ref().map(Value::as_ref));
                self.waiting = Some(row);
                continue;
            }
            let value = self.stage.value(row.document())?.map(ValueRef::to_value);
            let Some(value) = value else {
                return Ok(Some(row));
            };
            return match self.next_added(Some(value.as_ref()))? {
                Some(added) => {
                    self.waiting = Some(row);
                    Ok(Some(added))
                }
                None => Ok(Some(row)),
            };
        }
    }
}

/// The smallest and the largest value of some rows.
struct ValueExtent {
    least: Value,
    greatest: Value,
}

impl ValueExtent {
    /// Extends the range so that it contains the value.
    fn extend(range: &mut Option<ValueExtent>, value: ValueRef<'_>) {
        match range {
            None => {
                *range = Some(ValueExtent {
                    least: value.to_value(),
                    greatest: value.to_value(),
                });
            }
            Some(range) if value.compare(range.least.as_ref()).is_lt() => {
                range.least = value.to_value();
            }
            Some(range) if value.compare(range.greatest.as_ref()).is_gt() => {
                range.greatest = value.to_value();
            }
            Some(_) => {}
        }
    }
}

impl Operator for DensifyOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if let Some(sorter) = self.sorter.take() {
            self.take_all(sorter, interrupt)?;
        }
        interrupt.check()?;
        let row = self.next_row()?;
        self.counters.record(&row);
        Ok(row)
    }

    counted!(counters, input);
}
