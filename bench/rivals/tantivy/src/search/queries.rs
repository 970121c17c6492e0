//! The queries: lines `KIND WORD [WORD]` with the kinds term, or, and, phrase, fuzzy1, fuzzy2, prefix
//! and wildcard. Prefixes and wildcards have asterisks for any letters.

use std::hint::black_box;

use tantivy::Searcher;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, FuzzyTermQuery, PhraseQuery, Query, RegexQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Term};

use crate::Failure;

/// What is asked for, by the name that the report uses.
pub const TASKS: [(&str, Task); 3] = [
    ("top10", top_10),
    ("top100", top_100_with_count),
    ("count", count),
];

pub type Task = fn(&dyn Query, &Searcher) -> Result<(), Failure>;

/// The queries of each kind, in the order of the file.
pub struct PreparedQueries(Vec<(String, Vec<Box<dyn Query>>)>);

impl PreparedQueries {
    pub fn parse(text: &str, body: Field) -> Result<Self, Failure> {
        let mut kinds: Vec<(String, Vec<Box<dyn Query>>)> = Vec::new();
        for line in text.lines() {
            let (kind, words) = line.split_once(' ').unwrap_or((line, ""));
            let query = query(kind, words, body)?;
            match kinds.iter_mut().find(|(known, _)| known == kind) {
                Some((_, queries)) => queries.push(query),
                None => kinds.push((kind.to_owned(), vec![query])),
            }
        }
        Ok(Self(kinds))
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&str, &[Box<dyn Query>])> {
        let kinds = self.0.iter();
        kinds.map(|(kind, queries)| (kind.as_str(), queries.as_slice()))
    }

    pub fn print_counts(&self, searcher: &Searcher) -> Result<(), Failure> {
        for (kind, queries) in self.kinds() {
            for (number, query) in queries.iter().enumerate() {
                println!("count.{kind}.{number} {}", query.count(searcher)?);
            }
        }
        Ok(())
    }
}

fn query(kind: &str, given: &str, body: Field) -> Result<Box<dyn Query>, Failure> {
    let term = |word| Term::from_field_text(body, word);
    let terms: Vec<Term> = given.split(' ').map(term).collect();
    let words = |terms: Vec<Term>| -> Vec<Box<dyn Query>> {
        let word = |term| -> Box<dyn Query> {
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
        };
        terms.into_iter().map(word).collect()
    };
    Ok(match kind {
        "term" => words(terms).pop().ok_or("a term query without a word")?,
        "or" => Box::new(BooleanQuery::union(words(terms))),
        "and" => Box::new(BooleanQuery::intersection(words(terms))),
        "phrase" => Box::new(PhraseQuery::new(terms)),
        "fuzzy1" => Box::new(FuzzyTermQuery::new(term(given), 1, true)),
        "fuzzy2" => Box::new(FuzzyTermQuery::new(term(given), 2, true)),
        "prefix" | "wildcard" => {
            Box::new(RegexQuery::from_pattern(&given.replace('*', ".*"), body)?)
        }
        _ => return Err(format!("there is no kind {kind:?}").into()),
    })
}

fn top_10(query: &dyn Query, searcher: &Searcher) -> Result<(), Failure> {
    let found = searcher.search(query, &TopDocs::with_limit(10).order_by_score())?;
    return_ids(&found, searcher)
}

fn top_100_with_count(query: &dyn Query, searcher: &Searcher) -> Result<(), Failure> {
    let top = TopDocs::with_limit(100).order_by_score();
    let (found, count) = searcher.search(query, &(top, Count))?;
    black_box(count);
    return_ids(&found, searcher)
}

fn count(query: &dyn Query, searcher: &Searcher) -> Result<(), Failure> {
    black_box(query.count(searcher)?);
    Ok(())
}

/// Reads the ids of the documents, which Windrow's replies contain.
fn return_ids(
    found: &[(tantivy::Score, tantivy::DocAddress)],
    searcher: &Searcher,
) -> Result<(), Failure> {
    let columns: Result<Vec<_>, _> = searcher
        .segment_readers()
        .iter()
        .map(|segment| segment.fast_fields().u64("id"))
        .collect();
    let columns = columns?;
    for (score, address) in found {
        let id = columns[address.segment_ord as usize].first(address.doc_id);
        black_box((id, score));
    }
    Ok(())
}
