//! The `distinct` command.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_document::build::value_len;
use windrow_document::path::Path;
use windrow_document::{ArrayBuf, ArrayBuilder, Collation, Document, Value, ValueRef, key};
use windrow_index::KeyKind;
use windrow_interrupt::Interrupt;
use windrow_mql::filter::Filter;

use crate::Error;
use crate::aggregate::visit;
use crate::cursor::{Cursor, PlannedFind};
use crate::find::{Find, Hint};
use crate::plan::{ClusteredScan, Plan};
use crate::source::Direction;

/// The parsed request of a `distinct`.
#[derive(Clone, Debug)]
pub struct Distinct {
    /// The path of the values.
    pub key: Path,
    /// The filter.
    pub filter: Filter,
    /// The index to use.
    pub hint: Option<Hint>,
}

/// The size limit of the values. The reply is one document and has a few other fields.
const VALUES_BYTES_MAX: usize = 16 * 1024 * 1024 - 4096;

/// The size that the values take in the reply.
#[derive(Default)]
struct ReplySize {
    count: usize,
    bytes: usize,
}

impl ReplySize {
    /// Adds a value: its type, its name (the position in the array) and its bytes. Fails with 17217
    /// if the values become too large.
    fn add(&mut self, value: ValueRef<'_>) -> Result<(), Error> {
        let digits = self.count.checked_ilog10().unwrap_or(0) as usize + 1;
        self.bytes += 1 + digits + 1 + value_len(value);
        self.count += 1;
        if self.bytes < VALUES_BYTES_MAX {
            Ok(())
        } else {
            Err(Error::new(17217, "distinct too big, 16mb cap"))
        }
    }
}

/// The distinct values so far.
struct DistinctValues {
    size: ReplySize,
    store: DistinctStore,
}

enum DistinctStore {
    /// The rows return the values in this order, each once.
    Ordered(ArrayBuilder, Direction),
    /// The rows return the values in any order, with repetitions.
    Any(SortedValues),
}

/// Values sorted by their keys.
#[derive(Default)]
struct SortedValues {
    values: BTreeMap<Vec<u8>, Value>,
    key: Vec<u8>,
    /// The collation of strings. `None`: by their bytes.
    collation: Option<Arc<Collation>>,
}

impl SortedValues {
    fn add(&mut self, value: ValueRef<'_>, size: &mut ReplySize) -> Result<(), Error> {
        self.key.clear();
        key::append_with_collation(&mut self.key, value, false, self.collation.as_deref());
        if self.values.contains_key(&self.key) {
            return Ok(());
        }
        size.add(value)?;
        self.values.insert(self.key.clone(), value.to_value());
        Ok(())
    }
}

impl DistinctValues {
    fn new(order: Option<Direction>, collation: Option<Arc<Collation>>) -> DistinctValues {
        let store = match order {
            Some(direction) => DistinctStore::Ordered(ArrayBuilder::new(), direction),
            None => DistinctStore::Any(SortedValues {
                collation,
                ..SortedValues::default()
            }),
        };
        DistinctValues {
            size: ReplySize::default(),
            store,
        }
    }

    fn add(&mut self, value: ValueRef<'_>) -> Result<(), Error> {
        match &mut self.store {
            DistinctStore::Ordered(array, _) => {
                self.size.add(value)?;
                array.push(value);
                Ok(())
            }
            DistinctStore::Any(sorted) => sorted.add(value, &mut self.size),
        }
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

    fn finish(self) -> ArrayBuf {
        match self.store {
            DistinctStore::Ordered(array, Direction::Forward) => array.finish(),
            DistinctStore::Ordered(array, Direction::Backward) => {
                let array = array.finish();
                let values: Vec<ValueRef<'_>> = array.as_array().iter().collect();
                values.into_iter().rev().collect()
            }
            DistinctStore::Any(sorted) => sorted.values.into_values().collect(),
        }
    }
}

impl Distinct {
    /// The query whose rows contain the values.
    pub fn find(&self) -> Find {
        Find {
            hint: self.hint.clone(),
            distinct: Some(self.key.clone()),
            ..Find::new(self.filter.clone())
        }
    }

    /// Collects the distinct values at the key, from the rows of [`Distinct::find`] or of a view's
    /// pipeline, in MongoDB's sort order. Elements of arrays are values of their own. Fails with
    /// 17217 if the values take 16 MB less 4 KB or more.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow_document::path::Path;
    /// use windrow_mql::filter::Filter;
    /// use windrow_query::{Distinct, NoCollection, Source, Uninterrupted};
    /// let source: Arc<dyn Source> = Arc::new(NoCollection { namespace: "a.b".to_owned() });
    /// let distinct = Distinct { key: Path::parse("n"), filter: Filter::all(), hint: None };
    /// let mut rows = distinct.find().open(&source)?;
    /// assert!(distinct.collect(&mut rows, &Uninterrupted)?.as_array().is_empty());
    /// # Ok::<(), windrow_query::Error>(())
    /// ```
    pub fn collect(&self, rows: &mut Cursor, interrupt: &dyn Interrupt) -> Result<ArrayBuf, Error> {
        let order = rows
            .planned_find()
            .and_then(|planned_find| self.order(planned_find));
        let mut values = DistinctValues::new(order, self.filter.collation_shared().cloned());
        while let Some(row) = rows.next_row(interrupt)? {
            values.add_all(row.document(), &self.key)?;
        }
        Ok(values.finish())
    }

    /// Returns the order of the values if each comes once in the rows.
    fn order(&self, planned_find: &PlannedFind) -> Option<Direction> {
        // The rows of a pipeline are no longer those of its query.
        planned_find.find.distinct.as_ref()?;
        let is_binary =
            self.filter.collation().is_none() && planned_find.source.collation().is_none();
        let is_clustered_by = planned_find.source.is_clustered() && self.key.to_string() == "_id";
        match &planned_find.plan {
            Plan::CollectionScan { direction, .. } if is_clustered_by && is_binary => {
                Some(*direction)
            }
            Plan::ClusteredScan(ClusteredScan { scan, .. }) if is_clustered_by && is_binary => {
                Some(scan.direction)
            }
            Plan::Project { input, .. } => order_of_keys(input),
            plan => order_of_keys(plan),
        }
    }
}

/// The order of the values of rows that are made of index keys.
fn order_of_keys(plan: &Plan) -> Option<Direction> {
    let Plan::IndexScan(scan) = plan else {
        return None;
    };
    let first = scan.index.definition.fields.first()?;
    let descends = first.kind == KeyKind::Descending;
    let leads = scan.distinct_prefix == Some(0);
    leads.then_some(if descends {
        Direction::Backward
    } else {
        Direction::Forward
    })
}
