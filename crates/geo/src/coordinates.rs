//! Coordinate pairs: points of the plane, or longitude and latitude.

use s2rst::s2::{LatLng, Point};
use windrow_document::ValueRef;

use crate::Error;

/// A pair of coordinates. On the earth both are in degrees and the longitude comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// The x coordinate or the longitude.
    pub x: f64,
    /// The y coordinate or the latitude.
    pub y: f64,
}

/// Whether a pair can have elements after its first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraElements {
    Allowed,
    Refused,
}

impl Coordinates {
    /// Parses a legacy coordinate pair: an array or a document whose first two values are numbers.
    /// Fails with code 2.
    pub(crate) fn parse_pair(
        value: ValueRef<'_>,
        extra: ExtraElements,
    ) -> Result<Coordinates, Error> {
        let fields = match value {
            ValueRef::Document(document) => document,
            ValueRef::Array(array) => array.as_document(),
            other => return Err(not_a_point(other.type_of().name())),
        };
        let mut values = fields.iter().map(|(_, value)| value);
        let (x, y) = (number(values.next())?, number(values.next())?);
        if extra == ExtraElements::Refused && values.next().is_some() {
            return Err(Error::bad_value(format!(
                "Point must only contain two numeric elements, found {value}"
            )));
        }
        Ok(Coordinates { x, y })
    }

    /// Fails with code 2 if a coordinate is infinite or not a number.
    pub(crate) fn check_finite(self) -> Result<Coordinates, Error> {
        if self.x.is_finite() && self.y.is_finite() {
            return Ok(self);
        }
        Err(Error::bad_value(format!(
            "Point must only contain finite numbers, found {}, {}",
            self.x, self.y
        )))
    }

    /// Returns `true` if the pair is a valid longitude and latitude.
    pub fn is_on_earth(self) -> bool {
        (-180.0..=180.0).contains(&self.x) && (-90.0..=90.0).contains(&self.y)
    }

    /// Fails with code 2 if the pair is not a valid longitude and latitude.
    pub(crate) fn check_on_earth(self) -> Result<Coordinates, Error> {
        if self.is_on_earth() {
            return Ok(self);
        }
        Err(Error::bad_value(format!(
            "longitude/latitude is out of bounds, lng: {} lat: {}",
            self.x, self.y
        )))
    }

    /// Returns the point of the unit sphere.
    pub(crate) fn point(self) -> Point {
        LatLng::from_degrees(self.y, self.x).to_point()
    }

    /// Returns the distance to another point of the plane.
    pub fn distance(self, other: Coordinates) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

pub(crate) fn not_a_point(found: &str) -> Error {
    Error::bad_value(format!(
        "Point must be an array or object, instead got type {found}"
    ))
}

fn number(value: Option<ValueRef<'_>>) -> Result<f64, Error> {
    let number = value.filter(|value| value.is_number());
    number.and_then(ValueRef::as_f64).ok_or_else(|| {
        let found = value.map_or("missing", |value| value.type_of().name());
        Error::bad_value(format!(
            "Point must only contain numeric elements, instead got type {found}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, array, doc};

    #[test]
    fn pairs_are_arrays_or_documents() {
        let check = |value: Value, expected: Option<(f64, f64)>| {
            let found = Coordinates::parse_pair(value.as_ref(), ExtraElements::Allowed).ok();
            assert_eq!(found.map(|it| (it.x, it.y)), expected, "{value}");
        };
        check(array![1, 2.5].into(), Some((1.0, 2.5)));
        check(array![1, 2i64, 3].into(), Some((1.0, 2.0)));
        check(doc! { "lng": 1, "lat": 2 }.into(), Some((1.0, 2.0)));
        check(array![1].into(), None);
        check(array!["1", "2"].into(), None);
        check(doc! {}.into(), None);
        check(Value::Int32(5), None);
    }

    #[test]
    fn longitude_and_latitude_have_bounds() {
        assert!(Coordinates { x: 180.0, y: -90.0 }.is_on_earth());
        assert!(!Coordinates { x: 181.0, y: 0.0 }.is_on_earth());
        assert!(
            !Coordinates {
                x: f64::NAN,
                y: 0.0
            }
            .is_on_earth()
        );
    }
}
