//! The properties of a node, and tables of properties.
//!
//! ```text
//! properties  tree: identifier (2) → type (2) │ value (4)
//! table       7c │ columns (1) │ ends of the values of 4, 2, 1 bytes, and of the bits (2 each) │
//!             tree of the rows (4) │ rows (4) │ … │ columns: type (2) │ identifier (2) │ offset in the
//!             row (2) │ bytes (1) │ bit (1)
//! rows        tree: row (4) → its number (2 or 4)
//! value       the value itself if it has up to 4 bytes, otherwise an item of the heap or a subnode
//! ```

use super::block::Subnodes;
use super::damaged;
use super::file::DataFile;
use super::heap::{Heap, HeapKind, ItemId};
use super::index::{BlockId, Node, NodeId};
use crate::error::ExtractError;
use crate::extractors::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::extractors::outlook::properties::{Properties, PropertyValue, kind};

/// The maximum number of properties of a node.
const PROPERTIES_MAX: usize = 20_000;
/// The maximum number of rows of a table.
const ROWS_MAX: usize = 100_000;
const COLUMNS_OFFSET: usize = 22;
const COLUMN_BYTES: usize = 8;

/// A property of a node. Its value may be stored elsewhere.
#[derive(Clone, Copy)]
pub(super) struct PropertyRecord {
    pub(super) id: u16,
    kind: u16,
    value: u32,
}

/// The properties of a node.
pub(super) struct PropertyContext {
    heap: Heap,
    pub(super) subnodes: Subnodes,
    pub(super) records: Vec<PropertyRecord>,
}

impl PropertyContext {
    pub(super) fn read(file: &mut DataFile<'_>, node: Node) -> Result<Self, ExtractError> {
        let heap = Heap::read(file, node.data, HeapKind::Properties)?;
        let subnodes = file.read_subnodes(node).unwrap_or_else(|error| {
            file.record_damage(error);
            Subnodes::new()
        });
        let entries = heap.tree_entries(heap.root, 2, PROPERTIES_MAX)?;
        let record = |entry: &[u8]| {
            Some(PropertyRecord {
                id: u16_at(entry, 0)?,
                kind: u16_at(entry, 2)?,
                value: u32_at(entry, 4)?,
            })
        };
        let records = entries.into_iter().filter_map(record).collect();
        Ok(PropertyContext {
            heap,
            subnodes,
            records,
        })
    }

    /// Returns the value of a property, truncated to `bytes_max` bytes. Damage is recorded.
    pub(super) fn value(
        &self,
        file: &mut DataFile<'_>,
        record: PropertyRecord,
        bytes_max: u64,
    ) -> Option<PropertyValue> {
        let value = read_value(
            file,
            &self.heap,
            &self.subnodes,
            record.kind,
            record.value,
            bytes_max,
        );
        value.unwrap_or_else(|error| {
            file.record_damage(error);
            None
        })
    }

    /// Adds the property with this identifier if the node has it.
    pub(super) fn add_to(
        &self,
        file: &mut DataFile<'_>,
        properties: &mut Properties,
        id: u16,
        bytes_max: u64,
    ) {
        let record = self.records.iter().find(|record| record.id == id);
        if let Some(value) = record.and_then(|record| self.value(file, *record, bytes_max)) {
            properties.insert(id, value);
        }
    }

    /// Returns the subnode that contains an object.
    pub(super) fn object_node(&self, id: u16) -> Option<Node> {
        let record = self.records.iter().find(|record| record.id == id)?;
        if record.kind != kind::OBJECT {
            return None;
        }
        let object = self.heap.item(ItemId(record.value))?;
        self.subnodes.get(&NodeId(u32_at(object, 0)?)).copied()
    }
}

/// Reads a value. Returns `None` for types without text and for empty values.
fn read_value(
    file: &mut DataFile<'_>,
    heap: &Heap,
    subnodes: &Subnodes,
    value_kind: u16,
    value: u32,
    bytes_max: u64,
) -> Result<Option<PropertyValue>, ExtractError> {
    let to_value: fn(Vec<u8>) -> PropertyValue = match value_kind {
        kind::INTEGER => return Ok(Some(PropertyValue::Number(value.into()))),
        kind::TIME => {
            let item = heap.item(ItemId(value)).and_then(|item| u64_at(item, 0));
            return Ok(item.map(PropertyValue::Number));
        }
        kind::UNICODE => PropertyValue::Unicode,
        kind::STRING_8 => PropertyValue::Text8,
        kind::BINARY => PropertyValue::Binary,
        _ => return Ok(None),
    };
    if value == 0 {
        return Ok(None);
    }
    let node = NodeId(value);
    let bytes = if node.kind() == 0 {
        let item = heap.item(ItemId(value));
        item.ok_or_else(|| damaged("a value is missing"))?.to_vec()
    } else {
        let subnode = subnodes.get(&node);
        let data = subnode.ok_or_else(|| damaged("a value is missing"))?.data;
        file.read_data(data, bytes_max)?
    };
    Ok(Some(to_value(bytes)))
}

/// Reads the properties of each row of a table.
pub(super) fn read_table(
    file: &mut DataFile<'_>,
    node: Node,
    bytes_max: u64,
) -> Result<Vec<Properties>, ExtractError> {
    let invalid = || damaged("a table is invalid");
    let heap = Heap::read(file, node.data, HeapKind::Table)?;
    let subnodes = file.read_subnodes(node)?;
    let header = heap.item(heap.root).ok_or_else(invalid)?;
    let row_bytes = usize::from(u16_at(header, 8).ok_or_else(invalid)?);
    let bits_offset = usize::from(u16_at(header, 6).ok_or_else(invalid)?);
    let row_tree = ItemId(u32_at(header, 10).ok_or_else(invalid)?);
    let rows = u32_at(header, 14).ok_or_else(invalid)?;
    let columns = header.get(COLUMNS_OFFSET..).unwrap_or_default();
    let row_count = heap.tree_entries(row_tree, 4, ROWS_MAX)?.len();
    let blocks = match NodeId(rows) {
        NodeId(0) => Vec::new(),
        id if id.kind() == 0 => vec![heap.item(ItemId(rows)).ok_or_else(invalid)?.to_vec()],
        id => {
            let data = subnodes.get(&id).map_or(BlockId(0), |node| node.data);
            file.read_blocks(data, bytes_max)?
        }
    };
    let mut table = Vec::new();
    // The last bytes of a block are too few for a row.
    let all_rows = blocks
        .iter()
        .flat_map(|block| block.chunks_exact(row_bytes.max(1)));
    for row in all_rows.take(row_count) {
        let mut properties = Properties::default();
        for column in columns.chunks_exact(COLUMN_BYTES) {
            let Some(cell) = read_cell(row, column, bits_offset) else {
                continue;
            };
            let value = read_value(file, &heap, &subnodes, cell.kind, cell.value, bytes_max)?;
            if let Some(value) = value {
                properties.insert(cell.id, value);
            }
        }
        table.push(properties);
    }
    Ok(table)
}

/// Returns a cell of a row if it exists and has four bytes. Longer numbers and Booleans are not
/// needed.
fn read_cell(row: &[u8], column: &[u8], bits_offset: usize) -> Option<PropertyRecord> {
    let offset = usize::from(u16_at(column, 4)?);
    let bit = u8_at(column, 7)?;
    let bits = u8_at(row, bits_offset + usize::from(bit / 8))?;
    let exists = bits & (0x80 >> (bit % 8)) != 0;
    let has_four_bytes = u8_at(column, 6)? == 4;
    Some(PropertyRecord {
        id: u16_at(column, 2)?,
        kind: u16_at(column, 0)?,
        value: u32_at(row, offset)?,
    })
    .filter(|_| exists && has_four_bytes)
}
