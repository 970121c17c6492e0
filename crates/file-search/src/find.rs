//! Runs a query, and suggests changes if it has few results.

use windrow_file_query::Query;

use crate::pipeline::{ResultPage, Target};
use crate::request::ParsedQuery;
use crate::result::SearchResult;
use crate::source::DocumentSource;
use crate::suggestion::{explain_nothing, suggest_query};

/// The number of results up to which similar words are suggested.
const RESULTS_FEW: usize = 2;

/// Receives results with their ranks. Returns `false` to stop the search.
pub type ResultVisitor<'v> = dyn FnMut(SearchResult, usize) -> bool + 'v;

/// The outcome of a search besides its results.
#[derive(Debug, Default)]
pub struct SearchOutcome {
    /// The number of visited results.
    pub count: usize,
    /// The number of the query's words that the results contain, if no document contains all of
    /// them.
    pub words_found: Option<usize>,
    /// A query with similarly spelled words.
    pub suggestion: Option<String>,
    /// The reason why there are no results.
    pub reason: Option<String>,
}

impl SearchOutcome {
    /// Returns notes about the results, without the suggestion.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let some_words = self
            .words_found
            .map(|words| format!("no document has all words; these have at least {words} of them"));
        let reason = self.reason.as_ref();
        let reason = reason.map(|reason| format!("nothing found: {reason}"));
        some_words.into_iter().chain(reason)
    }
}

/// Visits the results of a target. `parsed` is its query: if no document contains all its words,
/// the documents with most of them are visited, and if there are few results, similar words are
/// suggested.
pub fn find<S: DocumentSource>(
    source: &mut S,
    target: &Target,
    parsed: Option<&ParsedQuery>,
    page: &ResultPage,
    visit: &mut ResultVisitor<'_>,
) -> Result<SearchOutcome, S::Error> {
    let mut found = SearchOutcome {
        count: visit_results(source, target, page, visit)?,
        ..SearchOutcome::default()
    };
    let (Some(parsed), true) = (parsed, found.count <= RESULTS_FEW && page.skip == 0) else {
        return Ok(found);
    };
    if found.count == 0
        && let Some(relaxed) = relax_query(source, &parsed.query)?
    {
        found.count = visit_results(source, &relaxed.target, page, visit)?;
        found.words_found = Some(relaxed.words);
    }
    found.suggestion = suggest_query(source, parsed)?;
    if found.count == 0 {
        found.reason = Some(explain_nothing(source, &parsed.query)?);
    }
    Ok(found)
}

/// A query that requires only some of its words.
struct RelaxedQuery {
    /// The number of required words.
    words: usize,
    target: Target,
}

/// Relaxes a query whose words do not all occur in any document. The result requires the greatest
/// number of words that occur together.
fn relax_query<S: DocumentSource>(
    source: &mut S,
    query: &Query,
) -> Result<Option<RelaxedQuery>, S::Error> {
    // Binary search: some documents have `found` words, and none has `missing` words.
    let (mut found, mut missing) = (0, query.words().len());
    while found + 1 < missing {
        let count = found.midpoint(missing);
        match query.to_relaxed_operator(count) {
            Some(operator) if source.count(&operator)? > 0 => found = count,
            _ => missing = count,
        }
    }
    let operator = query.to_relaxed_operator(found);
    Ok(operator.map(|operator| RelaxedQuery {
        words: found,
        target: Target::new(operator),
    }))
}

/// Visits the results of a target. Returns their number.
fn visit_results<S: DocumentSource>(
    source: &mut S,
    target: &Target,
    page: &ResultPage,
    visit: &mut ResultVisitor<'_>,
) -> Result<usize, S::Error> {
    let mut count = 0;
    source.aggregate(&target.pipeline(page), &mut |document| {
        count += 1;
        visit(SearchResult::new(document), page.skip as usize + count)
    })?;
    Ok(count)
}
