//! The entries of a document in a search index.
//!
//! 1. The document is walked along the mappings. Each path collects the terms of its strings, its
//!    values and its number of tokens.
//! 2. One entry is emitted for each distinct key of a path, once the length of the path is known.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use windrow_document::{Array, Document, ValueRef};
use windrow_text::{
    GramOptions, GramTokenizer, Language, SearchAnalyzer, SearchTokenizer, TextVersion, TextWords,
    WordBoundaries,
};

use super::SearchDefinition;
use super::key_numbers::KeyNumbers;
use super::keys::{
    POINT, SHAPE, TERM_BYTES_MAX, append_cell_key, append_path, append_value_key,
    autocomplete_path, multi_path,
};
use super::mapping::{DocumentMapping, FieldMapping, StringMapping};
use super::path_entries::{AnalysisRules, PathEntries};
use crate::sink::EntrySink;

/// The subtype of UUIDs in binary values, and their length in bytes.
const UUID_SUBTYPE: u8 = 4;
const UUID_BYTES: usize = 16;

/// Buffers that are reused between documents.
#[derive(Default)]
pub(crate) struct SearchScratch {
    /// In order, so that a document always has its entries in the same order.
    paths: BTreeMap<String, PathEntries>,
    /// By the numbers of their analyzers.
    tokenizers: Vec<SearchTokenizer>,
    gram_tokenizers: HashMap<GramOptions, GramTokenizer>,
    /// The language of the document.
    language: Option<Language>,
    keys: KeyNumbers,
    /// The boundaries of the words of the string that is analyzed. `None` if they are those of
    /// another string.
    boundaries: Option<WordBoundaries>,
    normalized: String,
    key: Vec<u8>,
}

/// The number of paths whose buffers are kept between documents.
const PATHS_KEPT_MAX: usize = 1_000;

impl SearchDefinition {
    /// Emits the entries of a document. Each key is emitted once.
    pub(crate) fn entries(
        &self,
        document: Document<'_>,
        scratch: &mut SearchScratch,
        sink: &mut dyn EntrySink,
    ) {
        scratch.clear();
        scratch.language = language_of(document);
        scratch.document(&self.mappings, document, &mut String::new());
        scratch.emit(sink);
    }
}

impl std::fmt::Debug for SearchScratch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SearchScratch({} paths)", self.paths.len())
    }
}

/// The field that names the language of a document, as in text indexes.
pub(super) const LANGUAGE_FIELD: &str = "language";

/// Returns the language that a document names in its field `language`, if it is known. The analyzer
/// `windrow.stems` uses it.
pub fn language_of(document: Document<'_>) -> Option<Language> {
    let name = document.get(LANGUAGE_FIELD).and_then(ValueRef::as_str)?;
    Language::parse(name, TextVersion::V3).ok()
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

    /// Adds a value of a field. `inner`: how its subdocuments are indexed, if not as the field
    /// says.
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
                self.shape(field, value, path);
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
            // All analyses of a string share its words.
            let mut words = std::mem::take(&mut entries_at(&mut self.paths, path).words);
            self.boundaries = None;
            self.text(string, text, path, &mut words);
            for multi in &string.multi {
                let path = multi_path(path, &multi.name);
                self.text(&multi.string, text, &path, &mut words);
            }
            entries_at(&mut self.paths, path).words = words;
        }
        if let Some(options) = &field.autocomplete {
            self.grams(options, text, path);
        }
        if let Some(normalizer) = field.string_values() {
            let mut buffer = std::mem::take(&mut self.normalized);
            if let Some(text) = normalizer.apply(text, &mut buffer) {
                self.plain(ValueRef::String(text), path);
            }
            self.normalized = buffer;
        }
    }

    /// Adds the tokens of a string. `words` is the buffer of its words.
    fn text(&mut self, string: &StringMapping, text: &str, path: &str, words: &mut TextWords) {
        let is_too_long = |most| text.len() > most && text.chars().nth(most).is_some();
        if string.ignore_above.is_some_and(is_too_long) {
            return;
        }
        let analyzer = &string.analyzer;
        if *analyzer == SearchAnalyzer::Keyword && text.len() > TERM_BYTES_MAX {
            return;
        }
        let number = self.analyzer_number(analyzer);
        let entries = entries_at(&mut self.paths, path);
        entries.add_existence();
        let Some(tokenizer) = self.tokenizers.get_mut(number) else {
            unreachable!(
                "there are {} analyzers, not {number}",
                self.tokenizers.len()
            );
        };
        let mut language = None;
        if *analyzer == SearchAnalyzer::FileStems {
            language = self.language;
            tokenizer.set_document_language(language);
        }
        let options = string.index_options;
        if analyzer.has_independent_words() {
            let boundaries = analyzer.word_boundaries();
            if self.boundaries != Some(boundaries) {
                words.read(text, boundaries);
                self.keys.count_lookups(words.numbers().len());
                self.boundaries = Some(boundaries);
            }
            if tokenizer.has_independent_words(words) {
                let rules = AnalysisRules {
                    analyzer: number,
                    language,
                };
                entries.add_words(words, tokenizer, rules, options, &mut self.keys);
                return;
            }
        }
        entries.add_tokens(text, tokenizer, options, &mut self.keys);
    }

    /// Returns the number of an analyzer.
    fn analyzer_number(&mut self, analyzer: &SearchAnalyzer) -> usize {
        let mut tokenizers = self.tokenizers.iter();
        let known = tokenizers.position(|tokenizer| tokenizer.analyzer() == analyzer);
        known.unwrap_or_else(|| {
            self.tokenizers.push(analyzer.tokenizer());
            self.tokenizers.len() - 1
        })
    }

    /// Adds the grams of a string.
    fn grams(&mut self, options: &GramOptions, text: &str, path: &str) {
        entries_at(&mut self.paths, path).add_existence();
        let entries = entries_at(&mut self.paths, &autocomplete_path(path));
        entries.add_existence();
        let tokenizer = self.gram_tokenizers.entry(options.clone());
        let tokenizer = tokenizer.or_insert_with(|| options.tokenizer());
        let keys = &mut self.keys;
        tokenizer.tokens(text, &mut |gram| entries.add_gram(gram.term, keys));
    }

    /// Adds a value.
    fn plain(&mut self, value: ValueRef<'_>, path: &str) {
        self.key.clear();
        append_value_key(&mut self.key, "", value);
        let entries = entries_at(&mut self.paths, path);
        entries.add_existence();
        // The key begins with the byte behind the path.
        entries.add_plain(self.key.get(1..).unwrap_or_default());
    }

    /// Adds a GeoJSON object.
    fn shape(&mut self, field: &FieldMapping, value: ValueRef<'_>, path: &str) {
        let shape = field.geo.map(|geo| geo.shape(value, &|_| Ok(())));
        let Some(Ok(Some(shape))) = shape else {
            return;
        };
        let kind = match shape.point_key() {
            Some(_) => POINT,
            None => SHAPE,
        };
        let entries = entries_at(&mut self.paths, path);
        entries.add_existence();
        // The key begins with the byte behind the path.
        for cell in shape.cell_keys() {
            self.key.clear();
            append_cell_key(&mut self.key, "", kind, cell);
            entries.add_plain(self.key.get(1..).unwrap_or_default());
        }
    }

    fn exists(&mut self, path: &str) {
        entries_at(&mut self.paths, path).add_existence();
    }

    fn clear(&mut self) {
        if self.paths.len() > PATHS_KEPT_MAX {
            self.paths.clear();
            self.keys.forget();
        }
        let (mut known, mut known_bytes) = (0, 0);
        for entries in self.paths.values_mut() {
            entries.clear();
            known += entries.known();
            known_bytes += entries.known_bytes();
        }
        if self.keys.forget_if_full(known, known_bytes) {
            self.paths.values_mut().for_each(PathEntries::forget);
        }
    }

    /// Emits what was collected.
    fn emit(&mut self, sink: &mut dyn EntrySink) {
        let SearchScratch {
            paths, keys, key, ..
        } = self;
        for (path, entries) in paths {
            key.clear();
            append_path(key, path);
            entries.emit(key, keys, sink);
        }
    }
}

fn entries_at<'p>(paths: &'p mut BTreeMap<String, PathEntries>, path: &str) -> &'p mut PathEntries {
    if !paths.contains_key(path) {
        paths.insert(path.to_owned(), PathEntries::default());
    }
    let mut found = paths.range_mut::<str, _>((Bound::Included(path), Bound::Included(path)));
    match found.next() {
        Some((_, entries)) => entries,
        None => unreachable!("{path:?} was inserted"),
    }
}

/// Returns `true` if the field indexes a value that is neither a string nor null.
pub(super) fn takes(field: &FieldMapping, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) => field.takes_number(true),
        ValueRef::Double(number) => field.takes_number(false) && !number.is_nan(),
        ValueRef::DateTime(_) => field.date || field.date_facet,
        ValueRef::Bool(_) => field.boolean,
        ValueRef::ObjectId(_) => field.object_id,
        value => field.uuid && is_uuid(value),
    }
}

/// Returns `true` if a value is a UUID.
pub fn is_uuid(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Binary { subtype, bytes }
        if subtype == UUID_SUBTYPE && bytes.len() == UUID_BYTES)
}
