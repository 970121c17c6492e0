//! Comparisons of a value with an operand, as the query operators do it.

use std::cmp::Ordering;

use windrow_document::order::compare_doubles;
use windrow_document::{Collation, Type, ValueRef, collation};

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `$eq`.
    Eq,
    /// `$lt`.
    Lt,
    /// `$lte`.
    Lte,
    /// `$gt`.
    Gt,
    /// `$gte`.
    Gte,
}

impl Comparison {
    /// Returns the name of the operator, such as `$eq`.
    pub fn name(self) -> &'static str {
        match self {
            Comparison::Eq => "$eq",
            Comparison::Lt => "$lt",
            Comparison::Lte => "$lte",
            Comparison::Gt => "$gt",
            Comparison::Gte => "$gte",
        }
    }

    /// Returns the operator with this name.
    pub fn from_name(name: &str) -> Option<Comparison> {
        use Comparison::{Eq, Gt, Gte, Lt, Lte};
        [Eq, Lt, Lte, Gt, Gte]
            .into_iter()
            .find(|one| one.name() == name)
    }

    /// Returns the operator that compares the same with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Lt => Comparison::Gt,
            Comparison::Lte => Comparison::Gte,
            Comparison::Gt => Comparison::Lt,
            Comparison::Gte => Comparison::Lte,
        }
    }

    /// Returns `true` if a value with this order relative to the operand fulfils the comparison.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::Lte => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Gte => order.is_ge(),
        }
    }

    /// Returns `true` if a value that equals the operand fulfils the comparison.
    pub fn accepts_equal(self) -> bool {
        self.accepts(Ordering::Equal)
    }
}

/// Returns `true` if the value compares to the operand as the operator says. Values of different
/// types do not compare, except that a missing value equals null and that MinKey is less and MaxKey
/// greater than everything. NaN equals NaN but is neither less nor greater than any number.
pub(super) fn compares(
    value: Option<ValueRef<'_>>,
    operator: Comparison,
    operand: ValueRef<'_>,
    collation: Option<&Collation>,
) -> bool {
    let value = match (value, operand) {
        (Some(ValueRef::Int32(one)), ValueRef::Int32(other)) => {
            return operator.accepts(one.cmp(&other));
        }
        (Some(ValueRef::String(one)), ValueRef::String(other)) => {
            let order = collation.map_or_else(
                || one.cmp(other),
                |collation| collation.compare_strings(one, other),
            );
            return operator.accepts(order);
        }
        (Some(value), _) => value,
        (None, ValueRef::Null) => return operator.accepts_equal(),
        (None, other) => return accepts_extreme(operator, other),
    };
    let type_of = operand.type_of();
    if value.type_of().rank() != type_of.rank() {
        return accepts_extreme(operator, operand);
    }
    if operator != Comparison::Eq && type_of.is_number() && is_nan(value) != is_nan(operand) {
        return false;
    }
    match (value, operand) {
        (ValueRef::Double(one), ValueRef::Double(other)) => {
            operator.accepts(compare_doubles(one, other))
        }
        _ => operator.accepts(collation::compare(collation, value, operand)),
    }
}

/// Compares a value of another type with MinKey or MaxKey.
fn accepts_extreme(operator: Comparison, operand: ValueRef<'_>) -> bool {
    match operand.type_of() {
        Type::MinKey => matches!(operator, Comparison::Gt | Comparison::Gte),
        Type::MaxKey => matches!(operator, Comparison::Lt | Comparison::Lte),
        _ => false,
    }
}

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}
