//! The conditions `$geoWithin` and `$geoIntersects`.

use std::sync::OnceLock;

use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_interrupt::{Interrupted, UNCOUNTED, WorkCounter};

use crate::Error;
use crate::cells::Cells;
use crate::key_range::KeyRange;
use crate::region::Region;
use crate::shape::parse_stored;

/// The spatial relation that a condition requires between a value and its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The whole shape lies inside the region or on its boundary.
    Within,
    /// The shape and the region have at least one point in common.
    Intersects,
}

/// A parsed `$geoWithin` or `$geoIntersects`.
///
/// ```
/// use windrow_document::{ValueRef, array, doc};
/// use windrow_geo::Condition;
///
/// let operand = doc! { "$box": [[0, 0], [4, 4]] };
/// let operand = ValueRef::Document(operand.as_document());
/// let condition = Condition::parse("$geoWithin", operand).unwrap();
/// assert!(condition.matches(ValueRef::Array(array![1, 2].as_array())));
/// assert!(!condition.matches(ValueRef::Array(array![5, 2].as_array())));
/// ```
#[derive(Clone, Debug)]
pub struct Condition {
    relation: Relation,
    pub(crate) region: Region,
    source: DocumentBuf,
    /// The key ranges for the first kind of cells that was asked for. The planner asks several
    /// times, and a covering is expensive to compute.
    ranges: OnceLock<(Cells, Option<Vec<KeyRange>>)>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.source == other.source
    }
}

impl Condition {
    /// Parses the operand of `$geoIntersects`, `$geoWithin` or its deprecated alias `$within`.
    /// Fails with code 2 if the operand is invalid or its region does not support the operator.
    pub fn parse(operator: &str, operand: ValueRef<'_>) -> Result<Condition, Error> {
        Condition::parse_with(operator, operand, UNCOUNTED)
    }

    /// The same for an operand that may be large. Fails if `count_work` does as well.
    pub fn parse_with(
        operator: &str,
        operand: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<Condition, Error> {
        let ValueRef::Document(fields) = operand else {
            return Err(Error::bad_value(format!(
                "{operator} must be an object, found {operand}"
            )));
        };
        let region = Region::parse(fields, count_work)?;
        let relation = match operator {
            "$geoIntersects" => Relation::Intersects,
            _ => Relation::Within,
        };
        let fits = match relation {
            Relation::Intersects => matches!(region, Region::Sphere(_)),
            Relation::Within => region.has_interior(),
        };
        if !fits {
            return Err(Error::bad_value(format!(
                "{operator} not supported with provided geometry: {fields}"
            )));
        }
        let mut source = DocumentBuf::new();
        source.push(operator, fields.to_buf());
        Ok(Condition {
            relation,
            region,
            source,
            ranges: OnceLock::new(),
        })
    }

    /// Returns `true` if the value is a shape that satisfies the condition. Values that are not
    /// valid shapes do not match.
    pub fn matches(&self, value: ValueRef<'_>) -> bool {
        self.matches_with(value, UNCOUNTED)
            .is_ok_and(|matches| matches)
    }

    /// The same for a value that may be large. Fails only if `count_work` does.
    pub fn matches_with(
        &self,
        value: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        // A stored polygon is at most a hemisphere; strict winding is only defined for queries.
        let Some(shape) =
            parse_stored(value, count_work)?.filter(|shape| !shape.has_strict_winding)
        else {
            return Ok(false);
        };
        match self.relation {
            Relation::Within => self.region.contains(&shape, count_work),
            Relation::Intersects => self.region.intersects(&shape, count_work),
        }
    }

    /// Returns ranges that contain a key of every shape that satisfies the condition, or `None` if
    /// an index with these cells cannot answer it.
    pub fn ranges(&self, cells: &Cells) -> Option<Vec<KeyRange>> {
        let (known, ranges) = self
            .ranges
            .get_or_init(|| (*cells, cells.ranges(&self.region)));
        if known == cells {
            ranges.clone()
        } else {
            cells.ranges(&self.region)
        }
    }

    /// The spatial relation that the condition requires.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The operator with its operand, as the client sent it.
    pub fn source(&self) -> Document<'_> {
        self.source.as_document()
    }
}
