//! Documents whose field equals a value of a row.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_document::{
    Array, ArrayBuf, Collation, Document, DocumentBuf, Value, ValueRef, doc, key,
};
use windrow_index::{Definition, Scratch};
use windrow_mql::filter::Filter;

use super::Equality;
use crate::Error;
use crate::aggregate::chain::matching;
use crate::aggregate::place::visit;
use crate::aggregate::stage::Setting;
use crate::bounds::leaf;
use crate::cursor::Cursor;
use crate::operators::{Reads, SORT_BYTES_MAX};
use crate::row::{Interrupt, Row};
use crate::source::Source;

/// Finds the other collection's documents for the rows.
pub struct Join {
    equality: Equality,
    source: Arc<dyn Source>,
    way: Option<Way>,
}

enum Way {
    /// A query for each row: there is an index, or too much for a table.
    Query,
    Table(Table),
}

/// The collection in memory: by the keys that an index on the field would have.
#[derive(Default)]
struct Table {
    records: Vec<Row>,
    places: HashMap<Box<[u8]>, Vec<u32>, RandomState>,
}

/// What is found for a row.
pub enum Matching {
    /// Those of a table, in natural order.
    Records(Vec<Row>),
    /// What this condition asks of the collection, in natural order or that of an index.
    Query(DocumentBuf, Filter),
}

impl Join {
    pub fn new(equality: Equality, source: Arc<dyn Source>) -> Join {
        Join {
            equality,
            source,
            way: None,
        }
    }

    /// The documents whose field equals the row's. `reads`: what was read for it is added.
    pub fn matching(
        &mut self,
        row: Document<'_>,
        (setting, reads): (&Setting, &mut Reads),
        interrupt: &dyn Interrupt,
    ) -> Result<Matching, Error> {
        let document = self.condition(row);
        let filter = Filter::parse_with(document.as_document(), &setting.environment)?;
        if self.way.is_none() {
            self.way = Some(self.choose((setting, reads), interrupt)?);
        }
        if let Some(Way::Table(table)) = &self.way
            && let Some(found) = table.matching(&filter)?
        {
            return Ok(Matching::Records(found));
        }
        Ok(Matching::Query(document, filter))
    }

    /// The pipeline of documents that it brings itself, with the condition on them behind that.
    pub fn among(&self, stages: Array<'_>, row: Document<'_>) -> ArrayBuf {
        let matching = doc! { "$match": (self.condition(row)) };
        let mut stages = stages.iter().map(ValueRef::to_value);
        let first = stages.next();
        first
            .into_iter()
            .chain([Value::Document(matching)])
            .chain(stages)
            .collect()
    }

    /// The condition on the other collection. What the row does not have counts as null; regular
    /// expressions are values.
    fn condition(&self, row: Document<'_>) -> DocumentBuf {
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        let path = self.equality.local.components();
        visit(ValueRef::Document(row), path, &mut |value| {
            values.push(value)
        });
        if values.is_empty() {
            values.push(ValueRef::Null);
        }
        let has_regex = values
            .iter()
            .any(|value| matches!(value, ValueRef::Regex { .. }));
        let foreign = self.equality.foreign.to_string();
        let equals = |value: ValueRef<'_>| {
            let mut condition = doc! {};
            condition.push("$eq", value.to_value());
            let mut filter = DocumentBuf::new();
            filter.push(&foreign, condition);
            filter
        };
        match values.as_slice() {
            [value] => equals(*value),
            _ if has_regex => {
                let branches: ArrayBuf = values
                    .into_iter()
                    .map(|value| Value::Document(equals(value)))
                    .collect();
                doc! { "$or": (Value::Array(branches)) }
            }
            _ => {
                let list: ArrayBuf = values.into_iter().collect();
                let mut filter = DocumentBuf::new();
                filter.push(&foreign, doc! { "$in": (Value::Array(list)) });
                filter
            }
        }
    }

    fn choose(
        &self,
        (setting, reads): (&Setting, &mut Reads),
        interrupt: &dyn Interrupt,
    ) -> Result<Way, Error> {
        let leads = |definition: &Arc<Definition>| {
            definition
                .fields
                .first()
                .is_some_and(|first| first.path == self.equality.foreign)
                && !definition.sparse
                && definition.partial.is_none()
                && !definition.is_text()
                && !definition.is_geo()
                && !definition.hidden
                && definition.collation == setting.environment.collation
        };
        if self.source.indexes().iter().any(leads) {
            return Ok(Way::Query);
        }
        let mut documents = matching(Document::EMPTY, Filter::all(), &self.source, setting)?;
        let collation = setting.environment.collation.as_deref();
        let table = Table::read(&self.equality, &mut documents, collation, interrupt)?;
        documents.add_reads(reads);
        Ok(table.map_or(Way::Query, Way::Table))
    }
}

impl Table {
    /// Reads the collection; None where it is too large.
    fn read(
        equality: &Equality,
        documents: &mut Cursor,
        collation: Option<&Collation>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Table>, Error> {
        let mut pattern = DocumentBuf::new();
        pattern.push(&equality.foreign.to_string(), 1);
        let mut specification = doc! { "key": pattern, "name": "join" };
        if let Some(collation) = collation {
            specification.push("collation", collation.specification());
        }
        let Ok(definition) = Definition::parse(specification.as_document()) else {
            return Ok(None);
        };
        let (mut table, mut scratch, mut bytes) = (Table::default(), Scratch::default(), 0);
        while let Some(row) = documents.next_row(interrupt)? {
            let place = table.records.len() as u32;
            let document = row.document();
            bytes += document.as_bytes().len() + size_of::<Row>();
            if bytes > SORT_BYTES_MAX {
                return Ok(None);
            }
            let mut emit = |key: &[u8], _: &[u8]| match table.places.get_mut(key) {
                Some(places) if places.last() == Some(&place) => {}
                Some(places) => places.push(place),
                None => {
                    bytes += 2 * key.len() + 64;
                    table.places.insert(key.into(), vec![place]);
                }
            };
            if definition.keys(document, &mut scratch, &mut emit).is_err() {
                return Ok(None);
            }
            let content = row.content.into_shared();
            table.records.push(Row { content, ..row });
        }
        Ok(Some(table))
    }

    /// The records that match; None where the table's keys do not tell.
    fn matching(&self, filter: &Filter) -> Result<Option<Vec<Row>>, Error> {
        let Some(extent) = leaf::extent(filter.root()) else {
            return Ok(None);
        };
        let mut places: Vec<u32> = Vec::new();
        let mut bytes = Vec::new();
        for interval in extent.intervals.as_slice() {
            bytes.clear();
            key::append_collated(&mut bytes, interval.low.as_ref(), false, filter.collation());
            places.extend(self.places.get(bytes.as_slice()).into_iter().flatten());
        }
        places.sort_unstable();
        places.dedup();
        let mut found = Vec::with_capacity(places.len());
        for row in places
            .iter()
            .filter_map(|place| self.records.get(*place as usize))
        {
            if filter.matches(row.document())? {
                found.push(row.clone());
            }
        }
        Ok(Some(found))
    }
}
