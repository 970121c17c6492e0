//! Presentations of PowerPoint 97 to 2003.
//!
//! The stream `PowerPoint Document` is a sequence of records, which can be nested. Each save
//! appends changed records. The stream `Current User` has the offset of the last edit, which refers
//! to the edit before and to a directory of records that it wrote.
//!
//! ```text
//! record     version and instance (u16), type (u16), length (u32), content
//! edit       …, offset of the edit before (at 8), of its directory (at 12), id of the document
//! directory  first id (20 bits) and count (12 bits), then offsets; repeated
//! ```

use std::collections::HashMap;

use super::malformed;
use crate::error::ExtractError;
use crate::extractors::bytes::{decode_latin, decode_utf16, length_at, slice_at, u16_at, u32_at};
use crate::limits::Limits;
use crate::text_builder::FlowBuilder;

const TOKEN_AT: usize = 12;
const TOKEN_ENCRYPTED: u32 = 0xf3d1_c4df;
const LAST_EDIT_AT: usize = 16;

const EDIT: u16 = 0x0ff5;
const DIRECTORY: u16 = 0x1772;
const SLIDE_LIST: u16 = 0x0ff0;
const SLIDE_REFERENCE: u16 = 0x03f3;
const TEXT_UTF16: u16 = 0x0fa0;
const TEXT_LATIN: u16 = 0x0fa8;
/// Names and, within comments, words.
const STRING: u16 = 0x0fba;
const COMMENT: u16 = 0x2ee0;
/// The instances of slide lists. Instance 1 is that of masters.
const SLIDES: u16 = 0;
const NOTES: u16 = 2;

/// Appends the slides in their order, then the notes. `main` is the stream `PowerPoint Document`,
/// `user` the stream `Current User`.
pub(super) fn append_presentation(
    main: &[u8],
    user: &[u8],
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    if u32_at(user, TOKEN_AT) == Some(TOKEN_ENCRYPTED) {
        return Err(ExtractError::Encrypted("PowerPoint presentation"));
    }
    let directory = length_at(user, LAST_EDIT_AT)
        .and_then(|offset| Directory::read(main, offset))
        .ok_or_else(|| malformed("it has no directory of its slides"))?;
    let document = directory
        .find(main, directory.document)
        .ok_or_else(|| malformed("it has no list of its slides"))?;
    for instance in [SLIDES, NOTES] {
        let lists = Records::new(document.content);
        for list in lists.filter(|list| list.kind == SLIDE_LIST && list.instance == instance) {
            append_slides(main, &directory, list.content, limits, text)?;
        }
    }
    Ok(())
}

/// Appends a list of references to slides, each followed by the texts of its outline.
fn append_slides(
    main: &[u8],
    directory: &Directory,
    list: &[u8],
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let mut slide = None;
    let append_shapes = |slide: Option<Record<'_>>, text: &mut FlowBuilder| match slide {
        Some(slide) => append_texts(slide.content, limits, text),
        None => Ok(()),
    };
    for record in Records::new(list) {
        limits.check_deadline()?;
        if text.is_full() {
            return Ok(());
        }
        if record.kind == SLIDE_REFERENCE {
            append_shapes(slide.take(), text)?;
            text.start_section();
            slide = u32_at(record.content, 0).and_then(|id| directory.find(main, id));
        } else {
            push_text(&record, false, text);
        }
    }
    append_shapes(slide, text)
}

/// Appends the texts within a record, at all depths.
fn append_texts(
    content: &[u8],
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let mut in_comment = false;
    for (number, record) in Records::flat(content).enumerate() {
        if number % 4096 == 0 {
            limits.check_deadline()?;
        }
        if text.is_full() {
            break;
        }
        if record.is_container() {
            in_comment = record.kind == COMMENT;
        }
        push_text(&record, in_comment, text);
    }
    Ok(())
}

fn push_text(record: &Record<'_>, in_comment: bool, text: &mut FlowBuilder) {
    let words = match record.kind {
        TEXT_UTF16 => decode_utf16(record.content),
        TEXT_LATIN => decode_latin(record.content),
        // The first string of a comment is its author, the second its text.
        STRING if in_comment && record.instance == 1 => decode_utf16(record.content),
        _ => return,
    };
    for line in words.split(['\r', '\x0b']) {
        text.start_paragraph();
        text.push_words(&line.replace('\0', ""));
    }
}

/// The offsets of records by their id.
struct Directory {
    offsets: HashMap<u32, usize>,
    /// The id of the record that contains the slide lists.
    document: u32,
}

impl Directory {
    /// Reads the directories of all edits from the last one on.
    fn read(main: &[u8], last_edit: usize) -> Option<Directory> {
        let mut edit = Record::read(main, last_edit).filter(|edit| edit.kind == EDIT)?;
        let mut directory = Directory {
            offsets: HashMap::new(),
            document: u32_at(edit.content, 16)?,
        };
        let mut offset = last_edit;
        loop {
            directory.add(Record::read(main, length_at(edit.content, 12)?)?);
            let before = length_at(edit.content, 8)?;
            // Edits are appended, so a reference to a later edit is damaged and could form a cycle.
            if before == 0 || before >= offset {
                return Some(directory);
            }
            offset = before;
            edit = Record::read(main, offset).filter(|edit| edit.kind == EDIT)?;
        }
    }

    fn add(&mut self, record: Record<'_>) {
        let (entries, _) = record.content.as_chunks::<4>();
        let mut entries = entries.iter().map(|entry| u32::from_le_bytes(*entry));
        while record.kind == DIRECTORY
            && let Some(head) = entries.next()
        {
            let first = head & 0x000f_ffff;
            for (id, offset) in (first..).zip(entries.by_ref().take((head >> 20) as usize)) {
                // The directories of later edits take precedence, and were read before.
                self.offsets.entry(id).or_insert(offset as usize);
            }
        }
    }

    fn find<'a>(&self, main: &'a [u8], id: u32) -> Option<Record<'a>> {
        Record::read(main, *self.offsets.get(&id)?)
    }
}

struct Record<'a> {
    version: u16,
    instance: u16,
    kind: u16,
    content: &'a [u8],
}

impl<'a> Record<'a> {
    fn read(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let head = u16_at(bytes, offset)?;
        Some(Record {
            version: head & 0xf,
            instance: head >> 4,
            kind: u16_at(bytes, offset.checked_add(2)?)?,
            content: slice_at(bytes, offset.checked_add(8)?, length_at(bytes, offset + 4)?)?,
        })
    }

    /// Returns `true` if the content is a sequence of records.
    fn is_container(&self) -> bool {
        self.version == 0xf
    }
}

/// A sequence of records. It ends at the first damaged one.
struct Records<'a> {
    rest: &'a [u8],
    /// The records inside a container are visited after the container.
    is_flat: bool,
}

impl<'a> Records<'a> {
    fn new(content: &'a [u8]) -> Self {
        Records {
            rest: content,
            is_flat: false,
        }
    }

    fn flat(content: &'a [u8]) -> Self {
        Records {
            rest: content,
            is_flat: true,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = Record::read(self.rest, 0)?;
        let length = if self.is_flat && record.is_container() {
            0
        } else {
            record.content.len()
        };
        self.rest = self.rest.get(8 + length..)?;
        Some(record)
    }
}
