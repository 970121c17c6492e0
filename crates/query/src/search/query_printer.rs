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
    let one = |query: &Query| readable_with(query, shown);
    let all = |queries: &[Query]| queries.iter().map(one).collect();
    match query {
        Query::Nothing => Query::Nothing,
        Query::All => Query::All,
        Query::Filter { number, label } => Query::Filter {
            number: *number,
            label: label.clone(),
        },
        Query::Near {
            number,
            nearness,
            label,
        } => Query::Near {
            number: *number,
            nearness: *nearness,
            label: label.clone(),
        },
        Query::Term { field, term } => Query::Term {
            field: shown(field),
            term: term.clone(),
        },
        Query::Phrase(phrase) => Query::Phrase(PhraseQuery {
            field: shown(&phrase.field),
            ..phrase.clone()
        }),
        Query::Prefix { field, prefix } => Query::Prefix {
            field: shown(field),
            prefix: prefix.clone(),
        },
        Query::Wildcard { field, pattern } => Query::Wildcard {
            field: shown(field),
            pattern: pattern.clone(),
        },
        Query::Regex { field, pattern } => Query::Regex {
            field: shown(field),
            pattern: pattern.clone(),
        },
        Query::Fuzzy(fuzzy) => Query::Fuzzy(FuzzyQuery {
            field: shown(&fuzzy.field),
            ..fuzzy.clone()
        }),
        Query::Terms { field, terms } => Query::Terms {
            field: shown(field),
            terms: terms.clone(),
        },
        Query::Range {
            field,
            lower,
            upper,
        } => Query::Range {
            field: shown(field),
            lower: lower.clone(),
            upper: upper.clone(),
        },
        Query::Exists { field } => Query::Exists {
            field: shown(field),
        },
        Query::Boolean(boolean) => Query::Boolean(BooleanQuery {
            must: all(&boolean.must),
            should: all(&boolean.should),
            must_not: all(&boolean.must_not),
            filter: all(&boolean.filter),
            minimum_should_match: boolean.minimum_should_match,
        }),
        Query::Boost { query, boost } => one(query).boost(*boost),
        Query::Function { query, function } => Query::Function {
            query: Box::new(one(query)),
            function: function.clone(),
        },
        Query::Constant { query, score } => Query::Constant {
            query: Box::new(one(query)),
            score: *score,
        },
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
