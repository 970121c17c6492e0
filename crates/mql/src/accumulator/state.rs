//! The intermediate result of an accumulator in one group.

use windrow_document::{Array, Collation, Value, ValueRef};
use windrow_invariant::Bug;

use super::bytes::value_bytes;
use super::collect::{DistinctValues, PushedValues};
use super::merge_objects::MergedDocument;
use super::operator::{InputDependence, Operator};
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
pub struct AccumulatorState(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Average(Average),
    Concatenated(PushedValues),
    Count(i64),
    Deviation(Deviation),
    First(Option<Option<Value>>),
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

/// The bytes of a state without the values that it holds.
const STATE_BYTES: usize = size_of::<AccumulatorState>();

impl AccumulatorState {
    pub(super) fn new(operator: &Operator, context: &Context<'_>) -> Result<Self, Error> {
        Ok(AccumulatorState(match operator {
            Operator::AddToSet => Kind::DistinctValues(DistinctValues::default()),
            Operator::Average { sliding } => {
                if *sliding {
                    Kind::SlidingAverage(Average::default())
                } else {
                    Kind::Average(Average::default())
                }
            }
            Operator::ConcatArrays => Kind::Concatenated(PushedValues::default()),
            Operator::Count => Kind::Count(0),
            Operator::Deviation { coverage, sliding } => {
                let deviation = Deviation::new(*coverage);
                if *sliding {
                    Kind::SlidingDeviation(deviation)
                } else {
                    Kind::Deviation(deviation)
                }
            }
            Operator::First => Kind::First(None),
            Operator::Last => Kind::Last(None),
            Operator::Max => Kind::Max(None),
            Operator::MergeObjects => Kind::MergedDocument(MergedDocument::default()),
            Operator::Min => Kind::Min(None),
            Operator::Percentile { points, is_median } => {
                Kind::Percentiles(Percentiles::new(points.clone(), *is_median))
            }
            Operator::Push => Kind::PushedValues(PushedValues::default()),
            Operator::SelectN { selection, count } => {
                Kind::SelectN(SelectN::new(*selection, count.evaluate(context)?)?)
            }
            Operator::SetUnion => Kind::Union(DistinctValues::default()),
            Operator::Sum => Kind::Sum(Sum::default()),
            Operator::Top { bottom, count, .. } => {
                let count = count
                    .as_ref()
                    .map(|count| count.evaluate(context))
                    .transpose()?;
                Kind::Top(Top::new(*bottom, count)?)
            }
        }))
    }

    /// The state after this many documents with the same value. Returns `None` if it also depends
    /// on other things.
    pub(super) fn for_document_count(
        operator: &Operator,
        value: Option<&Value>,
        documents: u64,
    ) -> Option<AccumulatorState> {
        let kind = match operator {
            Operator::Count => Kind::Count(i64::try_from(documents).ok()?),
            Operator::Sum => Kind::Sum(Sum::from_repeated(value?, documents)?),
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
            Kind::Average(average) | Kind::SlidingAverage(average) => {
                with_number(&value, |number| average.add(number));
            }
            Kind::Concatenated(all) => {
                elements("$concatArrays", &value)?.for_each(|element| all.add(&element.into()));
            }
            Kind::Count(count) => *count += 1,
            Kind::Deviation(deviation) | Kind::SlidingDeviation(deviation) => {
                with_number(&value, |number| deviation.add(number.to_f64()));
            }
            Kind::First(first) => {
                first.get_or_insert_with(|| value.into_value());
            }
            Kind::Last(last) => *last = value.into_value(),
            Kind::Max(greatest) => keep_better(greatest, value, collation, |order| order.is_gt()),
            Kind::MergedDocument(merged) => merged.add(&value)?,
            Kind::Min(least) => keep_better(least, value, collation, |order| order.is_lt()),
            Kind::Percentiles(percentiles) => {
                with_number(&value, |number| percentiles.add(number.to_f64()));
            }
            Kind::PushedValues(pushed) => pushed.add(&value),
            Kind::DistinctValues(set) => set.add(value, collation),
            Kind::SelectN(select_n) => select_n.add(value, collation),
            Kind::Sum(sum) => with_number(&value, |number| sum.add(number)),
            Kind::Top(_) => return self.add_ordered(SortKey::default(), value),
            Kind::Union(set) => {
                elements("$setUnion", &value)?.for_each(|one| set.add(one.into(), collation));
            }
        }
        self.check_size()
    }

    /// Fails with 146 if the state of one group is too large. A single state cannot spill to disk.
    fn check_size(&self) -> Result<(), Error> {
        let (name, bytes) = match &self.0 {
            Kind::PushedValues(pushed) => ("$push", pushed.bytes()),
            Kind::Concatenated(pushed) => ("$concatArrays", pushed.bytes()),
            Kind::DistinctValues(set) => ("$addToSet", set.value_bytes()),
            Kind::Union(set) => ("$setUnion", set.value_bytes()),
            Kind::SelectN(select_n) => (select_n.name(), select_n.bytes()),
            Kind::Top(top) => (top.name(), top.bytes()),
            Kind::MergedDocument(merged) => ("$mergeObjects", merged.limited_bytes()),
            _ => return Ok(()),
        };
        check_accumulated(name, bytes)
    }

    /// Adds a value with its sort key, for `$top` and similar operators.
    pub(super) fn add_ordered(&mut self, key: SortKey, value: ExprValue<'_>) -> Result<(), Error> {
        let Kind::Top(top) = &mut self.0 else {
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
            (Kind::Average(one), Kind::Average(other))
            | (Kind::SlidingAverage(one), Kind::SlidingAverage(other)) => one.merge(&other),
            (Kind::Count(one), Kind::Count(other)) => *one += other,
            (Kind::Deviation(one), Kind::Deviation(other))
            | (Kind::SlidingDeviation(one), Kind::SlidingDeviation(other)) => one.merge(&other),
            (Kind::First(one), Kind::First(Some(other))) => {
                one.get_or_insert(other);
            }
            (Kind::Last(one), Kind::Last(other)) => *one = other,
            (Kind::Max(_) | Kind::Min(_), Kind::Max(Some(other)) | Kind::Min(Some(other))) => {
                return self.add(ExprValue::from(other), collation);
            }
            (Kind::MergedDocument(_), Kind::MergedDocument(other)) => {
                return self.add(other.finish().into(), collation);
            }
            (Kind::Percentiles(one), Kind::Percentiles(other)) => one.merge(other),
            (Kind::PushedValues(one), Kind::PushedValues(other))
            | (Kind::Concatenated(one), Kind::Concatenated(other)) => one.merge(other),
            (Kind::DistinctValues(one), Kind::DistinctValues(other))
            | (Kind::Union(one), Kind::Union(other)) => {
                one.merge(other, collation);
            }
            (Kind::SelectN(one), Kind::SelectN(other)) => one.merge(other, collation),
            (Kind::Sum(one), Kind::Sum(other)) => one.add_sum(&other),
            (Kind::Top(one), Kind::Top(other)) => one.merge(other),
            (Kind::First(_), Kind::First(None))
            | (Kind::Max(_), Kind::Max(None))
            | (Kind::Min(_), Kind::Min(None)) => {}
            (one, other) => {
                let message = format!("merging states of two accumulators: {one:?}, {other:?}");
                return Err(Bug::new(message).into());
            }
        }
        self.check_size()
    }

    /// The result. Missing first and last values are null.
    pub fn finish(self) -> Value {
        match self.0 {
            Kind::Average(average) => average.finish(),
            Kind::Count(count) => Number::int_or_long(count).to_value_ref().to_value(),
            Kind::Deviation(deviation) => deviation.finish().map_or(Value::Null, Value::Double),
            Kind::First(first) => first.flatten().unwrap_or(Value::Null),
            Kind::Last(last) => last.unwrap_or(Value::Null),
            Kind::Max(value) | Kind::Min(value) => value.unwrap_or(Value::Null),
            Kind::MergedDocument(merged) => Value::Document(merged.finish()),
            Kind::SlidingAverage(average) => average.finish_sliding(),
            Kind::SlidingDeviation(deviation) => deviation.finish_sliding(),
            Kind::Percentiles(percentiles) => percentiles.finish(),
            Kind::PushedValues(pushed) | Kind::Concatenated(pushed) => pushed.finish(),
            Kind::DistinctValues(set) | Kind::Union(set) => set.finish(),
            Kind::SelectN(select_n) => select_n.finish(),
            Kind::Sum(sum) => sum.value(),
            Kind::Top(top) => top.finish(),
        }
    }

    pub(crate) fn input_dependence(&self) -> InputDependence {
        match &self.0 {
            Kind::Average(_)
            | Kind::Count(_)
            | Kind::Deviation(_)
            | Kind::Max(_)
            | Kind::Min(_)
            | Kind::SlidingAverage(_)
            | Kind::SlidingDeviation(_)
            | Kind::Sum(_) => InputDependence::Bounded(1),
            Kind::First(_) => InputDependence::First(1),
            Kind::Last(_) => InputDependence::Last(1),
            Kind::SelectN(select_n) => select_n.input_dependence(),
            Kind::Top(top) => InputDependence::Bounded(top.count()),
            Kind::Concatenated(_)
            | Kind::MergedDocument(_)
            | Kind::Percentiles(_)
            | Kind::PushedValues(_)
            | Kind::DistinctValues(_)
            | Kind::Union(_) => InputDependence::All,
        }
    }

    /// The approximate bytes of the result in a document.
    pub fn document_bytes(&self) -> usize {
        match &self.0 {
            Kind::MergedDocument(merged) => merged.document_bytes(),
            _ => self.bytes(),
        }
    }

    /// The approximate bytes of the state in memory.
    pub fn bytes(&self) -> usize {
        STATE_BYTES
            + match &self.0 {
                Kind::First(Some(Some(value)))
                | Kind::Last(Some(value))
                | Kind::Max(Some(value))
                | Kind::Min(Some(value)) => value_bytes(value.as_ref()),
                Kind::MergedDocument(merged) => merged.bytes(),
                Kind::Percentiles(percentiles) => percentiles.bytes(),
                Kind::PushedValues(pushed) | Kind::Concatenated(pushed) => pushed.bytes(),
                Kind::DistinctValues(set) | Kind::Union(set) => set.bytes(),
                Kind::SelectN(select_n) => select_n.bytes(),
                Kind::Top(top) => top.bytes(),
                _ => 0,
            }
    }
}

/// The elements of an array value, or none if the value is missing. Fails with 14 for other types.
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
