//! Workbooks of Excel 97 to 2003: the cached values of all cells. Formulas are not read.
//!
//! The stream `Workbook` is a sequence of records: type (u16), length (u16), content. Records of
//! the whole workbook come first. Each sheet begins at an offset that its `BOUNDSHEET` contains.

mod strings;

use super::malformed;
use crate::error::ExtractError;
use crate::extractors::bytes::{length_at, slice_at, u8_at, u16_at, u32_at, u64_at};
use crate::extractors::cells::{CellFormats, SharedStrings, strip_header_codes};
use crate::limits::Limits;
use crate::text_builder::FlowBuilder;
use strings::{StringReader, read_short_string, read_string};

const BOF: u16 = 0x0809;
const EOF: u16 = 0x000a;
const CONTINUE: u16 = 0x003c;
const FILEPASS: u16 = 0x002f;
const DATEMODE: u16 = 0x0022;
const BOUNDSHEET: u16 = 0x0085;
const FORMAT: u16 = 0x041e;
const XF: u16 = 0x00e0;
const SST: u16 = 0x00fc;
const HEADER: u16 = 0x0014;
const FOOTER: u16 = 0x0015;
const FORMULA: u16 = 0x0006;
const STRING: u16 = 0x0207;
const LABEL: u16 = 0x0204;
const RSTRING: u16 = 0x00d6;
const LABELSST: u16 = 0x00fd;
const NUMBER: u16 = 0x0203;
const RK: u16 = 0x027e;
const MULRK: u16 = 0x00bd;
const BOOLERR: u16 = 0x0205;
/// The text of a comment or text box, in the next record.
const TXO: u16 = 0x01b6;
/// The version of Excel 97 and later in [`BOF`].
const VERSION_97: u16 = 0x0600;
const RECORDS_PER_CHECK: usize = 4096;

/// Appends the sheets in their order, each after its name.
pub(super) fn append_workbook(
    stream: &[u8],
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let workbook = Workbook::read(stream, limits)?;
    for sheet in &workbook.sheets {
        if text.is_full() {
            break;
        }
        text.start_section();
        text.push_words(&sheet.name);
        let records = stream.get(sheet.offset..);
        let records = records.ok_or_else(|| malformed("a sheet begins after its end"))?;
        append_sheet(records, &workbook, limits, text)?;
    }
    Ok(())
}

struct Workbook {
    sheets: Vec<Sheet>,
    strings: SharedStrings,
    formats: CellFormats,
}

struct Sheet {
    name: String,
    offset: usize,
}

impl Workbook {
    /// Reads the records before the sheets.
    fn read(stream: &[u8], limits: &Limits) -> Result<Self, ExtractError> {
        let mut workbook = Workbook {
            sheets: Vec::new(),
            strings: SharedStrings::default(),
            formats: CellFormats::default(),
        };
        let first = Records(stream).next().filter(|first| first.kind == BOF);
        let first = first.ok_or_else(|| malformed("its workbook has no beginning"))?;
        if u16_at(first.content, 0) != Some(VERSION_97) {
            return Err(ExtractError::Unsupported("Excel workbook before Excel 97"));
        }
        for (number, record) in Records(stream).enumerate() {
            if number % RECORDS_PER_CHECK == 0 {
                limits.check_deadline()?;
            }
            match record.kind {
                FILEPASS => return Err(ExtractError::Encrypted("Excel workbook")),
                EOF => break,
                SST => workbook.strings = read_strings(&record, stream, limits)?,
                _ => workbook.read_record(&record),
            }
        }
        Ok(workbook)
    }

    fn read_record(&mut self, record: &Record<'_>) {
        let content = record.content;
        match record.kind {
            DATEMODE => self.formats.starts_in_1904 = u16_at(content, 0) == Some(1),
            XF => {
                let format = u16_at(content, 2).unwrap_or(0);
                self.formats.push_style(format.into());
            }
            FORMAT => {
                if let (Some(format), Some(code)) =
                    (u16_at(content, 0), content.get(2..).and_then(read_string))
                {
                    self.formats.add_format(format.into(), &code);
                }
            }
            BOUNDSHEET => self.sheets.extend(read_sheet(content)),
            _ => {}
        }
    }
}

fn read_sheet(content: &[u8]) -> Option<Sheet> {
    Some(Sheet {
        offset: length_at(content, 0)?,
        name: read_short_string(content.get(6..)?)?,
    })
}

/// Reads the strings of all cells. They can continue in `CONTINUE` records.
fn read_strings(
    record: &Record<'_>,
    stream: &[u8],
    limits: &Limits,
) -> Result<SharedStrings, ExtractError> {
    let rest = stream.get(record.end_in(stream)..).unwrap_or_default();
    let continued = Records(rest).take_while(|record| record.kind == CONTINUE);
    let mut segments = vec![record.content.get(8..).unwrap_or_default()];
    segments.extend(continued.map(|record| record.content));
    let mut reader = StringReader::new(segments);
    let mut strings = SharedStrings::default();
    while let Some(string) = reader.read() {
        if strings.len() % RECORDS_PER_CHECK == 0 {
            limits.check_deadline()?;
        }
        strings.push(&string);
    }
    Ok(strings)
}

fn append_sheet(
    records: &[u8],
    workbook: &Workbook,
    limits: &Limits,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let (mut row, mut depth, mut text_follows) = (None, 0u32, false);
    for (number, record) in Records(records).enumerate() {
        if number % RECORDS_PER_CHECK == 0 {
            limits.check_deadline()?;
        }
        // Charts are nested sequences of records.
        match record.kind {
            BOF => depth += 1,
            EOF if depth <= 1 => break,
            EOF => depth -= 1,
            _ => {}
        }
        if text.is_full() {
            break;
        }
        if is_cell(record.kind) {
            let cell_row = u16_at(record.content, 0);
            if row.replace(cell_row) != Some(cell_row) {
                text.break_row();
            }
        }
        append_record(&record, workbook, text_follows, text);
        text_follows = record.kind == TXO;
    }
    Ok(())
}

fn is_cell(kind: u16) -> bool {
    matches!(
        kind,
        FORMULA | LABEL | RSTRING | LABELSST | NUMBER | RK | MULRK | BOOLERR
    )
}

/// Appends the values of a record. A cell begins with its row, column and style.
fn append_record(
    record: &Record<'_>,
    workbook: &Workbook,
    text_follows: bool,
    text: &mut FlowBuilder,
) {
    let content = record.content;
    let style = u16_at(content, 4).map(usize::from);
    let number_at = |offset| u64_at(content, offset).map(f64::from_bits);
    let format = |number: Option<f64>| Some(workbook.formats.format(number?, style));
    let value = match record.kind {
        LABELSST => length_at(content, 6)
            .and_then(|index| workbook.strings.get(index))
            .map(str::to_string),
        LABEL | RSTRING => content.get(6..).and_then(read_string),
        // The result of the preceding formula.
        STRING => read_string(content),
        NUMBER => format(number_at(6)),
        RK => format(u32_at(content, 6).map(decode_rk)),
        FORMULA if u16_at(content, 12) == Some(0xffff) => match u8_at(content, 6) {
            Some(1) => u8_at(content, 8).map(format_bool),
            _ => None,
        },
        FORMULA => format(number_at(6)),
        BOOLERR if u8_at(content, 7) == Some(0) => u8_at(content, 6).map(format_bool),
        MULRK => return append_numbers(content, workbook, text),
        HEADER | FOOTER => {
            text.start_section();
            read_string(content).map(|header| strip_header_codes(&header))
        }
        CONTINUE if text_follows => {
            text.start_section();
            let length = content.len().saturating_sub(1);
            strings::decode_characters(content, length)
        }
        _ => None,
    };
    if let Some(value) = value {
        text.push_words(&value);
        text.end_cell();
    }
}

/// Appends several cells of a row, each with a style and a number.
fn append_numbers(content: &[u8], workbook: &Workbook, text: &mut FlowBuilder) {
    let cells = slice_at(content, 4, content.len().saturating_sub(6)).unwrap_or_default();
    for cell in cells.chunks_exact(6) {
        let style = u16_at(cell, 0).map(usize::from);
        let number = u32_at(cell, 2).map_or(0.0, decode_rk);
        text.push_words(&workbook.formats.format(number, style));
        text.end_cell();
    }
}

/// Decodes a number of 30 bits: an integer or the first half of a float, possibly in hundredths.
fn decode_rk(number: u32) -> f64 {
    let value = if number & 2 == 0 {
        f64::from_bits(u64::from(number & !3) << 32)
    } else {
        f64::from(number.cast_signed() >> 2)
    };
    if number & 1 == 0 {
        value
    } else {
        value / 100.0
    }
}

fn format_bool(value: u8) -> String {
    if value == 0 { "FALSE" } else { "TRUE" }.to_string()
}

struct Record<'a> {
    kind: u16,
    content: &'a [u8],
}

impl Record<'_> {
    /// Returns the offset of the end of the record in the stream that contains it.
    fn end_in(&self, stream: &[u8]) -> usize {
        let start = self.content.as_ptr().addr() - stream.as_ptr().addr();
        start + self.content.len()
    }
}

/// A sequence of records. It ends at the first damaged one.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let length = usize::from(u16_at(self.0, 2)?);
        let record = Record {
            kind: u16_at(self.0, 0)?,
            content: slice_at(self.0, 4, length)?,
        };
        self.0 = self.0.get(4 + length..)?;
        Some(record)
    }
}
