//! From a text to a parsed query: saved searches, synonyms and media types.

use std::cell::RefCell;
use std::path::Path;

use windrow_file_query::{Query, QueryContext, Synonyms, expand_saved_queries};

use crate::error::SearchError;
use crate::mime_types::known_mime_types;
use crate::saved_searches::SavedSearches;

/// The file of synonyms in a data folder.
const SYNONYMS_FILE: &str = "synonyms.txt";

/// A query as it was typed and as it was understood.
#[derive(Debug, Clone)]
pub struct ParsedQuery {
    /// Without saved searches: they are replaced.
    pub text: String,
    /// Its tree.
    pub query: Query,
    /// Words with `@` in front that are no saved searches.
    pub unknown_names: Vec<String>,
}

/// Turns texts into queries.
#[derive(Debug)]
pub struct QueryReader {
    saved: SavedSearches,
    context: QueryContext,
}

impl QueryReader {
    /// Creates a reader with the synonyms of a file, or of the data folder if there is no file.
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
        let unknown_names = RefCell::new(Vec::new());
        let text = expand_saved_queries(text, &|name| {
            let query = self.saved.query(name);
            if query.is_none() {
                unknown_names.borrow_mut().push(name.to_owned());
            }
            query
        });
        let text = text.map_err(|error| SearchError::Query(error.to_string()))?;
        let query = Query::parse(&text, &self.context);
        let query = query.map_err(|error| SearchError::Query(error.to_string()))?;
        Ok(ParsedQuery {
            text,
            query,
            unknown_names: unknown_names.into_inner(),
        })
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
