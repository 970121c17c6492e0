//! Data files of Outlook: `.pst` of all versions, and `.ost`. Sources: MS-PST,
//! <https://learn.microsoft.com/en-us/openspecs/office_file_formats/ms-pst>, and for the `.ost` of Outlook
//! since 2013 <https://github.com/libyal/libpff/tree/main/documentation>.
//!
//! ```text
//! file      header │ pages of two indexes │ blocks
//! node      an item, folder or list: a block or tree of blocks with its data, and a list of subnodes
//! data      a heap with the properties of the node, or a table of properties
//! subnodes  of an item: long properties, the table of recipients, attachments
//! ```
//!
//! The index of nodes contains all items with their folders, so the tables of folders are not
//! needed. Only one item is in memory at a time.

mod block;
mod checksum;
mod cipher;
mod context;
mod file;
#[cfg(test)]
pub(crate) mod fixture;
mod heap;
mod index;
mod layout;
mod page;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;

use super::item::{attachment_location, emit_item};
use super::properties::{Properties, PropertyValue, id};
use crate::error::ExtractError;
use crate::extractors::bytes::{u16_at, u32_at};
use crate::format::ReadSeek;
use crate::format::extraction::{Extraction, Location};
use crate::limits::ResourceUsage;
use context::{PropertyContext, read_table};
use file::DataFile;
use index::{Node, NodeId, NodeWalk};

const FORMAT: &str = "Outlook data file";
/// The maximum nesting depth of folders.
const FOLDER_DEPTH_MAX: usize = 64;
/// The maximum size of a property of a folder or a recipient.
const NAME_BYTES_MAX: u64 = 1 << 20;
/// Identifiers of properties from here on are assigned individually in each file.
const FIRST_NAMED_ID: u16 = 0x8000;
/// The property of the message store that identifies the root folder of the user, and the offset of
/// its node in the value.
const USER_FOLDER: u16 = 0x35e0;
const USER_FOLDER_NODE_OFFSET: usize = 20;
/// The property that lists named properties: number (4) │ interface (2) │ position (2).
const NAMED_PROPERTY_ENTRIES: u16 = 0x0003;
const NAMED_PROPERTY_ENTRY_BYTES: usize = 8;

fn damaged(reason: &str) -> ExtractError {
    ExtractError::malformed(FORMAT, reason)
}

/// Extracts from all items of the file.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn ReadSeek,
) -> Result<(), ExtractError> {
    let mut file = DataFile::open(reader)?;
    let mut nodes = NodeWalk::start(&mut file)?;
    let mut folders = Folders::read(&mut file);
    let named_ids = read_named_ids(&mut file);
    while let Some(entry) = nodes.next(&mut file) {
        extraction.limits.check_deadline()?;
        if entry.id.kind() != NodeId::ITEM {
            continue;
        }
        if location.depth == 0 {
            // A large file is no decompression bomb: each item has the limits of a file.
            extraction.usage = ResourceUsage::default();
        }
        let folder = folders.path(&mut file, entry.parent);
        let location = location.for_item(&folder, entry.id.number());
        if !extraction.takes_member(&location) {
            continue;
        }
        file.take_damage();
        let mut reader = ItemReader {
            file: &mut file,
            named_ids: &named_ids,
        };
        let result = reader.extract(extraction, &location, entry.node);
        let damage = file.take_damage().map_or(Ok(()), Err);
        extraction.record_result(&location, result.and(damage))?;
    }
    nodes.damage.map_or(Ok(()), Err)
}

/// The paths of folders.
struct Folders {
    /// The folder that contains the folders of the user.
    base: NodeId,
    paths: HashMap<NodeId, String>,
}

impl Folders {
    fn read(file: &mut DataFile<'_>) -> Self {
        let store = read_properties(file, NodeId::MESSAGE_STORE, &[USER_FOLDER]);
        let entry = store.bytes(USER_FOLDER).unwrap_or_default();
        let base = u32_at(entry, USER_FOLDER_NODE_OFFSET).map(NodeId);
        Folders {
            base: base.unwrap_or(NodeId::ROOT_FOLDER),
            paths: HashMap::new(),
        }
    }

    /// Returns the names of a folder and of those around it, divided by slashes. A damaged folder
    /// has no name.
    fn path(&mut self, file: &mut DataFile<'_>, folder: NodeId) -> String {
        if let Some(path) = self.paths.get(&folder) {
            return path.clone();
        }
        let mut names = Vec::new();
        let mut current = folder;
        while current != self.base
            && current != NodeId::ROOT_FOLDER
            && names.len() < FOLDER_DEPTH_MAX
        {
            let Ok(Some(entry)) = file.find_node(current) else {
                break;
            };
            let name = read_properties(file, current, &[id::DISPLAY_NAME]);
            names.extend(name.text(id::DISPLAY_NAME));
            if entry.parent == current {
                break;
            }
            current = entry.parent;
        }
        let names = names.iter().rev().map(|name| name.replace('/', "_"));
        let path = names.collect::<Vec<_>>().join("/");
        self.paths.insert(folder, path.clone());
        path
    }
}

/// Returns properties of a node of the file. Missing and damaged ones are skipped.
fn read_properties(file: &mut DataFile<'_>, node: NodeId, ids: &[u16]) -> Properties {
    let mut properties = Properties::default();
    if let Ok(Some(entry)) = file.find_node(node)
        && let Ok(context) = PropertyContext::read(file, entry.node)
    {
        for id in ids {
            context.add_to(file, &mut properties, *id, NAME_BYTES_MAX);
        }
    }
    properties
}

/// Returns the numbers of the supported named properties, by their identifiers in this file.
fn read_named_ids(file: &mut DataFile<'_>) -> HashMap<u16, u16> {
    let list = read_properties(file, NodeId::NAMED_PROPERTIES, &[NAMED_PROPERTY_ENTRIES]);
    let entries = list.bytes(NAMED_PROPERTY_ENTRIES).unwrap_or_default();
    let mut ids = HashMap::new();
    for entry in entries.chunks_exact(NAMED_PROPERTY_ENTRY_BYTES) {
        let fields = (u32_at(entry, 0), u16_at(entry, 4), u16_at(entry, 6));
        let (Some(number), Some(interface), Some(position)) = fields else {
            continue;
        };
        let number = u16::try_from(number).unwrap_or_default();
        let is_number = interface & 1 == 0;
        let is_read = id::CONTACT_ADDRESSES.contains(&number) || number == id::LOCATION;
        let id = FIRST_NAMED_ID.checked_add(position);
        if let Some(id) = id.filter(|_| is_number && is_read) {
            ids.insert(id, number);
        }
    }
    ids
}

/// Reads the items of a file.
struct ItemReader<'f, 'r> {
    file: &'f mut DataFile<'r>,
    named_ids: &'f HashMap<u16, u16>,
}

impl ItemReader<'_, '_> {
    /// Extracts from an item and its attachments.
    fn extract(
        &mut self,
        extraction: &mut Extraction<'_>,
        location: &Location,
        node: Node,
    ) -> Result<(), ExtractError> {
        extraction.limits.check_depth(location.depth)?;
        let bytes_max = extraction.limits.input_bytes_max;
        let context = PropertyContext::read(self.file, node)?;
        let mut item = self.read_item(&context, bytes_max);
        item.read_code_page();
        let class = item.text(id::MESSAGE_CLASS).unwrap_or_default();
        if INTERNAL_CLASSES
            .iter()
            .any(|prefix| class.starts_with(prefix))
        {
            return Ok(());
        }
        let recipients = self.read_recipients(&context, &item, bytes_max);
        let inner = emit_item(extraction, location, &item, &recipients)?;
        let attachments = context.subnodes.iter();
        let attachments = attachments.filter(|(id, _)| id.kind() == NodeId::ATTACHMENT);
        for (number, (_, node)) in attachments.enumerate() {
            extraction.usage.count_member(&extraction.limits)?;
            self.extract_attachment(extraction, &inner, *node, number + 1, &item)?;
        }
        Ok(())
    }

    /// Reads the properties of an item, and one of its bodies.
    fn read_item(&mut self, context: &PropertyContext, bytes_max: u64) -> Properties {
        const BODIES: [u16; 3] = [id::BODY, id::HTML, id::RTF_COMPRESSED];
        let mut item = self.read_short(context, &BODIES, bytes_max);
        for body in BODIES {
            context.add_to(self.file, &mut item, body, bytes_max);
            let is_empty = body == id::BODY && item.text(body).is_none();
            if item.bytes(body).is_some() && !is_empty {
                break;
            }
        }
        item
    }

    /// Reads the properties of a node without those of `others`.
    fn read_short(
        &mut self,
        context: &PropertyContext,
        others: &[u16],
        bytes_max: u64,
    ) -> Properties {
        let mut properties = Properties::default();
        for record in &context.records {
            let id = match record.id {
                FIRST_NAMED_ID.. => self.named_ids.get(&record.id).copied(),
                id => Some(id).filter(|id| !others.contains(id)),
            };
            let Some(id) = id else { continue };
            let value = context.value(self.file, *record, bytes_max);
            if let Some(value) = value {
                properties.insert(id, cut_subject_prefix(id, value));
            }
        }
        properties
    }

    fn read_recipients(
        &mut self,
        context: &PropertyContext,
        item: &Properties,
        bytes_max: u64,
    ) -> Vec<Properties> {
        let mut subnodes = context.subnodes.iter();
        let table = subnodes.find(|(id, _)| id.kind() == NodeId::RECIPIENTS);
        let Some((_, node)) = table else {
            return Vec::new();
        };
        let mut recipients = read_table(self.file, *node, bytes_max).unwrap_or_else(|error| {
            self.file.record_damage(error);
            Vec::new()
        });
        for recipient in &mut recipients {
            recipient.encoding = item.encoding;
        }
        recipients
    }

    fn extract_attachment(
        &mut self,
        extraction: &mut Extraction<'_>,
        location: &Location,
        node: Node,
        number: usize,
        item: &Properties,
    ) -> Result<(), ExtractError> {
        let bytes_max = extraction.limits.input_bytes_max;
        let outer_damage = self.file.take_damage();
        let context = PropertyContext::read(self.file, node);
        let mut attachment = match &context {
            Ok(context) => self.read_short(context, &[id::ATTACH_DATA], bytes_max),
            Err(_) => Properties::default(),
        };
        attachment.encoding = item.encoding;
        if attachment.is_inline_image() {
            return Ok(());
        }
        let object = context
            .as_ref()
            .ok()
            .and_then(|it| it.object_node(id::ATTACH_DATA));
        let method = attachment.number(id::ATTACH_METHOD).unwrap_or_default();
        let is_item = method == EMBEDDED_ITEM;
        let place = attachment_location(extraction, location, number, &attachment, is_item);
        let result = match (context, object) {
            (Err(error), _) => Err(error),
            (_, Some(node)) if is_item => self.extract(extraction, &place, node),
            (_, Some(_)) => Err(ExtractError::Unsupported("OLE object")),
            (Ok(_), None) if LINKED_FILE.contains(&method) => {
                Err(ExtractError::Unsupported("linked file"))
            }
            (Ok(context), None) => {
                context.add_to(self.file, &mut attachment, id::ATTACH_DATA, bytes_max);
                let bytes = attachment.bytes(id::ATTACH_DATA).unwrap_or_default();
                extraction.extract_bytes(&place, bytes)
            }
        };
        let damage = self.file.take_damage().map_or(Ok(()), Err);
        extraction.record_result(&place, result.and(damage))?;
        if let Some(error) = outer_damage {
            self.file.record_damage(error);
        }
        Ok(())
    }
}

/// Prefixes of the classes of items in which Outlook stores its own state.
const INTERNAL_CLASSES: [&str; 2] = ["IPM.Microsoft.", "IPM.Configuration."];
/// The methods of attachments that are in another file, and of attachments that are items.
const LINKED_FILE: [u64; 4] = [2, 3, 4, 7];
const EMBEDDED_ITEM: u64 = 5;

/// A subject can begin with U+0001 and a character that encodes the length of its prefix (`Re: `).
fn cut_subject_prefix(id: u16, value: PropertyValue) -> PropertyValue {
    match value {
        PropertyValue::Unicode(bytes) if id == id::SUBJECT && bytes.starts_with(&[1, 0]) => {
            PropertyValue::Unicode(bytes.get(4..).unwrap_or_default().to_vec())
        }
        PropertyValue::Text8(bytes) if id == id::SUBJECT && bytes.starts_with(&[1]) => {
            PropertyValue::Text8(bytes.get(2..).unwrap_or_default().to_vec())
        }
        value => value,
    }
}
