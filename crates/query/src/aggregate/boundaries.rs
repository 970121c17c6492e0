//! The buckets of `$bucket`.

use windrow_document::{Value, collation};
use windrow_mql::expression::{Context, ExprValue, Expression};

use crate::Error;

/// A sorted list of boundaries. A value belongs to the last boundary that is not greater.
#[derive(Clone, Debug)]
pub struct Boundaries {
    pub group_by: Expression,
    pub boundaries: Vec<Value>,
    pub default: Option<Value>,
}

impl Boundaries {
    /// Returns the boundary of a row's bucket, or the default. Fails with 40066 if the value is
    /// outside of all buckets and there is no default.
    pub fn bucket_of<'a>(&'a self, context: &Context<'a>) -> Result<ExprValue<'a>, Error> {
        let value = self.group_by.evaluate(context)?;
        let value = value.or_null();
        let below = self.boundaries.partition_point(|one| {
            collation::compare(context.collation, one.as_ref(), value).is_le()
        });
        let found = below
            .checked_sub(1)
            .filter(|_| below < self.boundaries.len());
        let boundary = found
            .and_then(|position| self.boundaries.get(position))
            .or(self.default.as_ref());
        let boundary = boundary.ok_or_else(|| {
            Error::new(
                40066,
                "$switch could not find a matching branch for an input, and no default was specified.",
            )
        })?;
        Ok(ExprValue::Borrowed(boundary.as_ref()))
    }
}
