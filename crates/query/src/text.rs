//! `$text`: the index that answers it. `operators::text` runs the scan.
//!
//! ```text
//! terms of the query → postings of each term → scores added by record, in the order of the terms
//!   → documents → phrases, negations, case and diacritics checked on the indexed strings → filter
//! ```
//!
//! If documents need not be checked, they are fetched after the sort by score. With a limit on that
//! sort, the scan looks only for the best records and skips most postings. Other indexes can answer
//! the conditions beside the text: their records form a list like those of the terms.

pub(crate) mod term_lists;

use std::sync::Arc;

use windrow_document::{Value, key};
use windrow_index::{Definition, KeyKind};
use windrow_mql::filter::{Comparison, Filter, Node, TextQuery};
use windrow_text::{Language, Query, Sensitivity, term_key};

use crate::Error;
use crate::bounds::partial;
use crate::source::Source;

/// MongoDB's code IndexNotFound.
const NO_TEXT_INDEX: i32 = 27;
/// MongoDB's code NoQueryExecutionPlans.
pub(crate) const NO_PLANS: i32 = 291;

/// A scan of a text index.
#[derive(Clone, Debug)]
pub struct TextScan {
    /// The position of the index in [`Source::indexes`].
    pub number: usize,
    /// The definition of the index.
    pub definition: Arc<Definition>,
    /// The parsed search string.
    pub query: Arc<Query>,
    /// The values of the fields before the text, which the filter fixes.
    pub prefix: Vec<Value>,
    /// The complete filter, if it has other conditions to test.
    pub filter: Option<Filter>,
    /// `true` if the rows have their documents. It is `true` if documents have to be checked.
    pub fetches: bool,
    /// The number of rows with the best scores that are needed. `None`: all rows.
    pub best: Option<u64>,
}

impl TextScan {
    /// Plans the `$text` in this conjunction of a filter. Fails with 27 without a text index, with
    /// 291 if a field before the text has no equality or if neither the conjunction nor the filter
    /// implies the filter of a partial index, and with 2 for an unknown language.
    pub fn plan(
        text: &TextQuery,
        conjunction: &Node,
        filter: &Filter,
        source: &dyn Source,
    ) -> Result<TextScan, Error> {
        let (number, definition) = text_index(source)?;
        let collation = filter.collation_shared();
        let mut conditions = [conjunction, filter.root()].into_iter();
        if !conditions.any(|node| partial::admits_all(&definition, node, collation)) {
            return Err(not_usable());
        }
        let query = parse(text, &definition)?;
        let fields = definition
            .fields
            .iter()
            .take_while(|field| field.kind != KeyKind::Text);
        let equal = |field: &windrow_index::KeyField| {
            equality(conjunction, &field.path).ok_or_else(not_usable)
        };
        let prefix = fields.map(equal).collect::<Result<Vec<Value>, Error>>()?;
        Ok(TextScan {
            number,
            definition,
            query: Arc::new(query),
            prefix,
            filter: None,
            fetches: true,
            best: None,
        })
    }

    /// Returns `true` if documents have to be read to decide if they match.
    pub fn must_fetch(&self) -> bool {
        self.must_read_text() || self.filter.is_some()
    }

    /// Returns `true` if the text of a document has to be read to decide if it matches.
    pub(crate) fn must_read_text(&self) -> bool {
        let reads_negated = self.has_suffix() && !self.query.negated_terms().is_empty();
        self.query.needs_text() || reads_negated
    }

    /// Returns the key of a term of the query, without the fields after the text.
    pub(crate) fn term_key(&self, term: &str) -> Vec<u8> {
        let mut key = self.prefix_key();
        key::append_string_bytes(&mut key, term_key(term, &mut Vec::new()));
        key
    }

    /// Returns the key bytes of the fields before the text.
    pub(crate) fn prefix_key(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (value, field) in self.prefix.iter().zip(&self.definition.fields) {
            let descending = field.kind == KeyKind::Descending;
            key::append_with_direction(&mut bytes, value.as_ref(), descending);
        }
        bytes
    }

    /// Returns `true` if keys have more fields after the term.
    pub(crate) fn has_suffix(&self) -> bool {
        let last = self.definition.fields.last();
        self.definition.unique || last.is_some_and(|last| last.kind != KeyKind::Text)
    }
}

fn not_usable() -> Error {
    Error::new(
        NO_PLANS,
        "failed to use text index to satisfy $text query (if text index is compound, are equality \
         predicates given for all prefix fields?)",
    )
}

/// Returns the text index of the collection.
pub(crate) fn text_index(source: &dyn Source) -> Result<(usize, Arc<Definition>), Error> {
    let found = source
        .indexes()
        .into_iter()
        .enumerate()
        .find(|(_, one)| one.is_text());
    let found =
        found.ok_or_else(|| Error::new(NO_TEXT_INDEX, "text index required for $text query"))?;
    if found.1.hidden {
        Err(Error::new(
            NO_PLANS,
            "the text index that a $text query needs is hidden",
        ))
    } else {
        Ok(found)
    }
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

/// Returns the value that the conjunction requires at the path.
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
