//! The intermediate result of an accumulator in one group.

use windrow_document::{Array, Collation, Value, ValueRef};
use windrow_invariant::Bug;

use super::bytes::value_bytes;
use super::collect::{DistinctValues, PushedValues};
use super::merge_objects::MergedDocument;
use super::operator::{AccumulatorOperator, InputDependence};
use super::select_n::{SelectN, SortKey, Top};
use crate::Error;
use crate::expression::accumulators::keep_better;
use crate::expression::number::Number;
use crate::expression::percentile::Percentiles;
use crate::expression::statistics::{Average, Deviation};
use crate::expression::summation::Sum;
use crate::expression::{Context, ExprValue};
use crate::memory::check_accumulated;

/// The intermediate result of an accumulator in one group.
///
/// States of parts of a group can be merged.
#[derive(Clone, Debug)]
pub struct AccumulatorState(StateKind);

#[derive(Clone, Debug)]
enum StateKind {
    Average(Average),
    Concatenated(PushedValues),
    Count(i64),
    Deviation(Deviation),
    First(FirstInput),
    Last(Option<Value>),
    Max(Option<Value>),
    MergedDocument(MergedDocument),
    SlidingAverage(Average),
    SlidingDeviation(Deviation),
    Min(Option<Value>),
    Percentiles(Percentiles),
    PushedValues(PushedValues),
    DistinctValues(DistinctValues),
    SelectN(SelectN),
    Sum(Sum),
    Top(Top),
    Union(DistinctValues),
}

/// The input of `$first`.
#[derive(Clone, Debug)]
enum FirstInput {
    /// No document has been added yet.
    Pending,
    /// The first document has no value.
    Missing,
    /// The value of the first document.
    Present(Value),
}

impl From<Option<Value>> for FirstInput {
    fn from(value: Option<Value>) -> FirstInput {
        value.map_or(FirstInput::Missing, FirstInput::Present)
    }
}

/// The bytes of a state without the values that it holds.
const STATE_BYTES: usize = size_of::<AccumulatorState>();

impl AccumulatorState {
    pub(super) fn new(
        operator: &AccumulatorOperator,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        Ok(AccumulatorState(match operator {
            AccumulatorOperator::AddToSet => StateKind::DistinctValues(DistinctValues::default()),
            AccumulatorOperator::Average { sliding } => {
                if *sliding {
                    StateKind::SlidingAverage(Average::default())
                } else {
                    StateKind::Average(Average::default())
                }
            }
            AccumulatorOperator::ConcatArrays => StateKind::Concatenated(PushedValues::default()),
            AccumulatorOperator::Count => StateKind::Count(0),
            AccumulatorOperator::Deviation { coverage, sliding } => {
                let deviation = Deviation::new(*coverage);
                if *sliding {
                    StateKind::SlidingDeviation(deviation)
                } else {
                    StateKind::Deviation(deviation)
                }
            }
            AccumulatorOperator::First => StateKind::First(FirstInput::Pending),
            AccumulatorOperator::Last => StateKind::Last(None),
            AccumulatorOperator::Max => StateKind::Max(None),
            AccumulatorOperator::MergeObjects => {
                StateKind::MergedDocument(MergedDocument::default())
            }
            AccumulatorOperator::Min => StateKind::Min(None),
            AccumulatorOperator::Percentile { points, is_median } => {
                StateKind::Percentiles(Percentiles::new(points.clone(), *is_median))
            }
            AccumulatorOperator::Push => StateKind::PushedValues(PushedValues::default()),
            AccumulatorOperator::SelectN { selection, count } => {
                StateKind::SelectN(SelectN::new(*selection, count.evaluate(context)?)?)
            }
            AccumulatorOperator::SetUnion => StateKind::Union(DistinctValues::default()),
            AccumulatorOperator::Sum => StateKind::Sum(Sum::default()),
            AccumulatorOperator::Top { bottom, count, .. } => {
                let count = count
                    .as_ref()
                    .map(|count| count.evaluate(context))
                    .transpose()?;
                StateKind::Top(Top::new(*bottom, count)?)
            }
        }))
    }

    /// Returns the state after this many documents with the same value, or `None` if it also
    /// depends on other things.
    pub(super) fn for_document_count(
        operator: &AccumulatorOperator,
        value: Option<&Value>,
        documents: u64,
    ) -> Option<AccumulatorState> {
        let kind = match operator {
            AccumulatorOperator::Count => StateKind::Count(i64::try_from(documents).ok()?),
            AccumulatorOperator::Sum => StateKind::Sum(Sum::from_repeated(value?, documents)?),
            _ => return None,
        };
        Some(AccumulatorState(kind))
    }

    /// Adds a value.
    ///
    /// # Errors
    ///
    /// - 40400: `$mergeObjects` got a value that is not a document.
    /// - 14: `$concatArrays` or `$setUnion` got a value that is not an array.
    /// - 146: the state is too large.
    pub(super) fn add(
        &mut self,
        value: ExprValue<'_>,
        collation: Option<&Collation>,
    ) -> Result<(), Error> {
        match &mut self.0 {
            StateKind::Average(average) | StateKind::SlidingAverage(average) => {
                with_number(&value, |number| average.add(number));
            }
            StateKind::Concatenated(all) => {
                elements("$concatArrays", &value)?.for_each(|element| all.add(&element.into()));
            }
            StateKind::Count(count) => *count += 1,
            StateKind::Deviation(deviation) | StateKind::SlidingDeviation(deviation) => {
                with_number(&value, |number| deviation.add(number.to_f64()));
            }
            StateKind::First(first) => {
                if matches!(first, FirstInput::Pending) {
                    *first = value.into_value().into();
                }
            }
            StateKind::Last(last) => *last = value.into_value(),
            StateKind::Max(greatest) => {
                keep_better(greatest, value, collation, |order| order.is_gt())
            }
            StateKind::MergedDocument(merged) => merged.add(&value)?,
            StateKind::Min(least) => keep_better(least, value, collation, |order| order.is_lt()),
            StateKind::Percentiles(percentiles) => {
                with_number(&value, |number| percentiles.add(number.to_f64()));
            }
            StateKind::PushedValues(pushed) => pushed.add(&value),
            StateKind::DistinctValues(set) => set.add(value, collation),
            StateKind::SelectN(select_n) => select_n.add(value, collation),
            StateKind::Sum(sum) => with_number(&value, |number| sum.add(number)),
            StateKind::Top(_) => return self.add_ordered(SortKey::default(), value),
            StateKind::Union(set) => {
                elements("$setUnion", &value)?.for_each(|one| set.add(one.into(), collation));
            }
        }
        self.check_size()
    }

    /// Fails with 146 if the state of one group is too large. A single state cannot spill to disk.
    fn check_size(&self) -> Result<(), Error> {
        let (name, bytes) = match &self.0 {
            StateKind::PushedValues(pushed) => ("$push", pushed.bytes()),
            StateKind::Concatenated(pushed) => ("$concatArrays", pushed.bytes()),
            StateKind::DistinctValues(set) => ("$addToSet", set.value_bytes()),
            StateKind::Union(set) => ("$setUnion", set.value_bytes()),
            StateKind::SelectN(select_n) => (select_n.name(), select_n.bytes()),
            StateKind::Top(top) => (top.name(), top.bytes()),
            StateKind::MergedDocument(merged) => ("$mergeObjects", merged.limited_bytes()),
            _ => return Ok(()),
        };
        check_accumulated(name, bytes)
    }

    /// Adds a value with its sort key, for `$top` and similar operators.
    pub(super) fn add_ordered(&mut self, key: SortKey, value: ExprValue<'_>) -> Result<(), Error> {
        let StateKind::Top(top) = &mut self.0 else {
            let message = format!("adding an ordered value to another state: {:?}", self.0);
            return Err(Bug::new(message).into());
        };
        top.add(key, value);
        self.check_size()
    }

    /// Adds the values of another state of the same accumulator. They come after the values of this
    /// one. Fails with 146 if the state is too large.
    pub fn merge(
        &mut self,
        other: AccumulatorState,
        collation: Option<&Collation>,
    ) -> Result<(), Error> {
        match (&mut self.0, other.0) {
            (StateKind::Average(one), StateKind::Average(other))
            | (StateKind::SlidingAverage(one), StateKind::SlidingAverage(other)) => {
                one.merge(&other)
            }
            (StateKind::Count(one), StateKind::Count(other)) => *one += other,
            (StateKind::Deviation(one), StateKind::Deviation(other))
            | (StateKind::SlidingDeviation(one), StateKind::SlidingDeviation(other)) => {
                one.merge(&other)
            }
            (StateKind::First(one), StateKind::First(other)) => {
                if matches!(one, FirstInput::Pending) {
                    *one = other;
                }
            }
            (StateKind::Last(one), StateKind::Last(other)) => *one = other,
            (
                StateKind::Max(_) | StateKind::Min(_),
                StateKind::Max(Some(other)) | StateKind::Min(Some(other)),
            ) => {
                return self.add(ExprValue::from(other), collation);
            }
            (StateKind::MergedDocument(_), StateKind::MergedDocument(other)) => {
                return self.add(other.finish().into(), collation);
            }
            (StateKind::Percentiles(one), StateKind::Percentiles(other)) => one.merge(other),
            (StateKind::PushedValues(one), StateKind::PushedValues(other))
            | (StateKind::Concatenated(one), StateKind::Concatenated(other)) => one.merge(other),
            (StateKind::DistinctValues(one), StateKind::DistinctValues(other))
            | (StateKind::Union(one), StateKind::Union(other)) => {
                one.merge(other, collation);
            }
            (StateKind::SelectN(one), StateKind::SelectN(other)) => one.merge(other, collation),
            (StateKind::Sum(one), StateKind::Sum(other)) => one.add_sum(&other),
            (StateKind::Top(one), StateKind::Top(other)) => one.merge(other),
            (StateKind::Max(_), StateKind::Max(None))
            | (StateKind::Min(_), StateKind::Min(None)) => {}
            (one, other) => {
                let message = format!("merging states of two accumulators: {one:?}, {other:?}");
                return Err(Bug::new(message).into());
            }
        }
        self.check_size()
    }

    /// Returns the result. Missing first and last values are null.
    pub fn finish(self) -> Value {
        match self.0 {
            StateKind::Average(average) => average.finish(),
            StateKind::Count(count) => Number::int_or_long(count).to_value_ref().to_value(),
            StateKind::Deviation(deviation) => {
                deviation.finish().map_or(Value::Null, Value::Double)
            }
            StateKind::First(FirstInput::Present(value)) => value,
            StateKind::First(_) => Value::Null,
            StateKind::Last(last) => last.unwrap_or(Value::Null),
            StateKind::Max(value) | StateKind::Min(value) => value.unwrap_or(Value::Null),
            StateKind::MergedDocument(merged) => Value::Document(merged.finish()),
            StateKind::SlidingAverage(average) => average.finish_sliding(),
            StateKind::SlidingDeviation(deviation) => deviation.finish_sliding(),
            StateKind::Percentiles(percentiles) => percentiles.finish(),
            StateKind::PushedValues(pushed) | StateKind::Concatenated(pushed) => pushed.finish(),
            StateKind::DistinctValues(set) | StateKind::Union(set) => set.finish(),
            StateKind::SelectN(select_n) => select_n.finish(),
            StateKind::Sum(sum) => sum.value(),
            StateKind::Top(top) => top.finish(),
        }
    }

    pub(crate) fn input_dependence(&self) -> InputDependence {
        match &self.0 {
            StateKind::Average(_)
            | StateKind::Count(_)
            | StateKind::Deviation(_)
            | StateKind::Max(_)
            | StateKind::Min(_)
            | StateKind::SlidingAverage(_)
            | StateKind::SlidingDeviation(_)
            | StateKind::Sum(_) => InputDependence::Bounded(1),
            StateKind::First(_) => InputDependence::First(1),
            StateKind::Last(_) => InputDependence::Last(1),
            StateKind::SelectN(select_n) => select_n.input_dependence(),
            StateKind::Top(top) => InputDependence::Bounded(top.count()),
            StateKind::Concatenated(_)
            | StateKind::MergedDocument(_)
            | StateKind::Percentiles(_)
            | StateKind::PushedValues(_)
            | StateKind::DistinctValues(_)
            | StateKind::Union(_) => InputDependence::All,
        }
    }

    /// Returns the approximate bytes of the result in a document.
    pub fn document_bytes(&self) -> usize {
        match &self.0 {
            StateKind::MergedDocument(merged) => merged.document_bytes(),
            _ => self.bytes(),
        }
    }

    /// Returns the approximate bytes of the state in memory.
    pub fn bytes(&self) -> usize {
        STATE_BYTES
            + match &self.0 {
                StateKind::First(FirstInput::Present(value))
                | StateKind::Last(Some(value))
                | StateKind::Max(Some(value))
                | StateKind::Min(Some(value)) => value_bytes(value.as_ref()),
                StateKind::MergedDocument(merged) => merged.bytes(),
                StateKind::Percentiles(percentiles) => percentiles.bytes(),
                StateKind::PushedValues(pushed) | StateKind::Concatenated(pushed) => pushed.bytes(),
                StateKind::DistinctValues(set) | StateKind::Union(set) => set.bytes(),
                StateKind::SelectN(select_n) => select_n.bytes(),
                StateKind::Top(top) => top.bytes(),
                _ => 0,
            }
    }
}

/// Returns the elements of an array value, or none if the value is missing. Fails with 14 for other
/// types.
fn elements<'v>(
    name: &str,
    value: &'v ExprValue<'_>,
) -> Result<impl Iterator<Item = ValueRef<'v>>, Error> {
    let found = match value.as_ref() {
        None => Array::EMPTY,
        Some(ValueRef::Array(array)) => array,
        Some(other) => {
            let found = other.type_of().name();
            let message = format!("{name} requires array inputs, but input is of type {found}");
            return Err(Error::type_mismatch(message));
        }
    };
    Ok(found.iter())
}

fn with_number(value: &ExprValue<'_>, take: impl FnOnce(Number)) {
    if let Some(number) = value.as_ref().and_then(Number::from_value) {
        take(number);
    }
}
