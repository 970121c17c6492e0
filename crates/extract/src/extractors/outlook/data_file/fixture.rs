//! Writes data files of all versions for tests. `readpst` of libpst 0.6.76 and other programs that
//! do not need the tables of folders can read them.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::checksum::checksum;
use super::cipher::Cipher;
use super::layout::Layout;
use crate::extractors::outlook::properties::kind;

/// The version of a file, and how its blocks are encoded.
#[derive(Clone, Copy)]
pub(crate) struct Version {
    pub(crate) number: u16,
    pub(crate) cipher: u8,
}

/// All versions with all encodings of blocks.
pub(crate) const VERSIONS: [Version; 5] = [
    Version {
        number: 15,
        cipher: 1,
    },
    Version {
        number: 23,
        cipher: 0,
    },
    Version {
        number: 23,
        cipher: 1,
    },
    Version {
        number: 23,
        cipher: 2,
    },
    Version {
        number: 36,
        cipher: 1,
    },
];

/// A property: its identifier and value.
pub(crate) type Property = (u16, Value);

#[derive(Clone)]
pub(crate) enum Value {
    Number(u32),
    Time(u64),
    Text(&'static str),
    Text8(&'static [u8]),
    Bytes(Vec<u8>),
}

impl Value {
    fn kind(&self) -> u16 {
        match self {
            Value::Number(_) => kind::INTEGER,
            Value::Time(_) => kind::TIME,
            Value::Text(_) => kind::UNICODE,
            Value::Text8(_) => kind::STRING_8,
            Value::Bytes(_) => kind::BINARY,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Value::Number(number) => number.to_le_bytes().to_vec(),
            Value::Time(time) => time.to_le_bytes().to_vec(),
            Value::Text(text) => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Value::Text8(text) => text.to_vec(),
            Value::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// An item of a folder or of an attachment.
#[derive(Clone, Default)]
pub(crate) struct Item {
    pub(crate) properties: Vec<Property>,
    pub(crate) recipients: Vec<Vec<Property>>,
    pub(crate) attachments: Vec<Attachment>,
}

#[derive(Clone, Default)]
pub(crate) struct Attachment {
    pub(crate) properties: Vec<Property>,
    pub(crate) item: Option<Item>,
}

/// A folder: its name, the index of its parent in the list of folders, and its items. The first
/// folder is that of the user.
pub(crate) struct Folder {
    pub(crate) name: &'static str,
    pub(crate) parent: usize,
    pub(crate) items: Vec<Item>,
}

/// Writes a file. `damage` can change the content of each block before its checksum is computed.
pub(crate) fn write_file(
    version: Version,
    folders: &[Folder],
    named: &[(u32, u16)],
    damage: &mut dyn FnMut(&mut Vec<u8>),
) -> Vec<u8> {
    let mut writer = FileWriter::new(version, damage);
    let folder_id = |number: usize| 0x8002 + 0x20 * number as u32;
    let user_folder = [&[0; 20][..], &folder_id(0).to_le_bytes()].concat();
    writer.add_node(0x21, 0, &[(0x35e0, Value::Bytes(user_folder))]);
    let entries: Vec<u8> = named
        .iter()
        .flat_map(|(number, position)| {
            [&number.to_le_bytes()[..], &[0, 0], &position.to_le_bytes()].concat()
        })
        .collect();
    let map = [
        (0x0001, Value::Number(251)),
        (0x0002, Value::Bytes(vec![0; 16])),
        (0x0003, Value::Bytes(entries)),
        (0x0004, Value::Bytes(vec![0; 4])),
    ];
    writer.add_node(0x61, 0, &map);
    writer.add_node(0x122, 0x122, &[(0x3001, Value::Text("Root"))]);
    let mut item_id = 0x20_0004;
    for (number, folder) in folders.iter().enumerate() {
        let parent = if number == 0 {
            0x122
        } else {
            folder_id(folder.parent)
        };
        let count = Value::Number(folder.items.len() as u32);
        let name = (0x3001, Value::Text(folder.name));
        writer.add_node(folder_id(number), parent, &[name, (0x3602, count)]);
        for item in &folder.items {
            let (data, subnodes) = writer.add_item(item);
            writer
                .nodes
                .push((item_id, data, subnodes, folder_id(number)));
            item_id += 0x20;
        }
    }
    writer.finish()
}

type NodeRow = (u32, u64, u64, u32);

struct FileWriter<'d> {
    version: Version,
    layout: &'static Layout,
    bytes: Vec<u8>,
    /// Identifiers, positions, and sizes as they are stored and expanded.
    blocks: Vec<(u64, u64, [usize; 2])>,
    nodes: Vec<NodeRow>,
    next_block: u64,
    damage: &'d mut dyn FnMut(&mut Vec<u8>),
}

impl<'d> FileWriter<'d> {
    fn new(version: Version, damage: &'d mut dyn FnMut(&mut Vec<u8>)) -> Self {
        FileWriter {
            version,
            layout: Layout::from_version(version.number).unwrap(),
            bytes: vec![0; 0x4600],
            blocks: Vec::new(),
            nodes: Vec::new(),
            next_block: 4,
            damage,
        }
    }

    fn add_block(&mut self, content: &[u8], is_internal: bool) -> u64 {
        let layout = self.layout;
        let id = self.next_block | if is_internal { 2 } else { 0 };
        self.next_block += 4;
        let mut data = content.to_vec();
        (self.damage)(&mut data);
        if !is_internal {
            let cipher = Cipher::from_code(self.version.cipher).unwrap();
            cipher.encode(&mut data, id);
        }
        let expanded_bytes = data.len();
        if layout.expanded_bytes_offset.is_some() && !is_internal {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&data).unwrap();
            let compressed = encoder.finish().unwrap();
            if compressed.len() < data.len() {
                data = compressed;
            }
        }
        self.align(layout.block_alignment);
        let (start, bytes) = (self.bytes.len(), data.len());
        self.blocks
            .push((id, start as u64, [bytes, expanded_bytes]));
        self.bytes.extend_from_slice(&data);
        let all = (bytes + layout.block_trailer_bytes).next_multiple_of(layout.block_alignment);
        self.bytes.resize(start + all, 0);
        let trailer = start + all - layout.block_trailer_bytes;
        self.put(trailer, &(bytes as u16).to_le_bytes());
        let signature = signature(start as u64, id);
        self.put(trailer + 2, &signature.to_le_bytes());
        self.put(
            trailer + layout.block_checksum_offset,
            &checksum(&data).to_le_bytes(),
        );
        self.put_word(trailer + layout.block_id_offset, id);
        if let Some(offset) = layout.expanded_bytes_offset {
            self.put(trailer + offset, &(expanded_bytes as u16).to_le_bytes());
        }
        id
    }

    fn align(&mut self, bytes: usize) {
        let end = self.bytes.len().next_multiple_of(bytes);
        self.bytes.resize(end, 0);
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn put_word(&mut self, offset: usize, word: u64) {
        let bytes = self.word(word);
        self.put(offset, &bytes);
    }

    fn word(&self, word: u64) -> Vec<u8> {
        word.to_le_bytes()[..if self.layout.is_wide() { 8 } else { 4 }].to_vec()
    }

    /// Adds data, in several blocks if necessary.
    fn add_data(&mut self, bytes: &[u8]) -> u64 {
        const BLOCK_BYTES: usize = 8000;
        if bytes.len() <= BLOCK_BYTES {
            return self.add_block(bytes, false);
        }
        let blocks: Vec<&[u8]> = bytes.chunks(BLOCK_BYTES).collect();
        self.add_tree(&blocks)
    }

    fn add_tree(&mut self, blocks: &[&[u8]]) -> u64 {
        let bytes: usize = blocks.iter().map(|block| block.len()).sum();
        let ids: Vec<u64> = blocks
            .iter()
            .map(|block| self.add_block(block, false))
            .collect();
        let mut tree = vec![1, 1];
        tree.extend_from_slice(&(ids.len() as u16).to_le_bytes());
        tree.extend_from_slice(&(bytes as u32).to_le_bytes());
        for id in ids {
            tree.extend(self.word(id));
        }
        self.add_block(&tree, true)
    }

    fn add_node(&mut self, id: u32, parent: u32, properties: &[Property]) {
        let mut subnodes = Vec::new();
        let data = self.add_properties(properties, None, &mut subnodes);
        let subnodes = self.add_subnodes(&subnodes);
        self.nodes.push((id, data, subnodes, parent));
    }

    fn add_subnodes(&mut self, subnodes: &[(u32, u64, u64)]) -> u64 {
        if subnodes.is_empty() {
            return 0;
        }
        let mut block = vec![2, 0];
        block.extend_from_slice(&(subnodes.len() as u16).to_le_bytes());
        if self.layout.is_wide() {
            block.extend_from_slice(&[0; 4]);
        }
        let mut sorted = subnodes.to_vec();
        sorted.sort_unstable();
        for (id, data, inner) in sorted {
            for word in [u64::from(id), data, inner] {
                block.extend(self.word(word));
            }
        }
        self.add_block(&block, true)
    }

    /// Adds an item. Returns the identifiers of its data and of its subnodes.
    fn add_item(&mut self, item: &Item) -> (u64, u64) {
        let mut subnodes = Vec::new();
        let data = self.add_properties(&item.properties, None, &mut subnodes);
        if !item.recipients.is_empty() {
            let table = self.add_table(&item.recipients);
            subnodes.push((0x692, table, 0));
        }
        for (number, attachment) in item.attachments.iter().enumerate() {
            let mut inner = Vec::new();
            let object = attachment.item.as_ref().map(|item| {
                let (data, subnodes) = self.add_item(item);
                inner.push((0x8004, data, subnodes));
                0x8004
            });
            let data = self.add_properties(&attachment.properties, object, &mut inner);
            let inner = self.add_subnodes(&inner);
            subnodes.push((0x8005 + 0x20 * number as u32, data, inner));
        }
        (data, self.add_subnodes(&subnodes))
    }

    /// Adds a heap with properties. Long values become subnodes. `object` is the subnode of an
    /// attached item.
    fn add_properties(
        &mut self,
        properties: &[Property],
        object: Option<u32>,
        subnodes: &mut Vec<(u32, u64, u64)>,
    ) -> u64 {
        let mut heap = HeapWriter::new(self.layout, 0xbc);
        let tree = heap.add(&[0; 8]);
        let mut sorted = properties.to_vec();
        sorted.sort_by_key(|(id, _)| *id);
        let mut records = Vec::new();
        for (id, value) in &sorted {
            let bytes = value.to_bytes();
            let reference = match value {
                Value::Number(number) => *number,
                _ if bytes.len() > 3000 => {
                    let node = 0x1_001f + 0x20 * subnodes.len() as u32;
                    subnodes.push((node, self.add_data(&bytes), 0));
                    node
                }
                _ => heap.add(&bytes),
            };
            records.extend_from_slice(&id.to_le_bytes());
            records.extend_from_slice(&value.kind().to_le_bytes());
            records.extend_from_slice(&reference.to_le_bytes());
        }
        if let Some(node) = object {
            let object = [node.to_le_bytes(), [0; 4]].concat();
            records.extend_from_slice(&[0x01, 0x37, 0x0d, 0]);
            records.extend_from_slice(&heap.add(&object).to_le_bytes());
        }
        let root = heap.add(&records).to_le_bytes();
        heap.set(tree, &[&[0xb5, 2, 6, 0], &root[..]].concat());
        self.add_heap(&heap.finish(tree))
    }

    /// Adds a table with a column for each property of the first row.
    fn add_table(&mut self, rows: &[Vec<Property>]) -> u64 {
        let mut heap = HeapWriter::new(self.layout, 0x7c);
        let columns = &rows[0];
        let end = 8 + 4 * columns.len() as u16;
        let row_bytes = end + 1;
        let (mut matrix, mut index) = (Vec::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            index.extend_from_slice(&(number as u32 + 1).to_le_bytes());
            index.extend_from_slice(
                &self.word(number as u64)[..if self.layout.is_wide() { 4 } else { 2 }],
            );
            matrix.extend_from_slice(&(number as u32 + 1).to_le_bytes());
            matrix.extend_from_slice(&[0; 4]);
            for (_, value) in row {
                let cell = match value {
                    Value::Number(number) => *number,
                    _ => heap.add(&value.to_bytes()),
                };
                matrix.extend_from_slice(&cell.to_le_bytes());
            }
            matrix.push(0xff);
        }
        let rows_item = heap.add(&matrix);
        let index_root = heap.add(&index).to_le_bytes();
        let value_bytes = if self.layout.is_wide() { 4 } else { 2 };
        let tree = heap.add(&[&[0xb5, 4, value_bytes, 0], &index_root[..]].concat());
        let mut header = vec![0x7c, columns.len() as u8];
        for offset in [end, end, end, row_bytes] {
            header.extend_from_slice(&offset.to_le_bytes());
        }
        for item in [tree, rows_item, 0] {
            header.extend_from_slice(&item.to_le_bytes());
        }
        for (number, (id, value)) in columns.iter().enumerate() {
            header.extend_from_slice(&value.kind().to_le_bytes());
            header.extend_from_slice(&id.to_le_bytes());
            header.extend_from_slice(&(8 + 4 * number as u16).to_le_bytes());
            header.extend_from_slice(&[4, number as u8]);
        }
        let root = heap.add(&header);
        self.add_heap(&heap.finish(root))
    }

    fn add_heap(&mut self, blocks: &[Vec<u8>]) -> u64 {
        match blocks {
            [block] => self.add_block(block, false),
            blocks => {
                let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
                self.add_tree(&blocks)
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.nodes.sort_unstable();
        let nodes = std::mem::take(&mut self.nodes);
        let mut entries = Vec::new();
        for (id, data, subnodes, parent) in nodes {
            let words = [u64::from(id), data, subnodes]
                .map(|word| self.word(word))
                .concat();
            let parent = self.word(parent.into());
            entries.push((u64::from(id), [words, parent].concat()));
        }
        let node_root = self.add_index(0x81, entries);
        self.blocks.sort_unstable();
        let blocks = std::mem::take(&mut self.blocks);
        let mut entries = Vec::new();
        for (id, position, [bytes, expanded_bytes]) in blocks {
            let mut entry = [self.word(id), self.word(position)].concat();
            entry.extend_from_slice(&(bytes as u16).to_le_bytes());
            if self.layout.expanded_bytes_offset.is_some() {
                entry.extend_from_slice(&(expanded_bytes as u16).to_le_bytes());
            }
            entry.extend_from_slice(&[2, 0]);
            entry.resize(if self.layout.is_wide() { 24 } else { 12 }, 0);
            entries.push((id, entry));
        }
        let block_root = self.add_index(0x80, entries);
        self.write_header(node_root, block_root);
        self.bytes
    }

    /// Adds the pages of an index. Returns the identifier and position of its root.
    fn add_index(&mut self, kind: u8, mut entries: Vec<(u64, Vec<u8>)>) -> (u64, u64) {
        for level in 0.. {
            let mut pages = Vec::new();
            let entry_bytes = entries.first().map_or(0, |(_, entry)| entry.len());
            // Small pages, so that small files have several levels.
            for part in entries.chunks(7) {
                let id = self.next_block;
                self.next_block += 4;
                let content: Vec<u8> = part.iter().flat_map(|(_, entry)| entry.clone()).collect();
                let sizes = [part.len() as u8, 7, entry_bytes as u8, level];
                let position = self.add_page(kind, id, &content, sizes);
                let branch = [part[0].0, id, position]
                    .map(|word| self.word(word))
                    .concat();
                pages.push((part[0].0, id, position, branch));
            }
            if let [(_, id, position, _)] = pages[..] {
                return (id, position);
            }
            entries = pages.into_iter().map(|page| (page.0, page.3)).collect();
        }
        unreachable!("the loop ends at the root")
    }

    fn add_page(&mut self, kind: u8, id: u64, entries: &[u8], sizes: [u8; 4]) -> u64 {
        let layout = self.layout;
        self.align(layout.page_bytes);
        let mut page = vec![0; layout.page_bytes];
        page[..entries.len()].copy_from_slice(entries);
        page[layout.entry_count_offset] = sizes[0];
        page[layout.entry_bytes_offset - if layout.page_bytes > 512 { 2 } else { 1 }] = sizes[1];
        page[layout.entry_bytes_offset] = sizes[2];
        page[layout.entry_bytes_offset + 1] = sizes[3];
        let trailer = layout.page_trailer_offset;
        page[trailer] = kind;
        page[trailer + 1] = kind;
        let position = self.bytes.len() as u64;
        page[trailer + 2..trailer + 4].copy_from_slice(&signature(position, id).to_le_bytes());
        let sum = checksum(&page[..trailer]).to_le_bytes();
        page[layout.page_checksum_offset..layout.page_checksum_offset + 4].copy_from_slice(&sum);
        let id_offset = if layout.is_wide() {
            trailer + 8
        } else {
            trailer + 4
        };
        let id = self.word(id);
        page[id_offset..id_offset + id.len()].copy_from_slice(&id);
        self.bytes.extend_from_slice(&page);
        position
    }

    fn write_header(&mut self, node_root: (u64, u64), block_root: (u64, u64)) {
        let wide = self.layout.is_wide();
        self.put(0, b"!BDN");
        self.put(8, b"SM");
        self.put(10, &self.version.number.to_le_bytes());
        self.put(12, &[19, 0, 1, 1]);
        let (node_offset, block_offset) = if wide { (216, 232) } else { (184, 192) };
        let end = self.bytes.len() as u64;
        self.put_word(if wide { 184 } else { 168 }, end);
        for (offset, (id, position)) in [(node_offset, node_root), (block_offset, block_root)] {
            self.put_word(offset, id);
            self.put_word(offset + self.word(0).len(), position);
        }
        let sentinel = if wide { 512 } else { 460 };
        self.put(sentinel, &[0x80, self.version.cipher]);
        let sum = checksum(&self.bytes[8..8 + 471]).to_le_bytes();
        self.put(4, &sum);
        if wide {
            let sum = checksum(&self.bytes[8..8 + 516]).to_le_bytes();
            self.put(524, &sum);
        }
    }
}

/// The signature of a page or block.
fn signature(position: u64, id: u64) -> u16 {
    let mixed = (position ^ id) as u32;
    ((mixed >> 16) ^ mixed) as u16
}

/// Writes the items of a heap into blocks.
struct HeapWriter {
    layout: &'static Layout,
    kind: u8,
    blocks: Vec<Vec<Vec<u8>>>,
}

impl HeapWriter {
    fn new(layout: &'static Layout, kind: u8) -> Self {
        HeapWriter {
            layout,
            kind,
            blocks: vec![Vec::new()],
        }
    }

    /// Adds an item. Returns its identifier.
    fn add(&mut self, item: &[u8]) -> u32 {
        let used: usize = self.blocks.last().unwrap().iter().map(Vec::len).sum();
        if used + item.len() > 3500 {
            self.blocks.push(Vec::new());
        }
        let block = self.blocks.len() as u32 - 1;
        let items = self.blocks.last_mut().unwrap();
        items.push(item.to_vec());
        (items.len() as u32) << 5 | block << (5 + self.layout.heap_item_bits)
    }

    fn set(&mut self, item: u32, bytes: &[u8]) {
        self.blocks[0][(item >> 5) as usize - 1] = bytes.to_vec();
    }

    fn finish(self, root: u32) -> Vec<Vec<u8>> {
        let kind = self.kind;
        let write = |(number, items): (usize, Vec<Vec<u8>>)| {
            let mut block = vec![0, 0];
            match number {
                0 => {
                    block.extend_from_slice(&[0xec, kind]);
                    block.extend_from_slice(&root.to_le_bytes());
                    block.extend_from_slice(&[0; 4]);
                }
                // These blocks have longer headers.
                number if number % 128 == 8 => block.resize(66, 0),
                _ => {}
            }
            let mut map = vec![items.len() as u16, 0];
            for item in items {
                map.push(block.len() as u16);
                block.extend(item);
            }
            map.push(block.len() as u16);
            block.resize(block.len().next_multiple_of(2), 0);
            let map_offset = (block.len() as u16).to_le_bytes();
            block[..2].copy_from_slice(&map_offset);
            block.extend(map.into_iter().flat_map(u16::to_le_bytes));
            block
        };
        self.blocks.into_iter().enumerate().map(write).collect()
    }
}
