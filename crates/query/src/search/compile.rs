//! Compiles the operators of `$search` to a query over the terms of a search index.
//!
//! - `autocomplete`: the operator `autocomplete`
//! - `geo`: the operators `geoWithin` and `geoShape`
//! - `near`: the operator `near`
//! - `query_string`: the operator `queryString`
//! - `score`: the option `score`
//! - `similar_documents`: the operator `moreLikeThis`
//! - `synonyms`: the option `synonyms`, and phrases in which several words may stand at a position

mod autocomplete;
mod geo;
mod near;
mod query_string;
mod score;
mod similar_documents;
mod synonyms;

use std::sync::Arc;

use windrow_document::{ObjectId, Value, ValueRef, key};
use windrow_index::search::{
    EXISTS, FieldMapping, IndexOptions, SearchDefinition, StringMapping, SynonymMapping, TERM,
    VALUE, append_value_key, multi_path, prefix,
};
use windrow_search::{BooleanQuery, FuzzyQuery, PhraseWord, Query};
use windrow_text::SearchAnalyzer;

use super::operator::{Compound, Fuzzy, OperatorKind, RangeEnd, SearchOperator};
use super::options::{SearchPath, bad};
use super::source::{RecordValues, ValueConditions, ValueFilter};
use super::synonyms::SynonymMap;
use crate::Error;
use crate::bounds::interval::after;
use crate::key_range::KeyRange;

/// A query over the terms of an index, with the key ranges of its filters.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledSearch {
    /// The query.
    pub query: Query,
    /// The conditions on values to which the query refers.
    pub conditions: ValueConditions,
}

/// What the compiler needs to know about an index.
pub trait IndexFacts {
    /// Returns the paths of all text fields, for paths with `*`.
    fn paths(&self) -> Result<Vec<String>, Error>;

    /// Returns the number of records in the collection.
    fn records(&self) -> u64;

    /// Estimates how many records contain a term. `field` is the beginning of its key.
    fn records_with(&self, field: &str, term: &[u8]) -> Result<u64, Error>;

    /// Returns the synonyms of a mapping. Fails if a document of its collection is malformed.
    fn synonyms(&self, mapping: &SynonymMapping) -> Result<Arc<SynonymMap>, Error>;
}

/// Compiles an operator. Fails if a field does not support it.
pub fn compile(
    operator: &SearchOperator,
    definition: &Arc<SearchDefinition>,
    facts: &dyn IndexFacts,
) -> Result<CompiledSearch, Error> {
    let mut compiler = Compiler {
        definition,
        facts,
        conditions: ValueConditions::default(),
    };
    let query = compiler.operator(operator)?;
    Ok(CompiledSearch {
        query,
        conditions: compiler.conditions,
    })
}

struct Compiler<'c> {
    definition: &'c Arc<SearchDefinition>,
    facts: &'c dyn IndexFacts,
    conditions: ValueConditions,
}

/// A field to which a path of an operator leads.
struct ResolvedField {
    path: String,
    /// The name of a multi analyzer of the field, if the operator asks for it.
    multi: Option<String>,
}

/// A text field to search.
struct TextField<'c> {
    /// The path in the keys of the index.
    path: String,
    mapping: &'c StringMapping,
}

impl TextField<'_> {
    fn has_positions(&self) -> bool {
        self.mapping.index_options == IndexOptions::Positions
    }

    /// Returns `true` if two words of a query stand at one position, so that a document needs one
    /// of them. Only custom analyzers make such words for a query.
    fn are_alternatives(&self, one: &PhraseWord, other: &PhraseWord) -> bool {
        let analyzer = &self.mapping.search_analyzer;
        matches!(analyzer, SearchAnalyzer::Custom(_)) && one.position == other.position
    }

    /// Fails if the field has no positions, which phrases need.
    fn check_positions(&self) -> Result<(), Error> {
        if self.has_positions() {
            return Ok(());
        }
        let path = &self.path;
        Err(bad(format!(
            "the field {path:?} has no positions, which phrases need: its \"indexOptions\" are \
             \"docs\" or \"freqs\""
        )))
    }
}

impl<'c> Compiler<'c> {
    fn operator(&mut self, operator: &SearchOperator) -> Result<Query, Error> {
        let query = self.kind(&operator.kind)?;
        Ok(self.with_score(query, &operator.score))
    }

    fn kind(&mut self, kind: &OperatorKind) -> Result<Query, Error> {
        match kind {
            OperatorKind::All => Ok(Query::All),
            OperatorKind::Text {
                texts,
                paths,
                fuzzy,
                synonyms,
                needs_all,
            } => match synonyms {
                Some(synonyms) => self.text_with_synonyms(texts, paths, synonyms, *needs_all),
                None => self.text(texts, paths, *fuzzy, *needs_all),
            },
            OperatorKind::Phrase {
                texts,
                paths,
                slop,
                synonyms,
            } => match synonyms {
                Some(synonyms) => self.phrase_with_synonyms(texts, paths, synonyms, *slop),
                None => self.phrase(texts, paths, *slop),
            },
            OperatorKind::Wildcard {
                patterns,
                paths,
                takes_analyzed,
            } => self.patterns(patterns, paths, *takes_analyzed, |field, pattern| {
                Query::Wildcard { field, pattern }
            }),
            OperatorKind::Regex {
                patterns,
                paths,
                takes_analyzed,
            } => self.patterns(patterns, paths, *takes_analyzed, |field, pattern| {
                Query::Regex { field, pattern }
            }),
            OperatorKind::Range {
                paths,
                lower,
                upper,
            } => self.range(paths, lower.as_ref(), upper.as_ref()),
            OperatorKind::Near {
                paths,
                origin,
                pivot,
            } => self.near(paths, origin, *pivot),
            OperatorKind::GeoWithin { paths, area } => self.geo_within(paths, area),
            OperatorKind::GeoShape { paths, query } => self.geo_shape(paths, query),
            OperatorKind::Autocomplete {
                typed,
                path,
                fuzzy,
                is_sequential,
            } => self.autocomplete(typed, path, *fuzzy, *is_sequential),
            OperatorKind::In { paths, values } => self.values(paths, values),
            OperatorKind::Exists { path } => Ok(Query::Exists {
                field: prefix(path, EXISTS),
            }),
            OperatorKind::MoreLikeThis { texts } => self.more_like(texts),
            OperatorKind::QueryString(expression) => self.query_string(expression),
            OperatorKind::Compound(compound) => self.compound(compound),
        }
    }

    /// Resolves paths to fields.
    fn resolve(&self, paths: &[SearchPath]) -> Result<Vec<ResolvedField>, Error> {
        let mut found = Vec::new();
        for path in paths {
            match path {
                SearchPath::Field(field) => found.push(ResolvedField {
                    path: field.clone(),
                    multi: None,
                }),
                SearchPath::Multi { field, multi } => found.push(ResolvedField {
                    path: field.clone(),
                    multi: Some(multi.clone()),
                }),
                SearchPath::Wildcard(pattern) => {
                    let all = self.facts.paths()?.into_iter();
                    let matching = all.filter(|path| matches_wildcard(pattern, path));
                    found.extend(matching.map(|path| ResolvedField { path, multi: None }));
                }
            }
        }
        Ok(found)
    }

    /// Returns the text fields at these paths. Fields that are not indexed as text are left out.
    fn text_fields(&self, paths: &[SearchPath]) -> Result<Vec<TextField<'c>>, Error> {
        let mut fields = Vec::new();
        for ResolvedField { path, multi } in self.resolve(paths)? {
            let field = self.definition.field(&path);
            let Some(string) = field.and_then(|field| field.string.as_ref()) else {
                continue;
            };
            let Some(multi) = multi else {
                fields.push(TextField {
                    path,
                    mapping: string,
                });
                continue;
            };
            let Some(mapping) = string.multi(&multi) else {
                let message = format!("the field {path:?} has no multi analyzer {multi:?}");
                return Err(bad(message));
            };
            fields.push(TextField {
                path: multi_path(&path, &multi),
                mapping,
            });
        }
        Ok(fields)
    }

    fn text(
        &self,
        texts: &[String],
        paths: &[SearchPath],
        fuzzy: Option<Fuzzy>,
        needs_all: bool,
    ) -> Result<Query, Error> {
        let mut all = Vec::new();
        for field in self.text_fields(paths)? {
            for text in texts {
                let field_prefix = prefix(&field.path, TERM);
                let words = words(text, field.mapping);
                let words = words.chunk_by(|one, other| field.are_alternatives(one, other));
                let words = words.map(|alternatives| {
                    let queries = alternatives.iter().map(|word| word.term.clone());
                    let queries = queries.map(|term| word_query(&field_prefix, term, fuzzy));
                    one_of(queries.collect())
                });
                all.push(all_or_any(words.collect(), needs_all));
            }
        }
        Ok(one_of(all))
    }

    fn phrase(&self, texts: &[String], paths: &[SearchPath], slop: u32) -> Result<Query, Error> {
        let mut all = Vec::new();
        for field in self.text_fields(paths)? {
            for text in texts {
                let words = words(text, field.mapping);
                if words.len() > 1 {
                    field.check_positions()?;
                }
                all.push(synonyms::phrase_query(&field, words, slop)?);
            }
        }
        Ok(one_of(all))
    }

    fn patterns(
        &self,
        patterns: &[String],
        paths: &[SearchPath],
        takes_analyzed: bool,
        make: impl Fn(String, String) -> Query,
    ) -> Result<Query, Error> {
        let mut all = Vec::new();
        for field in self.text_fields(paths)? {
            let analyzer = &field.mapping.analyzer;
            let is_analyzed = *analyzer != SearchAnalyzer::Keyword;
            if is_analyzed && !takes_analyzed {
                return Err(bad(format!(
                    "the field {:?} is analyzed: \"allowAnalyzedField\" must be true to match a \
                     pattern with its terms",
                    field.path
                )));
            }
            for pattern in patterns {
                let mut normalized = String::new();
                analyzer.normalize(pattern, &mut normalized);
                all.push(make(prefix(&field.path, TERM), normalized));
            }
        }
        Ok(one_of(all))
    }

    fn range(
        &mut self,
        paths: &[SearchPath],
        lower: Option<&RangeEnd>,
        upper: Option<&RangeEnd>,
    ) -> Result<Query, Error> {
        let Some(either) = lower.or(upper) else {
            return Ok(Query::Nothing);
        };
        let mut ranges = Vec::new();
        for ResolvedField { path, .. } in self.resolve(paths)? {
            let Some(mapping) = self.definition.field(&path) else {
                continue;
            };
            let like = either.value.as_ref();
            ranges.extend(key_range(&path, mapping, like, lower, upper));
        }
        if ranges.is_empty() {
            return Ok(Query::Nothing);
        }
        let label = range_label(paths, lower, upper);
        Ok(self.filter(ValueFilter::InRanges(ranges), label))
    }

    /// Returns a query for the records of a filter. `label` describes it.
    fn filter(&mut self, filter: ValueFilter, label: String) -> Query {
        self.conditions.filters.push(filter);
        Query::Filter {
            number: self.conditions.filters.len() - 1,
            label,
        }
    }

    /// Adds values to those that the query reads, and returns their number. Values that are there
    /// already keep theirs.
    fn value_number(&mut self, values: RecordValues) -> usize {
        let all = &mut self.conditions.values;
        let known = all.iter().position(|known| *known == values);
        known.unwrap_or_else(|| {
            all.push(values);
            all.len() - 1
        })
    }

    fn values(&self, paths: &[SearchPath], values: &[Value]) -> Result<Query, Error> {
        let mut all = Vec::new();
        for ResolvedField { path, .. } in self.resolve(paths)? {
            let Some(mapping) = self.definition.field(&path) else {
                continue;
            };
            let values = values.iter().map(Value::as_ref);
            let terms: Vec<Vec<u8>> = values
                .filter_map(|value| value_term(mapping, value))
                .collect();
            all.push(Query::Terms {
                field: prefix(&path, VALUE),
                terms,
            });
        }
        Ok(one_of(all))
    }

    fn compound(&mut self, compound: &Compound) -> Result<Query, Error> {
        let mut clauses = |operators: &[SearchOperator]| -> Result<Vec<Query>, Error> {
            operators.iter().map(|one| self.operator(one)).collect()
        };
        let mut boolean = BooleanQuery {
            must: clauses(&compound.must)?,
            should: clauses(&compound.should)?,
            must_not: clauses(&compound.must_not)?,
            filter: clauses(&compound.filter)?,
            minimum_should_match: compound.minimum_should_match,
        };
        if boolean.must.is_empty() && boolean.should.is_empty() && boolean.filter.is_empty() {
            // Prohibited clauses alone exclude records from all records.
            boolean.filter.push(Query::All);
        }
        Ok(Query::Boolean(boolean))
    }
}

/// Returns a query for records that match all of the queries, or at least one of them.
fn all_or_any(queries: Vec<Query>, needs_all: bool) -> Query {
    if needs_all && queries.len() > 1 {
        Query::all(queries)
    } else {
        one_of(queries)
    }
}

/// Returns a query for records that match at least one of the queries.
fn one_of(mut queries: Vec<Query>) -> Query {
    match (queries.len(), queries.pop()) {
        (_, None) => Query::Nothing,
        (1, Some(only)) => only,
        (_, Some(last)) => {
            queries.push(last);
            Query::any(queries)
        }
    }
}

/// Returns the words of a text as the index contains them.
pub fn words(text: &str, mapping: &StringMapping) -> Vec<PhraseWord> {
    let mut words = Vec::new();
    mapping
        .search_analyzer
        .tokenizer()
        .tokens(text, &mut |token| {
            words.push(PhraseWord {
                term: token.term.as_bytes().to_vec(),
                position: token.position,
            });
        });
    words
}

fn word_query(field: &str, term: Vec<u8>, fuzzy: Option<Fuzzy>) -> Query {
    let field = field.to_owned();
    match (fuzzy, String::from_utf8(term)) {
        (Some(fuzzy), Ok(word)) => Query::Fuzzy(FuzzyQuery {
            field,
            word,
            edits: fuzzy.edits,
            prefix: fuzzy.prefix,
            expansions: fuzzy.expansions,
        }),
        (_, Ok(word)) => Query::Term {
            field,
            term: word.into_bytes(),
        },
        (_, Err(error)) => Query::Term {
            field,
            term: error.into_bytes(),
        },
    }
}

/// Returns the part of a value's key after the field. `None` if the field is not indexed for such
/// values.
fn value_term(mapping: &FieldMapping, value: ValueRef<'_>) -> Option<Vec<u8>> {
    let (mut term, mut buffer) = (Vec::new(), String::new());
    key::append(&mut term, normalized(mapping, value, &mut buffer)?);
    Some(term)
}

/// Returns a value as keys contain it. `None` if the field is not indexed for such values.
fn normalized<'v>(
    mapping: &FieldMapping,
    value: ValueRef<'v>,
    buffer: &'v mut String,
) -> Option<ValueRef<'v>> {
    match value {
        ValueRef::String(text) => {
            let text = mapping.string_values()?.apply(text, buffer)?;
            Some(ValueRef::String(text))
        }
        value => Some(value),
    }
}

/// Returns a readable form of a range.
fn range_label(paths: &[SearchPath], lower: Option<&RangeEnd>, upper: Option<&RangeEnd>) -> String {
    let lower = match lower {
        Some(limit) if limit.is_included => format!("[{}", limit.value.as_ref()),
        Some(limit) => format!("{{{}", limit.value.as_ref()),
        None => "[*".to_owned(),
    };
    let upper = match upper {
        Some(limit) if limit.is_included => format!("{}]", limit.value.as_ref()),
        Some(limit) => format!("{}}}", limit.value.as_ref()),
        None => "*]".to_owned(),
    };
    format!("{}:{lower} TO {upper}", paths_shown(paths))
}

fn paths_shown(paths: &[SearchPath]) -> String {
    let paths = paths.iter().map(|path| match path {
        SearchPath::Field(path) | SearchPath::Multi { field: path, .. } => path.as_str(),
        SearchPath::Wildcard(pattern) => pattern.as_str(),
    });
    paths.collect::<Vec<_>>().join(",")
}

/// Returns the key range of a field's values that are of the type of `like` and between two limits,
/// if there are some.
fn key_range(
    path: &str,
    mapping: &FieldMapping,
    like: ValueRef<'_>,
    lower: Option<&RangeEnd>,
    upper: Option<&RangeEnd>,
) -> Option<KeyRange> {
    let (least, greatest) = match like {
        ValueRef::DateTime(_) => (
            ValueRef::DateTime(i64::MIN),
            Some(ValueRef::DateTime(i64::MAX)),
        ),
        ValueRef::String(_) => (ValueRef::String(""), None),
        ValueRef::Bool(_) => (ValueRef::Bool(false), Some(ValueRef::Bool(true))),
        ValueRef::ObjectId(_) => (
            ValueRef::ObjectId(ObjectId([0; 12])),
            Some(ValueRef::ObjectId(ObjectId([u8::MAX; 12]))),
        ),
        ValueRef::Binary { subtype, .. } => {
            let uuid = |bytes| ValueRef::Binary { subtype, bytes };
            (uuid(&[0; 16]), Some(uuid(&[u8::MAX; 16])))
        }
        _ => (
            ValueRef::Double(f64::NEG_INFINITY),
            Some(ValueRef::Double(f64::INFINITY)),
        ),
    };
    let key_of = |value: ValueRef<'_>| {
        let mut key = Vec::new();
        let mut buffer = String::new();
        append_value_key(&mut key, path, normalized(mapping, value, &mut buffer)?);
        Some(key)
    };
    let from = match lower {
        Some(limit) if limit.is_included => key_of(limit.value.as_ref())?,
        Some(limit) => after(&key_of(limit.value.as_ref())?),
        None => key_of(least)?,
    };
    let to = match (upper, greatest) {
        (Some(limit), _) if limit.is_included => after(&key_of(limit.value.as_ref())?),
        (Some(limit), _) => key_of(limit.value.as_ref())?,
        (None, Some(greatest)) => after(&key_of(greatest)?),
        (None, None) => {
            // The keys of all strings begin with the same byte.
            let mut strings = key_of(least)?;
            strings.truncate(prefix(path, VALUE).len() + 1);
            after(&strings)
        }
    };
    Some(KeyRange { from, to })
}

/// Returns `true` if a path matches a pattern, in which `*` stands for any characters.
pub fn matches_wildcard(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_paths() {
        for (pattern, path, expected) in [
            ("*", "a.b", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a.b", true),
            ("*b", "a.b", true),
            ("a*c", "a.b.c", true),
            ("a*c", "a.b", false),
            ("a*a", "a", false),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axc", false),
        ] {
            assert_eq!(
                matches_wildcard(pattern, path),
                expected,
                "{pattern} {path}"
            );
        }
    }
}
