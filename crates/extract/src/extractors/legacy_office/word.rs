//! Documents of Word 97 to 2003.
//!
//! The stream `WordDocument` begins with the file information block (FIB) and contains the text in
//! pieces. One of two table streams contains the list of the pieces. The body comes first, then
//! notes, headers, comments and text boxes.

use super::malformed;
use crate::error::ExtractError;
use crate::extractors::bytes::{
    decode_latin, decode_utf16, length_at, slice_at, u8_at, u16_at, u32_at,
};
use crate::limits::Limits;
use crate::text_builder::{FlowBuilder, Separator};

const SIGNATURE: u16 = 0xa5ec;
/// Word 97. Versions before have another list of pieces.
const VERSION_MIN: u16 = 0xc1;
const FLAGS_AT: usize = 0x0a;
const FLAG_ENCRYPTED: u16 = 0x0100;
const FLAG_TABLE_1: u16 = 0x0200;
const PIECES_OFFSET_AT: usize = 0x01a2;
const PIECES_LENGTH_AT: usize = 0x01a6;
/// A flag in the offset of a piece: its characters have one byte each, at half the offset.
const FLAG_COMPRESSED: u32 = 0x4000_0000;

/// Appends the text of all pieces. `main` is the stream `WordDocument`, `tables` are the streams
/// `0Table` and `1Table`.
pub(super) fn append_document(
    main: &[u8],
    tables: &[Option<Vec<u8>>; 2],
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let flags = u16_at(main, FLAGS_AT).filter(|_| u16_at(main, 0) == Some(SIGNATURE));
    let flags = flags.ok_or_else(|| malformed("it has no file information block"))?;
    if flags & FLAG_ENCRYPTED != 0 {
        return Err(ExtractError::Encrypted("Word document"));
    }
    if u16_at(main, 2).is_some_and(|version| version < VERSION_MIN) {
        return Err(ExtractError::Unsupported("Word document before Word 97"));
    }
    let [table_0, table_1] = tables;
    let table = if flags & FLAG_TABLE_1 == 0 {
        table_0
    } else {
        table_1
    };
    let pieces = table.as_deref().and_then(|table| {
        let (offset, length) = (
            length_at(main, PIECES_OFFSET_AT)?,
            length_at(main, PIECES_LENGTH_AT)?,
        );
        find_pieces(slice_at(table, offset, length)?)
    });
    let pieces = pieces.ok_or_else(|| malformed("it has no list of its pieces of text"))?;
    let mut writer = TextWriter::default();
    // The list contains n + 1 positions of 4 bytes and n pieces of 8 bytes.
    let count = pieces.len().saturating_sub(4) / 12;
    for index in 0..count {
        limits.check_deadline()?;
        if text.is_full() {
            break;
        }
        let piece = read_piece(main, pieces, index, count)
            .ok_or_else(|| malformed(format!("its piece of text {index} is outside the file")))?;
        writer.push(&piece, text);
    }
    Ok(())
}

/// Returns the list of pieces. It follows property changes, which have the tag 1.
fn find_pieces(mut list: &[u8]) -> Option<&[u8]> {
    loop {
        match u8_at(list, 0)? {
            1 => list = list.get(3 + usize::from(u16_at(list, 1)?)..)?,
            2 => return slice_at(list, 5, length_at(list, 1)?),
            _ => return None,
        }
    }
}

fn read_piece(main: &[u8], pieces: &[u8], index: usize, count: usize) -> Option<String> {
    let (start, end) = (
        length_at(pieces, 4 * index)?,
        length_at(pieces, 4 * index + 4)?,
    );
    let length = end.checked_sub(start)?;
    let location = u32_at(pieces, 4 * (count + 1) + 8 * index + 2)?;
    let offset = usize::try_from(location & !FLAG_COMPRESSED).ok()?;
    if location & FLAG_COMPRESSED == 0 {
        Some(decode_utf16(slice_at(
            main,
            offset,
            length.checked_mul(2)?,
        )?))
    } else {
        Some(decode_latin(slice_at(main, offset / 2, length)?))
    }
}

/// Interprets the control characters.
#[derive(Default)]
struct TextWriter {
    words: String,
    /// The number of open fields whose code is being read. A field consists of U+0013, code,
    /// U+0014, result and U+0015.
    field_codes: u32,
    /// The last character was the end of a cell. A second one ends the row.
    ends_cell: bool,
}

impl TextWriter {
    fn push(&mut self, piece: &str, text: &mut FlowBuilder) {
        for character in piece.chars() {
            let ended_cell = std::mem::replace(&mut self.ends_cell, character == '\x07');
            match character {
                '\x13' => self.field_codes = self.field_codes.saturating_add(1),
                '\x14' | '\x15' => self.field_codes = self.field_codes.saturating_sub(1),
                _ if self.field_codes > 0 => {}
                '\x07' if ended_cell => self.separate(Separator::Line, text),
                '\x07' | '\t' => self.separate(Separator::Tab, text),
                '\r' | '\x0b' | '\x0e' => self.separate(Separator::Line, text),
                '\x0c' => self.separate(Separator::Paragraph, text),
                '\x1e' => self.words.push('\u{2011}'),
                // Pictures, notes, comments and optional hyphens.
                '\0'..='\x1f' => {}
                _ => self.words.push(character),
            }
        }
        self.separate(Separator::None, text);
    }

    fn separate(&mut self, separator: Separator, text: &mut FlowBuilder) {
        text.push_words(&self.words);
        self.words.clear();
        text.separate(separator);
    }
}
