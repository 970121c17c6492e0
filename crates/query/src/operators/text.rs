//! `$text` at work: see [`TextScan`].

use std::collections::VecDeque;
use std::sync::Arc;

use windrow_document::{Document, key};
use windrow_index::score;
use windrow_text::{Language, Matcher, term_key};

use super::operator::{Counters, Operator, counted};
use crate::Error;
use crate::bounds::interval::after;
use crate::row::{Content, Interrupt, Pace, Row};
use crate::source::{Direction, RecordId, Source};
use crate::text::TextScan;

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
            let score = score::decode(cursor.payload()).ok_or_else(|| {
                Error::damaged_entry(&self.scan.definition.name, "its score cannot be read")
            })?;
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

    counted!(counters);
}
