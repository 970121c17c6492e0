//! Functions of the position in the partition: `$rank`, `$denseRank`, `$documentNumber`, `$shift`.

use windrow_document::Value;

use super::Partition;
use crate::Error;
use crate::expression::Expression;
use crate::expression::number::Number;

fn number(number: usize) -> Option<Value> {
    let number = Number::int_or_long(i64::try_from(number).unwrap_or(i64::MAX));
    Some(number.to_value_ref().to_value())
}

/// `$documentNumber`: 1, 2, 3, …
pub(super) fn numbers(partition: &Partition<'_>) -> Vec<Option<Value>> {
    (1..=partition.documents.len()).map(number).collect()
}

/// `$rank`: documents with equal sort keys have the same rank. The rank is one more than the number
/// of documents with smaller keys.
pub(super) fn ranks(partition: &Partition<'_>) -> Vec<Option<Value>> {
    with_ranks(partition, |index, _| index + 1)
}

/// `$denseRank`: as `$rank`, but ranks have no gaps.
pub(super) fn dense(partition: &Partition<'_>) -> Vec<Option<Value>> {
    with_ranks(partition, |_, rank| rank + 1)
}

fn with_ranks(partition: &Partition<'_>, next: fn(usize, usize) -> usize) -> Vec<Option<Value>> {
    let (mut rank, mut before) = (0, None);
    let ranked = partition.keys.iter().enumerate().map(|(index, key)| {
        if before.replace(key) != Some(key) {
            rank = next(index, rank);
        }
        number(rank)
    });
    ranked.collect()
}

/// `$shift`: the value of the document `by` positions ahead. It is `default` if there is no such
/// document, or if the value is missing.
pub(super) fn shift<'a>(
    input: &'a Expression,
    by: i64,
    default: &Value,
    partition: &Partition<'a>,
) -> Result<Vec<Option<Value>>, Error> {
    let values = partition.values(input)?;
    let shift = (0..values.len()).map(|index| {
        let other = i64::try_from(index)
            .ok()
            .and_then(|index| index.checked_add(by));
        let other = other.and_then(|other| values.get(usize::try_from(other).ok()?)?.as_ref());
        Some(other.unwrap_or(default).clone())
    });
    Ok(shift.collect())
}
