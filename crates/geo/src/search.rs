//! The operators of MongoDB Search on shapes: `geoWithin`, `geoShape`, and `near` with a point.
//!
//! A search index stores a point under its leaf cell. The key alone tells whether the point is in
//! an area and how far it is from another point, because a leaf cell is less than a centimetre
//! wide. Other shapes are read from their documents.

use std::fmt;

use s2rst::r1;
use s2rst::s1::{self, Angle};
use s2rst::s2::{Cap, Cell, CellId, Rect, Region};
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_interrupt::{Interrupted, UNCOUNTED, WorkCounter};

use crate::coordinates::Coordinates;
use crate::covering::{CellLevels, covering_of, descendants_of, query_covering};
use crate::key_range::KeyRange;
use crate::relation::any;
use crate::shape::{Geometry, Shape, parse_stored};
use crate::{Error, geojson};

/// The radius of the earth as a sphere for the distances of MongoDB Search, in meters: the mean
/// radius of WGS 84, which Lucene uses. It differs from [`EARTH_RADIUS_METERS`].
///
/// [`EARTH_RADIUS_METERS`]: crate::EARTH_RADIUS_METERS
pub const SEARCH_EARTH_RADIUS_METERS: f64 = 6_371_008.771_4;

/// The area of a `geoWithin`.
///
/// ```
/// use windrow_document::{ValueRef, doc};
/// use windrow_geo::{SearchArea, Shape};
///
/// let center = doc! { "type": "Point", "coordinates": [1, 2] };
/// let circle = doc! { "center": (center.clone()), "radius": 500 };
/// let circle = ValueRef::Document(circle.as_document());
/// let area = SearchArea::parse("circle", circle, &|_| Ok(())).unwrap();
/// let shape = Shape::parse(ValueRef::Document(center.as_document())).unwrap();
/// assert!(area.contains(shape.point_key().unwrap()));
/// ```
#[derive(Clone, Debug)]
pub struct SearchArea {
    kind: AreaKind,
    source: DocumentBuf,
}

#[derive(Clone, Debug)]
enum AreaKind {
    /// Between two longitudes and two latitudes.
    Box(Rect),
    Circle(Cap),
    Polygons(Shape),
}

impl PartialEq for SearchArea {
    fn eq(&self, other: &SearchArea) -> bool {
        self.source == other.source
    }
}

impl SearchArea {
    /// The options that describe an area.
    pub const OPTIONS: [&str; 3] = ["box", "circle", "geometry"];

    /// Parses the value of one of [`OPTIONS`](Self::OPTIONS). Fails with code 2, and if
    /// `count_work` does.
    pub fn parse(
        option: &str,
        value: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<SearchArea, Error> {
        let kind = match option {
            "box" => AreaKind::Box(rectangle(fields("box", value)?)?),
            "circle" => AreaKind::Circle(circle(fields("circle", value)?)?),
            _ => AreaKind::Polygons(polygons(value, count_work)?),
        };
        let mut source = DocumentBuf::new();
        source.push(option, value.to_value());
        Ok(SearchArea { kind, source })
    }

    /// Returns the ranges of the keys of all points in the area. They have other keys, too.
    pub fn key_ranges(&self) -> Vec<KeyRange> {
        descendants_of(&match &self.kind {
            AreaKind::Box(rectangle) => query_covering(rectangle),
            AreaKind::Circle(cap) => query_covering(cap),
            AreaKind::Polygons(shape) => covering_of(shape),
        })
    }

    /// Returns `true` if the point with this key is in the area or on its boundary.
    pub fn contains(&self, key: u64) -> bool {
        let cell = CellId(key);
        match &self.kind {
            AreaKind::Box(rectangle) => {
                // Few points are at the boundary. The bounds of a cell take longer to compute.
                rectangle.contains_point(&cell.to_point())
                    || rectangle.intersects_cell(&Cell::from_cell_id(cell))
            }
            AreaKind::Circle(cap) => cap.intersects_cell(&Cell::from_cell_id(cell)),
            AreaKind::Polygons(shape) => {
                let point = cell.to_point();
                shape.geometries.iter().any(|geometry| match geometry {
                    Geometry::Polygon(polygon) => polygon.touches(point),
                    _ => false,
                })
            }
        }
    }

    /// The option with its value, as the client sent it.
    pub fn source(&self) -> Document<'_> {
        self.source.as_document()
    }
}

/// The point from which a `near` measures distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOrigin(Coordinates);

impl SearchOrigin {
    /// Parses a GeoJSON point. Fails with code 2.
    pub fn parse(value: ValueRef<'_>) -> Result<SearchOrigin, Error> {
        position("origin", Some(value)).map(SearchOrigin)
    }

    /// Returns the ranges of the keys of all points within `meters`. They contain other keys, too.
    pub fn key_ranges(self, meters: f64) -> Vec<KeyRange> {
        // The slack is more than the width of a leaf cell.
        let radians = (meters + 1.0) / SEARCH_EARTH_RADIUS_METERS;
        let angle = Angle::from_radians(radians.min(std::f64::consts::PI));
        let cap = Cap::from_center_angle(self.0.point(), angle);
        descendants_of(&query_covering(&cap))
    }

    /// Returns the distances of points in meters, by the keys of the points.
    pub fn distances(self) -> impl Fn(u64) -> f64 {
        let origin = self.0.point();
        move |key| {
            let angle = CellId(key).to_point().distance(origin);
            angle.radians() * SEARCH_EARTH_RADIUS_METERS
        }
    }
}

impl fmt::Display for SearchOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}, {}]", self.0.x, self.0.y)
    }
}

/// The relation of an indexed shape to the shape of a `geoShape`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeRelation {
    /// The indexed shape contains the other one.
    Contains,
    /// They have no point in common.
    Disjoint,
    /// They have a point in common.
    Intersects,
    /// The indexed shape is in the other one.
    Within,
}

/// A parsed `geoShape`.
#[derive(Clone, Debug)]
pub struct ShapeQuery {
    relation: ShapeRelation,
    shape: Shape,
    source: DocumentBuf,
}

impl PartialEq for ShapeQuery {
    fn eq(&self, other: &ShapeQuery) -> bool {
        self.relation == other.relation && self.source == other.source
    }
}

impl ShapeQuery {
    /// Parses the options `relation` and `geometry`. Fails with code 2, and if
    /// `count_work` does.
    pub fn parse(
        relation: &str,
        geometry: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<ShapeQuery, Error> {
        let relation = match relation {
            "contains" => ShapeRelation::Contains,
            "disjoint" => ShapeRelation::Disjoint,
            "intersects" => ShapeRelation::Intersects,
            "within" => ShapeRelation::Within,
            other => {
                return Err(Error::bad_value(format!(
                    "\"relation\" must be contains, disjoint, intersects or within, not {other:?}"
                )));
            }
        };
        let shape = Shape::parse_geojson(geometry, count_work)?;
        if relation == ShapeRelation::Within && !shape.has_only_polygons() {
            return Err(Error::bad_value(
                "\"within\" needs a \"geometry\" of type Polygon or MultiPolygon",
            ));
        }
        let mut source = DocumentBuf::new();
        source.push("geometry", geometry.to_value());
        Ok(ShapeQuery {
            relation,
            shape,
            source,
        })
    }

    /// The relation.
    pub fn relation(&self) -> ShapeRelation {
        self.relation
    }

    /// Returns the ranges of the keys of all shapes that have a point in common with that of the
    /// query. They have keys of other shapes, too.
    pub fn key_ranges(&self) -> Vec<KeyRange> {
        CellLevels::default().shape_ranges(&self.shape)
    }

    /// Returns `true` if the shapes of a field have the relation. They count as one shape.
    /// `Disjoint` is the opposite of `Intersects`. Fails if `count_work` does.
    pub fn matches(
        &self,
        shapes: &[Shape],
        count_work: WorkCounter<'_>,
    ) -> Result<bool, Interrupted> {
        let indexed: Vec<&Geometry> = shapes.iter().flat_map(|it| &it.geometries).collect();
        let own: Vec<&Geometry> = self.shape.geometries.iter().collect();
        match self.relation {
            ShapeRelation::Intersects => are_touching(&indexed, &own, count_work),
            ShapeRelation::Disjoint => Ok(!are_touching(&indexed, &own, count_work)?),
            ShapeRelation::Within => {
                Ok(!indexed.is_empty() && are_within(&indexed, &own, count_work)?)
            }
            ShapeRelation::Contains => are_within(&own, &indexed, count_work),
        }
    }

    /// The option `geometry` with its value, as the client sent it.
    pub fn source(&self) -> Document<'_> {
        self.source.as_document()
    }
}

/// Returns `true` if a geometry has a point in common with one of the others.
fn are_touching(
    geometries: &[&Geometry],
    others: &[&Geometry],
    count_work: WorkCounter<'_>,
) -> Result<bool, Interrupted> {
    any(geometries, |geometry| {
        any(others, |other| geometry.intersects(other, count_work))
    })
}

/// Returns `true` if each geometry lies in one of the others.
fn are_within(
    geometries: &[&Geometry],
    others: &[&Geometry],
    count_work: WorkCounter<'_>,
) -> Result<bool, Interrupted> {
    let is_outside = |geometry: &&Geometry| {
        let is_in = any(others, |other| other.contains(geometry, count_work))?;
        Ok(!is_in)
    };
    Ok(!any(geometries, is_outside)?)
}

impl Geometry {
    /// Returns `true` if all of the other geometry lies in this one. A line contains points only.
    /// Fails if `count_work` does.
    fn contains(&self, other: &Geometry, count_work: WorkCounter<'_>) -> Result<bool, Interrupted> {
        match (self, other) {
            (Geometry::Polygon(polygon), _) => polygon.contains(other, count_work),
            (_, Geometry::Point(_)) => self.intersects(other, count_work),
            _ => Ok(false),
        }
    }
}

fn fields<'v>(name: &str, value: ValueRef<'v>) -> Result<Document<'v>, Error> {
    value
        .as_document()
        .ok_or_else(|| Error::bad_value(format!("\"{name}\" must be a document")))
}

/// Fails if a document has other fields than `known`.
fn check_fields(name: &str, document: Document<'_>, known: &[&str]) -> Result<(), Error> {
    match document.iter().find(|(field, _)| !known.contains(field)) {
        None => Ok(()),
        Some((other, _)) => Err(Error::bad_value(format!(
            "Unrecognized field \"{name}.{other}\""
        ))),
    }
}

fn rectangle(document: Document<'_>) -> Result<Rect, Error> {
    check_fields("box", document, &["bottomLeft", "topRight"])?;
    let low = position("box.bottomLeft", document.get("bottomLeft"))?;
    let high = position("box.topRight", document.get("topRight"))?;
    if low.y > high.y {
        return Err(Error::bad_value(
            "\"box.bottomLeft\" must not be north of \"box.topRight\"",
        ));
    }
    // A box with a western edge east of its eastern edge crosses the antimeridian.
    let longitudes = s1::Interval::new(low.x.to_radians(), high.x.to_radians());
    Ok(Rect::new(
        r1::Interval::new(low.y.to_radians(), high.y.to_radians()),
        longitudes,
    ))
}

fn circle(document: Document<'_>) -> Result<Cap, Error> {
    check_fields("circle", document, &["center", "radius"])?;
    let center = position("circle.center", document.get("center"))?.point();
    let radius = document.get("radius").filter(|radius| radius.is_number());
    let radius = radius.and_then(ValueRef::as_f64);
    let Some(radius) = radius.filter(|radius| radius.is_finite() && *radius >= 0.0) else {
        return Err(Error::bad_value(
            "\"circle.radius\" must be a number of meters that is not negative",
        ));
    };
    let angle = (radius / SEARCH_EARTH_RADIUS_METERS).min(std::f64::consts::PI);
    Ok(Cap::from_center_angle(center, Angle::from_radians(angle)))
}

fn polygons(value: ValueRef<'_>, count_work: WorkCounter<'_>) -> Result<Shape, Error> {
    let shape = Shape::parse_geojson(value, count_work)?;
    if shape.has_only_polygons() {
        Ok(shape)
    } else {
        Err(Error::bad_value(
            "\"geometry\" must be of type Polygon or MultiPolygon",
        ))
    }
}

/// Returns a value that has the type of a GeoJSON object.
fn as_geojson(value: ValueRef<'_>) -> Option<Document<'_>> {
    let document = value.as_document();
    document.filter(|document| geojson::is_geojson(*document))
}

/// Returns the position of a GeoJSON point.
fn position(name: &str, value: Option<ValueRef<'_>>) -> Result<Coordinates, Error> {
    let Some(value) = value else {
        return Err(Error::bad_value(format!("\"{name}\" is required")));
    };
    match Shape::parse_geojson(value, UNCOUNTED)?.position {
        Some(position) => Ok(position),
        None => Err(Error::bad_value(format!(
            "\"{name}\" must be a GeoJSON point"
        ))),
    }
}

impl Shape {
    /// Parses a GeoJSON object. Unlike [`parse`](Self::parse), it refuses legacy coordinate pairs
    /// and polygons with strict winding order, as MongoDB Search does. Fails with code 2, and if
    /// `count_work` does.
    pub fn parse_geojson(value: ValueRef<'_>, count_work: WorkCounter<'_>) -> Result<Shape, Error> {
        let Some(document) = as_geojson(value) else {
            let message = format!("{value} is not a GeoJSON object");
            return Err(Error::bad_value(message));
        };
        let shape = geojson::parse(document, count_work)?;
        shape.check_on_earth()?;
        Ok(shape)
    }

    /// Parses a GeoJSON object of a document. Returns `None` for values that
    /// [`parse_geojson`](Self::parse_geojson) refuses. Fails only if `count_work` does.
    pub fn parse_stored_geojson(
        value: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<Option<Shape>, Interrupted> {
        let Some(document) = as_geojson(value) else {
            return Ok(None);
        };
        let shape = parse_stored(ValueRef::Document(document), count_work)?;
        Ok(shape.filter(|shape| shape.check_on_earth().is_ok()))
    }

    /// Returns the ids of the cells under which a search index stores the shape: for a point its
    /// leaf cell.
    pub fn cell_keys(&self) -> Vec<u64> {
        CellLevels::default().index_cells(self)
    }

    /// Returns the id of the leaf cell of the shape, if it is a single point.
    pub fn point_key(&self) -> Option<u64> {
        match (self.position, self.geometries.as_slice()) {
            (Some(_), [Geometry::Point(leaf)]) => Some(leaf.cell.id()),
            _ => None,
        }
    }

    fn has_only_polygons(&self) -> bool {
        let mut geometries = self.geometries.iter();
        geometries.all(|geometry| matches!(geometry, Geometry::Polygon(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, array, doc};

    fn point(x: f64, y: f64) -> DocumentBuf {
        doc! { "type": "Point", "coordinates": [x, y] }
    }

    fn square(low: f64, high: f64) -> DocumentBuf {
        let ring: ArrayBuf = array![
            [low, low],
            [high, low],
            [high, high],
            [low, high],
            [low, low]
        ];
        doc! { "type": "Polygon", "coordinates": [(windrow_document::Value::Array(ring))] }
    }

    fn shape(source: &DocumentBuf) -> Shape {
        Shape::parse_geojson(ValueRef::Document(source.as_document()), UNCOUNTED).unwrap()
    }

    fn area(option: &str, source: &DocumentBuf) -> Result<SearchArea, Error> {
        SearchArea::parse(option, ValueRef::Document(source.as_document()), UNCOUNTED)
    }

    /// Checks that the area has the point, and that the ranges of its keys have it, too.
    fn has(area: &SearchArea, x: f64, y: f64) -> bool {
        let key = shape(&point(x, y)).point_key().unwrap();
        let is_in = area.contains(key);
        let is_read = area.key_ranges().iter().any(|range| range.contains(key));
        assert!(!is_in || is_read, "{x} {y}");
        is_in
    }

    #[test]
    fn boxes_end_at_their_longitudes_and_latitudes() {
        let sides = doc! { "bottomLeft": (point(-10.0, 40.0)), "topRight": (point(20.0, 60.0)) };
        let sides = area("box", &sides).unwrap();
        for (x, y, expected) in [
            (0.0, 50.0, true),
            (-10.0, 40.0, true),
            (20.0, 60.0, true),
            // A great circle between the upper corners would pass north of it.
            (5.0, 60.01, false),
            (5.0, 39.99, false),
            (20.01, 50.0, false),
            (-10.01, 50.0, false),
        ] {
            assert_eq!(has(&sides, x, y), expected, "{x} {y}");
        }
        let pacific =
            doc! { "bottomLeft": (point(170.0, -10.0)), "topRight": (point(-170.0, 10.0)) };
        let pacific = area("box", &pacific).unwrap();
        assert!(has(&pacific, 179.0, 0.0) && has(&pacific, -179.0, 0.0));
        assert!(has(&pacific, 180.0, 0.0) && has(&pacific, -180.0, 0.0));
        assert!(!has(&pacific, 0.0, 0.0));
        let all = doc! { "bottomLeft": (point(-180.0, -90.0)), "topRight": (point(180.0, 90.0)) };
        let all = area("box", &all).unwrap();
        assert!(has(&all, 12.0, 34.0) && has(&all, -180.0, 90.0) && has(&all, 180.0, -90.0));
    }

    #[test]
    fn circles_have_radii_in_meters() {
        // A degree of the equator has 111,195 m on this sphere.
        for (radius, expected) in [(111_190.0, false), (111_200.0, true)] {
            let circle = doc! { "center": (point(0.0, 0.0)), "radius": radius };
            let circle = area("circle", &circle).unwrap();
            assert_eq!(has(&circle, 1.0, 0.0), expected);
            assert_eq!(has(&circle, 0.0, -1.0), expected);
        }
        let nothing = doc! { "center": (point(3.0, 4.0)), "radius": 0 };
        let nothing = area("circle", &nothing).unwrap();
        assert!(has(&nothing, 3.0, 4.0) && !has(&nothing, 3.0, 4.001));
        let everything = doc! { "center": (point(3.0, 4.0)), "radius": 1e9 };
        assert!(has(&area("circle", &everything).unwrap(), -177.0, -4.0));
    }

    #[test]
    fn polygons_have_the_points_within_them() {
        let polygon = area("geometry", &square(0.0, 10.0)).unwrap();
        assert!(has(&polygon, 5.0, 5.0) && !has(&polygon, 11.0, 5.0));
    }

    #[test]
    fn malformed_areas_are_refused() {
        for (option, source) in [
            ("box", doc! { "bottomLeft": (point(0.0, 0.0)) }),
            (
                "box",
                doc! { "bottomLeft": (point(0.0, 9.0)), "topRight": (point(1.0, 1.0)) },
            ),
            ("box", doc! { "bottomLeft": [0, 0], "topRight": [1, 1] }),
            (
                "box",
                doc! { "bottomLeft": (point(0.0, 0.0)), "topRight": (point(1.0, 1.0)), "x": 1 },
            ),
            ("circle", doc! { "center": (point(0.0, 0.0)) }),
            (
                "circle",
                doc! { "center": (point(0.0, 0.0)), "radius": (-1) },
            ),
            ("circle", doc! { "center": (square(0.0, 1.0)), "radius": 1 }),
            ("geometry", point(0.0, 0.0)),
            ("geometry", doc! { "type": "Circle" }),
        ] {
            let error = area(option, &source).unwrap_err();
            assert_eq!(error.code, 2, "{error}");
        }
    }

    #[test]
    fn near_measures_meters_on_the_sphere_of_lucene() {
        let origin = point(0.0, 0.0);
        let origin = SearchOrigin::parse(ValueRef::Document(origin.as_document())).unwrap();
        let distance = origin.distances()(shape(&point(0.0, 1.0)).point_key().unwrap());
        assert!((distance - 111_195.08).abs() < 0.02, "{distance}");
    }

    #[test]
    fn relations_of_shapes() {
        let line = doc! { "type": "LineString", "coordinates": [[1, 1], [2, 2]] };
        let small = square(1.0, 2.0);
        let large = square(0.0, 10.0);
        let far = square(20.0, 21.0);
        let across = square(9.0, 12.0);
        let check =
            |relation: &str, own: &DocumentBuf, indexed: &[&DocumentBuf], expected: bool| {
                let own = ValueRef::Document(own.as_document());
                let query = ShapeQuery::parse(relation, own, UNCOUNTED).unwrap();
                let shapes: Vec<Shape> = indexed.iter().map(|one| shape(one)).collect();
                let found = query.matches(&shapes, UNCOUNTED).unwrap();
                assert_eq!(found, expected, "{relation} {own} {indexed:?}");
            };
        check("intersects", &large, &[&small], true);
        check("intersects", &large, &[&across], true);
        check("intersects", &large, &[&far], false);
        check("intersects", &large, &[&far, &line], true);
        check("intersects", &point(1.5, 1.5), &[&small], true);
        check("disjoint", &large, &[&far], true);
        check("disjoint", &large, &[&far, &line], false);
        check("within", &large, &[&small], true);
        check("within", &large, &[&small, &line], true);
        check("within", &large, &[&small, &far], false);
        check("within", &large, &[&across], false);
        check("within", &large, &[&point(5.0, 5.0)], true);
        check("within", &large, &[], false);
        check("contains", &small, &[&large], true);
        check("contains", &large, &[&small], false);
        check("contains", &line, &[&far, &large], true);
        check("contains", &point(1.0, 1.0), &[&line], true);
        check("contains", &point(5.0, 5.0), &[&point(5.0, 5.0)], true);
        check("contains", &point(5.0, 5.0), &[&point(5.0, 5.1)], false);
        check("contains", &line, &[&line], false);
        let refused = |relation: &str, source: &DocumentBuf| {
            let source = ValueRef::Document(source.as_document());
            assert_eq!(
                ShapeQuery::parse(relation, source, UNCOUNTED)
                    .unwrap_err()
                    .code,
                2
            );
        };
        refused("within", &line);
        refused("touches", &large);
        refused("within", &doc! { "x": 1, "y": 2 });
    }
}
