//! GeoJSON (RFC 7946) with MongoDB's additions, see
//! <https://www.mongodb.com/docs/manual/reference/geojson/>.

use s2rst::s2::Point;
use windrow_document::{Array, Document, ValueRef};
use windrow_interrupt::{UNCOUNTED, WorkCounter};

use crate::Error;
use crate::coordinates::{Coordinates, ExtraElements};
use crate::line::Line;
use crate::polygon::{Polygon, Winding};
use crate::shape::{Geometry, LeafPoint, Shape};
use crate::work::UNITS_PER_VERTEX;

/// The names of the only supported coordinate reference system: WGS 84 longitude and latitude.
const EARTH: [&str; 2] = ["EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84"];
/// The same reference system with strict winding: a polygon's interior is to the left of its
/// boundary.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

/// Limit on the nesting of geometry collections, because parsing is recursive.
const DEPTH_MAX: usize = 32;

type CoordinatesParser = fn(Array<'_>, Winding, WorkCounter<'_>) -> Result<Vec<Geometry>, Error>;

/// The parser of `coordinates` for each geometry type.
const COORDINATES_PARSERS: [(&str, CoordinatesParser); 6] = [
    ("Point", |it, _, _| Ok(vec![parse_point(it)?])),
    ("LineString", |it, _, count_work| {
        Ok(vec![parse_line(it, count_work)?])
    }),
    ("Polygon", |it, winding, count_work| {
        Ok(vec![parse_polygon(it, winding, count_work)?])
    }),
    ("MultiPoint", |it, _, count_work| {
        parse_multi(it, count_work, parse_point)
    }),
    ("MultiLineString", |it, _, count_work| {
        parse_multi(it, count_work, |line| parse_line(line, count_work))
    }),
    ("MultiPolygon", |it, _, count_work| {
        parse_multi(it, count_work, |polygon| {
            parse_polygon(polygon, Winding::Any, count_work)
        })
    }),
];
const COLLECTION: &str = "GeometryCollection";

fn type_of(document: Document<'_>) -> Option<&str> {
    document.get("type").and_then(ValueRef::as_str)
}

/// Returns `true` if the document has the `type` of a GeoJSON object.
pub(crate) fn is_geojson(document: Document<'_>) -> bool {
    type_of(document).is_some_and(|name| {
        name == COLLECTION || COORDINATES_PARSERS.iter().any(|(known, _)| *known == name)
    })
}

impl Shape {
    /// Parses a document's value: GeoJSON if it has the `type` of a GeoJSON object, otherwise a
    /// legacy coordinate pair. Fails with code 2 if the value is neither.
    pub fn parse(value: ValueRef<'_>) -> Result<Shape, Error> {
        Shape::parse_with(value, UNCOUNTED)
    }

    /// The same for a value that may be large. Fails if `count_work` does as well.
    pub fn parse_with(value: ValueRef<'_>, count_work: WorkCounter<'_>) -> Result<Shape, Error> {
        if let ValueRef::Document(document) = value
            && is_geojson(document)
        {
            return parse(document, count_work);
        }
        Shape::parse_pair(value)
    }

    /// Parses a legacy coordinate pair. Fails with code 2 if the value is not a pair.
    pub fn parse_pair(value: ValueRef<'_>) -> Result<Shape, Error> {
        Coordinates::parse_pair(value, ExtraElements::Allowed).map(Shape::from_coordinates)
    }
}

/// Parses a GeoJSON object. Fails with code 2 if it is invalid, and if `count_work` does.
pub(crate) fn parse(document: Document<'_>, count_work: WorkCounter<'_>) -> Result<Shape, Error> {
    let winding = parse_crs(document)?;
    let name = type_of(document).unwrap_or_default();
    if winding == Winding::Strict && name != "Polygon" {
        return Err(Error::bad_value(
            "Strict winding order is only supported by polygon",
        ));
    }
    Ok(Shape {
        geometries: parse_geometries(document, winding, 0, count_work)?,
        position: match name {
            "Point" => Some(parse_position(coordinates(document)?)?),
            _ => None,
        },
        has_strict_winding: winding == Winding::Strict,
    })
}

fn parse_geometries(
    document: Document<'_>,
    winding: Winding,
    depth: usize,
    count_work: WorkCounter<'_>,
) -> Result<Vec<Geometry>, Error> {
    let name = type_of(document).unwrap_or_default();
    if let Some((_, read)) = COORDINATES_PARSERS.iter().find(|(known, _)| *known == name) {
        return read(coordinates(document)?, winding, count_work);
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
    for (number, geometry) in geometries.iter().enumerate() {
        let ValueRef::Document(geometry) = geometry else {
            return Err(Error::bad_value(format!(
                "Element {number} of \"geometries\" is not an object"
            )));
        };
        count_work(UNITS_PER_VERTEX)?;
        found.extend(parse_geometries(
            geometry,
            Winding::Any,
            depth + 1,
            count_work,
        )?);
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

fn parse_position(array: Array<'_>) -> Result<Coordinates, Error> {
    Coordinates::parse_pair(ValueRef::Array(array), ExtraElements::Allowed)?.check_on_earth()
}

fn parse_point(array: Array<'_>) -> Result<Geometry, Error> {
    Ok(Geometry::Point(LeafPoint::new(
        parse_position(array)?.point(),
    )))
}

fn parse_points(array: Array<'_>, count_work: WorkCounter<'_>) -> Result<Vec<Point>, Error> {
    let parse_element = |value| {
        count_work(UNITS_PER_VERTEX)?;
        match value {
            ValueRef::Array(pair) => Ok(parse_position(pair)?.point()),
            _ => Err(Error::bad_value(
                "GeoJSON coordinates must be an array of coordinates",
            )),
        }
    };
    array.iter().map(parse_element).collect()
}

fn parse_line(array: Array<'_>, count_work: WorkCounter<'_>) -> Result<Geometry, Error> {
    let mut points = parse_points(array, count_work)?;
    points.dedup();
    if points.len() < 2 {
        return Err(Error::bad_value(
            "GeoJSON LineString must have at least 2 vertices",
        ));
    }
    let line = Line::new(points);
    match line.polyline.validate() {
        Ok(()) => Ok(Geometry::Line(line)),
        Err(problem) => Err(Error::bad_value(format!(
            "GeoJSON LineString isn't valid: {problem}"
        ))),
    }
}

fn parse_polygon(
    array: Array<'_>,
    winding: Winding,
    count_work: WorkCounter<'_>,
) -> Result<Geometry, Error> {
    let ring = |value| match value {
        ValueRef::Array(ring) => parse_points(ring, count_work),
        _ => Err(Error::bad_value(
            "Polygon coordinates must be an array of arrays of coordinates",
        )),
    };
    let rings = array.iter().map(ring).collect::<Result<_, _>>()?;
    let polygon = Polygon::new(rings, winding, count_work)?;
    Ok(Geometry::Polygon(Box::new(polygon)))
}

/// Parses the elements of a `Multi…` geometry. MongoDB refuses empty ones.
fn parse_multi(
    array: Array<'_>,
    count_work: WorkCounter<'_>,
    read: impl Fn(Array<'_>) -> Result<Geometry, Error>,
) -> Result<Vec<Geometry>, Error> {
    if array.is_empty() {
        return Err(Error::bad_value(
            "MultiPoint, MultiLineString and MultiPolygon coordinates must have at least 1 element",
        ));
    }
    let parse_element = |value| {
        count_work(UNITS_PER_VERTEX)?;
        match value {
            ValueRef::Array(inner) => read(inner),
            _ => Err(Error::bad_value(
                "GeoJSON coordinates must be an array of coordinates",
            )),
        }
    };
    array.iter().map(parse_element).collect()
}

fn parse_crs(document: Document<'_>) -> Result<Winding, Error> {
    let Some(system) = document.get("crs") else {
        return Ok(Winding::Any);
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
        Some(ValueRef::String(name)) if EARTH.contains(&name) => Ok(Winding::Any),
        Some(ValueRef::String(STRICT_WINDING)) => Ok(Winding::Strict),
        Some(ValueRef::String(name)) => Err(Error::bad_value(format!("Unknown CRS name: {name}"))),
        _ => Err(Error::bad_value(
            "In CRS, \"properties.name\" must be a string",
        )),
    }
}
