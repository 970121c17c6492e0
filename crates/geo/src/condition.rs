//! `$geoWithin` and `$geoIntersects`.

use std::sync::OnceLock;

use windrow_document::{Document, DocumentBuf, ValueRef};

use crate::Error;
use crate::cells::Cells;
use crate::key_range::KeyRange;
use crate::region::Region;
use crate::shape::Shape;

/// How a shape must lie to the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Within,
    Intersects,
}

/// A condition on a value.
#[derive(Clone, Debug)]
pub struct Condition {
    relation: Relation,
    pub(crate) region: Region,
    source: DocumentBuf,
    /// What was asked of the cells of one kind of index: a planner asks several times.
    ranges: OnceLock<(Cells, Option<Vec<KeyRange>>)>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.source == other.source
    }
}

impl Condition {
    /// Parses the operand of an operator: `$geoIntersects`, `$geoWithin`, or `$within` of old. Error 2.
    pub fn parse(operator: &str, operand: ValueRef<'_>) -> Result<Condition, Error> {
        let ValueRef::Document(fields) = operand else {
            return Err(Error::bad_value(format!(
                "{operator} must be an object, found {operand}"
            )));
        };
        let region = Region::parse(fields)?;
        let relation = match operator {
            "$geoIntersects" => Relation::Intersects,
            _ => Relation::Within,
        };
        let fits = match relation {
            Relation::Intersects => matches!(region, Region::Sphere(_)),
            Relation::Within => region.has_inside(),
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

    /// Whether a value fulfils it. What is no shape does not.
    pub fn holds(&self, value: ValueRef<'_>) -> bool {
        if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
            return false;
        }
        let Ok(shape) = Shape::parse(value) else {
            return false;
        };
        // A stored polygon is at most a hemisphere.
        if shape.is_big {
            return false;
        }
        match self.relation {
            Relation::Within => self.region.contains(&shape),
            Relation::Intersects => self.region.intersects(&shape),
        }
    }

    /// Where the shapes lie that may fulfil it, in an index of these cells; None where they cannot say.
    pub fn ranges(&self, cells: &Cells) -> Option<Vec<KeyRange>> {
        let (known, ranges) = self
            .ranges
            .get_or_init(|| (*cells, cells.ranges(&self.region)));
        match known == cells {
            true => ranges.clone(),
            false => cells.ranges(&self.region),
        }
    }

    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The operator with its operand, as it was written.
    pub fn source(&self) -> Document<'_> {
        self.source.as_document()
    }
}
