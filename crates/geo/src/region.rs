//! The region that `$geoWithin` or `$geoIntersects` specifies.

use s2rst::s1::Angle;
use s2rst::s2::Cap;
use windrow_document::{Document, ValueRef};
use windrow_interrupt::{Interrupted, WorkCounter};

use crate::coordinates::{Coordinates, ExtraElements};
use crate::plane::{PlaneShape, circle};
use crate::relation::{any, cap_contains};
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
    /// Parses the operand's only field. Fails with code 2, and if `count_work` does.
    pub fn parse(fields: Document<'_>, count_work: WorkCounter<'_>) -> Result<Region, Error> {
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
            "$geometry" => geometry(value, count_work).map(Region::Sphere),
            _ => Err(Error::bad_value(format!("unknown geo specifier: {name}"))),
        }
    }

    /// Returns `true` if all of the shape lies in the region. Fails if `count_work` does.
    pub fn contains(
        &self,
        shape: &Shape,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        if let Region::Plane(area) = self {
            return Ok(shape.position.is_some_and(|point| area.contains(point)));
        }
        for geometry in &shape.geometries {
            if !self.contains_geometry(geometry, count_work)? {
                return Ok(false);
            }
        }
        Ok(!shape.geometries.is_empty())
    }

    fn contains_geometry(
        &self,
        geometry: &Geometry,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        match self {
            Region::Plane(_) => Ok(false),
            Region::Cap(cap) => {
                count_work(geometry.edge_count() + 1)?;
                Ok(cap_contains(cap, geometry))
            }
            Region::Sphere(region) => any(&region.geometries, |own| match own {
                Geometry::Polygon(polygon) => polygon.contains(geometry, count_work),
                _ => Ok(false),
            }),
        }
    }

    /// Returns `true` if the shape and the region have a point in common. Fails if
    /// `count_work` does.
    pub fn intersects(
        &self,
        shape: &Shape,
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        let Region::Sphere(region) = self else {
            return self.contains(shape, count_work);
        };
        any(&region.geometries, |own| {
            any(&shape.geometries, |geometry| {
                own.intersects(geometry, count_work)
            })
        })
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

fn geometry(value: ValueRef<'_>, count_work: WorkCounter<'_>) -> Result<Shape, Error> {
    match value {
        ValueRef::Document(document) if geojson::is_geojson(document) => {
            geojson::parse(document, count_work)
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
