//! Jupyter notebooks: the sources and outputs of the cells. Source: the schema of nbformat 4,
//! <https://nbformat.readthedocs.io/en/latest/format_description.html>.

use serde_json::Value;

use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::terminal_text::remove_terminal_codes;
use crate::text_builder::{Separator, TextBuilder};

const FORMAT: &str = "notebook";

/// Extracts the cells.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let decoded = encoding::decode(input.bytes, usize::MAX);
    // The parser limits the nesting.
    let notebook: Value = serde_json::from_str(&decoded.text)
        .map_err(|error| ExtractError::malformed(FORMAT, error))?;
    // Version 3 has worksheets.
    let cells = notebook
        .get("cells")
        .or_else(|| notebook.pointer("/worksheets/0/cells"))
        .and_then(Value::as_array)
        .ok_or_else(|| ExtractError::malformed(FORMAT, "it has no cells"))?;
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let mut heading = None;
    for cell in cells {
        limits.check_deadline()?;
        let source = cell.get("source").or_else(|| cell.get("input"));
        let source = source.map(join_lines).unwrap_or_default();
        if heading.is_none() && cell.get("cell_type").is_some_and(|kind| kind == "markdown") {
            heading = find_heading(&source);
        }
        push(&mut text, &source);
        for output in cell
            .get("outputs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            push_output(&mut text, output);
        }
    }
    let mut document = text.into_document(DocumentKind::Notebook, false);
    let title = notebook.pointer("/metadata/title").and_then(Value::as_str);
    document.title = title.and_then(clean_property).or(heading);
    let language = [
        "/metadata/kernelspec/language",
        "/metadata/language_info/name",
    ];
    let language = language
        .iter()
        .find_map(|path| notebook.pointer(path)?.as_str());
    document.metadata.syntax = language.map(str::to_lowercase);
    let authors = notebook
        .pointer("/metadata/authors")
        .and_then(Value::as_array);
    let names = authors.into_iter().flatten();
    let names: Vec<&str> = names
        .filter_map(|author| author.get("name")?.as_str())
        .collect();
    document.metadata.author = clean_property(&names.join(", "));
    Ok(document)
}

/// Appends the text of an output. Pictures have none.
fn push_output(text: &mut TextBuilder, output: &Value) {
    let plain = output
        .get("text")
        .or_else(|| output.pointer("/data/text~1plain"));
    if let Some(plain) = plain {
        push(text, &remove_terminal_codes(&join_lines(plain)));
    }
    if let Some(message) = output.get("evalue").and_then(Value::as_str) {
        let name = output
            .get("ename")
            .and_then(Value::as_str)
            .unwrap_or_default();
        push(text, &format!("{name}: {}", remove_terminal_codes(message)));
    }
}

fn push(text: &mut TextBuilder, piece: &str) {
    text.separate(Separator::Paragraph);
    text.push_verbatim(piece.trim_end());
    text.separate(Separator::Paragraph);
}

/// Returns a text that is stored as a string or as an array of lines.
fn join_lines(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn find_heading(markdown: &str) -> Option<String> {
    let line = markdown.lines().find(|line| line.starts_with('#'))?;
    clean_property(line.trim_start_matches('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{extract_documents, extract_outputs};

    #[test]
    fn cells_and_outputs_are_read() {
        let source = r##"{"cells": [
            {"cell_type": "markdown", "source": ["# The title\n", "Gr\u00f6\u00dfe"]},
            {"cell_type": "code", "source": "print(1)", "outputs": [
                {"text": ["1\n"]}, {"data": {"text/plain": ["'two'"], "image/png": "iVBOR"}},
                {"ename": "ValueError", "evalue": "\u001b[31mbad"}]}],
            "metadata": {"kernelspec": {"language": "Python"}}, "nbformat": 4}"##;
        let documents = extract_documents("a.ipynb", source.as_bytes());
        let document = &documents[0];
        assert_eq!(
            document.text,
            "# The title\nGröße\n\nprint(1)\n\n1\n\n'two'\n\nValueError: bad"
        );
        assert_eq!(
            (document.kind, document.title.as_deref()),
            (DocumentKind::Notebook, Some("The title"))
        );
        assert_eq!(document.metadata.syntax.as_deref(), Some("python"));
        assert_eq!(
            extract_outputs("a.ipynb", b"{").1.map_err(|e| e.code()),
            Err("malformed")
        );
        assert_eq!(
            extract_outputs("a.ipynb", b"{}").1.map_err(|e| e.code()),
            Err("malformed")
        );
    }
}
