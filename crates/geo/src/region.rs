//! The region that `$geoWithin` or `$geoIntersects` specifies.

use s2rst::s1::Angle;
use s2rst::s2::Cap;
use windrow_document::{Document, ValueRef};

use crate::plane::{Figure, circle};
use crate::position::{More, Position};
use crate::relation::cap_contains;
use crate::shape::{Part, Shape};
use crate::{Error, geojson};

/// The region of a condition.
#[derive(Clone, Debug)]
pub(crate) enum Region {
    Plane(Figure),
    /// A spherical cap: `$centerSphere`.
    Cap(Cap),
    Sphere(Shape),
}

impl Region {
    /// Parses the operand's only field. Fails with code 2.
    pub fn parse(fields: Document<'_>) -> Result<Region, Error> {
        // `$uniqueDocs` was removed from MongoDB and is ignored.
        let mut named = fields.iter().filter(|(name, _)| *name != "$uniqueDocs");
        let Some((name, value)) = named.next() else {
            return Err(Error::bad_value(format!(
                "geo query doesn't have any geometry: {fields}"
            )));
        };
        if let Some((other, _)) = named.next() {
            return Err(Error::bad_value(format!(
                "can't parse extra field: {other} in a geo query"
            )));
        }
        match name {
            "$box" => Figure::parse_box(value).map(Region::Plane),
            "$center" => Figure::parse_center(value).map(Region::Plane),
            "$polygon" => Figure::parse_polygon(value).map(Region::Plane),
            "$centerSphere" => cap(value).map(Region::Cap),
            "$geometry" => geometry(value).map(Region::Sphere),
            _ => Err(Error::bad_value(format!("unknown geo specifier: {name}"))),
        }
    }

    /// Returns `true` if all of the shape lies in the region.
    pub fn contains(&self, shape: &Shape) -> bool {
        let all =
            |test: &dyn Fn(&Part) -> bool| !shape.parts.is_empty() && shape.parts.iter().all(test);
        match self {
            Region::Plane(figure) => shape.position.is_some_and(|point| figure.contains(point)),
            Region::Cap(cap) => all(&|part| cap_contains(cap, part)),
            Region::Sphere(own) => all(&|part| {
                own.parts.iter().any(|one| match one {
                    Part::Polygon(polygon) => polygon.contains(part),
                    _ => false,
                })
            }),
        }
    }

    /// Returns `true` if the shape and the region have a point in common.
    pub fn intersects(&self, shape: &Shape) -> bool {
        match self {
            Region::Sphere(own) => own
                .parts
                .iter()
                .any(|one| shape.parts.iter().any(|part| one.intersects(part))),
            Region::Plane(_) | Region::Cap(_) => self.contains(shape),
        }
    }

    /// Returns `true` if the region has an interior, which `$geoWithin` requires.
    pub fn has_inside(&self) -> bool {
        match self {
            Region::Sphere(shape) => shape
                .parts
                .iter()
                .all(|part| matches!(part, Part::Polygon(_))),
            Region::Plane(_) | Region::Cap(_) => true,
        }
    }
}

fn cap(value: ValueRef<'_>) -> Result<Cap, Error> {
    let (center, radius) = circle("$centerSphere", value)?;
    let center = center.check_on_earth()?.point();
    let radius = radius.min(std::f64::consts::PI);
    Ok(Cap::from_center_angle(center, Angle::from_radians(radius)))
}

fn geometry(value: ValueRef<'_>) -> Result<Shape, Error> {
    match value {
        ValueRef::Document(document) if geojson::is_geojson(document) => geojson::parse(document),
        ValueRef::Document(document) if document.contains("type") => Err(Error::bad_value(
            format!("unknown GeoJSON type: {document}"),
        )),
        // MongoDB takes a document without `type` as a legacy pair, whatever its fields are called.
        ValueRef::Document(_) | ValueRef::Array(_) => {
            let point = Position::legacy(value, More::Refused)?.check_on_earth()?;
            Ok(Shape::of_position(point))
        }
        other => Err(Error::bad_value(format!(
            "$geometry must be an object, found {other}"
        ))),
    }
}
