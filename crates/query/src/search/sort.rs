//! The option `sort` of `$search`, and the pages of a result.
//!
//! Each record has a sort key: bytes whose order is the order of the result.
//!
//! ```text
//! key        component* | record id u64 BE
//! score      bits of the score u64 BE, inverted if descending
//! field      80 | key bytes of the value, or 00 or FF if there is none; all inverted if descending
//! ```
//!
//! Without `sort`, the key is the descending score. The values of fields are read from the
//! documents that match, or, if that is cheaper, from the keys of the index (`key_order`). Only the
//! first records of the result are kept in memory.
//!
//! Source: <https://www.mongodb.com/docs/atlas/atlas-search/sort/>.

mod key_order;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use windrow_document::{Document, ValueRef, key};
use windrow_index::search::{FieldMapping, SearchDefinition};
use windrow_search::Hit;

use super::options::{Options, bad};
use crate::Error;
use crate::operators::SORT_BYTES_MAX;
use crate::source::Direction;
pub use key_order::{KeyOrder, SortRequest};

/// A parsed `sort`.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSort {
    fields: Vec<SortField>,
}

#[derive(Clone, Debug, PartialEq)]
struct SortField {
    by: SortBy,
    is_descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum SortBy {
    Score,
    Field { path: String, no_data: NoData },
}

/// The position of null and missing values: the option `noData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoData {
    Lowest,
    Highest,
}

/// The first byte of a component with a value.
const VALUE_MARK: u8 = 0x80;

impl NoData {
    fn mark(self) -> u8 {
        match self {
            NoData::Lowest => 0,
            NoData::Highest => 0xFF,
        }
    }
}

impl Default for SearchSort {
    /// The order without `sort`: by descending score.
    fn default() -> SearchSort {
        SearchSort {
            fields: vec![SortField {
                by: SortBy::Score,
                is_descending: true,
            }],
        }
    }
}

impl SearchSort {
    /// Parses the operand of `sort`.
    pub fn parse(operand: ValueRef<'_>) -> Result<SearchSort, Error> {
        let ValueRef::Document(document) = operand else {
            return Err(bad("\"sort\" must be a document".to_owned()));
        };
        let fields = document
            .iter()
            .map(|(name, value)| SortField::parse(name, value));
        let fields = fields.collect::<Result<Vec<SortField>, Error>>()?;
        if fields.is_empty() {
            Err(bad("\"sort\" must have at least one field".to_owned()))
        } else {
            Ok(SearchSort { fields })
        }
    }

    /// Fails if a field is not indexed so that it can be sorted.
    pub fn check(&self, definition: &SearchDefinition) -> Result<(), Error> {
        for field in &self.fields {
            if let SortBy::Field { path, .. } = &field.by
                && !definition.field(path).is_some_and(is_sortable)
            {
                return Err(bad(format!("{path} is not indexed as sortable")));
            }
        }
        Ok(())
    }

    /// Returns the order of the keys of the index, if it is the order of the result.
    pub fn key_order(&self, definition: &SearchDefinition) -> Option<KeyOrder<'_>> {
        let [
            SortField {
                by: SortBy::Field { path, no_data },
                is_descending,
            },
        ] = self.fields.as_slice()
        else {
            return None;
        };
        KeyOrder::new(path, *no_data, *is_descending, definition.field(path)?)
    }

    /// Returns `true` if documents have to be read for the sort keys.
    pub fn reads_documents(&self) -> bool {
        let fields = &mut self.fields.iter();
        fields.any(|field| field.by != SortBy::Score)
    }

    /// Returns the sort key of a record. `document` is read only if
    /// [`reads_documents`](Self::reads_documents).
    pub fn key(&self, definition: &SearchDefinition, hit: Hit, document: Document<'_>) -> Vec<u8> {
        let mut key = Vec::with_capacity(32);
        for field in &self.fields {
            let start = key.len();
            match &field.by {
                SortBy::Score => key.extend_from_slice(&hit.score.to_bits().to_be_bytes()),
                SortBy::Field { path, no_data } => {
                    let component = field.component(definition, path, *no_data, document);
                    key.extend_from_slice(&component);
                }
            }
            if field.is_descending {
                invert(&mut key, start);
            }
        }
        key.extend_from_slice(&hit.id.to_be_bytes());
        key
    }
}

/// Inverts the bytes of a key from `start` on, so that greater components come first.
fn invert(key: &mut [u8], start: usize) {
    key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
}

/// Returns the record with a sort key of [`SearchSort::default`].
pub fn hit_of_key(key: &[u8]) -> Option<Hit> {
    let (score, id) = key.split_first_chunk::<8>()?;
    Some(Hit {
        id: u64::from_be_bytes(id.try_into().ok()?),
        score: f64::from_bits(!u64::from_be_bytes(*score)),
    })
}

/// Returns `true` if the field is indexed for a type that can be sorted. Types for facets only
/// cannot.
fn is_sortable(field: &FieldMapping) -> bool {
    field.token.is_some()
        || field.number.is_some()
        || field.date
        || field.boolean
        || field.object_id
        || field.uuid
}

impl SortField {
    fn parse(name: &str, operand: ValueRef<'_>) -> Result<SortField, Error> {
        let ValueRef::Document(_) = operand else {
            return Ok(SortField {
                by: SortBy::Field {
                    path: name.to_owned(),
                    no_data: NoData::Lowest,
                },
                is_descending: is_descending(operand)?,
            });
        };
        let field = format!("sort.{name}");
        let options = Options::new(&field, operand)?;
        if let Some(meta) = options.get("$meta") {
            options.check(&["$meta", "order"])?;
            if meta.as_str() != Some("searchScore") {
                return Err(bad(format!("\"{field}.$meta\" must be \"searchScore\"")));
            }
            let order = options.get("order").map(is_descending);
            return Ok(SortField {
                by: SortBy::Score,
                is_descending: order.transpose()?.unwrap_or(true),
            });
        }
        options.check(&["order", "noData"])?;
        let no_data = match options.string("noData")? {
            None | Some("lowest") => NoData::Lowest,
            Some("highest") => NoData::Highest,
            Some(_) => {
                let message = format!("\"{field}.noData\" must be \"lowest\" or \"highest\"");
                return Err(bad(message));
            }
        };
        Ok(SortField {
            by: SortBy::Field {
                path: name.to_owned(),
                no_data,
            },
            is_descending: is_descending(options.required("order")?)?,
        })
    }

    /// Returns the ascending component of a document: that of its smallest value or, if the order
    /// is descending, of its largest value.
    fn component(
        &self,
        definition: &SearchDefinition,
        path: &str,
        no_data: NoData,
        document: Document<'_>,
    ) -> Vec<u8> {
        let mapping = definition.field(path);
        let mut found: Option<Vec<u8>> = None;
        definition.values_at(document, path, &mut |value| {
            let component = match value {
                ValueRef::Null => vec![no_data.mark()],
                value if mapping.is_some_and(|field| sorts_by(field, value)) => {
                    let mut component = vec![VALUE_MARK];
                    key::append(&mut component, value);
                    component
                }
                _ => return,
            };
            let is_first = |known: &Vec<u8>| (component < *known) != self.is_descending;
            if found.as_ref().is_none_or(is_first) {
                found = Some(component);
            }
        });
        found.unwrap_or_else(|| vec![no_data.mark()])
    }
}

fn sorts_by(field: &FieldMapping, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(_) => field.token.is_some(),
        ValueRef::DateTime(_) => field.date,
        value if value.is_number() => field.number.is_some(),
        _ => true,
    }
}

fn is_descending(order: ValueRef<'_>) -> Result<bool, Error> {
    match order.as_f64().filter(|_| order.is_number()) {
        Some(1.0) => Ok(false),
        Some(-1.0) => Ok(true),
        _ => Err(bad("sort order must be 1 or -1".to_owned())),
    }
}

/// A record with its sort key.
#[derive(Clone, Debug, PartialEq)]
pub struct SortedHit {
    /// The record with its score.
    pub hit: Hit,
    /// The sort key.
    pub key: Vec<u8>,
}

/// Keeps the first records of a result.
#[derive(Debug)]
pub struct FirstHits {
    /// The last of the records is at the top.
    heap: BinaryHeap<HeapEntry>,
    count_max: usize,
    /// `Backward`: the last records of the result are requested, in reverse order.
    direction: Direction,
    bytes: usize,
    /// `true` if records were left out.
    pub has_more: bool,
}

#[derive(Debug)]
struct HeapEntry {
    sorted: SortedHit,
    direction: Direction,
}

impl FirstHits {
    pub fn new(count_max: usize, direction: Direction) -> FirstHits {
        FirstHits {
            heap: BinaryHeap::new(),
            count_max: count_max.max(1),
            direction,
            bytes: 0,
            has_more: false,
        }
    }

    /// Returns `true` if a sort key comes after another one in the result.
    pub fn comes_after(&self, key: &[u8], other: &[u8]) -> bool {
        compare(key, other, self.direction).is_gt()
    }

    /// Returns `true` if a record after those that were added would be left out.
    pub fn is_full(&self) -> bool {
        self.has_more || self.heap.len() >= self.count_max
    }

    /// Returns the direction in which the records are requested. `Backward`: the last ones of the
    /// result, in reverse order.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns how many records are requested.
    pub fn count_max(&self) -> usize {
        self.count_max
    }

    /// Adds a record. If there are too many records, or they take too much memory, the last ones
    /// are dropped.
    pub fn offer(&mut self, sorted: SortedHit) {
        self.bytes += size_of::<HeapEntry>() + sorted.key.len();
        self.heap.push(HeapEntry {
            sorted,
            direction: self.direction,
        });
        while self.heap.len() > self.count_max || self.bytes > SORT_BYTES_MAX && self.heap.len() > 1
        {
            let Some(last) = self.heap.pop() else {
                return;
            };
            self.bytes -= size_of::<HeapEntry>() + last.sorted.key.len();
            self.has_more = true;
        }
    }

    /// Returns the records in the order of the result.
    pub fn into_hits(self) -> Vec<SortedHit> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|entry| entry.sorted).collect()
    }
}

/// Compares two sort keys.
fn compare(one: &[u8], other: &[u8], direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => one.cmp(other),
        Direction::Backward => other.cmp(one),
    }
}

impl Ord for HeapEntry {
    fn cmp(&self, other: &HeapEntry) -> Ordering {
        compare(&self.sorted.key, &other.sorted.key, self.direction)
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &HeapEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapEntry {
    fn eq(&self, other: &HeapEntry) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for HeapEntry {}
