//! The region that `$geoWithin` or `$geoIntersects` specifies.

use s2rst::s1::Angle;
use s2rst::s2::Cap;
use windrow_document::{Document, ValueRef};

use crate::coordinates::{Coordinates, ExtraElements};
use crate::plane::{PlaneShape, circle};
use crate::proceed::Proceed;
use crate::relation::cap_contains;
use crate::shape::{Geometry, Shape};
use crate::{Error, geojson};

/// The region of a condition.
#[derive(Clone, Debug)]
pub(crate) enum Region {
    Plane(PlaneShape),
    /// A spherical cap: `$centerSphere`.
    Cap(Cap),
    Sphere(Shape),
}

impl Region {
    /// Parses the operand's only field. Fails with code 2, and with the error of `proceed`.
    pub fn parse(fields: Document<'_>, proceed: Proceed<'_>) -> Result<Region, Error> {
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
            "$box" => PlaneShape::parse_box(value).map(Region::Plane),
            "$center" => PlaneShape::parse_center(value).map(Region::Plane),
            "$polygon" => PlaneShape::parse_polygon(value).map(Region::Plane),
            "$centerSphere" => cap(value).map(Region::Cap),
            "$geometry" => geometry(value, proceed).map(Region::Sphere),
            _ => Err(Error::bad_value(format!("unknown geo specifier: {name}"))),
        }
    }

    /// Returns `true` if all of the shape lies in the region.
    pub fn contains(&self, shape: &Shape) -> bool {
        let all = |test: &dyn Fn(&Geometry) -> bool| {
            !shape.geometries.is_empty() && shape.geometries.iter().all(test)
        };
        match self {
            Region::Plane(area) => shape.position.is_some_and(|point| area.contains(point)),
            Region::Cap(cap) => all(&|geometry| cap_contains(cap, geometry)),
            Region::Sphere(region) => all(&|geometry| {
                region.geometries.iter().any(|own| match own {
                    Geometry::Polygon(polygon) => polygon.contains(geometry),
                    _ => false,
                })
            }),
        }
    }

    /// Returns `true` if the shape and the region have a point in common.
    pub fn intersects(&self, shape: &Shape) -> bool {
        match self {
            Region::Sphere(region) => region.geometries.iter().any(|own| {
                shape
                    .geometries
                    .iter()
                    .any(|geometry| own.intersects(geometry))
            }),
            Region::Plane(_) | Region::Cap(_) => self.contains(shape),
        }
    }

    /// Returns `true` if the region has an interior, which `$geoWithin` requires.
    pub fn has_interior(&self) -> bool {
        match self {
            Region::Sphere(shape) => shape
                .geometries
                .iter()
                .all(|geometry| matches!(geometry, Geometry::Polygon(_))),
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

fn geometry(value: ValueRef<'_>, proceed: Proceed<'_>) -> Result<Shape, Error> {
    match value {
        ValueRef::Document(document) if geojson::is_geojson(document) => {
            geojson::parse(document, proceed)
        }
        ValueRef::Document(document) if document.contains("type") => Err(Error::bad_value(
            format!("unknown GeoJSON type: {document}"),
        )),
        // MongoDB takes a document without `type` as a legacy pair, whatever its fields are called.
        ValueRef::Document(_) | ValueRef::Array(_) => {
            let point = Coordinates::parse_pair(value, ExtraElements::Refused)?.check_on_earth()?;
            Ok(Shape::from_coordinates(point))
        }
        other => Err(Error::bad_value(format!(
            "$geometry must be an object, found {other}"
        ))),
    }
}
