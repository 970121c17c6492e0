//! Which shapes contain and intersect which: tables of cases, and random shapes compared with
//! random points.

mod common;

use common::{Random, geojson, list, point, polygon};
use windrow_document::{DocumentBuf, Value, ValueRef, array, doc};
use windrow_geo::{CellLevels, Cells, Condition, Near, Shape};

fn holds(operator: &str, region: &DocumentBuf, value: &Value) -> Result<bool, i32> {
    let operand = ValueRef::Document(region.as_document());
    let condition = Condition::parse(operator, operand).map_err(|error| error.code)?;
    Ok(condition.matches(value.as_ref()))
}

fn check(
    operator: &str,
    region: DocumentBuf,
    value: impl Into<Value>,
    expected: Result<bool, i32>,
) {
    let value = value.into();
    assert_eq!(
        holds(operator, &region, &value),
        expected,
        "{region} {value}"
    );
}

fn square(low: f64, high: f64) -> Vec<(f64, f64)> {
    vec![
        (low, low),
        (high, low),
        (high, high),
        (low, high),
        (low, low),
    ]
}

#[test]
fn plane_shapes_contain_points_on_their_boundary() {
    let check = |region, value: Value, expected| check("$geoWithin", region, value, expected);
    let boxed = || doc! { "$box": [[6, 6], [-4, -4]] };
    check(boxed(), array![6, -4].into(), Ok(true));
    check(boxed(), array![6.1, 0].into(), Ok(false));
    check(boxed(), doc! { "lng": 1, "lat": 1 }.into(), Ok(true));
    check(boxed(), point((1.0, 1.0)).into(), Ok(true));
    check(boxed(), polygon(&[square(0.0, 1.0)]).into(), Ok(false));
    check(boxed(), Value::Int32(5), Ok(false));
    let center = || doc! { "$center": [[0, 0], 5] };
    check(center(), array![3, 4].into(), Ok(true));
    check(center(), array![3, 4.1].into(), Ok(false));
    check(
        doc! { "$center": [[0, 0], 0] },
        array![0, 0].into(),
        Ok(true),
    );
    check(
        doc! { "$center": [[0, 0], (-1)] },
        array![0, 0].into(),
        Err(2),
    );
    let concave = || doc! { "$polygon": [[0, 0], [4, 0], [2, 1], [4, 4], [0, 4]] };
    check(concave(), array![1, 1].into(), Ok(true));
    check(concave(), array![3.5, 1].into(), Ok(false));
    check(concave(), array![3, 0.5].into(), Ok(true));
    check(
        doc! { "$polygon": [[0, 0], [1, 1]] },
        array![0, 0].into(),
        Err(2),
    );
    check(doc! { "$box": ["a", "b"] }, array![0, 0].into(), Err(2));
    check(doc! { "$circle": [[0, 0], 5] }, array![0, 0].into(), Err(2));
    check(doc! {}, array![0, 0].into(), Err(2));
}

#[test]
fn containment_and_intersection_on_the_sphere() {
    let check = |operator, region: DocumentBuf, value: DocumentBuf, expected| {
        check(operator, doc! { "$geometry": region }, value, expected);
    };
    let big = || polygon(&[square(0.0, 10.0)]);
    let holed = || polygon(&[square(0.0, 10.0), square(4.0, 6.0)]);
    let line = |places: &[(f64, f64)]| geojson("LineString", list(places).into());
    let (within, meets) = ("$geoWithin", "$geoIntersects");
    check(within, big(), point((5.0, 5.0)), Ok(true));
    check(within, holed(), point((5.0, 5.0)), Ok(false));
    check(within, holed(), point((4.0, 4.0)), Ok(true));
    check(within, big(), point((0.0, 0.0)), Ok(true));
    check(within, big(), point((-0.001, 5.0)), Ok(false));
    check(within, big(), big(), Ok(true));
    check(within, big(), holed(), Ok(true));
    check(within, holed(), big(), Ok(false));
    check(within, holed(), polygon(&[square(1.0, 3.0)]), Ok(true));
    check(within, holed(), polygon(&[square(4.5, 5.5)]), Ok(false));
    check(within, big(), line(&[(1.0, 1.0), (9.0, 9.0)]), Ok(true));
    check(within, holed(), line(&[(1.0, 1.0), (9.0, 9.0)]), Ok(false));
    check(meets, holed(), line(&[(4.5, 4.5), (5.5, 5.5)]), Ok(false));
    check(meets, holed(), line(&[(4.5, 4.5), (6.5, 6.5)]), Ok(true));
    check(meets, big(), polygon(&[square(10.0, 12.0)]), Ok(true));
    check(meets, big(), polygon(&[square(10.1, 12.0)]), Ok(false));
    check(meets, polygon(&[square(3.0, 4.0)]), big(), Ok(true));
    check(
        meets,
        line(&[(-5.0, -5.0), (0.0, 0.0), (5.0, 5.5)]),
        point((0.0, 0.0)),
        Ok(true),
    );
    check(
        meets,
        line(&[(-5.0, 0.0), (5.0, 0.0)]),
        line(&[(0.0, -1.0), (0.0, 1.0)]),
        Ok(true),
    );
    check(meets, point((1.0, 1.0)), point((1.0, 1.0)), Ok(true));
    check(within, point((1.0, 1.0)), point((1.0, 1.0)), Err(2));
    let both = geojson("MultiPoint", list(&[(1.0, 1.0), (20.0, 20.0)]).into());
    check(within, big(), both.clone(), Ok(false));
    check(meets, big(), both.clone(), Ok(true));
    let collection = doc! { "type": "GeometryCollection", "geometries": [both, (big())] };
    check(meets, point((20.0, 20.0)), collection, Ok(true));
}

#[test]
fn strict_winding_allows_more_than_a_hemisphere() {
    let strict = |ring: Vec<(f64, f64)>| {
        let mut shape = polygon(&[ring]);
        let name = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
        shape.push(
            "crs",
            doc! { "type": "name", "properties": { "name": name } },
        );
        doc! { "$geometry": shape }
    };
    let clockwise = || square(0.0, 10.0).into_iter().rev().collect::<Vec<_>>();
    let check = |region, value: DocumentBuf, expected| check("$geoWithin", region, value, expected);
    check(strict(clockwise()), point((5.0, 5.0)), Ok(false));
    check(strict(clockwise()), point((100.0, 50.0)), Ok(true));
    check(strict(square(0.0, 10.0)), point((5.0, 5.0)), Ok(true));
    check(
        strict(clockwise()),
        polygon(&[square(20.0, 30.0)]),
        Ok(true),
    );
    check(
        strict(clockwise()),
        polygon(&[square(5.0, 30.0)]),
        Ok(false),
    );
    check(
        strict(clockwise()),
        polygon(&[square(-5.0, 30.0)]),
        Ok(false),
    );
    let usual = doc! { "$geometry": (polygon(&[clockwise()])) };
    check(usual, point((5.0, 5.0)), Ok(true));
}

#[test]
fn invalid_geojson_is_refused() {
    let check = |shape: DocumentBuf, expected: bool| {
        let found = Shape::parse(ValueRef::Document(shape.as_document()));
        assert_eq!(found.is_ok(), expected, "{shape} {found:?}");
    };
    let of = |name: &str, coordinates: Value| geojson(name, coordinates);
    check(of("Point", array![180, -90].into()), true);
    check(of("Point", array![181, 0].into()), false);
    check(of("Point", array![0, 91].into()), false);
    check(of("Point", Value::from("x")), false);
    check(of("point", array![1, 2].into()), false);
    check(of("LineString", array![[0, 0]].into()), false);
    check(of("LineString", array![[0, 0], [0, 0]].into()), false);
    check(
        of("Polygon", array![[[0, 0], [2, 0], [2, 2]]].into()),
        false,
    );
    check(
        of("Polygon", array![[[0, 0], [2, 0], [0, 0]]].into()),
        false,
    );
    check(
        of(
            "Polygon",
            array![[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]].into(),
        ),
        false,
    );
    check(
        of("Polygon", array![[[0, 0], [2, 0], [2, 2], [0, 0]]].into()),
        true,
    );
    check(polygon(&[square(0.0, 2.0), square(3.0, 4.0)]), false);
    check(polygon(&[square(0.0, 2.0), square(1.0, 3.0)]), false);
    check(of("MultiPoint", array![].into()), false);
    check(
        doc! { "type": "GeometryCollection", "geometries": [] },
        false,
    );
    check(doc! { "type": "Point" }, false);
}

#[test]
fn distances_equal_those_of_mongodb() {
    let meters = |x: f64, y: f64, expected: f64| {
        let operators = doc! { "$near": { "$geometry": (point((0.0, 0.0))) } };
        let near = Near::parse(operators.as_document()).unwrap();
        let found = near.distance(ValueRef::Document(point((x, y)).as_document()));
        assert_eq!(found, Some(expected));
    };
    meters(0.0, 0.0, 0.0);
    meters(1.0, 0.5, 124456.98854547723);
    meters(2.0, 1.0, 248906.39350564353);
    meters(-3.0, 4.0, 556431.3522717085);
    meters(10.0, 10.1, 1578099.034373399);
    meters(-20.0, 7.0, 2353522.442464906);
    meters(30.0, -40.0, 5392199.964409669);
    meters(100.0, 50.0, 10732099.157289954);
    meters(-170.0, -80.0, 11114802.84131658);
}

/// Shapes that share a point intersect. A shape within another has no point outside of it.
#[test]
fn relations_of_random_shapes_agree_with_their_points() {
    let mut random = Random(7);
    let (mut met, mut within) = (0, 0);
    for _ in 0..400 {
        let center = random.position();
        let size = [0.01, 1.0, 15.0][random.below(3) as usize];
        let one = polygon(&[random.star(center, size)]);
        let beside = random.beside(center, size);
        let small = size * random.between(0.1, 1.0);
        let other = random.shape(beside, small);
        let parse = |name: &str, shape: &DocumentBuf| {
            let operand = doc! { "$geometry": shape.clone() };
            Condition::parse(name, ValueRef::Document(operand.as_document()))
        };
        let conditions = [
            parse("$geoIntersects", &one),
            parse("$geoWithin", &one),
            parse("$geoIntersects", &other),
        ];
        let [Ok(meets_one), Ok(within_one), Ok(meets_other)] = conditions else {
            continue;
        };
        let holds = |condition: &Condition, shape: &DocumentBuf| {
            condition.matches(ValueRef::Document(shape.as_document()))
        };
        let (meets, is_within) = (holds(&meets_one, &other), holds(&within_one, &other));
        assert!(meets || !is_within, "{one} {other}");
        assert_eq!(holds(&meets_other, &one), meets, "{one} {other}");
        for _ in 0..60 {
            let place = point(random.beside(center, size));
            let in_one = holds(&within_one, &place);
            let in_other = holds(&meets_other, &place);
            assert!(meets || !(in_one && in_other), "{one} {other} {place}");
            assert!(in_one || !(is_within && in_other), "{one} {other} {place}");
        }
        met += u32::from(meets);
        within += u32::from(is_within);
    }
    assert!(met > 100 && within > 20, "{met} {within}");
}

/// Parsing arbitrary coordinates returns a shape or an error.
#[test]
fn arbitrary_coordinates_never_panic() {
    let mut random = Random(11);
    let names = [
        "Point",
        "LineString",
        "Polygon",
        "MultiPoint",
        "MultiPolygon",
    ];
    for _ in 0..3000 {
        let odd = [
            0.0,
            180.0,
            -180.0,
            90.0,
            -90.0,
            45.0,
            1e-300,
            f64::NAN,
            1e300,
        ];
        let places: Vec<(f64, f64)> = (0..random.below(7))
            .map(|_| {
                let range = if random.below(40) == 0 { 9 } else { 7 };
                let x = odd[random.below(range) as usize];
                (x, odd[random.below(range) as usize].clamp(-90.0, 90.0))
            })
            .collect();
        let mut ring = places.clone();
        ring.extend(places.first());
        let shape = match names[random.below(5) as usize] {
            "Polygon" => polygon(&[ring]),
            "MultiPolygon" => geojson("MultiPolygon", array![[(Value::from(list(&ring)))]].into()),
            name => geojson(name, list(&places).into()),
        };
        let value = ValueRef::Document(shape.as_document());
        let operand = doc! { "$geometry": shape.clone() };
        if let Ok(condition) =
            Condition::parse("$geoIntersects", ValueRef::Document(operand.as_document()))
        {
            assert!(condition.matches(value), "{shape} intersects itself");
            let cells = Cells::Sphere(CellLevels::default());
            let keys = cells.keys(&Shape::parse(value).unwrap()).unwrap();
            let ranges = condition.ranges(&cells).unwrap();
            let is_found = |key: &u64| ranges.iter().any(|range| range.contains(*key));
            assert!(
                keys.iter().any(is_found),
                "{shape} has a key in its own ranges"
            );
        }
    }
}
