//! Hints, and scans between `min` and `max`.

use std::ops::Bound::{Excluded, Included};

use windrow_document::{Document, Value, ValueRef, key};
use windrow_index::{Definition, KeyKind};

use crate::Error;
use crate::bounds::IndexBounds;
use crate::bounds::interval::{Interval, Intervals};
use crate::find::{Find, Hint};
use crate::key_range::KeyRange;
use crate::plan::{IndexScan, KeyOutput};
use crate::source::{Direction, Source, SourceIndex};
use crate::text::NO_PLANS;

const INDEX_NOT_FOUND: i32 = 27;

fn no_such_index() -> Error {
    Error::new(
        2,
        "error processing query: planner returned error: hint provided does not correspond to an \
         existing index",
    )
}

/// Fails if no index matches the hint. A natural sort accepts only a natural hint in the same
/// direction.
pub fn check(find: &Find, source: &dyn Source) -> Result<(), Error> {
    match (&find.hint, find.natural_sort()) {
        (Some(Hint::Name(_) | Hint::Own(_) | Hint::Key(_)), Some(_)) => Err(Error::new(
            2,
            "index hint not allowed with $natural sort order",
        )),
        (Some(Hint::Natural(hinted)), Some(sorted)) if *hinted != sorted => Err(Error::new(
            2,
            "$natural hint must be in the same direction as $natural sort order",
        )),
        (hint, _) => check_fits(hint.as_ref(), source),
    }
}

/// Fails if the collection exists and no index matches the hint.
pub fn check_fits(hint: Option<&Hint>, source: &dyn Source) -> Result<(), Error> {
    if source.exists() {
        index(hint, source).map(drop)
    } else {
        Ok(())
    }
}

/// Returns the hinted index. `None` without a hint and for a natural hint.
pub fn index(hint: Option<&Hint>, source: &dyn Source) -> Result<Option<SourceIndex>, Error> {
    let is_meant = |one: &Definition| match hint {
        Some(Hint::Name(name)) => one.name == *name && !one.hidden,
        Some(Hint::Own(name)) => one.name == *name,
        Some(Hint::Key(key)) => same_key(one.key_pattern(), key.as_document()) && !one.hidden,
        Some(Hint::Natural(_)) | None => false,
    };
    if matches!(hint, None | Some(Hint::Natural(_))) {
        return Ok(None);
    }
    let all = source.indexes().into_iter().enumerate();
    let mut found = all.filter(|(_, one)| is_meant(one));
    let (number, definition) = found.next().ok_or_else(no_such_index)?;
    if let Some((_, other)) = found.next() {
        let message = format!(
            "Hint matched multiple indexes, must hint by index name. Matched: '{}' and '{}'",
            definition.name, other.name
        );
        return Err(Error::new(INDEX_NOT_FOUND, message));
    }
    let multikey = source.multikey(number)?;
    Ok(Some(SourceIndex {
        number,
        definition,
        multikey,
    }))
}

fn same_key(one: Document<'_>, other: Document<'_>) -> bool {
    one.count() == other.count()
        && one
            .iter()
            .zip(other)
            .all(|((name, value), (other_name, other_value))| {
                name == other_name && value.equals(other_value)
            })
}

/// Returns the scan between `min` and `max`. Fails with 51173 without a hint, with 51174 if a bound
/// does not match the index, with 51175 if the bounds are not in order, with 51176 if they have
/// different fields, and with 291 for a natural hint.
pub fn between(find: &Find, source: &dyn Source) -> Result<IndexScan, Error> {
    if find.hint.is_none() {
        let message = "When using min()/max() a hint of which index to use must be provided";
        return Err(Error::new(51173, message));
    }
    let Some(index) = index(find.hint.as_ref(), source)? else {
        return Err(Error::new(
            NO_PLANS,
            "min and max cannot be used with a $natural hint",
        ));
    };
    let empty = Document::EMPTY;
    let min = find.min.as_ref().map_or(empty, |min| min.as_document());
    let max = find.max.as_ref().map_or(empty, |max| max.as_document());
    let names = |document: Document<'_>| -> Vec<String> {
        document.iter().map(|(name, _)| name.to_owned()).collect()
    };
    if !min.is_empty() && !max.is_empty() && names(min) != names(max) {
        return Err(Error::new(
            51176,
            "min and max must have the same field names",
        ));
    }
    let from = key_of(&index, min)?;
    let to = key_of(&index, max)?.unwrap_or_else(|| vec![0xFF; 2]);
    let from = from.unwrap_or_default();
    if !min.is_empty() && from >= to {
        let code = if index.definition.clustered {
            6_137_401
        } else {
            51175
        };
        return Err(Error::new(
            code,
            "min must be less than max, according to the index's key pattern",
        ));
    }
    if index.definition.collation.as_ref() != find.filter.collation_shared()
        && (has_strings(min) || has_strings(max))
    {
        return Err(if index.definition.clustered {
            Error::new(
                6_137_400,
                "the clustered index is not compatible with min/max",
            )
        } else {
            not_compatible()
        });
    }
    let mut bounds = IndexBounds::full(&index);
    if let ([field], true) = (bounds.fields.as_mut_slice(), index.definition.clustered) {
        let end = |bound: Document<'_>| bound.first().map(|(_, value)| value.to_value());
        let (low, high) = (
            end(min).unwrap_or(Value::MinKey),
            end(max).unwrap_or(Value::MaxKey),
        );
        *field = Intervals::from_interval(Interval::new(Included(low), Excluded(high)));
    }
    Ok(IndexScan {
        index,
        direction: Direction::Forward,
        bounds,
        range: Some(KeyRange { from, to }),
        filter: None,
        output: KeyOutput::Nothing,
        distinct_prefix: None,
    })
}

fn not_compatible() -> Error {
    Error::new(51174, "the index chosen is not compatible with min/max")
}

fn has_strings(bound: Document<'_>) -> bool {
    let collated = |value: ValueRef<'_>| {
        matches!(
            value,
            ValueRef::String(_) | ValueRef::Symbol(_) | ValueRef::Document(_) | ValueRef::Array(_)
        )
    };
    bound.iter().any(|(_, value)| collated(value))
}

/// Returns the key bytes of a bound. `None` if the bound is empty.
fn key_of(index: &SourceIndex, bound: Document<'_>) -> Result<Option<Vec<u8>>, Error> {
    if bound.is_empty() {
        return Ok(None);
    }
    let fields = &index.definition.fields;
    let fits = bound.count() == fields.len()
        && bound
            .iter()
            .zip(fields)
            .all(|((name, _), field)| field.path.to_string() == name);
    if !fits {
        return Err(not_compatible());
    }
    let mut bytes = Vec::new();
    for ((_, value), field) in bound.iter().zip(fields) {
        let collation = index.definition.collation.as_deref();
        key::append_with_collation(
            &mut bytes,
            value,
            field.kind == KeyKind::Descending,
            collation,
        );
    }
    Ok(Some(bytes))
}
