//! Interactive parts of a PDF: form fields, notes and embedded files.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, Stream};

use super::decode_text_string;
use crate::error::ExtractError;
use crate::limits::Limits;

/// The maximum number of fields, notes and names. Damaged trees can be cyclic.
const NODES_MAX: usize = 20_000;
const DEPTH_MAX: u32 = 32;

/// Returns a line for each form field with a value and for each note.
pub(super) fn read_notes(
    pdf: &Pdf,
    pages_max: usize,
    limits: &Limits,
) -> Result<Vec<String>, ExtractError> {
    let mut lines = Vec::new();
    let form = catalog(pdf).and_then(|it| it.get::<Dict<'_>>("AcroForm"));
    if let Some(fields) = form.and_then(|form| form.get::<Array<'_>>("Fields")) {
        let mut walk = DictWalk::new(limits);
        walk.read_fields(&fields, "", 0, &mut lines)?;
    }
    let mut seen = HashSet::new();
    for page in pdf.pages().iter().take(pages_max) {
        limits.check_deadline()?;
        let Some(notes) = page.raw().get::<Array<'_>>("Annots") else {
            continue;
        };
        for note in notes.iter::<Dict<'_>>().take(NODES_MAX) {
            if lines.len() >= NODES_MAX {
                return Ok(lines);
            }
            let is_field = note
                .get::<Name<'_>>("Subtype")
                .is_some_and(|kind| &*kind == b"Widget");
            if is_field {
                continue;
            }
            for key in ["Subj", "Contents"] {
                let text = read_text(&note, key);
                lines.extend(text.filter(|text| seen.insert(text.clone())));
            }
        }
    }
    Ok(lines)
}

/// Returns the names and contents of embedded files.
pub(super) fn find_attachments<'p>(
    pdf: &'p Pdf,
    pages_max: usize,
    limits: &Limits,
) -> Result<Vec<(String, Stream<'p>)>, ExtractError> {
    let mut found = Vec::new();
    let mut walk = DictWalk::new(limits);
    let names = catalog(pdf).and_then(|it| it.get::<Dict<'_>>("Names"));
    if let Some(tree) = names.and_then(|names| names.get::<Dict<'_>>("EmbeddedFiles")) {
        walk.read_names(&tree, 0, &mut found)?;
    }
    for page in pdf.pages().iter().take(pages_max) {
        limits.check_deadline()?;
        let notes = page.raw().get::<Array<'_>>("Annots");
        let files = notes
            .iter()
            .flat_map(|notes| notes.iter::<Dict<'_>>().take(NODES_MAX));
        found.extend(files.filter_map(|note| read_file(&note.get::<Dict<'_>>("FS")?)));
    }
    let mut seen = HashSet::new();
    found.retain(|(_, stream)| seen.insert(stream.obj_id()));
    Ok(found)
}

/// Returns the XMP metadata of the document.
pub(super) fn read_metadata_stream(pdf: &Pdf) -> Option<Vec<u8>> {
    let stream = catalog(pdf)?.get::<Stream<'_>>("Metadata")?;
    Some(stream.decoded().ok()?.into_owned())
}

fn catalog(pdf: &Pdf) -> Option<Dict<'_>> {
    pdf.xref().get(pdf.xref().root_id())
}

/// A walk through a tree of dictionaries.
struct DictWalk<'l> {
    limits: &'l Limits,
    nodes: usize,
}

impl<'l> DictWalk<'l> {
    fn new(limits: &'l Limits) -> Self {
        DictWalk { limits, nodes: 0 }
    }

    /// Returns `false` if the limit is reached.
    fn enter(&mut self, depth: u32) -> Result<bool, ExtractError> {
        self.limits.check_deadline()?;
        self.nodes += 1;
        Ok(depth <= DEPTH_MAX && self.nodes <= NODES_MAX)
    }

    fn read_fields(
        &mut self,
        fields: &Array<'_>,
        parent: &str,
        depth: u32,
        lines: &mut Vec<String>,
    ) -> Result<(), ExtractError> {
        for field in fields.iter::<Dict<'_>>() {
            if !self.enter(depth)? {
                return Ok(());
            }
            // The display name takes precedence over the internal name.
            let label = read_text(&field, "TU").or_else(|| read_text(&field, "T"));
            let label = label.unwrap_or_else(|| parent.to_owned());
            if let Some(value) = read_value(&field) {
                lines.push(if label.is_empty() {
                    value
                } else {
                    format!("{label}: {value}")
                });
            }
            if let Some(kids) = field.get::<Array<'_>>("Kids") {
                self.read_fields(&kids, &label, depth + 1, lines)?;
            }
        }
        Ok(())
    }

    fn read_names<'p>(
        &mut self,
        node: &Dict<'p>,
        depth: u32,
        found: &mut Vec<(String, Stream<'p>)>,
    ) -> Result<(), ExtractError> {
        if !self.enter(depth)? {
            return Ok(());
        }
        // Names and files alternate.
        if let Some(names) = node.get::<Array<'p>>("Names") {
            let files = names.iter::<Object<'p>>().filter_map(Object::into_dict);
            found.extend(files.take(NODES_MAX).filter_map(|file| read_file(&file)));
        }
        if let Some(kids) = node.get::<Array<'p>>("Kids") {
            for kid in kids.iter::<Dict<'p>>() {
                self.read_names(&kid, depth + 1, found)?;
            }
        }
        Ok(())
    }
}

/// Returns the name and content of a file specification.
fn read_file<'p>(file: &Dict<'p>) -> Option<(String, Stream<'p>)> {
    let content = file.get::<Dict<'p>>("EF")?;
    let stream = content
        .get::<Stream<'p>>("UF")
        .or_else(|| content.get::<Stream<'p>>("F"))?;
    let name = read_text(file, "UF").or_else(|| read_text(file, "F"));
    Some((name.unwrap_or_else(|| "attachment".into()), stream))
}

/// Returns the value of a field: a text, or the name of the selected option. `None` for an
/// unchecked box.
fn read_value(field: &Dict<'_>) -> Option<String> {
    match field.get::<Object<'_>>("V")? {
        Object::String(text) => decode_text_string(text.as_bytes()),
        Object::Name(name) if &*name != b"Off" => decode_text_string(&name),
        Object::Stream(stream) => decode_text_string(&stream.decoded().ok()?),
        Object::Array(values) => {
            let values = values.iter::<Object<'_>>().filter_map(Object::into_string);
            let values: Vec<String> = values
                .filter_map(|it| decode_text_string(it.as_bytes()))
                .collect();
            (!values.is_empty()).then(|| values.join(", "))
        }
        _ => None,
    }
}

fn read_text(dict: &Dict<'_>, key: &str) -> Option<String> {
    let object = dict.get::<Object<'_>>(key)?;
    decode_text_string(object.into_string()?.as_bytes())
}
