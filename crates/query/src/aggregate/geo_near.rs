//! `$geoNear`: documents by their distance, which is added as a field.
//!
//! The point and the numbers can be expressions with variables of the command. The variables of a
//! `$lookup` have no values when its pipeline is first parsed, only when it is parsed again for
//! each document. Until then `near` is `None`.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_geo::Near;
use windrow_index::{Definition, KeyKind};
use windrow_mql::expression::Context;
use windrow_mql::filter::{Environment, Filter};

use super::operand;
use super::path_values::with_value;
use crate::Error;
use crate::row::Row;
use crate::source::Source;

const TYPE_MISMATCH: i32 = 14;
const BAD_VALUE: i32 = 2;
const NAMESPACE_NOT_FOUND: i32 = 26;
const INDEX_NOT_FOUND: i32 = 27;
const NO_OBJECT: i32 = 10065;
const NO_NEAR: i32 = 16605;
const NEAR_TYPE: i32 = 5_860_401;
const NO_DISTANCE_FIELD: i32 = 16606;
const NO_LOCATION_FIELD: i32 = 16607;
const KNOWN: [&str; 10] = [
    "near",
    "distanceField",
    "distanceMultiplier",
    "includeLocs",
    "key",
    // Without effect, as in MongoDB.
    "uniqueDocs",
    "maxDistance",
    "minDistance",
    "query",
    "spherical",
];
/// Old arguments, and one that only the command has.
const REFUSED: [(&str, i32); 4] = [
    ("collation", 40227),
    ("limit", 50858),
    ("num", 50857),
    ("start", 50856),
];

/// A parsed `$geoNear`.
#[derive(Clone, Debug)]
pub struct GeoNear {
    /// `None` while its variables have no values.
    near: Option<Near>,
    /// The path of the location. `None`: that of the only geospatial index.
    key: Option<Path>,
    query: Filter,
    /// The fields that are added to the rows.
    pub added_fields: AddedFields,
}

/// The fields that are added to each row. They replace existing fields.
#[derive(Clone, Debug)]
pub struct AddedFields {
    distance: Path,
    /// The factor of distances.
    multiplier: Option<f64>,
    /// The path of the nearest point.
    location: Option<Path>,
}

impl GeoNear {
    /// Parses the operand. Fails with 10065 if it is not a document, with 16605 to 16607 for an
    /// invalid `near`, `distanceField` or `includeLocs`, with 5860401 or 5860402 if a value is not
    /// a point or not a constant, with 50856 to 50858 for old arguments, with 40227 for a
    /// collation, and with 2 or 14 for other errors.
    pub fn parse(operand: ValueRef<'_>, environment: &Environment) -> Result<GeoNear, Error> {
        let ValueRef::Document(options) = operand else {
            return Err(Error::new(NO_OBJECT, "$geoNear argument must be an object"));
        };
        let mut refused = REFUSED.iter();
        if let Some((name, code)) = refused.find(|(name, _)| options.contains(name)) {
            let message = format!("$geoNear does not accept the '{name}' parameter");
            return Err(Error::new(*code, message));
        }
        let mut names = options.iter().map(|(name, _)| name);
        if let Some(name) = names.find(|name| !KNOWN.contains(name)) {
            let message = format!("Unknown argument to $geoNear: {name}");
            return Err(Error::new(BAD_VALUE, message));
        }
        let near = near(options, environment)?;
        let query = match options.get("query") {
            None => Filter::parse_with(Document::EMPTY, environment)?,
            Some(ValueRef::Document(query)) => {
                Filter::parse_with(query, environment)?.without_near()?
            }
            Some(_) => return Err(Error::new(TYPE_MISMATCH, "query must be an object")),
        };
        Ok(GeoNear {
            near,
            key: key(options)?,
            query,
            added_fields: added_fields(options, environment)?,
        })
    }

    /// Returns the query of the stage. Fails with 26 if the collection does not exist, with 27 if
    /// there is not exactly one index to choose, with 2 if the query contains a `$text`.
    pub fn filter(&self, source: &dyn Source) -> Result<Filter, Error> {
        let path = match &self.key {
            Some(key) => key.clone(),
            None => only_path(source)?,
        };
        let near = self.near.clone().ok_or_else(no_near)?;
        Ok(self.query.and_near(path, near)?)
    }
}

fn no_near() -> Error {
    let message = "$geoNear requires a 'near' option as an Array or an object";
    Error::new(NO_NEAR, message)
}

/// The error code for an option that is not constant.
fn not_constant(name: &str) -> i32 {
    match name {
        "minDistance" => 7_555_701,
        "maxDistance" => 7_555_702,
        _ => 5_860_402,
    }
}

/// Returns the value of an option. `None` if it is missing, or has no value yet.
fn value_of(
    options: Document<'_>,
    name: &str,
    environment: &Environment,
) -> Result<Option<Value>, Error> {
    let Some(operand) = options.get(name) else {
        return Ok(None);
    };
    let expression = operand::expression(operand, environment)?;
    let read = expression.dependencies();
    if read.whole || !read.paths.is_empty() {
        let message = format!("$geoNear requires a constant '{name}' argument");
        return Err(Error::new(not_constant(name), message));
    }
    let context = Context::new(Document::EMPTY)
        .with_variables(&environment.variables)
        .with_now(environment.now);
    let value = expression.evaluate(&context)?;
    Ok(value.as_ref().map(ValueRef::to_value))
}

fn near(options: Document<'_>, environment: &Environment) -> Result<Option<Near>, Error> {
    if !options.contains("near") {
        return Err(no_near());
    }
    let Some(point) = value_of(options, "near", environment)? else {
        return Ok(None);
    };
    if !matches!(point, Value::Document(_) | Value::Array(_)) {
        let message = "$geoNear requires near argument to be a GeoJSON object or a legacy point";
        return Err(Error::new(NEAR_TYPE, message));
    }
    let is_spherical = options.get("spherical").is_some_and(ValueRef::is_truthy);
    let near = Near::from_point(point.as_ref(), is_spherical).map_err(windrow_mql::Error::from)?;
    let number = |name| number(options, name, environment);
    let min = number("minDistance")?.unwrap_or(near.min);
    let max = number("maxDistance")?.unwrap_or(near.max);
    Ok(Some(near.with_bounds(min, max)))
}

/// Returns a number that is not negative. Fails with 14 or 2 otherwise.
fn number(
    options: Document<'_>,
    name: &str,
    environment: &Environment,
) -> Result<Option<f64>, Error> {
    let Some(value) = value_of(options, name, environment)? else {
        return Ok(None);
    };
    let value = value.as_ref();
    match value.as_f64().filter(|_| value.is_number()) {
        None => Err(Error::new(
            TYPE_MISMATCH,
            format!("{name} must be a number"),
        )),
        Some(number) if number >= 0.0 => Ok(Some(number)),
        Some(_) => Err(Error::new(BAD_VALUE, format!("{name} must be nonnegative"))),
    }
}

fn key(options: Document<'_>) -> Result<Option<Path>, Error> {
    match options.get("key") {
        None => Ok(None),
        Some(ValueRef::String("")) => Err(Error::new(
            BAD_VALUE,
            "$geoNear parameter 'key' cannot be the empty string",
        )),
        Some(ValueRef::String(key)) => Ok(Some(operand::check_path(key)?)),
        Some(other) => Err(Error::new(
            TYPE_MISMATCH,
            format!(
                "$geoNear parameter 'key' must be of type string but found type: {}",
                other.type_of().name()
            ),
        )),
    }
}

fn added_fields(options: Document<'_>, environment: &Environment) -> Result<AddedFields, Error> {
    let Some(ValueRef::String(distance_field)) = options.get("distanceField") else {
        return Err(Error::new(
            NO_DISTANCE_FIELD,
            "$geoNear requires a 'distanceField' option as a String",
        ));
    };
    let multiplier = options.get("distanceMultiplier");
    if multiplier.is_some_and(|factor| !factor.is_number()) {
        let message = "distanceMultiplier must be a number";
        return Err(Error::new(TYPE_MISMATCH, message));
    }
    let multiplier = number(options, "distanceMultiplier", environment)?;
    let distance = operand::check_path(distance_field)?;
    let location = match options.get("includeLocs") {
        None => None,
        Some(ValueRef::String(field)) => Some(operand::check_path(field)?),
        Some(_) => {
            return Err(Error::new(
                NO_LOCATION_FIELD,
                "$geoNear requires that 'includeLocs' option is a String",
            ));
        }
    };
    Ok(AddedFields {
        distance,
        multiplier,
        location,
    })
}

impl AddedFields {
    /// Returns the document of a row with the distance and, if requested, the location.
    pub fn apply(&self, row: &Row) -> DocumentBuf {
        let Some(nearest) = &row.meta.nearest else {
            return row.document().to_buf();
        };
        let distance = ValueRef::Double(nearest.distance * self.multiplier.unwrap_or(1.0));
        let shown = with_value(row.document(), &self.distance, Some(distance));
        match &self.location {
            Some(path) => with_value(shown.as_document(), path, Some(nearest.point.as_ref())),
            None => shown,
        }
    }
}

/// Returns the path of the only `2d` index or, if there is none, of the only `2dsphere` index.
fn only_path(source: &dyn Source) -> Result<Path, Error> {
    let namespace = source.namespace();
    if !source.exists() {
        let message =
            format!("$geoNear requires a geo index to run, but {namespace} does not exist");
        return Err(Error::new(NAMESPACE_NOT_FOUND, message));
    }
    let indexes = source.indexes();
    for (kind, name) in [(KeyKind::Plane, "2d"), (KeyKind::Sphere, "2dsphere")] {
        let mut paths = indexes.iter().filter_map(|index| path_of(index, kind));
        let Some(path) = paths.next() else {
            continue;
        };
        if paths.next().is_some() {
            let message = format!(
                "There is more than one {name} index on {namespace}; unsure which to use for \
                 $geoNear"
            );
            return Err(Error::new(INDEX_NOT_FOUND, message));
        }
        return Ok(path.clone());
    }
    Err(Error::new(
        INDEX_NOT_FOUND,
        "$geoNear requires a 2d or 2dsphere index, but none were found",
    ))
}

fn path_of(index: &Definition, kind: KeyKind) -> Option<&Path> {
    let mut fields = index.fields.iter().filter(|_| !index.hidden);
    fields
        .find(|field| field.kind == kind)
        .map(|field| &field.path)
}
