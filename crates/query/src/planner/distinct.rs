//! Reads the distinct values of a path from the keys of an index. Of the entries with the same
//! value, one is read.

use windrow_document::path::Path;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_index::Definition;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;

use super::access_path::PlanningContext;
use super::hint;
use crate::Error;
use crate::bounds::leaf::Certainty;
use crate::bounds::range::ScanRanges;
use crate::bounds::{IndexBounds, parts_with_arrays};
use crate::find::Find;
use crate::plan::{IndexScan, KeyOutput, Plan, ProjectionKind};
use crate::source::{Direction, Source, SourceIndex};

/// Returns a plan that reads only keys. `None` if the query does not request the values of a path,
/// or if no index has the values and decides the filter. Like in MongoDB, a missing field counts as
/// null. Fails if no index matches the hint.
pub fn plan_by_keys(find: &Find, source: &dyn Source) -> Result<Option<Plan>, Error> {
    let is_name = |path: &&Path| path.components().iter().all(|part| part.index().is_none());
    let Some(path) = find.distinct.as_ref().filter(is_name) else {
        return Ok(None);
    };
    let hinted = hint::index(find.hint.as_ref(), source)?;
    let may_use = |number: usize| hinted.as_ref().is_none_or(|index| index.number == number);
    let context = PlanningContext::new(find.filter.root(), find.filter.collation_shared(), source);
    let mut found: Option<ValueScan> = None;
    for (number, definition) in source.indexes().into_iter().enumerate() {
        let Some(field) = value_field(&definition, path).filter(|_| may_use(number)) else {
            continue;
        };
        // With fewer fields before it, fewer entries have the same prefix.
        if found.as_ref().is_some_and(|best| best.field <= field) {
            continue;
        }
        let index = SourceIndex {
            number,
            multikey: source.multikey(number)?,
            definition,
        };
        if let Some(scan) = scan(index, field, &context, find) {
            found = Some(ValueScan { field, scan });
        }
    }
    Ok(found.map(|found| projected(path, found.scan)))
}

/// A scan that reads the values of a path.
struct ValueScan {
    /// The position of the path in the fields of the index.
    field: usize,
    scan: IndexScan,
}

/// Returns the position of the path in the index, if the index keys contain the original values.
fn value_field(definition: &Definition, path: &Path) -> Option<usize> {
    let is_ordinary = !definition.is_text() && !definition.is_wildcard() && !definition.clustered;
    let has_values = is_ordinary && definition.collation.is_none();
    let mut fields = definition.fields.iter();
    let field = fields.position(|field| field.path == *path && field.kind.is_plain());
    field.filter(|_| has_values && !definition.hidden)
}

/// Returns a scan of the index, if it reads exactly what matches. A hinted index is used even if it
/// does not contain all documents.
fn scan(
    index: SourceIndex,
    field: usize,
    context: &PlanningContext<'_>,
    find: &Find,
) -> Option<IndexScan> {
    let bounds = IndexBounds::new(&index, &context.predicates);
    let ranges = ScanRanges::new(&index.definition, &bounds);
    let is_bounded = field == 0 || bounds.restricts();
    let decides_filter = bounds.certainty == Certainty::Exact && ranges.is_plain();
    // A collation makes values equal that have different keys.
    let is_binary = find.filter.collation().is_none();
    let has_all = context.has_all(&index) || find.hint.is_some() && !index.definition.is_geo();
    let is_exact = is_binary && decides_filter && has_all && has_one(&index, field, &bounds);
    (is_bounded && is_exact).then_some(IndexScan {
        index,
        direction: Direction::Forward,
        bounds,
        range: None,
        filter: None,
        output: KeyOutput::Field(field),
        distinct_prefix: Some(field),
    })
}

/// Returns `true` if each document has a single value in the fields up to `field` and in all
/// restricted fields. If a later field contains an array, a document has several entries with the
/// same prefix. One of them is read.
fn has_one(index: &SourceIndex, field: usize, bounds: &IndexBounds) -> bool {
    let has_arrays = |number: usize| parts_with_arrays(index, number) != 0;
    let mut fields = bounds.fields.iter().enumerate();
    fields.all(|(number, bounds)| number > field && bounds.is_full() || !has_arrays(number))
}

/// The scan as MongoDB shows it: below a projection to the path.
fn projected(path: &Path, scan: IndexScan) -> Plan {
    let name = path.to_string();
    let mut projection = DocumentBuf::new();
    if path
        .components()
        .first()
        .is_none_or(|first| first.name() != "_id")
    {
        projection.push("_id", ValueRef::Int32(0));
    }
    projection.push(&name, ValueRef::Int32(1));
    let input = Plan::IndexScan(scan);
    // Some field names are not allowed in projections.
    match Projection::parse(projection.as_document(), &Filter::all()) {
        Ok(projection) => Plan::Project {
            kind: ProjectionKind::Covered,
            projection,
            sort: None,
            input: Box::new(input),
        },
        Err(_) => input,
    }
}
