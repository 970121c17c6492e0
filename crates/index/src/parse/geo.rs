//! The options of geospatial indexes.

use windrow_document::Document;
use windrow_geo::{CellLevels, Cells, Grid};
use windrow_mql::Error;

use super::{INVALID_OPTIONS, cannot};
use crate::definition::{GeoDefinition, KeyField, KeyKind};

pub(super) const SPHERE_VERSION: &str = "2dsphereIndexVersion";

const COARSEST_NEGATIVE: i32 = 16747;
const FINEST_TOO_FINE: i32 = 16748;
const LEVELS_CROSSED: i32 = 16749;
const TWO_PLANES: i32 = 16800;
const PLANE_NOT_FIRST: i32 = 16801;

/// Fails with code 16800 or 16801 if there is more than one `2d` field, or it is not the first
/// field.
pub(super) fn check_plane_fields(fields: &[KeyField]) -> Result<(), Error> {
    let mut planes = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.kind == KeyKind::Plane);
    let first = planes.next().map(|(place, _)| place);
    if planes.next().is_some() {
        return Err(Error::new(TWO_PLANES, "can't have 2 geo fields"));
    }
    match first {
        None | Some(0) => Ok(()),
        Some(_) => Err(Error::new(PLANE_NOT_FIRST, "2d has to be first in index")),
    }
}

/// Returns the geospatial options, or `None` if the index has no geospatial field. Fails with
/// MongoDB's code if an option is not valid.
pub(super) fn definition(
    fields: &[KeyField],
    specification: Document<'_>,
) -> Result<Option<GeoDefinition>, Error> {
    let has = |kind: KeyKind| fields.iter().any(|field| field.kind == kind);
    Ok(if has(KeyKind::Sphere) {
        Some(GeoDefinition {
            version: version(specification)?,
            cells: Cells::Sphere(levels(specification)?),
        })
    } else if has(KeyKind::Plane) {
        Some(GeoDefinition {
            version: 0,
            cells: Cells::Plane(grid(specification)?),
        })
    } else {
        None
    })
}

/// Returns the `2dsphereIndexVersion`. The default is 3.
fn version(specification: Document<'_>) -> Result<i32, Error> {
    match specification.get(SPHERE_VERSION) {
        None => Ok(3),
        Some(value) => match value.as_whole().filter(|_| value.is_number()) {
            Some(version @ 1..=3) => Ok(version as i32),
            _ => Err(cannot(format!(
                "unsupported geo index version {{ {SPHERE_VERSION}: {value} }}, only support \
                 versions: [1,2,3]"
            ))),
        },
    }
}

/// Returns the levels of the cells of a `2dsphere` index.
fn levels(specification: Document<'_>) -> Result<CellLevels, Error> {
    let default = CellLevels::default();
    let level = |name, default| whole(specification, name, i64::from(default));
    let coarsest = level("coarsestIndexedLevel", default.coarsest)?;
    let finest = level("finestIndexedLevel", default.finest)?;
    let wrong = |code, message: String| Err(Error::new(code, message));
    if coarsest < 0 {
        return wrong(
            COARSEST_NEGATIVE,
            "coarsestIndexedLevel must be >= 0".to_owned(),
        );
    }
    if finest > i64::from(CellLevels::MAX) {
        return wrong(
            FINEST_TOO_FINE,
            format!("finestIndexedLevel must be <= {}", CellLevels::MAX),
        );
    }
    match (u8::try_from(coarsest), u8::try_from(finest)) {
        (Ok(coarsest), Ok(finest)) if coarsest <= finest => Ok(CellLevels { coarsest, finest }),
        _ => wrong(
            LEVELS_CROSSED,
            "finestIndexedLevel must be >= coarsestIndexedLevel".to_owned(),
        ),
    }
}

/// Returns an option that is a number, without its fraction, or `default` if it is not set.
fn whole(specification: Document<'_>, name: &str, default: i64) -> Result<i64, Error> {
    match specification.get(name) {
        None => Ok(default),
        Some(value) => value
            .as_f64()
            .filter(|_| value.is_number())
            .map(|number| number as i64)
            .ok_or_else(|| Error::type_mismatch(format!("the field '{name}' must be a number"))),
    }
}

/// Returns the grid of a `2d` index.
fn grid(specification: Document<'_>) -> Result<Grid, Error> {
    let default = Grid::default();
    let bits = whole(specification, "bits", i64::from(default.bits));
    let bits = bits.map_err(|error| invalid(error.message))?;
    let bits = u32::try_from(bits).ok();
    let bits = bits
        .filter(|bits| (1..=32).contains(bits))
        .ok_or_else(|| invalid("bits for hash must be > 0 and <= 32".to_owned()))?;
    let end = |name: &str, default: f64| match specification.get(name) {
        None => Ok(default),
        Some(value) => value
            .as_f64()
            .filter(|end| value.is_number() && end.is_finite())
            .ok_or_else(|| invalid(format!("{name} must be a finite number"))),
    };
    let (min, max) = (end("min", default.min)?, end("max", default.max)?);
    if min < max && (max - min).is_finite() {
        Ok(Grid { bits, min, max })
    } else {
        Err(invalid(
            "region for hash must be valid and have positive area".to_owned(),
        ))
    }
}

fn invalid(message: String) -> Error {
    Error::new(INVALID_OPTIONS, message)
}

#[cfg(test)]
mod tests {
    use windrow_document::{DocumentBuf, doc};

    use crate::parse::tests::check;

    #[test]
    fn options_of_geospatial_indexes_are_checked() {
        let of =
            |key: DocumentBuf, expected| check(doc! { "key": key, "name": "x" }, Err(expected));
        of(doc! { "a": "geoHaystack" }, 67);
        of(doc! { "a": "2D" }, 67);
        of(doc! { "a": "2d", "b": "2dsphere" }, 67);
        of(doc! { "a": "hashed", "b": "2dsphere" }, 67);
        of(doc! { "a": "text", "b": "2dsphere" }, 67);
        of(doc! { "a": 1, "b": "2d" }, 16801);
        of(doc! { "a": "2d", "b": "2d" }, 16800);
        let with = |kind: &str, option: &str, value: windrow_document::Value, expected| {
            let mut specification = doc! { "key": { "a": kind }, "name": "x" };
            specification.push(option, value);
            check(specification, Err(expected));
        };
        with("2d", "bits", 0.into(), 72);
        with("2d", "bits", 33.into(), 72);
        with("2d", "bits", "x".into(), 72);
        with("2d", "min", "x".into(), 72);
        with("2d", "min", 180.into(), 72);
        with("2d", "max", f64::INFINITY.into(), 72);
        with("2d", "collation", doc! { "locale": "en" }.into(), 67);
        with("2dsphere", "2dsphereIndexVersion", 4.into(), 67);
        with("2dsphere", "2dsphereIndexVersion", "3".into(), 67);
        with("2dsphere", "finestIndexedLevel", 31.into(), 16748);
        with("2dsphere", "coarsestIndexedLevel", (-1).into(), 16747);
        with("2dsphere", "coarsestIndexedLevel", 25.into(), 16749);
        with("2dsphere", "finestIndexedLevel", "5".into(), 14);
        check(
            doc! { "key": { "a": 1, "p": "2dsphere" }, "name": "x", "sparse": true },
            Ok(doc! {
                "v": 2, "key": { "a": 1, "p": "2dsphere" }, "name": "x", "sparse": true,
                "2dsphereIndexVersion": 3,
            }),
        );
        let plane =
            doc! { "v": 2, "key": { "p": "2d" }, "name": "x", "bits": 16, "min": (-5), "max": 5 };
        check(plane.clone(), Ok(plane));
    }
}
