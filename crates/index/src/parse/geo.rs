//! The options of an index of places.

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

/// A `2d` key stands first, and alone of its kind.
pub(super) fn check_place(fields: &[KeyField]) -> Result<(), Error> {
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

/// None for an index of other things.
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

fn levels(specification: Document<'_>) -> Result<CellLevels, Error> {
    let usual = CellLevels::default();
    let level = |name, usual| whole(specification, name, i64::from(usual));
    let coarsest = level("coarsestIndexedLevel", usual.coarsest)?;
    let finest = level("finestIndexedLevel", usual.finest)?;
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

fn whole(specification: Document<'_>, name: &str, usual: i64) -> Result<i64, Error> {
    match specification.get(name) {
        None => Ok(usual),
        Some(value) => value
            .as_f64()
            .filter(|_| value.is_number())
            .map(|number| number as i64)
            .ok_or_else(|| Error::type_mismatch(format!("the field '{name}' must be a number"))),
    }
}

fn grid(specification: Document<'_>) -> Result<Grid, Error> {
    let usual = Grid::default();
    let bits = whole(specification, "bits", i64::from(usual.bits));
    let bits = bits.map_err(|error| invalid(error.message))?;
    let bits = u32::try_from(bits).ok();
    let bits = bits
        .filter(|bits| (1..=32).contains(bits))
        .ok_or_else(|| invalid("bits for hash must be > 0 and <= 32".to_owned()))?;
    let end = |name: &str, usual: f64| match specification.get(name) {
        None => Ok(usual),
        Some(value) => value
            .as_f64()
            .filter(|end| value.is_number() && end.is_finite())
            .ok_or_else(|| invalid(format!("{name} must be a finite number"))),
    };
    let (min, max) = (end("min", usual.min)?, end("max", usual.max)?);
    match min < max && (max - min).is_finite() {
        true => Ok(Grid { bits, min, max }),
        false => Err(invalid(
            "region for hash must be valid and have positive area".to_owned(),
        )),
    }
}

fn invalid(message: String) -> Error {
    Error::new(INVALID_OPTIONS, message)
}
