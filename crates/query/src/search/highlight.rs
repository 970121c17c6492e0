//! The option `highlight` of `$search`: passages of the returned documents that contain terms of
//! the query.
//!
//! The terms of all fields of the query count as hits in each highlighted field. The words of a
//! phrase are hits only where the whole phrase occurs. Source: MongoDB's manual, "Highlight Search
//! Terms in Results".

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, doc};
use windrow_index::search::{
    SearchDefinition, StringMapping, TERM, VALUE_GAP, autocomplete_path, language_of, path_of,
    prefix,
};
use windrow_interrupt::Interrupt;
use windrow_search::{Highlighter, Passage, Query, Token, passages};
use windrow_text::{GramTokenizer, Language, SearchTokenizer, VisitToken};

use super::compile::{IndexFacts, matches_wildcard};
use super::options::{Options, SearchPath, bad, optional_number};
use super::query_printer::fields_of;
use crate::Error;
use crate::row::Pace;

/// The parsed option `highlight`.
#[derive(Clone, Debug, PartialEq)]
pub struct Highlight {
    paths: Vec<SearchPath>,
    characters_max: usize,
    passages_max: usize,
}

const CHARACTERS: f64 = 500_000.0;
const PASSAGES: f64 = 5.0;

/// The number of characters that are read after the last examined one, to find the end of the last
/// token. A token that ends after the last examined character is not a hit.
const CHARACTERS_BEHIND: usize = 256;
/// The largest number of possible hits in one field of a document.
const CANDIDATES_MAX: usize = 1_000_000;
/// The largest size of the highlights of one document.
const BYTES_MAX: usize = 16 << 20;

impl Highlight {
    /// Parses the option, if the stage has it.
    pub fn parse(stage: &Options<'_>) -> Result<Option<Highlight>, Error> {
        let Some(given) = stage.get("highlight") else {
            return Ok(None);
        };
        let given = Options::new("highlight", given)?;
        given.check(&["path", "maxCharsToExamine", "maxNumPassages"])?;
        let number = |name: &str, otherwise: f64| {
            let number = optional_number(&given, name)?.unwrap_or(otherwise);
            if number.fract() == 0.0 && (1.0..=f64::from(i32::MAX)).contains(&number) {
                Ok(number as usize)
            } else {
                Err(bad(format!(
                    "\"highlight.{name}\" must be a whole number that is greater than 0"
                )))
            }
        };
        Ok(Some(Highlight {
            paths: given.paths()?,
            characters_max: number("maxCharsToExamine", CHARACTERS)?,
            passages_max: number("maxNumPassages", PASSAGES)?,
        }))
    }

    /// Prepares the highlights of a query.
    pub fn open(
        &self,
        query: &Query,
        definition: &Arc<SearchDefinition>,
        facts: &dyn IndexFacts,
    ) -> Result<Highlights, Error> {
        let is_text = |field: &str| field == prefix(path_of(field), TERM);
        let highlighter = Highlighter::new(query, is_text).map_err(|it| bad(it.to_string()))?;
        let mut fields = Vec::new();
        let query_fields = fields_of(query);
        for path in &self.paths {
            add_fields(path, definition, &query_fields, facts, &mut fields)?;
        }
        // Sorted by path and without duplicates, as MongoDB returns them.
        fields.sort_by(|one, other| (&one.path, &one.multi).cmp(&(&other.path, &other.multi)));
        fields.dedup_by(|one, other| one.path == other.path && one.multi == other.multi);
        Ok(Highlights {
            definition: definition.clone(),
            highlighter,
            fields,
            characters_max: self.characters_max,
            passages_max: self.passages_max,
        })
    }
}

/// A field to highlight.
struct HighlightField {
    path: String,
    multi: Option<String>,
    tokenizer: FieldTokenizer,
}

/// Gives the tokens that an index has of a field.
enum FieldTokenizer {
    Words(SearchTokenizer),
    /// For a field of type `autocomplete`.
    Grams(GramTokenizer),
}

impl FieldTokenizer {
    fn set_document_language(&mut self, language: Option<Language>) {
        match self {
            FieldTokenizer::Words(tokenizer) => tokenizer.set_document_language(language),
            FieldTokenizer::Grams(_) => {}
        }
    }

    fn tokens(&mut self, text: &str, visit: &mut VisitToken<'_>) {
        match self {
            FieldTokenizer::Words(tokenizer) => tokenizer.tokens(text, visit),
            FieldTokenizer::Grams(tokenizer) => tokenizer.tokens(text, visit),
        }
    }
}

fn words_of(mapping: &StringMapping) -> FieldTokenizer {
    FieldTokenizer::Words(mapping.analyzer.tokenizer())
}

/// Adds the fields of a path. `query_fields` are the key prefixes of the fields in the query. Fails if a
/// path without `*` is not indexed as text.
fn add_fields(
    path: &SearchPath,
    definition: &SearchDefinition,
    query_fields: &BTreeSet<String>,
    facts: &dyn IndexFacts,
    fields: &mut Vec<HighlightField>,
) -> Result<(), Error> {
    let mapping_of = |path: &str| definition.field(path)?.string.as_ref();
    // A field whose grams the query does not use is highlighted by its words, if it has them.
    let tokenizer_of = |path: &str| {
        let field = definition.field(path)?;
        let grams = field.autocomplete.as_ref().filter(|_| {
            field.string.is_none() || query_fields.contains(&prefix(&autocomplete_path(path), TERM))
        });
        let grams = grams.map(|options| FieldTokenizer::Grams(options.tokenizer()));
        grams.or_else(|| Some(words_of(field.string.as_ref()?)))
    };
    let mut add = |path: &str, multi: Option<&str>, tokenizer: FieldTokenizer| {
        fields.push(HighlightField {
            path: path.to_owned(),
            multi: multi.map(str::to_owned),
            tokenizer,
        });
    };
    let not_indexed = |path: &str| {
        Err(bad(format!(
            "highlights cannot be generated: the path {path:?} is not indexed as a string"
        )))
    };
    match path {
        SearchPath::Field(path) => match tokenizer_of(path) {
            Some(tokenizer) => add(path, None, tokenizer),
            None => return not_indexed(path),
        },
        SearchPath::Multi { field, multi } => {
            let mapping = mapping_of(field).and_then(|mapping| mapping.multi(multi));
            match mapping {
                Some(mapping) => add(field, Some(multi), words_of(mapping)),
                None => return not_indexed(&format!("{field} (multi: {multi})")),
            }
        }
        SearchPath::Wildcard(pattern) => {
            for path in facts.paths()? {
                match tokenizer_of(&path) {
                    Some(tokenizer) if matches_wildcard(pattern, &path) => {
                        add(&path, None, tokenizer);
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Computes the highlights of documents.
pub struct Highlights {
    definition: Arc<SearchDefinition>,
    highlighter: Highlighter,
    fields: Vec<HighlightField>,
    characters_max: usize,
    passages_max: usize,
}

impl Highlights {
    /// Returns the highlights of a document: `[{path, texts: [{value, type}], score}]`.
    pub fn highlights(
        &mut self,
        document: Document<'_>,
        interrupt: &dyn Interrupt,
    ) -> Result<ArrayBuf, Error> {
        let mut found: Vec<Value> = Vec::new();
        let mut bytes = 0;
        let language = language_of(document);
        for field in &mut self.fields {
            field.tokenizer.set_document_language(language);
            let mut text = FieldText::new(self.characters_max, &self.highlighter);
            self.definition
                .texts_at(document, &field.path, &mut |value| {
                    text.add(value, &mut field.tokenizer, interrupt);
                });
            if let Some(error) = text.failed.take() {
                return Err(error);
            }
            for passage in text.passages(self.passages_max) {
                let shown = passage_document(field, &passage, &text.content);
                bytes += shown.as_bytes().len();
                if bytes > BYTES_MAX {
                    return Err(bad(format!(
                        "the highlights of a document have more than {BYTES_MAX} bytes: \
                         \"highlight.maxNumPassages\" must be less"
                    )));
                }
                found.push(shown.into());
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// The strings of a field, separated by a zero byte, and the tokens that may be hits.
struct FieldText<'h> {
    content: String,
    characters_left: usize,
    highlighter: &'h Highlighter,
    /// The concatenated terms of the candidates.
    terms: Vec<u8>,
    candidates: Vec<CandidateToken>,
    first_position: u32,
    is_first: bool,
    pace: Pace,
    failed: Option<Error>,
}

/// A token that may be a hit.
struct CandidateToken {
    term: Range<usize>,
    bytes: Range<usize>,
    position: u32,
}

/// Returns the length in bytes of the first characters.
fn length_of(text: &str, characters: usize) -> usize {
    let end = text.char_indices().nth(characters);
    end.map_or(text.len(), |(at, _)| at)
}

impl<'h> FieldText<'h> {
    fn new(characters_max: usize, highlighter: &'h Highlighter) -> FieldText<'h> {
        FieldText {
            content: String::new(),
            characters_left: characters_max,
            highlighter,
            terms: Vec::new(),
            candidates: Vec::new(),
            first_position: 0,
            is_first: true,
            pace: Pace::default(),
            failed: None,
        }
    }

    /// Adds a string, up to the last character that is examined.
    fn add(&mut self, text: &str, tokenizer: &mut FieldTokenizer, interrupt: &dyn Interrupt) {
        if !std::mem::replace(&mut self.is_first, false) && self.characters_left > 0 {
            self.content.push('\0');
            self.characters_left -= 1;
        }
        let (start, length) = (self.content.len(), length_of(text, self.characters_left));
        let examined = text.get(..length).unwrap_or(text);
        self.characters_left -= examined.chars().count();
        if examined.is_empty() {
            return;
        }
        self.content.push_str(examined);
        let more = text.get(length..).unwrap_or_default();
        let more = length_of(more, CHARACTERS_BEHIND);
        let first_position = self.first_position;
        tokenizer.tokens(text.get(..length + more).unwrap_or(text), &mut |token| {
            let position = first_position.saturating_add(token.position);
            self.first_position = position.saturating_add(1 + VALUE_GAP);
            if self.failed.is_some() || token.range.end > length {
                return;
            }
            if let Err(error) = self.pace.step(interrupt) {
                self.failed = Some(error);
                return;
            }
            let term = token.term.as_bytes();
            if self.candidates.len() < CANDIDATES_MAX && self.highlighter.is_candidate(term) {
                let at = self.terms.len();
                self.terms.extend_from_slice(term);
                self.candidates.push(CandidateToken {
                    term: at..self.terms.len(),
                    bytes: start + token.range.start..start + token.range.end,
                    position,
                });
            }
        });
    }

    fn passages(&self, count: usize) -> Vec<Passage> {
        if self.candidates.is_empty() {
            return Vec::new();
        }
        let tokens = self.candidates.iter().map(|candidate| Token {
            term: self.terms.get(candidate.term.clone()).unwrap_or_default(),
            bytes: candidate.bytes.clone(),
            position: candidate.position,
        });
        let tokens: Vec<Token<'_>> = tokens.collect();
        let hits = self.highlighter.hits(&tokens);
        passages(&self.content, &tokens, &hits, count)
    }
}

/// Returns a passage as `{$meta: "searchHighlights"}` shows it.
fn passage_document(field: &HighlightField, passage: &Passage, content: &str) -> DocumentBuf {
    let mut texts: Vec<Value> = Vec::new();
    let mut add = |bytes: Range<usize>, kind: &str| match content.get(bytes) {
        None | Some("") => {}
        Some(value) => texts.push(doc! { "value": value, "type": kind }.into()),
    };
    let mut end = passage.bytes.start;
    for hit in joined(&passage.hits) {
        add(end..hit.start, "text");
        end = hit.end;
        add(hit, "hit");
    }
    add(end..passage.bytes.end, "text");
    let path: Value = match &field.multi {
        None => field.path.as_str().into(),
        Some(multi) => doc! { "value": (field.path.as_str()), "multi": (multi.as_str()) }.into(),
    };
    let texts: ArrayBuf = texts.into_iter().collect();
    // Lucene's scores have 32 bits.
    let score = f64::from(passage.score as f32);
    doc! { "path": path, "texts": texts, "score": score }
}

/// Joins hits that touch each other.
fn joined(hits: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for hit in hits {
        match joined.last_mut() {
            Some(last) if hit.start <= last.end => last.end = last.end.max(hit.end),
            _ => joined.push(hit.clone()),
        }
    }
    joined
}
