//! `$unwind`: a row for each element of an array.

use windrow_document::path::Path;
use windrow_document::{DocumentBuilder, Value, ValueRef};
use windrow_interrupt::Interrupt;
use windrow_mql::FieldLineage;
use windrow_mql::expression::Dependencies;

use super::operand;
use super::path_values::with_value;
use crate::Error;
use crate::operators::{BoxOperator, Counters, Operator, Part, counted, parts_over};
use crate::row::{Content, Pace, Row};

/// A parsed `$unwind`.
#[derive(Clone, Debug)]
pub struct Unwind {
    pub path: Path,
    /// The path at which the array position is written.
    index: Option<Path>,
    keeps_empty: bool,
    /// The names of the fields that later stages read, sorted. `None`: all fields. Other fields are
    /// not copied to the rows of the elements.
    read_later: Option<Vec<String>>,
}

fn wrong<T>(code: i32, message: &str) -> Result<T, Error> {
    Err(Error::new(code, message))
}

/// A row that is being unwound, with its remaining elements.
struct UnwoundRow {
    row: Row,
    /// The position of the next element in the array.
    position: usize,
    rest: std::vec::IntoIter<Value>,
}

pub(super) struct UnwindOperator {
    unwind: Unwind,
    input: BoxOperator,
    current: Option<UnwoundRow>,
    counters: Counters,
    pace: Pace,
}

impl UnwindOperator {
    pub fn new(unwind: Unwind, input: BoxOperator) -> UnwindOperator {
        UnwindOperator {
            unwind,
            input,
            current: None,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }

    /// Returns the row of the next element.
    fn next_element(&mut self) -> Option<Row> {
        let current = self.current.as_mut()?;
        let value = current.rest.next()?;
        let content = self
            .unwind
            .element(&current.row, value.as_ref(), current.position);
        current.position += 1;
        Some(current.row.clone().with(content))
    }

    /// Returns the only row for a row without elements, or `None` if it is dropped.
    fn without_elements(&self, row: Row) -> Option<Row> {
        match self.unwind.path.get(row.document()) {
            Some(ValueRef::Array(array)) if array.is_empty() => {
                let document = with_value(row.document(), &self.unwind.path, None);
                self.unwind.empty_row(row.with(document))
            }
            None => self.unwind.empty_row(row),
            Some(value) if value.is_nullish() => self.unwind.empty_row(row),
            Some(_) => Some(self.unwind.with_null_index(row)),
        }
    }
}

impl Unwind {
    /// Parses a path, or `{path, includeArrayIndex, preserveNullAndEmptyArrays}`. Fails with 15981
    /// for other types, with 28808 to 28812, 28818 or 28822 for invalid options and paths.
    pub(super) fn parse(operand: ValueRef<'_>) -> Result<Unwind, Error> {
        let (mut path, mut index, mut keeps_empty) = (None, None, false);
        match operand {
            ValueRef::String(text) => path = Some(text),
            ValueRef::Document(document) => {
                for (name, value) in document {
                    match (name, value) {
                        ("path", ValueRef::String(text)) => path = Some(text),
                        ("path", _) => {
                            return wrong(28808, "expected a string as the path for $unwind stage");
                        }
                        ("preserveNullAndEmptyArrays", ValueRef::Bool(flag)) => keeps_empty = flag,
                        ("preserveNullAndEmptyArrays", _) => {
                            return wrong(
                                28809,
                                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage",
                            );
                        }
                        ("includeArrayIndex", ValueRef::String(text)) if !text.is_empty() => {
                            index = Some(text);
                        }
                        ("includeArrayIndex", _) => {
                            return wrong(
                                28810,
                                "expected a non-empty string for the includeArrayIndex option to $unwind stage",
                            );
                        }
                        _ => return wrong(28811, "unrecognized option to $unwind stage"),
                    }
                }
            }
            _ => {
                return wrong(
                    15981,
                    "expected either a string or an object as specification for $unwind stage",
                );
            }
        }
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return wrong(28812, "no path specified to $unwind stage");
        };
        let Some(path) = path.strip_prefix('$') else {
            return wrong(
                28818,
                "path option to $unwind stage should be prefixed with a '$'",
            );
        };
        if index.is_some_and(|index| index.starts_with('$')) {
            return wrong(
                28822,
                "includeArrayIndex option to $unwind stage should not be prefixed with a '$'",
            );
        }
        let index = index.map(operand::check_path).transpose()?;
        Ok(Unwind {
            path: operand::check_path(path)?,
            index,
            keeps_empty,
            read_later: None,
        })
    }

    /// Sets the paths that later stages read. Other top-level fields are removed once for each
    /// input row. `None` keeps all fields.
    pub(super) fn keep_only(&mut self, paths: Option<Vec<Path>>) {
        let name = |path: &Path| {
            path.components()
                .first()
                .map(|first| first.name().to_owned())
        };
        self.read_later = paths.map(|paths| {
            let mut names: Vec<String> = paths.iter().filter_map(name).collect();
            names.sort_unstable();
            names
        });
    }

    /// Returns the row from which the rows of the elements are made: the array is replaced by null,
    /// so that it is not copied with each of them, and fields that no later stage reads are
    /// removed.
    fn base(&self, row: Row) -> Row {
        let emptied = with_value(row.document(), &self.path, Some(ValueRef::Null));
        // The row of each element begins as a clone of this one.
        self.pruned(row.with(emptied)).into_shared()
    }

    /// Removes the fields that no later stage reads.
    fn pruned(&self, row: Row) -> Row {
        let Some(names) = &self.read_later else {
            return row;
        };
        let is_read = |name: &[u8]| {
            let found = names.binary_search_by(|one| one.as_bytes().cmp(name));
            found.is_ok()
        };
        let mut builder = DocumentBuilder::new();
        let mut elements = row.document().elements();
        while let Some(element) = elements.next_raw() {
            if is_read(element.name) {
                builder.append_element(&element);
            }
        }
        let pruned_document = builder.finish();
        if pruned_document.as_bytes().len() < row.content.as_bytes().len() {
            row.with(pruned_document)
        } else {
            row
        }
    }

    pub(super) fn dependencies(&self) -> Dependencies {
        let mut found = Dependencies::default();
        found.add(&self.path.to_string());
        found
    }

    /// See [`StageKind::lineage`](super::stage::StageKind::lineage).
    pub(super) fn lineage(&self, path: &Path) -> Option<FieldLineage> {
        let beside_index = match &self.index {
            Some(index) => FieldLineage::outside(path, index),
            None => Some(FieldLineage::unchanged(path)),
        };
        beside_index.filter(|_| !self.path.overlaps(path))
    }

    /// Returns the row for a row without elements, or `None` if it is dropped.
    pub(super) fn empty_row(&self, row: Row) -> Option<Row> {
        self.keeps_empty.then(|| self.with_null_index(row))
    }

    fn with_null_index(&self, row: Row) -> Row {
        match &self.index {
            Some(path) => {
                let document = with_value(row.document(), path, Some(ValueRef::Null));
                row.with(document)
            }
            None => row,
        }
    }

    pub(super) fn element(&self, row: &Row, value: ValueRef<'_>, position: usize) -> Content {
        let document = with_value(row.document(), &self.path, Some(value));
        let position = ValueRef::Int64(position as i64);
        match &self.index {
            Some(path) => with_value(document.as_document(), path, Some(position)).into(),
            None => document.into(),
        }
    }
}

impl Operator for UnwindOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        loop {
            // A document can have very many elements, and the elements of several arrays multiply.
            self.pace.step(interrupt)?;
            if let Some(row) = self.next_element() {
                self.counters.returned += 1;
                return Ok(Some(row));
            }
            self.current = None;
            let Some(row) = self.input.next(interrupt)? else {
                return Ok(None);
            };
            match self.unwind.path.get(row.document()) {
                Some(ValueRef::Array(array)) if !array.is_empty() => {
                    let rest: Vec<Value> = array.iter().map(ValueRef::to_value).collect();
                    self.current = Some(UnwoundRow {
                        row: self.unwind.base(row),
                        position: 0,
                        rest: rest.into_iter(),
                    });
                }
                _ => {
                    if let Some(row) = self.without_elements(row) {
                        self.counters.returned += 1;
                        return Ok(Some(row));
                    }
                }
            }
        }
    }

    counted!(counters, input);

    fn parts(&self) -> Result<Vec<Part>, Error> {
        let unwind = self.unwind.clone();
        parts_over(&self.input, move |input| {
            Box::new(UnwindOperator::new(unwind.clone(), input))
        })
    }

    fn absorb(&mut self, counts: &[Counters]) {
        self.input.absorb(self.counters.absorb(counts));
    }
}
