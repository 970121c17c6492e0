//! Workbooks of Excel: the cached values of all cells. Formulas are not read.

use super::relationships::read_relationships;
use super::text_part::append_related_parts;
use crate::error::ExtractError;
use crate::extractors::cells::{CellFormats, SharedStrings, strip_header_codes};
use crate::text_builder::FlowBuilder;
use crate::xml::{XmlElement, XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;

/// The parts after each sheet, in this order: text boxes, comments.
const PART_KINDS: [&str; 3] = ["drawing", "comments", "threadedComment"];

/// Appends the sheets in their order, each after its name and with its text boxes and comments.
/// `xml` is the content of the part `main`.
pub(super) fn append_workbook(
    package: &mut ZipPackage<'_>,
    main: &str,
    xml: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let relationships = read_relationships(package, main)?;
    let find_target = |kind: &str| {
        let found = relationships.iter().find(|part| part.kind == kind);
        found.map(|part| part.target.clone())
    };
    let mut workbook = read_workbook(package, xml)?;
    if let Some(target) = find_target("sharedStrings")
        && let Some(xml) = package.read_xml(&target)?
    {
        workbook.strings = read_shared_strings(package, &xml)?;
    }
    if let Some(target) = find_target("styles")
        && let Some(xml) = package.read_xml(&target)?
    {
        read_styles(package, &xml, &mut workbook.formats)?;
    }
    for sheet in &workbook.sheets {
        if text.is_full() {
            break;
        }
        text.start_section();
        text.push_words(&sheet.name);
        let part = relationships.iter().find(|part| part.id == sheet.id);
        if let Some(part) = part
            && package.is_first_use(&part.target)
        {
            append_sheet(package, &workbook, &part.target, text)?;
        }
    }
    Ok(())
}

fn append_sheet(
    package: &mut ZipPackage<'_>,
    workbook: &Workbook,
    target: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let Some(xml) = package.read_xml(target)? else {
        return Ok(());
    };
    append_cells(package, workbook, &xml, text)?;
    append_related_parts(package, target, &PART_KINDS, text)
}

fn append_cells(
    package: &ZipPackage<'_>,
    workbook: &Workbook,
    xml: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    let mut cell = Cell::default();
    while !text.is_full()
        && let Some(event) = reader.next()?
    {
        match event {
            XmlEvent::Start(element) => match element.name() {
                "row" => text.break_row(),
                "c" => cell = Cell::new(&element),
                "v" => cell.push_value(workbook, &reader.read_element_text()?, text),
                "is" => text.push_words(&read_rich_text(&mut reader)?),
                "f" => reader.skip_element()?,
                name if is_header(name) => {
                    text.start_section();
                    text.push_words(&strip_header_codes(&reader.read_element_text()?));
                }
                _ => {}
            },
            XmlEvent::End(name) if name == "c" => text.end_cell(),
            XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
    }
    Ok(())
}

/// A header or footer of odd, even or first pages.
fn is_header(name: &str) -> bool {
    ["odd", "even", "first"]
        .iter()
        .filter_map(|pages| name.strip_prefix(pages))
        .any(|rest| matches!(rest, "Header" | "Footer"))
}

struct Workbook {
    sheets: Vec<Sheet>,
    strings: SharedStrings,
    formats: CellFormats,
}

struct Sheet {
    name: String,
    /// The id of the relationship to its part.
    id: String,
}

fn read_workbook(package: &ZipPackage<'_>, xml: &str) -> Result<Workbook, ExtractError> {
    let mut workbook = Workbook {
        sheets: Vec::new(),
        strings: SharedStrings::default(),
        formats: CellFormats::default(),
    };
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    while let Some(event) = reader.next()? {
        let XmlEvent::Start(element) = event else {
            continue;
        };
        match element.name() {
            "sheet" => workbook.sheets.push(Sheet {
                name: element.attribute("name").unwrap_or_default(),
                id: element.prefixed_attribute("id").unwrap_or_default(),
            }),
            "workbookPr" => {
                let value = element.attribute("date1904");
                workbook.formats.starts_in_1904 = matches!(value.as_deref(), Some("1" | "true"));
            }
            _ => {}
        }
    }
    Ok(workbook)
}

/// Reads the formats of cells from the part `styles.xml`.
fn read_styles(
    package: &ZipPackage<'_>,
    xml: &str,
    formats: &mut CellFormats,
) -> Result<(), ExtractError> {
    let mut in_cell_formats = false;
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    while let Some(event) = reader.next()? {
        match event {
            XmlEvent::Start(element) => {
                let format = element.attribute("numFmtId");
                let format = format.and_then(|format| format.parse().ok()).unwrap_or(0);
                match element.name() {
                    "cellXfs" => in_cell_formats = true,
                    "numFmt" => {
                        let code = element.attribute("formatCode").unwrap_or_default();
                        formats.add_format(format, &code);
                    }
                    "xf" if in_cell_formats => formats.push_style(format),
                    _ => {}
                }
            }
            XmlEvent::End(name) if name == "cellXfs" => in_cell_formats = false,
            XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
    }
    Ok(())
}

/// The type and style of the current cell.
#[derive(Default)]
struct Cell {
    value_type: String,
    style: Option<usize>,
}

impl Cell {
    fn new(element: &XmlElement<'_>) -> Self {
        Cell {
            value_type: element.attribute("t").unwrap_or_default(),
            style: element.attribute("s").and_then(|style| style.parse().ok()),
        }
    }

    fn push_value(&self, workbook: &Workbook, value: &str, text: &mut FlowBuilder) {
        match self.value_type.as_str() {
            "s" => {
                let string = value
                    .parse()
                    .ok()
                    .and_then(|index| workbook.strings.get(index));
                text.push_words(string.unwrap_or_default());
            }
            "b" => text.push_words(if value == "0" { "FALSE" } else { "TRUE" }),
            "" | "n" => match value.parse() {
                Ok(number) => text.push_words(&workbook.formats.format(number, self.style)),
                Err(_) => text.push_words(value),
            },
            // Results of formulas, errors and dates.
            _ => text.push_words(value),
        }
    }
}

fn read_shared_strings(package: &ZipPackage<'_>, xml: &str) -> Result<SharedStrings, ExtractError> {
    let mut strings = SharedStrings::default();
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    while let Some(event) = reader.next()? {
        if let XmlEvent::Start(element) = event
            && element.name() == "si"
        {
            strings.push(&read_rich_text(&mut reader)?);
        }
    }
    Ok(strings)
}

/// Returns the text of a string whose start tag was just returned, without phonetic hints.
fn read_rich_text(reader: &mut XmlReader<'_>) -> Result<String, ExtractError> {
    let (mut text, mut depth, mut text_depth) = (String::new(), 1u64, 0u64);
    while depth > 0
        && let Some(event) = reader.next()?
    {
        match event {
            XmlEvent::Start(element) if element.name() == "rPh" => reader.skip_element()?,
            XmlEvent::Start(element) => {
                depth += 1;
                text_depth += u64::from(element.name() == "t");
            }
            XmlEvent::End(name) => {
                depth -= 1;
                text_depth -= u64::from(name == "t");
            }
            XmlEvent::Text(words) if text_depth > 0 => text.push_str(&words),
            XmlEvent::Text(_) => {}
        }
    }
    Ok(text)
}
