//! Scans that return one entry for each value of an index's first field, if the caller needs no
//! more.

use windrow_document::path::Path;

use super::access_path::{AccessPath, PlanningContext};
use super::order::RowOrder;
use crate::Error;
use crate::find::{Find, RowChoice};
use crate::plan::IndexScan;
use crate::source::{Direction, SourceIndex};

/// Makes the scan return only one of the entries with the same value, if the caller needs no more.
/// No operator above the scan may remove rows.
pub fn skip_repeated_values(find: &Find, scan: &mut IndexScan, order: RowOrder) {
    let Some(distinct_rows) = &find.distinct_rows else {
        return;
    };
    let is_sorted = order == RowOrder::Requested && find.order().is_some();
    let is_known = is_sorted || distinct_rows.which == RowChoice::Any;
    if !is_known || !leads(&scan.index, &distinct_rows.path) {
        return;
    }
    scan.distinct_prefix = Some(0);
    if distinct_rows.which == RowChoice::Last {
        scan.direction = match scan.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
    }
}

/// Scans of complete indexes that begin with the path, if any row of each value is sufficient.
pub fn paths(context: &PlanningContext<'_>, find: &Find) -> Result<Vec<AccessPath>, Error> {
    let mut found = Vec::new();
    let any = find
        .distinct_rows
        .as_ref()
        .filter(|one| one.which == RowChoice::Any);
    let Some(distinct_rows) = any.filter(|_| find.order().is_none()) else {
        return Ok(found);
    };
    for (number, definition) in context.source.indexes().into_iter().enumerate() {
        if definition.hidden || definition.is_text() || !context.may_use(number) {
            continue;
        }
        let index = SourceIndex {
            number,
            multikey: context.source.multikey(number)?,
            definition,
        };
        if leads(&index, &distinct_rows.path) && context.has_all(&index) {
            found.extend(context.scan(index.into(), find)?.filter(|path| path.covers));
        }
    }
    Ok(found)
}

/// Returns `true` if the index is sorted by the values of the path and has one entry for each
/// document.
fn leads(index: &SourceIndex, path: &Path) -> bool {
    let definition = &index.definition;
    let first = definition.fields.first();
    first.is_some_and(|first| first.path == *path && first.kind.is_plain())
        && !definition.is_wildcard()
        && !definition.clustered
        && definition.collation.is_none()
        && !index.multikey.any()
}
