//! Comparisons of a value with an operand.

use std::cmp::Ordering;

use windrow_document::order::compare_doubles;
use windrow_document::{Collation, Type, ValueRef, collation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl Comparison {
    /// `$eq`, `$lt`, …
    pub fn name(self) -> &'static str {
        match self {
            Comparison::Eq => "$eq",
            Comparison::Lt => "$lt",
            Comparison::Lte => "$lte",
            Comparison::Gt => "$gt",
            Comparison::Gte => "$gte",
        }
    }

    /// The comparison of that name.
    pub fn named(name: &str) -> Option<Comparison> {
        use Comparison::{Eq, Gt, Gte, Lt, Lte};
        [Eq, Lt, Lte, Gt, Gte]
            .into_iter()
            .find(|one| one.name() == name)
    }

    /// The same with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Lt => Comparison::Gt,
            Comparison::Lte => Comparison::Gte,
            Comparison::Gt => Comparison::Lt,
            Comparison::Gte => Comparison::Lte,
        }
    }

    /// Whether a value that stands so to the operand fulfils the comparison.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::Lte => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Gte => order.is_ge(),
        }
    }

    pub fn accepts_equal(self) -> bool {
        self.accepts(Ordering::Equal)
    }
}

/// Whether the value stands to the operand as the operator says. Values of different types do not
/// compare, except that missing equals null and that everything lies between MinKey and MaxKey;
/// and NaN equals NaN but is neither less nor greater than a number.
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

/// A comparison of anything with MinKey or MaxKey.
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
