//! Records by their points and shapes: fields of the type `geo`.

use std::sync::Arc;

use windrow_document::Document;
use windrow_geo::{KeyRange as CellRange, SearchArea, SearchOrigin, ShapeQuery, ShapeRelation};
use windrow_index::search::{POINT, SHAPE, SearchDefinition, append_cell_key, prefix};
use windrow_mql::interrupt::count;
use windrow_search::{END, IdSet, Ids, RecordValue};

use super::IndexSource;
use crate::Error;
use crate::bounds::interval::after;
use crate::key_range::KeyRange;
use crate::operators::PrefetchedDocuments;
use crate::source::RecordId;

/// The records with a point in an area.
#[derive(Clone, Debug, PartialEq)]
pub struct AreaFilter {
    /// The paths of the points.
    pub paths: Vec<String>,
    /// The area.
    pub area: SearchArea,
}

/// The records whose shapes have a relation to another one. The shapes of one path count as one
/// shape.
#[derive(Clone, Debug)]
pub struct ShapeFilter {
    /// The paths of the shapes.
    pub paths: Vec<String>,
    /// The relation and the other shape.
    pub query: ShapeQuery,
    /// The definition of the index, which says what is a shape in a document.
    pub definition: Arc<SearchDefinition>,
}

impl PartialEq for ShapeFilter {
    fn eq(&self, other: &ShapeFilter) -> bool {
        self.paths == other.paths && self.query == other.query
    }
}

/// All cells of the sphere.
const ALL_CELLS: CellRange = CellRange {
    first: 0,
    last: u64::MAX,
};

/// Returns the keys of a kind with cells in a range.
fn keys_of(path: &str, kind: u8, cells: CellRange) -> KeyRange {
    let key = |cell| {
        let mut key = Vec::new();
        append_cell_key(&mut key, path, kind, cell);
        key
    };
    KeyRange {
        from: key(cells.first),
        to: after(&key(cells.last)),
    }
}

/// Returns the cell of a key of a path.
fn cell_of(path: &str) -> impl Fn(&[u8]) -> Option<u64> {
    let cell_at = prefix(path, POINT).len();
    move |key| {
        let cell = key.get(cell_at..)?.first_chunk()?;
        Some(u64::from_be_bytes(*cell))
    }
}

impl IndexSource<'_> {
    /// Returns the records with a point in an area. No document is read.
    pub(super) fn records_in_area(&self, filter: &AreaFilter) -> Result<IdSet, Error> {
        let mut found = IdSet::default();
        let cells = filter.area.key_ranges();
        for path in &filter.paths {
            let cell = cell_of(path);
            let ranges = cells.iter().map(|range| keys_of(path, POINT, *range));
            let ranges: Vec<KeyRange> = ranges.collect();
            let is_in = |key: &[u8]| cell(key).is_some_and(|cell| filter.area.contains(cell));
            found.extend_from(&self.records_of_keys(&ranges, is_in)?);
        }
        Ok(found)
    }

    /// Returns the distances of points, with the ids of their records.
    pub(super) fn distances(
        &self,
        paths: &[String],
        origin: SearchOrigin,
    ) -> Result<Vec<RecordValue>, Error> {
        let (mut found, distance) = (Vec::new(), origin.distances());
        let cells = origin.key_ranges(self.distance_max);
        for path in paths {
            let cell = cell_of(path);
            let near = |key: &[u8]| {
                let distance = cell(key).map(&distance)?;
                (distance <= self.distance_max).then_some(distance)
            };
            for range in &cells {
                self.add_values(&keys_of(path, POINT, *range), near, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Returns the records whose shapes have a relation to another one. The documents with shapes
    /// near it are read.
    pub(super) fn related_records(&self, filter: &ShapeFilter) -> Result<IdSet, Error> {
        let mut found = IdSet::default();
        let cells = filter.query.key_ranges();
        for path in &filter.paths {
            let near = self.records_with_shapes(path, &cells)?;
            // What is far away is disjoint.
            let mut related = match filter.query.relation() {
                ShapeRelation::Disjoint => self.records_with_shapes(path, &[ALL_CELLS])?,
                _ => IdSet::default(),
            };
            self.each_document(near, |id, document| {
                if filter.matches(document, path)? {
                    related.insert(id.0);
                } else {
                    related.remove(id.0);
                }
                Ok(())
            })?;
            found.extend_from(&related);
        }
        Ok(found)
    }

    /// Returns the records with points or other shapes in some cells.
    fn records_with_shapes(&self, path: &str, cells: &[CellRange]) -> Result<IdSet, Error> {
        let of_kind = |kind| cells.iter().map(move |range| keys_of(path, kind, *range));
        let ranges: Vec<KeyRange> = of_kind(POINT).chain(of_kind(SHAPE)).collect();
        self.records_within(&ranges)
    }

    /// Visits the documents of records.
    fn each_document(
        &self,
        records: IdSet,
        mut visit: impl FnMut(RecordId, Document<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut ids = Vec::new();
        let mut cursor = records.into_ids();
        while cursor.id() != END {
            ids.push(RecordId(cursor.id()));
            cursor.next();
        }
        let mut documents = PrefetchedDocuments::default();
        let mut rest = ids.as_slice();
        while let Some((id, behind)) = rest.split_first() {
            self.interrupt.check()?;
            if let Some(bytes) = documents.next(self.source, rest.iter().copied())? {
                visit(*id, Document::from_validated(&bytes))?;
            }
            rest = behind;
        }
        Ok(())
    }
}

impl ShapeFilter {
    fn matches(&self, document: Document<'_>, path: &str) -> Result<bool, Error> {
        let shapes = self.definition.shapes_at(document, path, &count);
        let matches = shapes.and_then(|shapes| self.query.matches(&shapes, &count));
        Ok(matches.map_err(windrow_mql::Error::from)?)
    }
}
