//! The entries of a geospatial index: the Cartesian product of the cells of each geospatial field
//! and the values of the other fields.
//!
//! A document without a shape has no entries, except in an index of version 1. In a `2dsphere`
//! index, the value at the end of a path is one shape, also if it is a pair of numbers. In a `2d`
//! index it may also be a list of points.

use windrow_document::path::Path;
use windrow_document::{Document, Value, ValueRef};
use windrow_geo::{Cells, Shape};
use windrow_mql::{Error, interrupt};

use crate::definition::{Definition, GeoDefinition, KeyField, KeyKind};
use crate::follow::{State, enter_element, follow};
use crate::output::{ENTRIES_PER_DOCUMENT_MAX, Scratch};
use crate::sink::Emit;

const NO_SHAPE: i32 = 16755;
const NO_PAIR: i32 = 13026;
const ONE_ELEMENT: i32 = 13068;
const NO_LOCATION: i32 = 16804;

/// The key values of one field.
#[derive(Default)]
struct Column {
    values: Vec<Value>,
    /// `true` if the field is geospatial and has a shape.
    has_shape: bool,
    /// The bit set of the path components that met arrays. Several cells of one shape count as an
    /// array at the last component, since two conditions may match different cells.
    arrays: u32,
}

/// The values at a path, and the bit set of the path components that met arrays.
#[derive(Default)]
struct PathValues<'d> {
    values: Vec<ValueRef<'d>>,
    arrays: u32,
}

impl Definition {
    /// Returns `true` for a `2dsphere` or `2d` index.
    pub fn is_geo(&self) -> bool {
        self.geo.is_some()
    }

    /// Emits the entries of a document. Fails with MongoDB's code if a value is not a valid shape
    /// or point, and with code 2 if there are more than [`ENTRIES_PER_DOCUMENT_MAX`] entries.
    pub(crate) fn geo_entries(
        &self,
        geo: &GeoDefinition,
        document: Document<'_>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        let columns = self
            .fields
            .iter()
            .map(|field| column(geo, field, document))
            .collect::<Result<Vec<Column>, Error>>()?;
        let holds_all = geo.version == 1;
        if !holds_all && !columns.iter().any(|column| column.has_shape) {
            return Ok(());
        }
        let counts = columns.iter().map(|column| column.values.len());
        let count = counts.fold(1usize, usize::saturating_mul);
        if count > ENTRIES_PER_DOCUMENT_MAX {
            return Err(self.too_many(count));
        }
        for (number, column) in columns.iter().enumerate() {
            let met = (0..32).filter(|part| column.arrays & (1 << part) != 0);
            met.for_each(|part| scratch.marks.record(number, part));
        }
        self.emit_product(&columns, &mut Vec::new(), scratch, emit);
        Ok(())
    }

    /// Emits an entry for each combination of `chosen` and one value of each column.
    fn emit_product<'c>(
        &self,
        columns: &'c [Column],
        chosen: &mut Vec<&'c Value>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) {
        if let Some((first, rest)) = columns.split_first() {
            for value in &first.values {
                chosen.push(value);
                self.emit_product(rest, chosen, scratch, emit);
                chosen.pop();
            }
            return;
        }
        let Scratch { key, shape, .. } = scratch;
        key.clear();
        shape.clear();
        let mut ordinal = 0;
        for (value, field) in chosen.iter().zip(&self.fields) {
            let descends = field.kind == KeyKind::Descending;
            ordinal = self.append_part(key, shape, ordinal, value.as_ref(), descends);
        }
        emit(key, shape);
    }
}

/// Returns the key values of a field. A field without values has the value null.
fn column(geo: &GeoDefinition, field: &KeyField, document: Document<'_>) -> Result<Column, Error> {
    let mut found = PathValues::default();
    let start = State::At(ValueRef::Document(document), 0);
    let expands = !field.kind.is_geo();
    collect(start, &field.path, expands, &mut found)?;
    let mut column = Column {
        values: match field.kind {
            KeyKind::Sphere => sphere(geo, &found.values, document)?,
            KeyKind::Plane => plane(geo, &found.values)?,
            _ => found.values.iter().map(|value| value.to_value()).collect(),
        },
        has_shape: false,
        arrays: found.arrays,
    };
    column.has_shape = field.kind.is_geo() && !column.values.is_empty();
    if column.has_shape && column.values.len() > 1 {
        column.arrays |= bit(field.path.components().len());
    }
    if column.values.is_empty() {
        column.values.push(Value::Null);
    }
    Ok(column)
}

/// Returns the bit of the path component before `part`.
fn bit(part: usize) -> u32 {
    1 << part.saturating_sub(1).min(31)
}

/// Collects the values at a path. An array at the end is expanded if `expands` is set, and one
/// value otherwise.
fn collect<'d>(
    state: State<'d>,
    path: &Path,
    expands: bool,
    found: &mut PathValues<'d>,
) -> Result<(), Error> {
    let (value, part) = match follow(state, path)? {
        State::Done(value) => {
            found.values.push(value);
            return Ok(());
        }
        // A missing plain field is null. A null in a geospatial field is skipped.
        State::Missing => {
            found.values.push(ValueRef::Null);
            return Ok(());
        }
        State::At(value, part) => (value, part),
    };
    let ValueRef::Array(array) = value else {
        return Ok(());
    };
    let is_end = part >= path.components().len();
    if is_end && !expands {
        found.values.push(value);
        return Ok(());
    }
    found.arrays |= bit(part);
    if array.is_empty() {
        found.values.push(if is_end {
            ValueRef::Undefined
        } else {
            ValueRef::Null
        });
    }
    for element in array {
        let inner = enter_element(&State::At(value, part), element, path);
        match inner {
            // At the end of the path, an array within an array is one value.
            State::Done(value) => found.values.push(value),
            inner => collect(inner, path, expands, found)?,
        }
    }
    Ok(())
}

/// Returns the cells of the shapes. Null, undefined, and empty documents and arrays are skipped.
/// Fails with code 16755 if another value is not a shape.
fn sphere(
    geo: &GeoDefinition,
    found: &[ValueRef<'_>],
    document: Document<'_>,
) -> Result<Vec<Value>, Error> {
    let is_nothing = |value: &ValueRef<'_>| match value {
        ValueRef::Null | ValueRef::Undefined => true,
        ValueRef::Document(inner) => inner.is_empty(),
        ValueRef::Array(inner) => inner.is_empty(),
        _ => false,
    };
    let refused = |reason: &str| {
        let message = format!("Can't extract geo keys: {document} {reason}");
        Error::new(NO_SHAPE, message)
    };
    let mut keys = Vec::new();
    for value in found.iter().filter(|value| !is_nothing(value)) {
        let shape = match Shape::parse_with(*value, &interrupt::count) {
            Ok(shape) => shape,
            Err(error) => return Err(refused(&interrupt::data_error(error.into())?.message)),
        };
        if geo.version == 1 && !shape.is_single() {
            return Err(refused("an index of version 1 holds single shapes only"));
        }
        let cells = geo.cells.keys(&shape);
        keys.extend(cells.map_err(|error| refused(&error.message))?);
    }
    Ok(in_order(&geo.cells, keys))
}

/// Returns the squares of the points. Empty documents and arrays are skipped, as is every value
/// that is neither. Fails with code 13026, 13027, 13068 or 16804 if another value is neither a
/// point nor a list of points.
fn plane(geo: &GeoDefinition, found: &[ValueRef<'_>]) -> Result<Vec<Value>, Error> {
    let mut keys = Vec::new();
    for value in found {
        let Some(fields) = fields_of(*value) else {
            continue;
        };
        match fields.first() {
            None => {}
            Some((_, first)) if first.is_number() => keys.extend(square(geo, *value)?),
            // A list of points. The names of the fields are irrelevant.
            Some(_) => {
                for (_, point) in fields {
                    let inner = fields_of(point).ok_or_else(no_location)?;
                    if !inner.is_empty() {
                        keys.extend(square(geo, point)?);
                    }
                }
            }
        }
    }
    Ok(in_order(&geo.cells, keys))
}

/// Returns a document, or an array as a document. Returns `None` for other values.
fn fields_of(value: ValueRef<'_>) -> Option<Document<'_>> {
    match value {
        ValueRef::Document(inner) => Some(inner),
        ValueRef::Array(inner) => Some(inner.as_document()),
        _ => None,
    }
}

fn no_location() -> Error {
    Error::new(
        NO_LOCATION,
        "location object expected, location array not in correct format",
    )
}

/// Returns the square of a point.
fn square(geo: &GeoDefinition, value: ValueRef<'_>) -> Result<Vec<u64>, Error> {
    if fields_of(value).is_some_and(|fields| fields.count() == 1) {
        return Err(Error::new(ONE_ELEMENT, "geo field only has 1 element"));
    }
    let shape = Shape::parse_pair(value).map_err(|error| {
        let message = format!(
            "geo values must be 'legacy coordinate pairs' for 2d indexes: {}",
            error.message
        );
        Error::new(NO_PAIR, message)
    })?;
    Ok(geo.cells.keys(&shape)?)
}

/// Returns the distinct keys in ascending order as values.
fn in_order(cells: &Cells, mut keys: Vec<u64>) -> Vec<Value> {
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| cells.value(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_mark;
    use windrow_document::{DocumentBuf, doc, key};

    /// Compares the number of entries, and whether there are marks, with `expected`.
    fn check(key: DocumentBuf, document: DocumentBuf, expected: Result<(usize, bool), i32>) {
        let specification = doc! { "key": key, "name": "g" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let (mut count, mut is_marked) = (0, false);
        let result = definition.entries(
            document.as_document(),
            &mut Scratch::default(),
            &mut |bytes, shape| {
                if is_mark(bytes) {
                    is_marked = true;
                    return;
                }
                let mut reader = key::KeyReader::new(bytes, shape);
                for field in &definition.fields {
                    let descends = field.kind == KeyKind::Descending;
                    assert!(reader.value(descends).is_some());
                }
                assert!(reader.is_at_end());
                count += 1;
            },
        );
        let found = result.map(|()| (count, is_marked));
        assert_eq!(found.map_err(|error| error.code), expected, "{document}");
    }

    fn point(x: i32, y: i32) -> DocumentBuf {
        doc! { "type": "Point", "coordinates": [x, y] }
    }

    #[test]
    fn a_2dsphere_index_has_the_cells_of_a_shape() {
        let check = |document, expected| check(doc! { "p": "2dsphere" }, document, expected);
        check(doc! { "p": (point(1, 2)) }, Ok((1, false)));
        check(doc! { "p": [1, 2] }, Ok((1, false)));
        check(doc! { "p": [1, 2, 3] }, Ok((1, false)));
        check(doc! { "q": 1 }, Ok((0, false)));
        check(doc! { "p": null }, Ok((0, false)));
        check(doc! { "p": {} }, Ok((0, false)));
        check(doc! { "p": [] }, Ok((0, false)));
        check(doc! { "p": 5 }, Err(NO_SHAPE));
        check(doc! { "p": [1] }, Err(NO_SHAPE));
        check(doc! { "p": ["1", "2"] }, Err(NO_SHAPE));
        check(doc! { "p": [200, 100] }, Err(NO_SHAPE));
        check(doc! { "p": (point(181, 0)) }, Err(NO_SHAPE));
        check(doc! { "p": [(point(1, 2)), (point(3, 4))] }, Err(NO_SHAPE));
        let line = doc! { "type": "LineString", "coordinates": [[0, 0], [40, 40]] };
        check(doc! { "p": line }, Ok((8, true)));
    }

    #[test]
    fn other_fields_multiply_the_entries() {
        let both = || doc! { "a": 1, "b.p": "2dsphere" };
        let place = || doc! { "p": (point(1, 2)) };
        check(both(), doc! { "a": 1, "b": (place()) }, Ok((1, false)));
        check(both(), doc! { "b": (place()) }, Ok((1, false)));
        check(both(), doc! { "a": 1 }, Ok((0, false)));
        check(
            both(),
            doc! { "a": [1, 2, 3], "b": (place()) },
            Ok((3, true)),
        );
        let places = doc! { "a": [1, 2], "b": [(place()), { "p": (point(3, 4)) }, { "c": 1 }] };
        check(both(), places, Ok((4, true)));
        let around = || doc! { "a.k": 1, "p": "2dsphere" };
        let some = doc! { "a": [{ "k": 1 }, {}, 5], "p": (point(1, 2)) };
        check(around(), some, Ok((3, true)));
        check(
            around(),
            doc! { "a": [], "p": (point(1, 2)) },
            Ok((1, true)),
        );
        let two = || doc! { "p": "2dsphere", "q": "2dsphere" };
        check(two(), doc! { "q": (point(1, 2)) }, Ok((1, false)));
        check(two(), doc! {}, Ok((0, false)));
    }

    #[test]
    fn a_2d_index_accepts_points_and_lists_of_points() {
        let check = |document, expected| check(doc! { "p": "2d", "k": 1 }, document, expected);
        check(doc! { "p": [1, 2] }, Ok((1, false)));
        let named = doc! { "lng": 1, "lat": 2, "name": "x" };
        check(doc! { "p": named }, Ok((1, false)));
        check(doc! { "p": [[1, 2], [3, 4]], "k": [5, 6] }, Ok((4, true)));
        check(doc! { "p": [{ "x": 1, "y": 2 }, {}] }, Ok((1, false)));
        check(doc! { "p": { "a": [1, 2], "b": [3, 4] } }, Ok((2, true)));
        check(doc! { "p": {} }, Ok((0, false)));
        check(doc! { "p": [[1, 2], [3]] }, Err(ONE_ELEMENT));
        check(doc! { "p": [[1, 2], 5] }, Err(NO_LOCATION));
        check(doc! { "p": 5 }, Ok((0, false)));
        check(doc! { "p": [] }, Ok((0, false)));
        check(doc! { "k": 5 }, Ok((0, false)));
        check(doc! { "p": [1] }, Err(ONE_ELEMENT));
        check(doc! { "p": [1, "x"] }, Err(NO_PAIR));
        check(doc! { "p": (point(1, 2)) }, Err(NO_LOCATION));
        check(doc! { "p": ["x", "y"] }, Err(NO_LOCATION));
        check(doc! { "p": [200, 100] }, Err(13027));
    }
}
