//! `$search` and `$searchMeta`: a subset of MongoDB Search.
//!
//! ```text
//! operators (`operator`) → a query over the terms of the index (`compile`) → lists of postings
//!   (`source`) → the best records, or their number (crate `search`)
//! ```
//!
//! Scores are BM25 as Lucene computes it. Sources: MongoDB's manual and, for scores and the meaning
//! of operators, Lucene's documentation.

mod compile;
mod details;
mod facet;
mod highlight;
mod nearest;
mod open_facts;
mod operator;
mod options;
mod query_printer;
mod query_string;
mod score_details;
mod sequence_token;
mod sort;
mod sorted;
mod source;
mod stored_source;
mod suggest;
mod synonyms;

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_index::search::SearchDefinition;
use windrow_interrupt::{Interrupt, Interrupted};
use windrow_invariant::Bug;
use windrow_mql::projection::Projection;
use windrow_search::{
    Best, BestOptions, Bm25Similarity, CompileError, Compiled, Explainer, Hit, Limits, Scores,
    Terms, TieOrder, best, best_and_count, collect, count,
};

use crate::Error;
use crate::source::{Direction, SearchIndex, Source};
use crate::text::term_lists::TermLists;
pub use details::DetailsWriter;
use facet::{Collector, FacetCounter, MatchedRecords, SearchFacet};
use highlight::Highlight;
use open_facts::OpenFacts;
use operator::{OPERATORS, OperatorKind, SearchOperator};
use options::{Options, bad, optional_number};
use sequence_token::Fingerprint;
pub use sort::SortedHit;
use sort::{FirstHits, SearchSort, hit_of_key};
use source::IndexSource;
use suggest::SuggestRequest;
pub use synonyms::SynonymReader;

/// A parsed `$search` or `$searchMeta`.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The name of the index.
    pub index: String,
    operator: SearchOperator,
    facets: Vec<SearchFacet>,
    suggest: Option<SuggestRequest>,
    count: CountKind,
    highlight: Option<Highlight>,
    /// `true` if the search returns the details of scores.
    pub returns_score_details: bool,
    /// `true` if the search returns only the fields that the index stores.
    returns_stored_source: bool,
    /// The operand of the stage.
    source: DocumentBuf,
    sort: Option<SearchSort>,
    page: Option<PageStart>,
    fingerprint: Fingerprint,
}

/// The options `searchAfter` and `searchBefore`.
#[derive(Clone, Debug, PartialEq)]
struct PageStart {
    /// The sort key of the document after or before which the page begins.
    key: Vec<u8>,
    /// `Backward`: the page goes towards the beginning of the result.
    direction: Direction,
}

/// A part of a result, in its order.
#[derive(Debug)]
pub struct Page {
    /// The records.
    pub hits: Vec<SortedHit>,
    /// `true` if there are more records after the page.
    pub has_more: bool,
    /// The number of all records that match, if it was wanted and is all of the metadata. Pages
    /// that are sorted by fields do not have it.
    pub total: Option<u64>,
    /// The number of postings that were read.
    pub postings_read: u64,
    /// The number of postings that were skipped.
    pub postings_skipped: u64,
}

/// The kind of count that `$searchMeta` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountKind {
    /// The exact number of records.
    Total,
    /// A lower bound above a threshold. Windrow always returns the exact number.
    LowerBound,
}

const INDEX: &str = "default";

/// The fields beside the operator.
const FIELDS: [&str; 10] = [
    "index",
    "count",
    "concurrent",
    "highlight",
    "returnStoredSource",
    "scoreDetails",
    "searchAfter",
    "searchBefore",
    "sort",
    "tracking",
];
/// Fields that are not supported yet.
const UNSUPPORTED: [&str; 1] = ["returnScope"];

impl Search {
    /// Parses the operand of the stage with this name. Fails with 2 and a description of the error.
    pub fn parse(stage: &str, operand: ValueRef<'_>) -> Result<Search, Error> {
        let options = Options::new(stage, operand)?;
        let ValueRef::Document(document) = operand else {
            return Err(bad(format!("\"{stage}\" must be a document")));
        };
        let (mut operator, mut facets, mut suggest) = (None, Vec::new(), None);
        for (name, value) in document {
            if FIELDS.contains(&name) {
                continue;
            }
            if UNSUPPORTED.contains(&name) {
                return Err(bad(format!("\"{stage}.{name}\" is not supported")));
            }
            let parsed = if name == "facet" {
                let collector = Collector::parse(value)?;
                facets = collector.facets;
                collector.operator
            } else if name == "suggest" && stage == "$searchMeta" {
                suggest = Some(SuggestRequest::parse(value)?);
                SearchOperator::ALL
            } else {
                let unknown = || Err(bad(format!("Unrecognized field \"{stage}.{name}\"")));
                SearchOperator::parse(name, value).unwrap_or_else(unknown)?
            };
            if operator.replace(parsed).is_some() {
                return Err(bad(format!(
                    "\"{stage}\" must have one operator or collector, not several"
                )));
            }
        }
        if options.get("tracking").is_some() {
            return Err(bad(format!("\"{stage}.tracking\" is not supported")));
        }
        options.flag("concurrent")?;
        let operator = operator.ok_or_else(|| {
            bad(format!(
                "\"{stage}\" needs \"facet\" or an operator: one of {}",
                OPERATORS.join(", ")
            ))
        })?;
        let index = options.string("index")?.unwrap_or(INDEX);
        let fingerprint = fingerprint(document, index);
        Ok(Search {
            index: index.to_owned(),
            operator,
            facets,
            suggest,
            count: count_kind(&options)?,
            highlight: Highlight::parse(&options)?,
            returns_score_details: options.flag("scoreDetails")?,
            returns_stored_source: options.flag("returnStoredSource")?,
            source: document.to_buf(),
            sort: options.get("sort").map(SearchSort::parse).transpose()?,
            page: PageStart::parse(&options, fingerprint)?,
            fingerprint,
        })
    }

    /// The operand of the stage.
    pub fn source(&self) -> &DocumentBuf {
        &self.source
    }

    /// Opens the search on a snapshot. Returns `None` if the index does not exist. The result is
    /// empty in this case.
    pub fn open(
        &self,
        source: Arc<dyn Source>,
        synonyms: SynonymReader,
    ) -> Result<Option<OpenSearch>, Error> {
        let Some(SearchIndex { number, definition }) = source.search_index(&self.index) else {
            return Ok(None);
        };
        source.record_use(number);
        if let Some(sort) = &self.sort {
            sort.check(&definition)?;
        }
        for facet in &self.facets {
            facet.mapping(&definition)?;
        }
        Ok(Some(OpenSearch {
            stored_source: if self.returns_stored_source {
                stored_source::projection(&definition)?
            } else {
                None
            },
            search: self.clone(),
            source,
            number,
            definition,
            synonyms,
        }))
    }
}

/// Returns the fingerprint of the parts of the operand that determine the result and its order.
fn fingerprint(document: Document<'_>, index: &str) -> Fingerprint {
    let mut defining = DocumentBuf::new();
    for (name, value) in document {
        if name == "sort" || !FIELDS.contains(&name) {
            defining.push(name, value.to_value());
        }
    }
    Fingerprint::new(&[index.as_bytes(), defining.as_bytes()])
}

impl PageStart {
    fn parse(options: &Options<'_>, query: Fingerprint) -> Result<Option<PageStart>, Error> {
        let (after, before) = (
            options.string("searchAfter")?,
            options.string("searchBefore")?,
        );
        let (token, direction) = match (after, before) {
            (None, None) => return Ok(None),
            (Some(token), None) => (token, Direction::Forward),
            (None, Some(token)) => (token, Direction::Backward),
            (Some(_), Some(_)) => {
                let message = "only one of \"searchAfter\" and \"searchBefore\" may be present";
                return Err(bad(message.to_owned()));
            }
        };
        let key = query.key(token)?;
        Ok(Some(PageStart { key, direction }))
    }
}

fn count_kind(options: &Options<'_>) -> Result<CountKind, Error> {
    let Some(given) = options.get("count") else {
        return Ok(CountKind::LowerBound);
    };
    let given = Options::new("count", given)?;
    given.check(&["type", "threshold"])?;
    let is_wrong = |threshold: f64| threshold.fract() != 0.0 || threshold < 0.0;
    if optional_number(&given, "threshold")?.is_some_and(is_wrong) {
        return Err(bad(
            "\"count.threshold\" must be a whole number that is not negative".to_owned(),
        ));
    }
    match given.string("type")? {
        None | Some("lowerBound") => Ok(CountKind::LowerBound),
        Some("total") => Ok(CountKind::Total),
        Some(other) => Err(bad(format!(
            "\"count.type\" must be \"lowerBound\" or \"total\", not {other:?}"
        ))),
    }
}

/// The opened lists of a search, which return its records and their scores.
type SearchLists<'s> = Compiled<IndexSource<'s>, Bm25Similarity>;

/// Opens the lists of a query.
fn open_lists<'s>(
    query: &windrow_search::Query,
    source: &IndexSource<'s>,
    scores: Scores,
    interrupt: &dyn Interrupt,
) -> Result<SearchLists<'s>, CompileError<Error>> {
    let (similarity, limits) = (Bm25Similarity, Limits::default());
    windrow_search::compile(query, source, &similarity, &limits, scores, interrupt)
}

/// Whether a search returns the number of all records that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalCount {
    Wanted,
    Unwanted,
}

/// The best records of a search.
struct BestRecords {
    best: Best,
    /// The number of all records that match, if it was wanted.
    total: Option<u64>,
}

/// The records that match a search with facets.
struct FacetedCount {
    /// The number of records.
    records: u64,
    /// The counts of the facets.
    facets: DocumentBuf,
}

/// A search of an index at a snapshot.
pub struct OpenSearch {
    /// The search.
    search: Search,
    /// The snapshot.
    pub source: Arc<dyn Source>,
    number: usize,
    definition: Arc<SearchDefinition>,
    synonyms: SynonymReader,
    /// The fields to return, if not all.
    pub stored_source: Option<Projection>,
}

impl OpenSearch {
    /// Returns the best records, the best first. The terms of the query are looked up only once for
    /// the records and their number.
    fn best(
        &self,
        options: &BestOptions,
        total: TotalCount,
        interrupt: &dyn Interrupt,
    ) -> Result<BestRecords, Error> {
        self.over_lists(interrupt, |query, source, _| {
            if let (TotalCount::Unwanted, Some(nearness)) = (total, source.point_nearness(query)) {
                let best = nearest::best_of_near(query, source, nearness, options, interrupt)?;
                return Ok(BestRecords { best, total: None });
            }
            let mut node = open_lists(query, source, Scores::Computed, interrupt)?;
            match total {
                TotalCount::Wanted => {
                    let (best, total) = best_and_count(&mut node, options, interrupt)?;
                    let total = Some(total);
                    Ok(BestRecords { best, total })
                }
                TotalCount::Unwanted => Ok(BestRecords {
                    best: best(&mut node, options, interrupt)?,
                    total: None,
                }),
            }
        })
    }

    /// The direction in which the pages of the result go.
    fn direction(&self) -> Direction {
        let start = self.search.page.as_ref();
        start.map_or(Direction::Forward, |start| start.direction)
    }

    /// Returns up to `count` records of the result: those after the sort key `after`, or the first
    /// ones.
    pub fn page(
        &self,
        count: usize,
        after: Option<&[u8]>,
        total: TotalCount,
        interrupt: &dyn Interrupt,
    ) -> Result<Page, Error> {
        let start = self.search.page.as_ref();
        let after = after.or(start.map(|start| start.key.as_slice()));
        let by_score = SearchSort::default();
        if self.reads_all() {
            let sort = self.search.sort.as_ref().unwrap_or(&by_score);
            let first = FirstHits::new(count, self.direction());
            return self.sorted(sort, first, after, interrupt);
        }
        let wrong = || bad("Invalid token component".to_owned());
        let after = after.map(|key| hit_of_key(key).ok_or_else(wrong));
        let options = BestOptions {
            after: after.transpose()?,
            ..BestOptions::new(count, TieOrder::LowestId)
        };
        let has_more_metadata = !self.search.facets.is_empty() || self.search.suggest.is_some();
        let total = if has_more_metadata {
            TotalCount::Unwanted
        } else {
            total
        };
        let BestRecords { best, total } = self.best(&options, total, interrupt)?;
        let sorted = |hit: Hit| SortedHit {
            key: by_score.key(&self.definition, hit, Document::EMPTY),
            hit,
        };
        Ok(Page {
            has_more: best.hits.len() >= count,
            total,
            hits: best.hits.into_iter().map(sorted).collect(),
            postings_read: best.postings_read,
            postings_skipped: best.postings_skipped,
        })
    }

    /// Returns `true` if all matching records must be read before the first one of a page is known.
    pub fn reads_all(&self) -> bool {
        self.search.sort.is_some() || self.direction() == Direction::Backward
    }

    /// Returns the bytes of the token of a record's position in the result.
    pub fn sequence_token(&self, sorted: &SortedHit) -> Box<[u8]> {
        self.search.fingerprint.token(&sorted.key)
    }

    /// Returns the metadata that `$searchMeta` shows: the number of records that match, and the
    /// facets.
    pub fn metadata(&self, interrupt: &dyn Interrupt) -> Result<DocumentBuf, Error> {
        let mut metadata = if !self.search.facets.is_empty() {
            let counted = self.count_facets(interrupt)?;
            let mut metadata = self.metadata_of_count(counted.records);
            metadata.push("facet", counted.facets);
            metadata
        } else if self.search.suggest.is_some() {
            self.metadata_of_count(self.source.count())
        } else {
            let count = self.run(interrupt, Scores::Omitted, |node| count(node, interrupt))?;
            self.metadata_of_count(count)
        };
        if let Some(suggest) = &self.search.suggest {
            metadata.push("suggest", suggest.suggestions(self, interrupt)?);
        }
        Ok(metadata)
    }

    /// Returns the metadata of a search without facets that finds `count` records.
    pub fn metadata_of_count(&self, count: u64) -> DocumentBuf {
        let count = count as i64;
        match self.search.count {
            CountKind::Total => doc! { "count": { "total": count } },
            CountKind::LowerBound => doc! { "count": { "lowerBound": count } },
        }
    }

    fn count_facets(&self, interrupt: &dyn Interrupt) -> Result<FacetedCount, Error> {
        let facets = &self.search.facets;
        let (matched, total) = match self.search.operator.kind {
            OperatorKind::All => (MatchedRecords::All, self.source.count()),
            _ => {
                let set = self.run(interrupt, Scores::Omitted, |node| collect(node, interrupt))?;
                let total = set.len();
                (MatchedRecords::Set(set), total)
            }
        };
        let counter = FacetCounter {
            source: &*self.source,
            index: self.number,
            definition: &self.definition,
            matched,
            total,
        };
        let counted = counter.count(facets, interrupt)?;
        Ok(FacetedCount {
            records: total,
            facets: facet::to_document(facets, counted),
        })
    }

    /// Returns the name of the index.
    pub fn index(&self) -> &str {
        &self.search.index
    }

    /// Returns the plan of the search, as explain shows it.
    pub fn explain(&self, interrupt: &dyn Interrupt) -> Result<DocumentBuf, Error> {
        let lists = TermLists::default();
        let facts = self.facts(&lists, interrupt);
        let query = compile::compile(&self.search.operator, &self.definition, &facts)?.query;
        Ok(doc! {
            "stage": "SEARCH",
            "indexName": (self.search.index.as_str()),
            "indexVersion": (self.definition.version),
            "parsedQuery": (query_printer::readable(&query).to_string()),
        })
    }

    /// Opens the details that the search returns for each document besides its score. Returns
    /// `None` if none are requested.
    pub fn details(&self, interrupt: &dyn Interrupt) -> Result<Option<DetailsWriter>, Error> {
        let has_score_details = self.search.returns_score_details;
        if self.search.highlight.is_none() && !has_score_details {
            return Ok(None);
        }
        let lists = TermLists::default();
        let facts = self.facts(&lists, interrupt);
        let query = compile::compile(&self.search.operator, &self.definition, &facts)?.query;
        let highlights = match &self.search.highlight {
            Some(highlight) => Some(highlight.open(&query, &self.definition, &facts)?),
            None => None,
        };
        let together = score_details::documents_together(&query);
        Ok(Some(DetailsWriter {
            highlights,
            explanations_together: has_score_details.then_some(together),
        }))
    }

    /// Returns the explanations of the scores of records, in the order of the records.
    pub fn score_details(
        &self,
        hits: &[Hit],
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<DocumentBuf>, Error> {
        self.over_lists(interrupt, |query, source, lists| {
            let describe = &score_details::describe;
            let limits = Limits::default();
            let mut explainer = Explainer::new(query, source, &limits, describe, interrupt)?;
            let details = score_details::explain_hits(hits, &mut explainer, lists, interrupt);
            details.map_err(CompileError::Source)
        })
    }

    fn run<T>(
        &self,
        interrupt: &dyn Interrupt,
        scores: Scores,
        run: impl FnOnce(&mut SearchLists<'_>) -> Result<T, Interrupted>,
    ) -> Result<T, Error> {
        self.over_lists(interrupt, |query, source, _| {
            let mut node = open_lists(query, source, scores, interrupt)?;
            Ok(run(&mut node)?)
        })
    }

    /// Runs `work` with the query of the operator and the lists of the index.
    fn over_lists<T>(
        &self,
        interrupt: &dyn Interrupt,
        work: impl FnOnce(
            &windrow_search::Query,
            &IndexSource<'_>,
            &TermLists,
        ) -> Result<T, CompileError<Error>>,
    ) -> Result<T, Error> {
        let lists = TermLists::default();
        let facts = self.facts(&lists, interrupt);
        let compiled = compile::compile(&self.search.operator, &self.definition, &facts)?;
        let conditions = &compiled.conditions;
        let source = IndexSource::new(&*self.source, self.number, &lists, interrupt);
        let source = source.with_conditions(conditions);
        let result = match work(&compiled.query, &source, &lists) {
            Ok(found) => Ok(found),
            Err(CompileError::Interrupted(interrupted)) => Err(interrupted),
            Err(CompileError::Source(error)) => return Err(error),
            Err(other) => return lists.check().and_then(|()| Err(bad(other.to_string()))),
        };
        lists.result(result)
    }

    fn facts<'s>(&'s self, lists: &'s TermLists, interrupt: &'s dyn Interrupt) -> OpenFacts<'s> {
        OpenFacts {
            search: self,
            lists,
            interrupt,
        }
    }

    /// Returns the paths of all text fields of the index.
    fn paths(&self, lists: &TermLists, interrupt: &dyn Interrupt) -> Result<Vec<String>, Error> {
        let source = IndexSource::new(&*self.source, self.number, lists, interrupt);
        let mut terms = windrow_search::Source::terms(&source, "")?;
        let mut paths = Vec::new();
        while let Some(key) = terms.term() {
            let path = key.split(|byte| *byte == 0).next().unwrap_or_default();
            let Ok(path) = String::from_utf8(path.to_vec()) else {
                return Err(Bug::new("the path of a key is not UTF-8").into());
            };
            // The smallest key after all keys of this path.
            let behind = [path.as_bytes(), &[1]].concat();
            if !path.contains('\u{1}') {
                paths.push(path);
            }
            terms.seek(&behind);
            interrupt.check()?;
        }
        lists.check()?;
        Ok(paths)
    }
}
