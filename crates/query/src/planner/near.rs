//! Chooses the index for `$near`.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_geo::{DistanceUnit, Near};
use windrow_mql::filter::Node;

use super::hint;
use crate::Error;
use crate::bounds::{IndexBounds, Predicates, partial, predicates};
use crate::find::Find;
use crate::near::NearScan;
use crate::source::{Source, SourceIndex};
use crate::text::NO_PLANS;

/// Returns the scan for the `$near` of the filter. Fails with 2 beside a natural hint or sort, and
/// with 291 if no suitable index has the path.
pub fn scan(
    find: &Find,
    path: &Path,
    near: &Arc<Near>,
    source: &dyn Source,
) -> Result<NearScan, Error> {
    if find.natural().is_some() {
        return Err(Error::new(
            2,
            "geoNear expression not allowed with a $natural hint or sort order",
        ));
    }
    if find.min.is_some() || find.max.is_some() {
        return Err(no_index(path, near, source));
    }
    let root = find.filter.root();
    let found = predicates(root, find.filter.collation_shared());
    let mut best: Option<NearScan> = None;
    for index in candidates(find, source)? {
        if !partial::admits_all(&index.definition, root, found.collation.as_ref()) {
            continue;
        }
        let scan = scan_of(index, &found, path, near);
        best = match (best, scan) {
            (Some(best), Some(scan)) if restricted(&scan) > restricted(&best) => Some(scan),
            (best, scan) => best.or(scan),
        };
    }
    let mut scan = best.ok_or_else(|| no_index(path, near, source))?;
    scan.filter = (!matches!(root, Node::Near { .. })).then(|| find.filter.clone());
    Ok(scan)
}

/// Returns the hinted index, or all geospatial indexes.
fn candidates(find: &Find, source: &dyn Source) -> Result<Vec<SourceIndex>, Error> {
    if let Some(index) = hint::index(find.hint.as_ref(), source)? {
        return Ok(vec![index]);
    }
    let mut found = Vec::new();
    for (number, definition) in source.indexes().into_iter().enumerate() {
        if definition.is_geo() && !definition.hidden {
            found.push(SourceIndex {
                number,
                multikey: source.multikey(number)?,
                definition,
            });
        }
    }
    Ok(found)
}

/// Returns the scan. `None` if the index does not contain the path, has another kind of distances,
/// or begins with a field that the filter does not restrict.
fn scan_of(
    index: SourceIndex,
    predicates: &Predicates,
    path: &Path,
    near: &Arc<Near>,
) -> Option<NearScan> {
    let cells = index.definition.geo.as_ref()?.cells;
    let mut fields = index.definition.fields.iter();
    let field = fields.position(|field| field.kind.is_geo() && field.path == *path)?;
    let bounds = IndexBounds::new(&index, predicates);
    let first = index.definition.fields.first()?;
    let is_asked_for = || predicates.list.iter().any(|one| one.path == first.path);
    let is_usable = cells.supports(near) && (field == 0 || bounds.restricts() || is_asked_for());
    is_usable.then(|| NearScan {
        index,
        cells,
        bounds,
        field,
        path: path.clone(),
        near: near.clone(),
        filter: None,
    })
}

/// Returns the number of other fields that are restricted.
fn restricted(scan: &NearScan) -> usize {
    let fields = scan.bounds.fields.iter().enumerate();
    fields
        .filter(|(number, intervals)| *number != scan.field && !intervals.is_full())
        .count()
}

/// The error if no index has the path. Applications look for the field in the message, in order to
/// create the index. The message is the one of MongoDB for a filter that consists of this `$near`.
fn no_index(path: &Path, near: &Near, source: &dyn Source) -> Error {
    let namespace = source.namespace();
    // MongoDB prints six digits. This is the largest number.
    let distance = if near.max.is_finite() {
        near.max.to_string()
    } else {
        "1.79769e+308".to_owned()
    };
    let on_sphere = i32::from(near.unit == DistanceUnit::Radians);
    let message = format!(
        "error processing query: ns={namespace}Tree: GEONEAR  field={path} maxdist={distance} \
         isNearSphere={on_sphere}\nSort: {{}}\nProj: {{}}\n planner returned error :: caused by :: \
         unable to find index for $geoNear query"
    );
    Error::new(NO_PLANS, message)
}
