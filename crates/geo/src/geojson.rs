//! GeoJSON (RFC 7946) with MongoDB's additions, see
//! https://www.mongodb.com/docs/manual/reference/geojson/.

use s2rst::s2::Point;
use windrow_document::{Array, Document, ValueRef};

use crate::Error;
use crate::line::Line;
use crate::polygon::{Polygon, Winding};
use crate::position::{More, Position};
use crate::shape::{Part, Shape, Spot};

/// The names of the only supported coordinate reference system: WGS 84 longitude and latitude.
const EARTH: [&str; 2] = ["EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84"];
/// The same reference system with strict winding: a polygon's interior is to the left of its
/// boundary.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

/// Limit on the nesting of geometry collections, because parsing is recursive.
const DEPTH_MAX: usize = 32;

type Reader = fn(Array<'_>, Winding) -> Result<Vec<Part>, Error>;

/// The parser of `coordinates` for each geometry type.
const READERS: [(&str, Reader); 6] = [
    ("Point", |it, _| Ok(vec![point(it)?])),
    ("LineString", |it, _| Ok(vec![line(it)?])),
    ("Polygon", |it, winding| Ok(vec![polygon(it, winding)?])),
    ("MultiPoint", |it, _| several(it, point)),
    ("MultiLineString", |it, _| several(it, line)),
    ("MultiPolygon", |it, _| {
        several(it, |one| polygon(one, Winding::Smaller))
    }),
];
const COLLECTION: &str = "GeometryCollection";

fn type_of(document: Document<'_>) -> Option<&str> {
    document.get("type").and_then(ValueRef::as_str)
}

/// Returns `true` if the document has the `type` of a GeoJSON object.
pub(crate) fn is_geojson(document: Document<'_>) -> bool {
    type_of(document)
        .is_some_and(|name| name == COLLECTION || READERS.iter().any(|(known, _)| *known == name))
}

impl Shape {
    /// Parses a document's value: GeoJSON if it has the `type` of a GeoJSON object, otherwise a
    /// legacy coordinate pair. Fails with code 2 if the value is neither.
    pub fn parse(value: ValueRef<'_>) -> Result<Shape, Error> {
        if let ValueRef::Document(document) = value
            && is_geojson(document)
        {
            return parse(document);
        }
        Shape::pair(value)
    }

    /// Parses a legacy coordinate pair. Fails with code 2 if the value is not one.
    pub fn pair(value: ValueRef<'_>) -> Result<Shape, Error> {
        Position::legacy(value, More::Allowed).map(Shape::of_position)
    }
}

/// Parses a GeoJSON object. Fails with code 2 if it is invalid.
pub(crate) fn parse(document: Document<'_>) -> Result<Shape, Error> {
    let winding = reference_system(document)?;
    let name = type_of(document).unwrap_or_default();
    if winding == Winding::Left && name != "Polygon" {
        return Err(Error::bad_value(
            "Strict winding order is only supported by polygon",
        ));
    }
    Ok(Shape {
        parts: parts(document, winding, 0)?,
        position: match name {
            "Point" => Some(position(coordinates(document)?)?),
            _ => None,
        },
        is_big: winding == Winding::Left,
    })
}

fn parts(document: Document<'_>, winding: Winding, depth: usize) -> Result<Vec<Part>, Error> {
    let name = type_of(document).unwrap_or_default();
    if let Some((_, read)) = READERS.iter().find(|(known, _)| *known == name) {
        return read(coordinates(document)?, winding);
    }
    if name != COLLECTION || depth > DEPTH_MAX {
        return Err(Error::bad_value(format!(
            "unknown GeoJSON type: {document}"
        )));
    }
    let Some(ValueRef::Array(geometries)) = document.get("geometries") else {
        return Err(Error::bad_value(
            "GeometryCollection geometries must be an array",
        ));
    };
    if geometries.is_empty() {
        return Err(Error::bad_value(
            "GeometryCollection geometries must have at least 1 element",
        ));
    }
    let mut found = Vec::new();
    for (number, one) in geometries.iter().enumerate() {
        let ValueRef::Document(one) = one else {
            return Err(Error::bad_value(format!(
                "Element {number} of \"geometries\" is not an object"
            )));
        };
        found.extend(parts(one, Winding::Smaller, depth + 1)?);
    }
    Ok(found)
}

fn coordinates(document: Document<'_>) -> Result<Array<'_>, Error> {
    match document.get("coordinates") {
        Some(ValueRef::Array(array)) => Ok(array),
        Some(ValueRef::Document(fields)) if type_of(document) == Some("Point") => {
            Ok(Array::from_document(fields))
        }
        _ => Err(Error::bad_value(
            "GeoJSON coordinates must be an array of coordinates",
        )),
    }
}

fn position(array: Array<'_>) -> Result<Position, Error> {
    Position::legacy(ValueRef::Array(array), More::Allowed)?.check_on_earth()
}

fn point(array: Array<'_>) -> Result<Part, Error> {
    Ok(Part::Point(Spot::of(position(array)?.point())))
}

fn points(array: Array<'_>) -> Result<Vec<Point>, Error> {
    let one = |value| match value {
        ValueRef::Array(pair) => Ok(position(pair)?.point()),
        _ => Err(Error::bad_value(
            "GeoJSON coordinates must be an array of coordinates",
        )),
    };
    array.iter().map(one).collect()
}

fn line(array: Array<'_>) -> Result<Part, Error> {
    let mut points = points(array)?;
    points.dedup();
    if points.len() < 2 {
        return Err(Error::bad_value(
            "GeoJSON LineString must have at least 2 vertices",
        ));
    }
    let line = Line::new(points);
    match line.polyline.validate() {
        Ok(()) => Ok(Part::Line(line)),
        Err(problem) => Err(Error::bad_value(format!(
            "GeoJSON LineString isn't valid: {problem}"
        ))),
    }
}

fn polygon(array: Array<'_>, winding: Winding) -> Result<Part, Error> {
    let ring = |value| match value {
        ValueRef::Array(ring) => points(ring),
        _ => Err(Error::bad_value(
            "Polygon coordinates must be an array of arrays of coordinates",
        )),
    };
    let rings = array.iter().map(ring).collect::<Result<_, _>>()?;
    Ok(Part::Polygon(Box::new(Polygon::new(rings, winding)?)))
}

/// Parses the elements of a `Multi…` geometry. MongoDB refuses empty ones.
fn several(
    array: Array<'_>,
    read: impl Fn(Array<'_>) -> Result<Part, Error>,
) -> Result<Vec<Part>, Error> {
    if array.is_empty() {
        return Err(Error::bad_value(
            "MultiPoint, MultiLineString and MultiPolygon coordinates must have at least 1 element",
        ));
    }
    let one = |value| match value {
        ValueRef::Array(inner) => read(inner),
        _ => Err(Error::bad_value(
            "GeoJSON coordinates must be an array of coordinates",
        )),
    };
    array.iter().map(one).collect()
}

fn reference_system(document: Document<'_>) -> Result<Winding, Error> {
    let Some(system) = document.get("crs") else {
        return Ok(Winding::Smaller);
    };
    let ValueRef::Document(system) = system else {
        return Err(Error::bad_value("GeoJSON CRS must be an object"));
    };
    if system.get("type") != Some(ValueRef::String("name")) {
        return Err(Error::bad_value(
            "GeoJSON CRS must have field \"type\": \"name\"",
        ));
    }
    let Some(ValueRef::Document(properties)) = system.get("properties") else {
        return Err(Error::bad_value(
            "CRS must have field \"properties\" which is an object",
        ));
    };
    match properties.get("name") {
        Some(ValueRef::String(name)) if EARTH.contains(&name) => Ok(Winding::Smaller),
        Some(ValueRef::String(STRICT_WINDING)) => Ok(Winding::Left),
        Some(ValueRef::String(name)) => Err(Error::bad_value(format!("Unknown CRS name: {name}"))),
        _ => Err(Error::bad_value(
            "In CRS, \"properties.name\" must be a string",
        )),
    }
}
