//! Queries over a search index in a readable form.

use std::cell::RefCell;
use std::collections::BTreeSet;

use windrow_index::search::path_of;
use windrow_search::{BooleanQuery, FuzzyQuery, PhraseQuery, Query};

/// Returns the query with paths in place of key prefixes.
pub fn readable(query: &Query) -> Query {
    readable_with(query, &path_shown)
}

/// Returns the key prefixes of all fields of a query.
pub fn fields_of(query: &Query) -> BTreeSet<String> {
    let fields = RefCell::new(BTreeSet::new());
    readable_with(query, &|field| {
        fields.borrow_mut().insert(field.to_owned());
        String::new()
    });
    fields.into_inner()
}

/// Returns the query with field names in place of key prefixes. `shown` returns the name of a key
/// prefix.
pub fn readable_with(query: &Query, shown: &dyn Fn(&str) -> String) -> Query {
    let mut query = query.clone();
    rename_fields(&mut query, shown);
    query
}

fn rename_fields(query: &mut Query, shown: &dyn Fn(&str) -> String) {
    match query {
        Query::Nothing | Query::All | Query::Filter { .. } | Query::Near { .. } => {}
        Query::Term { field, .. }
        | Query::Phrase(PhraseQuery { field, .. })
        | Query::Prefix { field, .. }
        | Query::Wildcard { field, .. }
        | Query::Regex { field, .. }
        | Query::Fuzzy(FuzzyQuery { field, .. })
        | Query::Terms { field, .. }
        | Query::Range { field, .. }
        | Query::Exists { field } => *field = shown(field),
        Query::Boolean(boolean) => {
            let BooleanQuery {
                must,
                should,
                must_not,
                filter,
                minimum_should_match: _,
            } = boolean;
            for clauses in [must, should, must_not, filter] {
                clauses
                    .iter_mut()
                    .for_each(|query| rename_fields(query, shown));
            }
        }
        Query::Boost { query, .. }
        | Query::Function { query, .. }
        | Query::Constant { query, .. } => rename_fields(query, shown),
    }
}

/// Returns the path of a field, with the name of its multi analyzer in brackets.
fn path_shown(field: &str) -> String {
    let path = path_of(field);
    match path.split_once('\u{1}') {
        Some((path, multi)) => format!("{path}[{multi}]"),
        None => path.to_owned(),
    }
}
