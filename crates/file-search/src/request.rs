//! Parses queries with saved searches, synonyms and media types.

use std::cell::RefCell;
use std::path::Path;

use windrow_file_query::{Query, QueryContext, Synonyms, expand_saved_queries, notes_on_query};

use crate::error::SearchError;
use crate::mime_types::known_mime_types;
use crate::saved_searches::SavedSearches;

/// The name of the synonyms file in a data folder.
const SYNONYMS_FILE: &str = "synonyms.txt";

/// A parsed query.
#[derive(Debug, Clone)]
pub struct ParsedQuery {
    /// The text after saved searches were expanded.
    pub text: String,
    /// Its tree.
    pub query: Query,
    /// Notes about words that may have been meant differently: unknown saved searches and fields.
    pub notes: Vec<String>,
}

/// Parses the texts of queries.
#[derive(Debug)]
pub struct QueryReader {
    saved: SavedSearches,
    context: QueryContext,
}

impl QueryReader {
    /// Creates a reader with the synonyms of a file. `None` is the file in the data folder.
    pub fn open(data_folder: &Path, synonyms: Option<&Path>) -> Result<QueryReader, SearchError> {
        Ok(QueryReader {
            saved: SavedSearches::open(data_folder)?,
            context: QueryContext {
                mime_types: known_mime_types(),
                synonyms: read_synonyms(data_folder, synonyms)?,
                ..QueryContext::default()
            },
        })
    }

    /// Parses a query.
    pub fn parse(&self, text: &str) -> Result<ParsedQuery, SearchError> {
        let notes = RefCell::new(Vec::new());
        let text = expand_saved_queries(text, &|name| {
            let query = self.saved.query(name);
            if query.is_none() {
                notes.borrow_mut().push(format!(
                    "there is no saved search {name:?}; @{name} is searched as a word"
                ));
            }
            query
        });
        let text = text.map_err(|error| SearchError::Query(error.to_string()))?;
        let query = Query::parse(&text, &self.context);
        let query = query.map_err(|error| SearchError::Query(error.to_string()))?;
        let mut notes = notes.into_inner();
        notes.extend(notes_on_query(&text));
        Ok(ParsedQuery { text, query, notes })
    }
}

fn read_synonyms(data_folder: &Path, file: Option<&Path>) -> Result<Synonyms, SearchError> {
    let default = data_folder.join(SYNONYMS_FILE);
    let path = match file {
        Some(file) => file,
        None if default.exists() => &default,
        None => return Ok(Synonyms::default()),
    };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| SearchError::File(format!("the synonyms in {shown}: {error}")))?;
    Synonyms::parse(&text)
        .map_err(|error| SearchError::File(format!("the synonyms in {shown}, {error}")))
}
