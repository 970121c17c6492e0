//! The entries of a document in a search index.
//!
//! 1. The document is walked along the mappings. Each path collects the terms of its strings, its
//!    values and its number of tokens.
//! 2. One entry is emitted for each distinct key of a path, once the length of the path is known.

use std::collections::{BTreeMap, HashMap};

use windrow_document::{Array, Document, ValueRef};
use windrow_postings::Posting;
use windrow_postings::payload::put_position;
use windrow_text::{SearchAnalyzer, SearchTokenizer};

use super::SearchDefinition;
use super::keys::{
    EXISTS, TERM, TERM_BYTES_MAX, VALUE, append_prefix, append_value_key, multi_path,
};
use super::mapping::{DocumentMapping, FieldMapping, IndexOptions, StringMapping};

/// The number of positions between the strings of one field: phrases do not match across them.
pub const VALUE_GAP: u32 = 100;

/// The subtype of UUIDs in binary values, and their length in bytes.
const UUID_SUBTYPE: u8 = 4;
const UUID_BYTES: usize = 16;

/// Buffers that are reused between documents.
#[derive(Default)]
pub(crate) struct SearchScratch {
    /// In order, so that a document always has its entries in the same order.
    paths: BTreeMap<String, PathEntries>,
    tokenizers: HashMap<SearchAnalyzer, SearchTokenizer>,
    normalized: String,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// What a document has at one path.
#[derive(Default)]
struct PathEntries {
    /// By the parts of keys after the path and its end.
    terms: BTreeMap<Vec<u8>, Term>,
    /// The number of tokens.
    length: u32,
    /// The first position of the next string.
    next_position: u32,
}

/// The occurrences of a key.
#[derive(Default)]
struct Term {
    frequency: u32,
    last_position: Option<u32>,
    positions: Vec<u8>,
}

impl SearchDefinition {
    /// Emits the entries of a document. Each key is emitted once.
    pub(crate) fn entries(
        &self,
        document: Document<'_>,
        scratch: &mut SearchScratch,
        emit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        scratch.paths.clear();
        scratch.document(&self.mappings, document, &mut String::new());
        scratch.emit(emit);
    }
}

impl std::fmt::Debug for SearchScratch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SearchScratch({} paths)", self.paths.len())
    }
}

impl SearchScratch {
    fn document(&mut self, mapping: &DocumentMapping, document: Document<'_>, path: &mut String) {
        for (name, value) in document {
            let Some(field) = mapping.named(name) else {
                continue;
            };
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            // A key without a path would begin as a mark does.
            if !path.is_empty() {
                // Below a field that no mapping names, `dynamic` applies to all levels.
                let is_named = mapping.fields.contains_key(name);
                let inner = (!is_named).then_some(mapping);
                self.value(field, inner, value, path);
            }
            path.truncate(length);
        }
    }

    /// Adds a value of a field. `inner`: how its subdocuments are indexed, if not as the field says.
    fn value(
        &mut self,
        field: &FieldMapping,
        inner: Option<&DocumentMapping>,
        value: ValueRef<'_>,
        path: &mut String,
    ) {
        match value {
            ValueRef::Array(array) => self.array(field, inner, array, path),
            ValueRef::Document(document) => {
                let dynamic = inner.map(DocumentMapping::below);
                if let Some(mapping) = dynamic.as_ref().or(field.document.as_ref()) {
                    self.exists(path);
                    self.document(mapping, document, path);
                }
            }
            ValueRef::String(text) => self.string(field, text, path),
            ValueRef::Null => self.plain(value, path),
            value if takes(field, value) => self.plain(value, path),
            _ => {}
        }
    }

    /// Adds the elements of an array, and of arrays within it, as values of the field.
    fn array(
        &mut self,
        field: &FieldMapping,
        inner: Option<&DocumentMapping>,
        array: Array<'_>,
        path: &mut String,
    ) {
        for element in array {
            self.value(field, inner, element, path);
        }
    }

    fn string(&mut self, field: &FieldMapping, text: &str, path: &str) {
        if let Some(string) = &field.string {
            self.text(string, text, path);
            for multi in &string.multi {
                self.text(&multi.string, text, &multi_path(path, &multi.name));
            }
        }
        if let Some(normalizer) = field.string_values() {
            let mut buffer = std::mem::take(&mut self.normalized);
            if let Some(text) = normalizer.apply(text, &mut buffer) {
                self.plain(ValueRef::String(text), path);
            }
            self.normalized = buffer;
        }
    }

    /// Adds the tokens of a string.
    fn text(&mut self, string: &StringMapping, text: &str, path: &str) {
        let is_too_long = |most| text.len() > most && text.chars().nth(most).is_some();
        if string.ignore_above.is_some_and(is_too_long) {
            return;
        }
        let analyzer = string.analyzer;
        if analyzer == SearchAnalyzer::Keyword && text.len() > TERM_BYTES_MAX {
            return;
        }
        let entries = entries_at(&mut self.paths, path);
        add_existence(entries);
        let tokenizer = self.tokenizers.entry(analyzer);
        let tokenizer = tokenizer.or_insert_with(|| analyzer.tokenizer());
        let first = entries.next_position;
        let key = &mut self.key;
        tokenizer.tokens(text, &mut |token| {
            let position = first.saturating_add(token.position);
            key.clear();
            key.push(TERM);
            key.extend_from_slice(token.term.as_bytes());
            match entries.terms.get_mut(key.as_slice()) {
                Some(term) => term.add(position, string.index_options),
                None => {
                    let mut term = Term::default();
                    term.add(position, string.index_options);
                    entries.terms.insert(key.clone(), term);
                }
            }
            entries.length = entries.length.saturating_add(1);
            entries.next_position = position.saturating_add(VALUE_GAP);
        });
    }

    /// Adds a value.
    fn plain(&mut self, value: ValueRef<'_>, path: &str) {
        self.key.clear();
        append_value_key(&mut self.key, "", value);
        let entries = entries_at(&mut self.paths, path);
        add_existence(entries);
        // The key begins with the byte behind the path.
        let suffix = self.key.get(1..).unwrap_or_default();
        if !entries.terms.contains_key(suffix) {
            entries.terms.insert(suffix.to_vec(), Term::once());
        }
    }

    fn exists(&mut self, path: &str) {
        add_existence(entries_at(&mut self.paths, path));
    }

    /// Emits what was collected.
    fn emit(&mut self, emit: &mut dyn FnMut(&[u8], &[u8])) {
        let SearchScratch {
            paths,
            key,
            payload,
            ..
        } = self;
        for (path, entries) in paths {
            for (suffix, term) in &entries.terms {
                let kind = suffix.first().copied();
                debug_assert!(matches!(kind, Some(TERM | EXISTS | VALUE)), "{suffix:?}");
                key.clear();
                append_prefix(key, path, kind.unwrap_or(EXISTS));
                key.extend_from_slice(suffix.get(1..).unwrap_or_default());
                payload.clear();
                let posting = Posting {
                    frequency: term.frequency,
                    length: entries.length.max(1),
                    score: None,
                    positions: &term.positions,
                };
                posting.write(payload);
                emit(key, payload);
            }
        }
    }
}

fn entries_at<'p>(paths: &'p mut BTreeMap<String, PathEntries>, path: &str) -> &'p mut PathEntries {
    if !paths.contains_key(path) {
        paths.insert(path.to_owned(), PathEntries::default());
    }
    paths.entry(path.to_owned()).or_default()
}

fn add_existence(entries: &mut PathEntries) {
    if entries.terms.is_empty() {
        entries.terms.insert(vec![EXISTS], Term::once());
    }
}

impl Term {
    /// A key that counts once and has no positions.
    fn once() -> Term {
        Term {
            frequency: 1,
            ..Term::default()
        }
    }

    fn add(&mut self, position: u32, options: IndexOptions) {
        match options {
            IndexOptions::Docs => self.frequency = 1,
            IndexOptions::Freqs => self.frequency = self.frequency.saturating_add(1),
            IndexOptions::Positions => {
                self.frequency = self.frequency.saturating_add(1);
                put_position(&mut self.positions, self.last_position, position);
                self.last_position = Some(position);
            }
        }
    }
}

/// Returns `true` if the field indexes a value that is neither a string nor null.
fn takes(field: &FieldMapping, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) => field.takes_number(true),
        ValueRef::Double(number) => field.takes_number(false) && !number.is_nan(),
        ValueRef::DateTime(_) => field.date || field.date_facet,
        ValueRef::Bool(_) => field.boolean,
        ValueRef::ObjectId(_) => field.object_id,
        ValueRef::Binary { subtype, bytes } => {
            field.uuid && subtype == UUID_SUBTYPE && bytes.len() == UUID_BYTES
        }
        _ => false,
    }
}
