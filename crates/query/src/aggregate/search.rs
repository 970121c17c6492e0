//! The stages `$search` and `$searchMeta`. See [`search`](crate::search).

use std::collections::VecDeque;
use std::sync::Arc;

use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_interrupt::Interrupt;
use windrow_mql::expression::{Dependencies, SearchMetadata};
use windrow_mql::filter::Environment;
use windrow_search::Hit;

use super::rows::Rows;
use super::stage::{
    ExplainContext, PipelineContext, RowsNeeded, ScoreMetadata, StageKind, Transformation,
    not_first,
};
use crate::Error;
use crate::operators::{
    BoxOperator, Counters, Operator, PrefetchedDocuments, ReadCounters, counted,
};
use crate::row::Row;
use crate::search::{DetailsWriter, OpenSearch, Search, SortedHit, SynonymReader, TotalCount};
use crate::source::{RecordId, Source};

/// Which of the two stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchOutput {
    Documents,
    Meta,
}

/// A parsed stage.
#[derive(Clone, Debug)]
struct SearchStage {
    search: Search,
    shows: SearchOutput,
    /// The metadata of the search, which expressions can read.
    metadata: Option<Arc<SearchMetadata>>,
    needed: RowsNeeded,
}

impl SearchOutput {
    fn stage(self) -> &'static str {
        match self {
            SearchOutput::Documents => "$search",
            SearchOutput::Meta => "$searchMeta",
        }
    }
}

/// Parses the operand of a stage. Fails as [`Search::parse`] does.
pub fn parse(
    shows: SearchOutput,
    operand: ValueRef<'_>,
    environment: &Environment,
) -> Result<Vec<StageKind>, Error> {
    let stage = SearchStage {
        search: Search::parse(shows.stage(), operand)?,
        shows,
        metadata: environment.variables.search().cloned(),
        needed: RowsNeeded::default(),
    };
    Ok(vec![StageKind::Other(Arc::new(stage))])
}

impl Transformation for SearchStage {
    fn open(&self, _: BoxOperator, _: &PipelineContext) -> Result<BoxOperator, Error> {
        Err(not_first(self.shows.stage()))
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies {
            whole: true,
            ..Dependencies::default()
        }
    }

    fn over_source(
        &self,
        source: &Arc<dyn Source>,
        context: &PipelineContext,
    ) -> Option<Result<BoxOperator, Error>> {
        if source.view().is_some() {
            return Some(Err(on_view(self.shows.stage())));
        }
        let open = self.search.open(source.clone(), synonyms(context));
        Some(open.map(|open| -> BoxOperator {
            match open {
                None => Box::new(Rows::new(Vec::new())),
                Some(search) => Box::new(SearchResults::new(search, self)),
            }
        }))
    }

    fn explained_over(
        &self,
        source: &Arc<dyn Source>,
        how: &ExplainContext<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let mut plan = match self.search.open(source.clone(), synonyms(how.context))? {
            None => doc! { "stage": "EOF", "indexName": (self.search.index.as_str()) },
            Some(search) => search.explain(how.interrupt)?,
        };
        if let Some(limit) = self.needed.limit {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            plan.push("limitAmount", Value::Int64(limit));
        }
        let query = self.search.source().clone();
        let shown = doc! { "mongotQuery": query, "explain": plan };
        let mut document = DocumentBuf::new();
        document.push(self.shows.stage(), shown);
        Ok(Some(document))
    }

    fn plan_summary(&self) -> Option<String> {
        Some(format!("SEARCH {}", self.search.index))
    }

    fn scores(&self) -> Option<ScoreMetadata> {
        match self.shows {
            SearchOutput::Documents if self.search.returns_score_details => {
                Some(ScoreMetadata::WithDetails)
            }
            SearchOutput::Documents => Some(ScoreMetadata::ScoreOnly),
            SearchOutput::Meta => None,
        }
    }

    fn with_rows_needed(&self, needed: &RowsNeeded) -> Option<Arc<dyn Transformation>> {
        let known = self.needed.limit.unwrap_or(u64::MAX);
        let limit = needed.limit.map(|limit| limit.min(known));
        Some(Arc::new(SearchStage {
            needed: RowsNeeded {
                limit: limit.or(self.needed.limit),
                ..*needed
            },
            ..self.clone()
        }))
    }
}

/// Returns a reader of the synonyms in the database of the pipeline.
fn synonyms(context: &PipelineContext) -> SynonymReader {
    SynonymReader::new(context.collections.clone(), context.database.clone())
}

const COMMAND_NOT_SUPPORTED_ON_VIEW: i32 = 166;

fn on_view(stage: &str) -> Error {
    let message = format!(
        "{stage} cannot be run on a view; search its collection, and put the stages of the view after it"
    );
    Error::new(COMMAND_NOT_SUPPORTED_ON_VIEW, message)
}

/// The number of records of the first search if the number of rows needed is not known. It grows
/// with each further search.
const FIRST: usize = 128;
const GROWTH: usize = 4;

/// The records of a search, the best first.
struct SearchResults {
    search: OpenSearch,
    shows: SearchOutput,
    /// The metadata to be set before the first row, if an expression reads them.
    metadata: Option<Arc<SearchMetadata>>,
    limit: Option<u64>,
    /// The number of next rows that no later stage reads.
    unread: u64,
    found: VecDeque<SortedHit>,
    documents: PrefetchedDocuments,
    /// The sort key of the last record found.
    last: Option<Vec<u8>>,
    together: usize,
    is_over: bool,
    details: Details,
    /// The explanations of the scores of the next records.
    explanations: VecDeque<DocumentBuf>,
    counters: Counters,
}

/// The details of records that the stage shows, such as highlights.
enum Details {
    /// The first row opens them.
    Unopened,
    /// The stage shows none.
    Unrequested,
    /// The writer of the details.
    Opened(Box<DetailsWriter>),
}

impl SearchResults {
    fn new(search: OpenSearch, stage: &SearchStage) -> SearchResults {
        SearchResults {
            search,
            shows: stage.shows,
            metadata: stage.metadata.clone().filter(|it| it.is_read()),
            limit: stage.needed.limit,
            unread: stage.needed.unread,
            found: VecDeque::new(),
            documents: PrefetchedDocuments::default(),
            last: None,
            together: 0,
            is_over: false,
            details: Details::Unopened,
            explanations: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    fn next_hit(&mut self, interrupt: &dyn Interrupt) -> Result<Option<SortedHit>, Error> {
        if self.found.is_empty() && !self.is_over {
            self.read_page(TotalCount::Unwanted, interrupt)?;
        }
        Ok(self.found.pop_front())
    }

    /// Searches the next records. Returns the number of all records, if it is wanted and known.
    fn read_page(
        &mut self,
        total: TotalCount,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<u64>, Error> {
        self.together = match (self.together, self.limit) {
            (0, Some(limit)) => usize::try_from(limit).unwrap_or(usize::MAX).max(1),
            (0, None) if self.search.reads_all() => usize::MAX,
            (0, None) => FIRST,
            (before, _) => before.saturating_mul(GROWTH),
        };
        let after = self.last.as_deref();
        let page = self.search.page(self.together, after, total, interrupt)?;
        self.is_over = !page.has_more;
        self.last = page.hits.last().map(|sorted| sorted.key.clone());
        self.counters.keys_examined += page.postings_read;
        self.counters.keys_skipped += page.postings_skipped;
        self.found = page.hits.into();
        Ok(page.total)
    }

    /// Returns the metadata of the search. If they are just the number of records, the first page
    /// is searched with them.
    fn read_metadata(&mut self, interrupt: &dyn Interrupt) -> Result<DocumentBuf, Error> {
        match self.read_page(TotalCount::Wanted, interrupt)? {
            Some(total) => Ok(self.search.metadata_of_count(total)),
            None => self.search.metadata(interrupt),
        }
    }

    /// Computes the explanations of this record and the next ones, if they are requested and not
    /// yet computed.
    fn explain(&mut self, hit: Hit, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let together = match &self.details {
            Details::Opened(writer) => writer.explanations_together,
            Details::Unopened | Details::Unrequested => None,
        };
        if let (Some(together), true) = (together, self.explanations.is_empty()) {
            let next = self.found.iter().map(|sorted| sorted.hit);
            let hits: Vec<Hit> = std::iter::once(hit).chain(next).take(together).collect();
            self.explanations = self.search.score_details(&hits, interrupt)?.into();
        }
        Ok(())
    }

    fn next_row(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        if self.shows == SearchOutput::Meta {
            if std::mem::replace(&mut self.is_over, true) {
                return Ok(None);
            }
            let metadata: DocumentBuf = self.search.metadata(interrupt)?;
            return Ok(Some(Row::new(metadata)));
        }
        if let Some(metadata) = self.metadata.take() {
            metadata.set(Value::from(self.read_metadata(interrupt)?));
        }
        if matches!(self.details, Details::Unopened) {
            let writer = self.search.details(interrupt)?;
            self.details = writer.map_or(Details::Unrequested, |writer| {
                Details::Opened(Box::new(writer))
            });
        }
        while let Some(sorted) = self.next_hit(interrupt)? {
            interrupt.check()?;
            if let Some(rest) = self.unread.checked_sub(1) {
                self.unread = rest;
                return Ok(Some(Row::new(DocumentBuf::new())));
            }
            let id = RecordId(sorted.hit.id);
            self.explain(sorted.hit, interrupt)?;
            let next = self.found.iter().map(|sorted| RecordId(sorted.hit.id));
            let ids = std::iter::once(id).chain(next);
            let Some(bytes) = self.documents.next(&*self.search.source, ids)? else {
                self.explanations.pop_front();
                continue;
            };
            self.counters.documents_examined += 1;
            let mut row = Row::from_record(id, bytes);
            row.meta.search_score = Some(sorted.hit.score);
            row.meta.sequence_token = Some(self.search.sequence_token(&sorted));
            if let Details::Opened(writer) = &mut self.details {
                let explanation = self.explanations.pop_front();
                row.meta.search = writer.details(row.document(), explanation, interrupt)?;
            }
            if let Some(stored) = &self.search.stored_source {
                let document = stored.apply(row.document(), &row.meta)?;
                row = row.with(document);
            }
            return Ok(Some(row));
        }
        Ok(None)
    }
}

impl Operator for SearchResults {
    fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<Row>, Error> {
        let row = self.next_row(interrupt)?;
        self.counters.record(&row);
        Ok(row)
    }

    fn reads(&self) -> Option<ReadCounters> {
        let mut reads = ReadCounters {
            documents_examined: self.counters.documents_examined,
            keys_examined: self.counters.keys_examined,
            keys_skipped: self.counters.keys_skipped,
            ..ReadCounters::default()
        };
        reads.add_index(self.search.index());
        Some(reads)
    }

    counted!(counters);
}
