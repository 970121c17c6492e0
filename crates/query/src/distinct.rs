//! `distinct`.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_document::{Collation, Document, Value, ValueRef, key};

use windrow_index::Definition;
use windrow_mql::filter::Filter;

use crate::Error;
use crate::aggregate::visit;
use crate::bounds::interval::after;
use crate::bounds::leaf::Certainty;
use crate::bounds::range::ScanRanges;
use crate::bounds::{IndexBounds, has_all, predicates};
use crate::cursor::Cursor;
use crate::find::{Find, Hint};
use crate::operators::Operator;
use crate::row::{Interrupt, Pace};
use crate::source::{Direction, EntryCursor, RecordId, Source, SourceIndex};

/// The parts of a `distinct`.
#[derive(Clone, Debug)]
pub struct Distinct {
    pub key: Path,
    pub filter: Filter,
    pub hint: Option<Hint>,
}

/// The sum of all values is limited: they are one reply.
const VALUES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// About how large the reply is.
#[derive(Default)]
struct Size(usize);

impl Size {
    /// Counts a value by the bytes of its key.
    fn grow(&mut self, key_bytes: usize) -> Result<(), Error> {
        self.0 += key_bytes + 8;
        match self.0 <= VALUES_BYTES_MAX {
            true => Ok(()),
            false => Err(Error::new(17217, "distinct too big, 16mb cap")),
        }
    }
}

/// Values, each once, in order.
#[derive(Default)]
struct Values {
    values: BTreeMap<Vec<u8>, Value>,
    scratch: Vec<u8>,
    size: Size,
    /// How strings are compared; None: by their bytes.
    collation: Option<Arc<Collation>>,
}

impl Values {
    fn add(&mut self, value: ValueRef<'_>) -> Result<(), Error> {
        self.scratch.clear();
        key::append_collated(&mut self.scratch, value, false, self.collation.as_deref());
        if self.values.contains_key(&self.scratch) {
            return Ok(());
        }
        self.size.grow(self.scratch.len())?;
        self.values.insert(self.scratch.clone(), value.to_value());
        Ok(())
    }

    fn into_vec(self) -> Vec<Value> {
        self.values.into_values().collect()
    }

    fn add_all(&mut self, document: Document<'_>, path: &Path) -> Result<(), Error> {
        let mut result = Ok(());
        visit(
            ValueRef::Document(document),
            path.components(),
            &mut |value| {
                if result.is_ok() {
                    result = self.add(value);
                }
            },
        );
        result
    }
}

/// Whether the index has nothing but the values of its fields.
fn holds_each_once(definition: &Definition) -> bool {
    !definition.is_text() && !definition.hidden && !definition.is_wildcard()
}

impl Distinct {
    /// The values at the key, those in arrays each by itself, in MongoDB's order. Error 17217 for more
    /// than 16 MB.
    /// `note` sees what has read the documents, where an index alone did not have the values.
    pub fn run(
        &self,
        source: &Arc<dyn Source>,
        interrupt: &dyn Interrupt,
        note: impl FnOnce(&dyn Operator),
    ) -> Result<Vec<Value>, Error> {
        let Some(scan) = self.index(&**source)? else {
            let mut rows = self.find().open(source)?;
            let values = self.collect(&mut rows, interrupt);
            note(rows.operator());
            return values;
        };
        scan.values(&**source, interrupt)
    }

    /// The values of rows that match already, as those of a view's pipeline.
    pub fn collect(
        &self,
        rows: &mut Cursor,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<Value>, Error> {
        let mut values = Values {
            collation: self.filter.collation_shared().cloned(),
            ..Values::default()
        };
        while let Some(row) = rows.next_row(interrupt)? {
            values.add_all(row.document(), &self.key)?;
        }
        Ok(values.into_vec())
    }

    /// The query whose documents have the values.
    pub fn find(&self) -> Find {
        Find {
            hint: self.hint.clone(),
            ..Find::of(self.filter.clone())
        }
    }

    /// An index that has the values in its keys, and settles the filter. Like MongoDB's, it shows a
    /// missing field as null.
    fn index(&self, source: &dyn Source) -> Result<Option<KeyScan>, Error> {
        let predicates = predicates(self.filter.root(), self.filter.collation_shared());
        let by_place = self
            .key
            .components()
            .iter()
            .any(|part| part.index().is_some());
        let is_ordered = self.filter.text().is_some() || self.filter.near().is_some();
        if self.hint.is_some() || is_ordered || by_place {
            return Ok(None);
        }
        for (number, definition) in source.indexes().into_iter().enumerate() {
            let place = definition
                .fields
                .iter()
                .position(|field| field.path == self.key && field.kind.is_plain());
            let Some(place) = place.filter(|_| holds_each_once(&definition)) else {
                continue;
            };
            let index = SourceIndex {
                number,
                multikey: source.multikey(number)?,
                definition,
            };
            let bounds = IndexBounds::of(&index, &predicates);
            let ranges = ScanRanges::of(&index.definition, &bounds);
            let leads = place == 0 || bounds.restricts();
            let is_plain =
                index.definition.collation.is_none() && self.filter.collation().is_none();
            let settles = bounds.certainty == Certainty::Exact && ranges.is_plain();
            let usable = is_plain && leads && settles && !index.multikey.any();
            if usable && has_all(&index, self.filter.root(), &predicates) {
                return Ok(Some(KeyScan {
                    number,
                    place,
                    ranges,
                    clustered: index.definition.clustered,
                }));
            }
        }
        Ok(None)
    }
}

/// A seek costs about as much as stepping over so many entries.
const STEPS_BEFORE_SEEK: u32 = 4;

/// The entries whose keys have the values at one place.
struct KeyScan {
    number: usize,
    place: usize,
    ranges: ScanRanges,
    /// The index is one that a clustered collection is.
    clustered: bool,
}

impl KeyScan {
    fn values(&self, source: &dyn Source, interrupt: &dyn Interrupt) -> Result<Vec<Value>, Error> {
        if self.place > 0 {
            let mut values = Values::default();
            self.read(source, interrupt, &mut |_, value| {
                values.add(value.as_ref())
            })?;
            return Ok(values.into_vec());
        }
        // They come in the order of the index, each once.
        let (mut values, mut size) = (Vec::new(), Size::default());
        self.read(source, interrupt, &mut |key_bytes, value| {
            values.push(value);
            size.grow(key_bytes)
        })?;
        if self.ranges.descending.first() == Some(&true) {
            values.reverse();
        }
        Ok(values)
    }

    /// Gives each value, with the bytes of the key that reach to its end. Entries that have it too are
    /// stepped over; where they are many, the scan seeks behind them, and with the next value does not wait
    /// to see whether it has as many.
    fn read(
        &self,
        source: &dyn Source,
        interrupt: &dyn Interrupt,
        add: &mut dyn FnMut(usize, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        source.note_use(self.number);
        let mut cursor = source.entries(self.number, Direction::Forward)?;
        let mut pace = Pace::default();
        let mut steps_max = STEPS_BEFORE_SEEK;
        // Ranges are in order, and a value may be in several of them.
        let mut behind = Vec::new();
        for (from, to) in &self.ranges.ranges {
            cursor.seek(from.max(&behind), RecordId(0))?;
            let mut steps = 0;
            while cursor.next()? && cursor.key() < to.as_slice() {
                pace.step(interrupt)?;
                if cursor.key() < behind.as_slice() {
                    steps += 1;
                    if steps == steps_max {
                        cursor.seek(&behind, RecordId(0))?;
                    }
                    continue;
                }
                let Some((read_bytes, value)) = self.read_value(&*cursor) else {
                    break;
                };
                behind = after(cursor.key().get(..read_bytes).unwrap_or_default());
                add(read_bytes, value)?;
                steps_max = if steps < steps_max {
                    STEPS_BEFORE_SEEK
                } else {
                    1
                };
                steps = 0;
            }
        }
        Ok(())
    }

    /// The value of the current entry, behind how many bytes of the key reach to its end. None where the
    /// key is damaged.
    fn read_value(&self, cursor: &dyn EntryCursor) -> Option<(usize, Value)> {
        let key_bytes = cursor.key();
        if self.clustered {
            let id = Document::from_validated(cursor.payload()).get("_id")?;
            return Some((key_bytes.len(), id.to_value()));
        }
        let mut reader = key::Reader::new(key_bytes, cursor.payload());
        let mut value = None;
        for descending in self.ranges.descending.iter().take(self.place + 1) {
            value = reader.value(*descending);
        }
        Some((key_bytes.len() - reader.rest().len(), value?))
    }
}
