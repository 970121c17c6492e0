//! From an address to documents.

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};
use windrow_file_search::{
    Found, ParsedQuery, QueryReader, ResultPage, ResultText, SearchError, SearchResult, Target,
    find, similar_target, with_prefix,
};

use super::address::{PAGE_SIZE, SearchAddress};
use super::source::IndexedFiles;
use crate::error::PageError;
use crate::request::Request;
use crate::texts::search as texts;

/// So many characters of a document are read to say on which line a passage is.
const CHARACTERS_READ: u32 = 20_000;

/// A search that can be run.
pub struct Search {
    /// What documents have to match, filters included.
    pub target: Target,
    /// The query, if there is one.
    parsed: Option<ParsedQuery>,
    /// Sentences about words that may be meant otherwise.
    pub notes: Vec<String>,
}

/// The results of a page.
pub struct Results {
    /// The documents.
    pub all: Vec<SearchResult>,
    /// What else was found.
    pub found: Found,
    /// There are results behind these.
    pub has_more: bool,
}

impl Search {
    /// Prepares the search of an address. While a person types, the last word may be the beginning of
    /// others.
    ///
    /// # Errors
    /// Fails if the query or a filter is wrong, or if the document is not there that others have to be
    /// similar to.
    pub fn prepare(
        request: &Request,
        files: &mut IndexedFiles,
        address: &SearchAddress,
        is_typing: bool,
    ) -> Result<Search, PageError> {
        let filters = address.operators()?;
        let query = address.query();
        let parsed = if query.is_empty() {
            None
        } else {
            let reader = QueryReader::open(&request.site().services.data_folder, None);
            Some(read(&reader?, query, is_typing)?)
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

    /// Returns the query, if fewer of its words can be searched for. That knows no filters.
    pub fn relaxable(&self, address: &SearchAddress) -> Option<&ParsedQuery> {
        let has_filters = address.filters().next().is_some();
        self.parsed.as_ref().filter(|_| !has_filters)
    }

    /// Finds the results of a page.
    ///
    /// # Errors
    /// Fails if the database does.
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

/// A query with the operator that it stands for while it is typed.
struct TypedQuery {
    parsed: ParsedQuery,
    operator: DocumentBuf,
}

fn read(reader: &QueryReader, query: &str, is_typing: bool) -> Result<TypedQuery, PageError> {
    let parsed = reader.parse(query)?;
    let typed = if is_typing {
        reader.parse(&with_prefix(query)).ok()
    } else {
        None
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

/// Every indexed document has a kind.
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
