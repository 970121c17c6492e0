//! Skip scans: scans of an index whose first field is not restricted. The scan seeks from value to
//! value of the first field, and reads the range of the later fields at each.
//!
//! This pays if the first field has few values. Their number is found by seeking from one to the
//! next, up to a limit.

use windrow_document::key;
use windrow_index::KeyKind;

use super::access_path::{AccessPath, PlanningContext};
use crate::Error;
use crate::bounds::interval::after;
use crate::bounds::range::directed;
use crate::find::Find;
use crate::plan::Plan;
use crate::source::{Direction, RecordId, Source, SourceIndex};

/// Smaller collections are read completely in the same time.
const DOCUMENTS_MIN: u64 = 1000;

/// The largest number of values of the first field.
const VALUES_MAX: usize = 64;

/// The entries that a scan reads for each value before it seeks.
const ENTRIES_PER_VALUE: f64 = 8.0;

/// Returns all skip scans.
pub fn paths(
    context: &PlanningContext<'_>,
    source: &dyn Source,
    find: &Find,
) -> Result<Vec<AccessPath>, Error> {
    let mut found = Vec::new();
    if source.count() < DOCUMENTS_MIN {
        return Ok(found);
    }
    for (number, definition) in source.indexes().into_iter().enumerate() {
        let is_plain = definition.fields.iter().all(|field| field.kind.is_plain());
        let is_special = definition.hidden || definition.clustered || definition.is_wildcard();
        if !is_plain || is_special || definition.fields.len() < 2 || !context.may_use(number) {
            continue;
        }
        let index = SourceIndex {
            number,
            multikey: source.multikey(number)?,
            definition,
        };
        if context.has_all(&index) {
            found.extend(path(context, source, index, find)?);
        }
    }
    Ok(found)
}

fn path(
    context: &PlanningContext<'_>,
    source: &dyn Source,
    index: SourceIndex,
    find: &Find,
) -> Result<Option<AccessPath>, Error> {
    let number = index.number;
    let Some(mut path) = context.scan(index.into(), find)? else {
        return Ok(None);
    };
    let Plan::IndexScan(scan) = &path.plan else {
        return Ok(None);
    };
    let descends = |field: usize| {
        let field = scan.index.definition.fields.get(field);
        field.is_some_and(|field| field.kind == KeyKind::Descending)
    };
    let key_ranges = match scan.bounds.fields.as_slice() {
        [first, second, ..] if first.is_full() && !second.is_full() => {
            directed(second, descends(1))
        }
        _ => return Ok(None),
    };
    let Some(values) = values(source, number, descends(0))? else {
        return Ok(None);
    };
    let mut entries = 0;
    for value in &values {
        for range in &key_ranges {
            let range = range.with_prefix(value);
            entries += source.approximate_count(number, &range.from, &range.to)?;
        }
    }
    // Restrictions of fields after the second one, and conditions on keys, can leave fewer
    // documents.
    path.documents = path.documents.min(entries as f64);
    path.entries = entries as f64 + ENTRIES_PER_VALUE * values.len() as f64;
    path.seeks = 2.0 * values.len() as f64;
    path.set_order_direction(find.order());
    Ok(Some(path))
}

/// Returns the key bytes of the values of the first field. `None` if there are too many.
fn values(
    source: &dyn Source,
    index: usize,
    descends: bool,
) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let mut cursor = source.entries(index, Direction::Forward)?;
    let mut found: Vec<Vec<u8>> = Vec::new();
    while cursor.next()? {
        let key = cursor.key();
        let mut reader = key::KeyReader::new(key, &[]);
        if found.len() == VALUES_MAX || reader.value(descends).is_none() {
            return Ok(None);
        }
        let (value, _) = key.split_at(key.len() - reader.rest().len());
        let value = value.to_vec();
        cursor.seek(&after(&value), RecordId(0))?;
        found.push(value);
    }
    Ok(Some(found))
}
