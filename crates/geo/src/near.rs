//! Distances from a point: `$near`, `$nearSphere` and `$geoNear`.

use s2rst::s2::Point;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_interrupt::{Interrupted, UNCOUNTED, WorkCounter};

use crate::coordinates::{Coordinates, ExtraElements};
use crate::shape::{Shape, parse_stored};
use crate::{EARTH_RADIUS_METERS, Error, geojson};

/// The unit of a query's distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceUnit {
    /// The unit of the coordinates, measured in the plane: `$near` with a legacy coordinate pair.
    Planar,
    /// Radians along the sphere: `$nearSphere` with a legacy coordinate pair.
    Radians,
    /// Meters along the earth's surface: either operator with GeoJSON.
    Meters,
}

/// A parsed `$near` or `$nearSphere`: a center and bounds on the distance from it.
///
/// ```
/// use windrow_document::{ValueRef, array, doc};
/// use windrow_geo::Near;
///
/// let operators = doc! { "$near": [0, 0], "$maxDistance": 10 };
/// let near = Near::parse(operators.as_document()).unwrap();
/// let distance = near.distance(ValueRef::Array(array![3, 4].as_array()));
/// assert_eq!(distance, Some(5.0));
/// assert!(near.allows(5.0));
/// ```
#[derive(Clone, Debug)]
pub struct Near {
    /// The point from which distances are measured.
    pub center: Coordinates,
    /// The unit of `min`, `max` and of all distances.
    pub unit: DistanceUnit,
    /// The smallest distance that matches, inclusive.
    pub min: f64,
    /// The greatest distance that matches, inclusive. Infinite if the query has no `$maxDistance`.
    pub max: f64,
    point: Point,
    source: DocumentBuf,
}

impl PartialEq for Near {
    fn eq(&self, other: &Near) -> bool {
        self.source == other.source
    }
}

/// MongoDB's error codes for invalid values of `$minDistance` and `$maxDistance`.
#[derive(Clone, Copy)]
struct DistanceCodes {
    min: InvalidDistanceCodes,
    max: InvalidDistanceCodes,
}

#[derive(Clone, Copy)]
struct InvalidDistanceCodes {
    not_a_number: i32,
    negative: i32,
}

/// The codes of distances beside a legacy coordinate pair.
const PAIR_CODES: DistanceCodes = DistanceCodes {
    min: InvalidDistanceCodes {
        not_a_number: 16893,
        negative: 16894,
    },
    max: InvalidDistanceCodes {
        not_a_number: 16895,
        negative: 16896,
    },
};

/// The codes of distances beside `$geometry`.
const GEOMETRY_CODES: DistanceCodes = DistanceCodes {
    min: BAD_VALUE,
    max: BAD_VALUE,
};

const BAD_VALUE: InvalidDistanceCodes = InvalidDistanceCodes {
    not_a_number: 2,
    negative: 2,
};

impl Near {
    /// Returns `true` for the names of operators and stages that this type implements.
    pub fn is_operator(name: &str) -> bool {
        matches!(name, "$geoNear" | "$near" | "$nearSphere")
    }

    /// Creates a query without bounds around a legacy coordinate pair or a GeoJSON point. A pair is
    /// on the sphere if `is_spherical`, otherwise in the plane. Fails with code 2 if the value is
    /// not a point.
    pub fn from_point(value: ValueRef<'_>, is_spherical: bool) -> Result<Near, Error> {
        let name = if is_spherical { "$nearSphere" } else { "$near" };
        let mut source = DocumentBuf::new();
        source.push(name, value.to_value());
        Near::parse(source.as_document())
    }

    /// Parses the operators of a field, with the near operator first:
    /// `{$near: …, $maxDistance: …}`.
    ///
    /// Fails with code 2 if the operand is not a point, and with codes 16893 to 16896 if a distance
    /// beside a legacy coordinate pair is invalid.
    pub fn parse(operators: Document<'_>) -> Result<Near, Error> {
        let (name, operand) = operators
            .first()
            .ok_or_else(|| Error::bad_value("$near needs a point"))?;
        let is_spherical = name == "$nearSphere";
        let mut near = match operand {
            ValueRef::Document(fields) if fields.contains("$geometry") => {
                if let Some((extra, value)) = operators.iter().nth(1) {
                    return Err(Error::bad_value(format!(
                        "geo near accepts just one argument when querying for a GeoJSON point. \
                         Extra field found: {extra}: {value}"
                    )));
                }
                let geometry = fields.get("$geometry").unwrap_or(ValueRef::Null);
                Near::from_geometry(geometry)?.with_distances(
                    fields,
                    "$geometry",
                    &GEOMETRY_CODES,
                )?
            }
            ValueRef::Document(fields) if geojson::is_geojson(fields) => {
                Near::from_geometry(operand)?
            }
            ValueRef::Document(fields) if fields.is_empty() => return Err(missing_geometry()),
            ValueRef::Array(fields) if fields.is_empty() => return Err(missing_geometry()),
            ValueRef::Document(_) | ValueRef::Array(_) => Near::from_pair(operand, is_spherical)?,
            _ => {
                let message = format!("near must be first in: {operators}");
                return Err(Error::bad_value(message));
            }
        };
        near = near.with_distances(operators, name, &PAIR_CODES)?;
        near.source = operators.to_buf();
        Ok(near)
    }

    fn new(center: Coordinates, unit: DistanceUnit) -> Near {
        Near {
            center,
            unit,
            min: 0.0,
            max: f64::INFINITY,
            point: center.point(),
            source: DocumentBuf::new(),
        }
    }

    fn from_geometry(value: ValueRef<'_>) -> Result<Near, Error> {
        // MongoDB accepts a legacy coordinate pair as `$geometry`, too.
        let fields = value
            .as_document()
            .filter(|fields| geojson::is_geojson(*fields));
        let kind = fields.and_then(|fields| fields.get("type").and_then(ValueRef::as_str));
        let not_a_point = |kind: &str| {
            Error::bad_value(format!(
                "Expected geojson geometry with type Point, but got type {kind}"
            ))
        };
        // Another shape may be large, and is not parsed.
        if let Some(kind) = kind.filter(|kind| *kind != "Point") {
            return Err(not_a_point(kind));
        }
        let center = Shape::parse(value)?
            .position()
            .ok_or_else(|| not_a_point("Point"))?;
        Ok(Near::new(center.check_on_earth()?, DistanceUnit::Meters))
    }

    /// The optional third element of a pair is the maximum distance.
    fn from_pair(value: ValueRef<'_>, is_spherical: bool) -> Result<Near, Error> {
        let center = Coordinates::parse_pair(value, ExtraElements::Allowed)?;
        let unit = if is_spherical {
            DistanceUnit::Radians
        } else {
            DistanceUnit::Planar
        };
        if is_spherical && !center.is_on_earth() {
            let message = "Legacy point is out of bounds for spherical query";
            return Err(Error::bad_value(message));
        }
        let mut near = Near::new(center, unit);
        if let Some(third) = value.as_array().and_then(|array| array.get(2)) {
            near.max = parse_distance("$maxDistance", PAIR_CODES.max, third)?;
        }
        Ok(near)
    }

    fn with_distances(
        mut self,
        fields: Document<'_>,
        operator: &str,
        codes: &DistanceCodes,
    ) -> Result<Near, Error> {
        for (name, value) in fields {
            match name {
                "$maxDistance" => self.max = parse_distance(name, codes.max, value)?,
                "$minDistance" => self.min = parse_distance(name, codes.min, value)?,
                "$uniqueDocs" => {}
                name if name == operator => {}
                other => {
                    return Err(Error::bad_value(format!(
                        "invalid argument in geo near query: {other}"
                    )));
                }
            }
        }
        Ok(self)
    }

    /// Returns the query with other bounds on the distance.
    pub fn with_bounds(mut self, min: f64, max: f64) -> Near {
        (self.min, self.max) = (min, max);
        if min > 0.0 {
            self.source.push("$minDistance", min);
        }
        if max.is_finite() {
            self.source.push("$maxDistance", max);
        }
        self
    }

    /// Returns the distance of a value in the query's unit. Returns `None` if the value is not a
    /// shape, if it is not on the sphere although the query is, or if the distance is not a number
    /// (infinite coordinates in the plane).
    pub fn distance(&self, value: ValueRef<'_>) -> Option<f64> {
        self.distance_with(value, UNCOUNTED).ok().flatten()
    }

    /// The same for a value that may be large. Fails only if `count_work` does.
    pub fn distance_with(
        &self,
        value: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<Option<f64>, Interrupted> {
        let Some(shape) = parse_stored(value, count_work)? else {
            return Ok(None);
        };
        let distance = match self.unit {
            DistanceUnit::Planar => shape
                .position()
                .map(|position| self.center.distance(position)),
            DistanceUnit::Radians => shape
                .meters_to(self.point, count_work)?
                .map(|meters| meters / EARTH_RADIUS_METERS),
            DistanceUnit::Meters => shape.meters_to(self.point, count_work)?,
        };
        Ok(distance.filter(|distance| !distance.is_nan()))
    }

    /// Returns `true` if the distance is within the bounds.
    pub fn allows(&self, distance: f64) -> bool {
        (self.min..=self.max).contains(&distance)
    }

    /// Converts a distance to an angle in radians.
    pub(crate) fn radians(&self, distance: f64) -> f64 {
        match self.unit {
            DistanceUnit::Meters => distance / EARTH_RADIUS_METERS,
            DistanceUnit::Radians | DistanceUnit::Planar => distance,
        }
    }

    /// Converts an angle in radians to a distance.
    pub(crate) fn distance_of(&self, angle: f64) -> f64 {
        match self.unit {
            DistanceUnit::Meters => angle * EARTH_RADIUS_METERS,
            DistanceUnit::Radians | DistanceUnit::Planar => angle,
        }
    }

    pub(crate) fn point(&self) -> Point {
        self.point
    }

    /// The operators as the client sent them.
    pub fn source(&self) -> Document<'_> {
        self.source.as_document()
    }
}

fn missing_geometry() -> Error {
    Error::bad_value("$geometry is required for geo near query")
}

fn parse_distance(
    name: &str,
    codes: InvalidDistanceCodes,
    value: ValueRef<'_>,
) -> Result<f64, Error> {
    match value.as_f64().filter(|_| value.is_number()) {
        None => Err(Error::new(
            codes.not_a_number,
            format!("{name} must be a number"),
        )),
        Some(distance) if distance >= 0.0 && distance.is_finite() => Ok(distance),
        Some(_) => {
            let message = format!("{name} must be non-negative and finite");
            Err(Error::new(codes.negative, message))
        }
    }
}
