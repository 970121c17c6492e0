//! The options of an index, one function per option.

use std::sync::Arc;

use windrow_document::{Collation, Document, ValueRef};
use windrow_mql::Error;
use windrow_mql::collation;
use windrow_mql::filter::Filter;

use super::{INVALID_OPTIONS, cannot};
use crate::partial;

/// The maximum of `expireAfterSeconds`.
pub const EXPIRE_SECONDS_MAX: i64 = i32::MAX as i64;

/// Returns the option `v`: 1 or 2, by default 2. Entries do not depend on it.
pub(super) fn version_of(specification: Document<'_>) -> Result<i32, Error> {
    let Some(value) = specification.get("v") else {
        return Ok(2);
    };
    if !value.is_number() {
        return Err(Error::type_mismatch(format!(
            "The field 'v' must be a number, but got {}",
            value.type_of().name()
        )));
    }
    match value.as_whole() {
        Some(1) => Ok(1),
        Some(2) => Ok(2),
        Some(other) => Err(cannot(format!(
            "Invalid index specification; cannot create an index with v={other}"
        ))),
        None => Err(Error::bad_value(
            "Index version must be representable as a 32-bit integer".to_owned(),
        )),
    }
}

/// Returns the option `collation`, or `None` if strings are compared by their bytes.
pub(super) fn collation(specification: Document<'_>) -> Result<Option<Arc<Collation>>, Error> {
    match specification.get("collation") {
        None => Ok(None),
        Some(ValueRef::Document(collation)) if collation.is_empty() => {
            Err(Error::bad_value("The field 'collation' must have a locale"))
        }
        Some(ValueRef::Document(collation)) => collation::parse(collation),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field 'collation' must be an object, but got {}",
            other.type_of().name()
        ))),
    }
}

/// Fails with code 67 if an index with `v: 1` has a collation. That version is older than
/// collations.
pub fn check_version(specification: Document<'_>) -> Result<(), Error> {
    if matches!(version_of(specification), Ok(1)) && specification.contains("collation") {
        let message = "an index with the 'collation' option cannot have v=1";
        return Err(cannot(message.to_owned()));
    }
    Ok(())
}

/// Fails with code 67 or 72 if the option `storageEngine` is set. No engine has options.
pub(super) fn check_storage_engine(specification: Document<'_>) -> Result<(), Error> {
    match specification.get("storageEngine") {
        None => Ok(()),
        Some(ValueRef::Document(options)) => match options.first() {
            None => Err(cannot(
                "Empty \"storageEngine\" options are invalid: leave the field out".to_owned(),
            )),
            Some((engine, _)) => Err(Error::new(
                INVALID_OPTIONS,
                format!("storageEngine has options of an engine that is not there: '{engine}'"),
            )),
        },
        Some(_) => Err(cannot(
            "\"storageEngine\" options must be a document".to_owned(),
        )),
    }
}

/// Returns a boolean option. `hidden` must be a boolean. Other flags may also be a number or null.
pub(super) fn flag_of(specification: Document<'_>, name: &str) -> Result<bool, Error> {
    match specification.get(name) {
        None => Ok(false),
        Some(ValueRef::Null) if name != "hidden" => Ok(false),
        Some(ValueRef::Bool(flag)) => Ok(flag),
        Some(value) if value.is_number() && name != "hidden" => Ok(value.is_truthy()),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field '{name}' must be a boolean, but got {}",
            other.type_of().name()
        ))),
    }
}

/// Returns the filter of a partial index.
pub(super) fn partial_of(
    specification: Document<'_>,
    collation: Option<Arc<Collation>>,
) -> Result<Option<Filter>, Error> {
    match specification.get("partialFilterExpression") {
        None => Ok(None),
        Some(ValueRef::Document(filter)) => partial::parse(filter, collation).map(Some),
        Some(other) => Err(Error::type_mismatch(format!(
            "The field 'partialFilterExpression' must be an object, but got {}",
            other.type_of().name()
        ))),
    }
}

/// Returns the option `expireAfterSeconds`. Fails with code 67 if it is not a number from 0 to
/// [`EXPIRE_SECONDS_MAX`]. The fraction is ignored.
pub(super) fn expire_after_seconds(specification: Document<'_>) -> Result<Option<i64>, Error> {
    let Some(value) = specification.get("expireAfterSeconds") else {
        return Ok(None);
    };
    let Some(seconds) = value.as_f64() else {
        return Err(cannot(format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'",
            value.type_of().name()
        )));
    };
    if seconds.is_nan() {
        let message = "TTL index 'expireAfterSeconds' option must not be NaN";
        return Err(cannot(message.to_owned()));
    }
    let seconds = seconds.trunc() as i64;
    if (0..=EXPIRE_SECONDS_MAX).contains(&seconds) {
        Ok(Some(seconds))
    } else {
        Err(cannot(format!(
            "TTL index 'expireAfterSeconds' option must be between 0 and {EXPIRE_SECONDS_MAX}, \
             but it is {value}"
        )))
    }
}
