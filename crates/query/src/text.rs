//! `$text`: which index answers it, and the documents that it finds with their scores.
//!
//! ```text
//! terms of the query → the postings of each → scores added up by record, in the order of the terms
//!   → documents → phrases, negations, case and diacritics checked on the indexed strings → the filter
//! ```
//! Where nothing is to be checked, documents are fetched later, after the sort by score.

use std::collections::VecDeque;
use std::sync::Arc;

use windrow_document::{Document, Value, key};
use windrow_index::{Definition, KeyKind, score};
use windrow_mql::filter::{Comparison, Filter, Node, TextQuery};
use windrow_text::{Language, Matcher, Query, Sensitivity, term_key};

use crate::Error;
use crate::bounds::interval::after;
use crate::operators::{Counters, Operator};
use crate::row::{Content, Interrupt, Pace, Row};
use crate::source::{Direction, RecordId, Source};

/// IndexNotFound.
const NO_TEXT_INDEX: i32 = 27;
/// NoQueryExecutionPlans.
pub(crate) const NO_PLANS: i32 = 291;

/// How a `$text` is answered.
#[derive(Clone, Debug)]
pub struct TextScan {
    /// The index's place in [`Source::indexes`].
    pub number: usize,
    pub definition: Arc<Definition>,
    pub query: Arc<Query>,
    /// The values that the fields before the text must equal.
    pub prefix: Vec<Value>,
    /// What else a document must fulfil.
    pub filter: Option<Filter>,
    /// Whether rows have their documents: always where something has to be checked.
    pub fetches: bool,
}

impl TextScan {
    /// The plan for the `$text` that stands in this conjunction. Errors: 27 without a text index, 291
    /// where a field before the text has no equality, 2 for a language that there is not.
    pub fn plan(
        text: &TextQuery,
        conjunction: &Node,
        source: &dyn Source,
    ) -> Result<TextScan, Error> {
        let (number, definition) = text_index(source)?;
        let query = parse(text, &definition)?;
        let fields = definition
            .fields
            .iter()
            .take_while(|field| field.kind != KeyKind::Text);
        let equal = |field: &windrow_index::KeyField| {
            equality(conjunction, &field.path).ok_or_else(no_prefix)
        };
        let prefix = fields.map(equal).collect::<Result<Vec<Value>, Error>>()?;
        Ok(TextScan {
            number,
            definition,
            query: Arc::new(query),
            prefix,
            filter: None,
            fetches: true,
        })
    }

    /// Whether documents must be seen before it is known whether they match.
    pub fn must_fetch(&self) -> bool {
        self.query.needs_text() || self.filter.is_some()
    }

    fn prefix_key(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (value, field) in self.prefix.iter().zip(&self.definition.fields) {
            let descending = field.kind == KeyKind::Descending;
            key::append_directed(&mut bytes, value.as_ref(), descending);
        }
        bytes
    }

    /// Whether keys go on behind the term.
    fn has_suffix(&self) -> bool {
        self.definition
            .fields
            .last()
            .is_some_and(|last| last.kind != KeyKind::Text)
    }
}

fn no_prefix() -> Error {
    Error::new(
        NO_PLANS,
        "failed to use text index to satisfy $text query (if text index is compound, are equality \
         predicates given for all prefix fields?)",
    )
}

/// The one text index of the collection.
pub(crate) fn text_index(source: &dyn Source) -> Result<(usize, Arc<Definition>), Error> {
    let found = source
        .indexes()
        .into_iter()
        .enumerate()
        .find(|(_, one)| one.is_text());
    found.ok_or_else(|| Error::new(NO_TEXT_INDEX, "text index required for $text query"))
}

fn parse(text: &TextQuery, definition: &Definition) -> Result<Query, Error> {
    let Some(index) = &definition.text else {
        return Err(Error::new(
            NO_TEXT_INDEX,
            "text index required for $text query",
        ));
    };
    let language = match text.language.as_deref() {
        None | Some("") => index.default_language,
        Some(name) => Language::parse(name, index.version).map_err(|_| {
            Error::new(
                2,
                format!("unsupported language: \"{name}\" for text index"),
            )
        })?,
    };
    let sensitivity = Sensitivity {
        case: text.case_sensitive,
        diacritics: text.diacritic_sensitive,
    };
    Ok(Query::parse(
        &text.search,
        language,
        sensitivity,
        index.version,
    ))
}

/// The value that the conjunction demands at the path.
fn equality(node: &Node, path: &windrow_document::path::Path) -> Option<Value> {
    match node {
        Node::And(children) => children.iter().find_map(|child| equality(child, path)),
        Node::Compare {
            path: own,
            operator: Comparison::Eq,
            value,
        } if own == path => Some(value.clone()),
        _ => None,
    }
}

/// Candidates whose texts are checked together; more each time.
const CHECKED_FIRST: usize = 16;
const CHECKED_MAX: usize = 1024;

/// The scan at work.
pub(crate) struct TextOperator {
    source: Arc<dyn Source>,
    scan: TextScan,
    /// Those still to come; taken from the end, so that of equal scores the youngest record is first, as
    /// MongoDB's backward scan has it. None before the postings have been read.
    candidates: Option<Vec<(RecordId, f64)>>,
    ready: VecDeque<Row>,
    checked_together: usize,
    counters: Counters,
    pace: Pace,
}

impl TextOperator {
    pub fn new(source: Arc<dyn Source>, scan: &TextScan) -> TextOperator {
        TextOperator {
            source,
            scan: scan.clone(),
            candidates: None,
            ready: VecDeque::new(),
            checked_together: CHECKED_FIRST,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }

    /// All records with a term, and their scores: by record id.
    fn find_candidates(
        &mut self,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<(RecordId, f64)>, Error> {
        let prefix = self.scan.prefix_key();
        let query = self.scan.query.clone();
        let mut found: Vec<(RecordId, f64)> = Vec::new();
        for term in query.terms() {
            let postings = self.postings(&prefix, term, interrupt)?;
            found = if found.is_empty() {
                postings
            } else {
                merged(found, postings)
            };
        }
        Ok(found)
    }

    fn postings(
        &mut self,
        prefix: &[u8],
        term: &str,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<(RecordId, f64)>, Error> {
        let mut from = prefix.to_vec();
        key::append_string_bytes(&mut from, term_key(term, &mut Vec::new()));
        let mut cursor = if self.scan.has_suffix() {
            let mut cursor = self.source.entries(self.scan.number, Direction::Forward)?;
            cursor.seek(&from, RecordId(0))?;
            cursor
        } else {
            self.source.postings(self.scan.number, &from)?
        };
        self.counters.seeks += 1;
        let to = after(&from);
        let mut found = Vec::new();
        while cursor.next()? && cursor.key() < to.as_slice() {
            self.pace.step(interrupt)?;
            self.counters.keys_examined += 1;
            let score = score::decode(cursor.payload()).unwrap_or_default();
            found.push((cursor.id(), score));
        }
        if self.scan.has_suffix() {
            found.sort_by_key(|(id, _)| *id);
        }
        Ok(found)
    }

    /// Checks the next candidates on their documents.
    fn check_some(&mut self) -> Result<(), Error> {
        let query = self.scan.query.clone();
        let mut matcher = Matcher::new(&query);
        for _ in 0..self.checked_together {
            let Some((id, score)) = self.candidates.as_mut().and_then(Vec::pop) else {
                break;
            };
            let Some(bytes) = self.source.get(id)? else {
                continue;
            };
            self.counters.documents_examined += 1;
            let document = Document::from_validated(&bytes);
            if query.needs_text() && !self.has_wanted_text(document, &mut matcher)? {
                continue;
            }
            if let Some(filter) = &self.scan.filter
                && !filter.matches(document)?
            {
                continue;
            }
            self.ready
                .push_back(scored(id, Content::Shared(bytes), score));
        }
        self.checked_together = CHECKED_MAX.min(self.checked_together * 2);
        Ok(())
    }

    fn has_wanted_text(
        &self,
        document: Document<'_>,
        matcher: &mut Matcher<'_>,
    ) -> Result<bool, Error> {
        let mut strings: Vec<(&str, Language)> = Vec::new();
        if let Some(text) = &self.scan.definition.text {
            text.strings(document, &mut |value, _, language| {
                strings.push((value, language))
            })?;
        }
        Ok(matcher.matches(strings))
    }

    fn next_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.candidates.is_none() {
            self.candidates = Some(self.find_candidates(interrupt)?);
        }
        if !self.scan.fetches {
            let next = self.candidates.as_mut().and_then(Vec::pop);
            return Ok(next.map(|(id, score)| scored(id, Content::EMPTY, score)));
        }
        while self.ready.is_empty()
            && self
                .candidates
                .as_ref()
                .is_some_and(|left| !left.is_empty())
        {
            interrupt.check()?;
            self.check_some()?;
        }
        Ok(self.ready.pop_front())
    }
}

fn scored(id: RecordId, content: Content, score: f64) -> Row {
    let mut row = Row::of_record(id, content);
    row.meta.text_score = Some(score);
    row
}

/// Both lists by record id, the scores of records in both added.
fn merged(one: Vec<(RecordId, f64)>, other: Vec<(RecordId, f64)>) -> Vec<(RecordId, f64)> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut left, mut right) = (one.into_iter().peekable(), other.into_iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some((a, first)), Some((b, second))) if a == b => {
                let both = (*a, first + second);
                left.next();
                right.next();
                Some(both)
            }
            (Some((a, _)), Some((b, _))) if a < b => left.next(),
            (Some(_), None) => left.next(),
            _ => right.next(),
        };
        match next {
            Some(entry) => all.push(entry),
            None => return all,
        }
    }
}

impl Operator for TextOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.next_row(interrupt)?;
        self.counters.note(&row);
        Ok(row)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
