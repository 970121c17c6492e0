//! Runs `$text`: see [`TextScan`].

use std::collections::VecDeque;
use std::sync::Arc;

use windrow_document::Document;
use windrow_index::score_of;
use windrow_interrupt::Interrupt;
use windrow_postings::Posting;
use windrow_search::operators::{Conjunction, Disjunction, Filter, Without};
use windrow_search::{
    BestOptions, Hit, IdRange, IdSet, Matches, Node, SetIds, Term, TextScore, TieOrder, all, best,
    count,
};
use windrow_text::{Language, Matcher};

use super::document_prefetch::PrefetchedDocuments;
use super::operator::{BoxOperator, Counters, Operator, counted};
use super::tasks::run_tasks;
use crate::Error;
use crate::bounds::interval::after;
use crate::row::{Content, Pace, Row};
use crate::source::{Direction, RecordId, Source};
use crate::text::TextScan;
use crate::text::term_lists::{TermList, TermLists};

/// The number of candidates whose texts are checked together. It doubles up to the maximum.
const CHECKED_FIRST: usize = 16;
const CHECKED_MAX: usize = 1024;
/// The number of candidates that one task checks.
const CHECKED_BY_TASK: usize = 128;

/// Of equal scores the newest record comes first, as in MongoDB's backward scan.
const TIES: TieOrder = TieOrder::HighestId;

type SearchNode = Node<TermList, TextScore, IdRange>;

/// A record that has a term of the query.
#[derive(Clone, Copy)]
struct ScoredRecord {
    id: RecordId,
    score: f64,
}

impl From<Hit> for ScoredRecord {
    fn from(hit: Hit) -> ScoredRecord {
        ScoredRecord {
            id: RecordId(hit.id),
            score: hit.score,
        }
    }
}

/// The lists of a query's terms, open for one search.
struct TextSearch {
    lists: TermLists,
    node: SearchNode,
    /// The numbers of postings that were read and skipped.
    read: u64,
    skipped: u64,
}

impl TextSearch {
    /// Opens the lists. `within` restricts the search to these records.
    fn open(
        source: &dyn Source,
        scan: &TextScan,
        within: Option<SetIds>,
    ) -> Result<TextSearch, Error> {
        let lists = TermLists::default();
        let any = |terms: &[String]| -> Result<SearchNode, Error> {
            let term = |term: &String| {
                let list = lists.open(source, scan.number, &scan.term_key(term))?;
                Ok(Term::new(list, TextScore))
            };
            let mut terms = terms.iter().map(term).collect::<Result<Vec<_>, Error>>()?;
            Ok(match (terms.len(), terms.pop()) {
                (_, None) => Node::Empty,
                (1, Some(only)) => Node::Term(Box::new(only)),
                (_, Some(last)) => {
                    terms.push(last);
                    Node::AnyTerm(Box::new(Disjunction::new(terms)))
                }
            })
        };
        let mut node = any(scan.query.terms())?;
        // If the case matters, the text itself has to be read.
        if !scan.query.negated_terms().is_empty() && !scan.query.sensitivity().any() {
            let negated = any(scan.query.negated_terms())?;
            node = Node::Without(Box::new(Without::new(node, negated)));
        }
        if let Some(within) = within {
            let restriction = Node::Set(Filter::new(within, 0.0));
            node = Node::All(Box::new(Conjunction::new(vec![node, restriction])));
        }
        Ok(TextSearch {
            lists,
            node,
            read: 0,
            skipped: 0,
        })
    }

    /// Returns the best records, the worst of them first.
    fn best(
        &mut self,
        options: &BestOptions,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<ScoredRecord>, Error> {
        let best = best(&mut self.node, options, interrupt);
        let best = self.lists.result(best)?;
        (self.read, self.skipped) = (best.postings_read, best.postings_skipped);
        let hits = best.hits.into_iter().rev();
        Ok(hits.map(ScoredRecord::from).collect())
    }

    /// Returns all records in the order of their ids.
    fn all(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<ScoredRecord>, Error> {
        let mut found = Vec::new();
        self.read = self.node.postings();
        let take = |hit: Hit| found.push(ScoredRecord::from(hit));
        let all = all(&mut self.node, interrupt, take);
        self.lists.result(all)?;
        Ok(found)
    }

    fn count(&mut self, interrupt: &dyn Interrupt) -> Result<u64, Error> {
        let count = count(&mut self.node, interrupt);
        self.lists.result(count)
    }
}

/// Runs a [`TextScan`].
pub(crate) struct TextScanOperator {
    source: Arc<dyn Source>,
    scan: TextScan,
    /// The operator whose records restrict the result. At most one.
    within: Vec<BoxOperator>,
    /// The records of `within`, once they have been read.
    within_ids: Option<SetIds>,
    /// The remaining candidates, taken from the end: of equal scores, the newest record comes
    /// first, as in MongoDB's backward scan. `None` before the postings have been read.
    candidates: Option<Vec<ScoredRecord>>,
    ready: VecDeque<Row>,
    /// The number of candidates that are checked next.
    batch_size: usize,
    /// The last record found in the order of scores.
    after: Option<Hit>,
    /// The number of records that the last search returned at most.
    search_size: usize,
    counters: Counters,
    pace: Pace,
}

impl TextScanOperator {
    pub fn new(
        source: Arc<dyn Source>,
        scan: &TextScan,
        within: Option<BoxOperator>,
    ) -> TextScanOperator {
        TextScanOperator {
            source,
            scan: scan.clone(),
            within: within.into_iter().collect(),
            within_ids: None,
            candidates: None,
            ready: VecDeque::new(),
            batch_size: CHECKED_FIRST,
            after: None,
            search_size: 0,
            counters: Counters::default(),
            pace: Pace::default(),
        }
    }

    /// Returns all records with a term, or the best of them, with their scores. The last one is
    /// returned first.
    fn find_candidates(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<ScoredRecord>, Error> {
        if self.scan.has_suffix() {
            return self.find_by_entries(interrupt);
        }
        let Some(best) = self.scan.best else {
            return self.search(interrupt, |search| search.all(interrupt));
        };
        if self.scan.must_fetch() {
            return self.find_more(interrupt);
        }
        let options = BestOptions::new(usize::try_from(best).unwrap_or(usize::MAX), TIES);
        self.search(interrupt, |search| search.best(&options, interrupt))
    }

    /// Reads the records that restrict the result, if there is such a restriction.
    fn read_within(&mut self, interrupt: &dyn Interrupt) -> Result<Option<SetIds>, Error> {
        if self.within_ids.is_none()
            && let Some(rows) = self.within.first_mut()
        {
            let mut ids = IdSet::default();
            while let Some(row) = rows.next(interrupt)? {
                ids.insert(row.id.0);
            }
            self.within_ids = Some(ids.into_ids());
        }
        Ok(self.within_ids.clone())
    }

    fn search(
        &mut self,
        interrupt: &dyn Interrupt,
        run: impl FnOnce(&mut TextSearch) -> Result<Vec<ScoredRecord>, Error>,
    ) -> Result<Vec<ScoredRecord>, Error> {
        let within = self.read_within(interrupt)?;
        let mut search = TextSearch::open(&*self.source, &self.scan, within)?;
        self.counters.seeks += self.scan.query.terms().len() as u64;
        let found = run(&mut search)?;
        self.counters.keys_examined += search.read;
        self.counters.keys_skipped += search.skipped;
        Ok(found)
    }

    /// Returns the next best records, more each time, because some of them may not match. The
    /// result is empty if no records are left.
    fn find_more(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<ScoredRecord>, Error> {
        let records_needed =
            usize::try_from(self.scan.best.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let count = match self.after {
            None => records_needed.saturating_mul(2).max(CHECKED_FIRST),
            Some(_) => self.search_size.saturating_mul(4),
        };
        self.search_size = count;
        let options = BestOptions {
            after: self.after,
            ..BestOptions::new(count, TIES)
        };
        let found = self.search(interrupt, |search| search.best(&options, interrupt))?;
        if let Some(worst) = found.first() {
            self.after = Some(Hit {
                id: worst.id.0,
                score: worst.score,
            });
        }
        Ok(found)
    }

    /// Finds the records if keys have more fields after the term. Each entry then has a key of its
    /// own.
    fn find_by_entries(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<ScoredRecord>, Error> {
        let query = self.scan.query.clone();
        let mut found: Vec<ScoredRecord> = Vec::new();
        for term in query.terms() {
            let postings = self.entries(term, interrupt)?;
            found = if found.is_empty() {
                postings
            } else {
                merge_scores(found, postings)
            };
        }
        Ok(found)
    }

    fn entries(
        &mut self,
        term: &str,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<ScoredRecord>, Error> {
        let from = self.scan.term_key(term);
        let mut cursor = self.source.entries(self.scan.number, Direction::Forward)?;
        cursor.seek(&from, RecordId(0))?;
        self.counters.seeks += 1;
        let to = after(&from);
        let mut found = Vec::new();
        while cursor.next()? && cursor.key() < to.as_slice() {
            self.pace.step(interrupt)?;
            self.counters.keys_examined += 1;
            let posting = Posting::read(cursor.payload()).ok_or_else(|| {
                Error::damaged_entry(&self.scan.definition.name, "its posting cannot be read")
            })?;
            found.push(ScoredRecord {
                id: cursor.id(),
                score: score_of(&posting),
            });
        }
        found.sort_by_key(|record| record.id);
        Ok(found)
    }

    /// Checks the next candidates against their documents, on all free cores if there are many.
    fn check_some(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let Some(candidates) = &mut self.candidates else {
            return Ok(());
        };
        let first = candidates.len().saturating_sub(self.batch_size);
        let mut batch = candidates.split_off(first);
        batch.reverse();
        let check = CandidateCheck {
            source: &*self.source,
            scan: &self.scan,
        };
        let chunks: Vec<_> = batch.chunks(CHECKED_BY_TASK).collect();
        let found = run_tasks(chunks.len(), interrupt, &|number, interrupt| {
            let chunk = chunks.get(number).copied().unwrap_or_default();
            check.matching(chunk, interrupt)
        })?;
        for chunk in found {
            self.counters.documents_examined += chunk.documents_examined;
            self.ready.extend(chunk.rows);
        }
        self.batch_size = CHECKED_MAX.min(self.batch_size * 2);
        Ok(())
    }

    /// Returns `true` if there are candidates to check.
    fn has_candidates(&mut self, interrupt: &dyn Interrupt) -> Result<bool, Error> {
        let is_empty = self.candidates.as_ref().is_none_or(Vec::is_empty);
        let wants_more = self
            .scan
            .best
            .is_some_and(|best| self.counters.returned < best);
        if is_empty && wants_more && self.after.is_some() {
            self.candidates = Some(self.find_more(interrupt)?);
        }
        Ok(self
            .candidates
            .as_ref()
            .is_some_and(|left| !left.is_empty()))
    }

    fn next_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.candidates.is_none() {
            self.candidates = Some(self.find_candidates(interrupt)?);
        }
        if self
            .scan
            .best
            .is_some_and(|best| self.counters.returned >= best)
        {
            return Ok(None);
        }
        if !self.scan.fetches {
            let next = self.candidates.as_mut().and_then(Vec::pop);
            return Ok(next.map(|record| scored_row(record, Content::EMPTY)));
        }
        while self.ready.is_empty() && self.has_candidates(interrupt)? {
            interrupt.check()?;
            self.check_some(interrupt)?;
        }
        Ok(self.ready.pop_front())
    }
}

/// The check of candidates against their documents.
struct CandidateCheck<'s> {
    source: &'s dyn Source,
    scan: &'s TextScan,
}

/// The result of a check.
#[derive(Default)]
struct CheckResult {
    /// The candidates that match, with their documents.
    rows: Vec<Row>,
    documents_examined: u64,
}

impl CandidateCheck<'_> {
    /// Returns the candidates that match, in their order.
    fn matching(
        &self,
        candidates: &[ScoredRecord],
        interrupt: &dyn Interrupt,
    ) -> Result<CheckResult, Error> {
        let mut matcher = Matcher::new(&self.scan.query);
        let (mut result, mut pace) = (CheckResult::default(), Pace::default());
        let mut documents = PrefetchedDocuments::default();
        for (number, candidate) in candidates.iter().enumerate() {
            let next = candidates.iter().skip(number).map(|record| record.id);
            let Some(bytes) = documents.next(self.source, next)? else {
                continue;
            };
            pace.step_over(bytes.len(), interrupt)?;
            result.documents_examined += 1;
            let document = Document::from_validated(&bytes);
            if self.matches(document, &mut matcher)? {
                let content = Content::Shared(bytes);
                result.rows.push(scored_row(*candidate, content));
            }
        }
        Ok(result)
    }

    fn matches(&self, document: Document<'_>, matcher: &mut Matcher<'_>) -> Result<bool, Error> {
        if self.scan.must_read_text() && !self.matches_text(document, matcher)? {
            return Ok(false);
        }
        match &self.scan.filter {
            Some(filter) => Ok(filter.matches(document)?),
            None => Ok(true),
        }
    }

    fn matches_text(
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
}

fn scored_row(record: ScoredRecord, content: Content) -> Row {
    let mut row = Row::from_record(record.id, content);
    row.meta.text_score = Some(record.score);
    row
}

/// Merges two lists by record id. The scores of records in both are added.
fn merge_scores(one: Vec<ScoredRecord>, other: Vec<ScoredRecord>) -> Vec<ScoredRecord> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut left, mut right) = (one.into_iter().peekable(), other.into_iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) if one.id == other.id => {
                let both = ScoredRecord {
                    id: one.id,
                    score: one.score + other.score,
                };
                left.next();
                right.next();
                Some(both)
            }
            (Some(one), Some(other)) if one.id < other.id => left.next(),
            (Some(_), None) => left.next(),
            _ => right.next(),
        };
        match next {
            Some(entry) => all.push(entry),
            None => return all,
        }
    }
}

impl Operator for TextScanOperator {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.next_row(interrupt)?;
        self.counters.record(&row);
        Ok(row)
    }

    /// Counts the records with any of the terms without computing their scores.
    fn count_known(&mut self, interrupt: &dyn Interrupt) -> Result<Option<u64>, Error> {
        let scan = &self.scan;
        if scan.must_fetch() || scan.has_suffix() || self.candidates.is_some() {
            return Ok(None);
        }
        let within = self.read_within(interrupt)?;
        let scan = &self.scan;
        let count = TextSearch::open(&*self.source, scan, within)?.count(interrupt)?;
        let count = scan.best.map_or(count, |best| count.min(best));
        self.counters.record_count(Some(count));
        Ok(Some(count))
    }

    counted!(counters, all within);
}
