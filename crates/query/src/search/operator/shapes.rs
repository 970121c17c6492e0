//! Parses the operators on points and shapes: `geoWithin`, `geoShape`.

use windrow_geo::{SearchArea, ShapeQuery};
use windrow_mql::interrupt::count;

use super::OperatorKind;
use crate::Error;
use crate::search::options::{Options, bad};

pub(super) fn geo_within(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "box", "circle", "geometry", "score"])?;
    let areas = SearchArea::OPTIONS.iter();
    let areas: Vec<_> = areas
        .filter_map(|option| Some((*option, options.get(option)?)))
        .collect();
    let [(option, value)] = areas.as_slice() else {
        let message = "\"geoWithin\" needs one of \"box\", \"circle\" and \"geometry\"";
        return Err(bad(message.to_owned()));
    };
    let area = SearchArea::parse(option, *value, &count);
    Ok(OperatorKind::GeoWithin {
        paths: options.paths()?,
        area: area.map_err(|error| named("geoWithin", error))?,
    })
}

pub(super) fn geo_shape(options: &Options<'_>) -> Result<OperatorKind, Error> {
    options.check(&["path", "relation", "geometry", "score"])?;
    let Some(relation) = options.string("relation")? else {
        return Err(bad("\"geoShape.relation\" is required".to_owned()));
    };
    let query = ShapeQuery::parse(relation, options.required("geometry")?, &count);
    Ok(OperatorKind::GeoShape {
        paths: options.paths()?,
        query: query.map_err(|error| named("geoShape", error))?,
    })
}

/// The code of errors of malformed shapes. Others are those of an interrupt.
const BAD_VALUE: i32 = 2;

/// Names the operator in the error of a malformed shape.
fn named(operator: &str, error: windrow_geo::Error) -> Error {
    match error.code {
        BAD_VALUE => bad(format!("\"{operator}\": {error}")),
        _ => windrow_mql::Error::from(error).into(),
    }
}
