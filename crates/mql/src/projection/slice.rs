//! `$slice` of `find`: a part of an array.

use windrow_document::{Array, ValueRef};

/// The first or the last elements of an array, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The number of elements to skip. A negative value counts from the end. `None` takes the first
    /// elements, or the last ones if `limit` is negative.
    skip: Option<i32>,
    limit: i32,
}

impl Slice {
    /// Parses `n`, or `[skip, limit]` with a positive limit. Returns `None` for other operands.
    pub(super) fn parse(operand: ValueRef<'_>) -> Option<Slice> {
        match operand {
            ValueRef::Array(list) if list.count() == 2 => {
                let (skip, limit) = (int(list.get(0)?)?, int(list.get(1)?)?);
                (limit > 0).then_some(Slice {
                    skip: Some(skip),
                    limit,
                })
            }
            number => Some(Slice {
                skip: None,
                limit: int(number)?,
            }),
        }
    }

    /// Returns the selected elements.
    pub(super) fn select<'a>(
        &self,
        array: Array<'a>,
    ) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        let from_end = |distance: i32| {
            let distance = distance.unsigned_abs() as usize;
            array.count().saturating_sub(distance)
        };
        let skip = match self.skip {
            Some(skip) if skip < 0 => from_end(skip),
            Some(skip) => skip.unsigned_abs() as usize,
            None if self.limit < 0 => from_end(self.limit),
            None => 0,
        };
        let limit = self.limit.unsigned_abs() as usize;
        array.iter().skip(skip).take(limit)
    }
}

/// Truncates a number to 32 bits, as MongoDB does with these operands.
fn int(value: ValueRef<'_>) -> Option<i32> {
    Some(match value {
        ValueRef::Int32(number) => number,
        ValueRef::Int64(number) => number as i32,
        ValueRef::Double(number) => number as i32,
        ValueRef::Decimal128(number) => number
            .to_i64_truncated()
            .and_then(|(whole, _)| i32::try_from(whole).ok())
            .unwrap_or_default(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, array};

    #[test]
    fn slices_select_parts_of_an_array() {
        let five = array![1, 2, 3, 4, 5];
        let cases: [(Value, &[i32]); 7] = [
            (2.into(), &[1, 2]),
            ((-2).into(), &[4, 5]),
            (0.into(), &[]),
            (9.into(), &[1, 2, 3, 4, 5]),
            (array![1, 2].into(), &[2, 3]),
            (array![-3, 2].into(), &[3, 4]),
            (array![-9, 1].into(), &[1]),
        ];
        for (operand, expected) in cases {
            let slice = Slice::parse(operand.as_ref()).unwrap();
            let kept: Vec<_> = slice.select(five.as_array()).collect();
            let expected: Vec<_> = expected.iter().map(|one| ValueRef::Int32(*one)).collect();
            assert_eq!(kept, expected, "{operand}");
        }
        assert_eq!(Slice::parse(Value::from(array![1, 0]).as_ref()), None);
    }
}
