//! Converts the parameters of a search to queries, and runs them.

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};
use windrow_file_search::{
    ParsedQuery, QueryReader, ResultPage, ResultText, SearchError, SearchOutcome, SearchResult,
    Target, find, similar_target, with_prefix,
};

use super::address::{PAGE_SIZE, SearchAddress};
use super::source::IndexedFiles;
use crate::error::PageError;
use crate::request::Request;
use crate::texts::search as texts;

/// The number of characters that are read of a document to find the line of a snippet.
const CHARACTERS_READ: u32 = 20_000;

/// The state of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryInput {
    /// The query was submitted.
    Complete,
    /// The user still types. The last word also matches as a prefix.
    Unfinished,
}

impl QueryInput {
    /// Returns the state for a request of a script, which marks unfinished queries by `typing`.
    pub fn from_request(request: &Request) -> QueryInput {
        match request.query().get("typing") {
            Some(_) => QueryInput::Unfinished,
            None => QueryInput::Complete,
        }
    }
}

/// A search that is ready to run.
pub struct Search {
    /// The operator that documents must match, including filters.
    pub target: Target,
    /// The parsed query. `None` without a query.
    parsed: Option<ParsedQuery>,
    /// Notes about words that may have been meant differently.
    pub notes: Vec<String>,
}

/// A page of results.
pub struct Results {
    /// The documents.
    pub all: Vec<SearchResult>,
    /// Additional results and suggestions.
    pub found: SearchOutcome,
    /// More results follow.
    pub has_more: bool,
}

impl Search {
    /// Prepares the search of an address.
    ///
    /// # Errors
    /// Fails if the query or a filter is invalid, or if the document of a similarity search does
    /// not exist.
    pub fn prepare(
        request: &Request,
        files: &mut IndexedFiles,
        address: &SearchAddress,
        input: QueryInput,
    ) -> Result<Search, PageError> {
        let filters = address.operators()?;
        let query = address.query();
        let parsed = if query.is_empty() {
            None
        } else {
            let reader = QueryReader::open(&request.site().services.data_folder, None);
            Some(read(&reader?, query, input)?)
        };
        let operator = parsed.as_ref().map(|parsed| parsed.operator.clone());
        let mut target = match address.like() {
            Some(id) => {
                let target = similar_target(files, id, operator)?;
                target.ok_or_else(|| PageError::not_found(texts::NOT_INDEXED))?
            }
            None => Target::new(operator.unwrap_or_else(all_documents)),
        };
        target.operator = filtered(target.operator, filters);
        let notes = parsed.as_ref().map(|it| it.parsed.notes.clone());
        Ok(Search {
            target,
            parsed: parsed
                .filter(|_| address.like().is_none())
                .map(|it| it.parsed),
            notes: notes.unwrap_or_default(),
        })
    }

    /// Returns the query if it can be relaxed to match only some of its words. Filters prevent
    /// that.
    pub fn relaxable(&self, address: &SearchAddress) -> Option<&ParsedQuery> {
        let has_filters = address.filters().next().is_some();
        self.parsed.as_ref().filter(|_| !has_filters)
    }

    /// Returns a page of results.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn run(
        &self,
        files: &mut IndexedFiles,
        address: &SearchAddress,
    ) -> Result<Results, PageError> {
        let page = ResultPage {
            limit: PAGE_SIZE + 1,
            skip: (address.page() - 1) * PAGE_SIZE,
            sort: address.order(),
            text: ResultText::Beginning(CHARACTERS_READ),
        };
        let parsed = self.relaxable(address);
        let mut all = Vec::new();
        let found = find(files, &self.target, parsed, &page, &mut |result, _| {
            all.push(result);
            true
        })?;
        let has_more = all.len() > PAGE_SIZE as usize;
        all.truncate(PAGE_SIZE as usize);
        Ok(Results {
            all,
            found,
            has_more,
        })
    }
}

/// A parsed query, and the operator that also matches the unfinished last word.
struct TypedQuery {
    parsed: ParsedQuery,
    operator: DocumentBuf,
}

fn read(reader: &QueryReader, query: &str, input: QueryInput) -> Result<TypedQuery, PageError> {
    let parsed = reader.parse(query)?;
    let typed = match input {
        QueryInput::Unfinished => reader.parse(&with_prefix(query)).ok(),
        QueryInput::Complete => None,
    };
    let operator = typed.as_ref().unwrap_or(&parsed).query.to_operator();
    Ok(TypedQuery { parsed, operator })
}

impl From<SearchError> for PageError {
    fn from(error: SearchError) -> PageError {
        match error {
            SearchError::Query(text) => PageError::bad_request(text),
            SearchError::File(text) => PageError::unavailable(&text),
        }
    }
}

/// Returns an operator that matches all documents: each has a kind.
fn all_documents() -> DocumentBuf {
    doc! { "exists": { "path": "kind" } }
}

fn filtered(operator: DocumentBuf, filters: Vec<DocumentBuf>) -> DocumentBuf {
    if filters.is_empty() {
        return operator;
    }
    let filters: ArrayBuf = filters.into_iter().map(Value::from).collect();
    doc! { "compound": { "must": [(operator)], "filter": (filters) } }
}
