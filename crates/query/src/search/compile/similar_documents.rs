//! Compiles `moreLikeThis` as Lucene's `MoreLikeThis` does: to a disjunction of the most
//! significant terms of the given texts.

use std::collections::BTreeMap;

use windrow_index::search::{StringMapping, TERM, multi_path, prefix};
use windrow_search::Query;
use windrow_text::SearchAnalyzer;

use super::{Compiler, one_of};
use crate::Error;
use crate::search::operator::TextAtPath;

/// The largest number of terms to search.
const TERMS_MAX: usize = 25;
/// Terms in fewer records are ignored, because they do not lead to other records.
const RECORDS_MIN: u64 = 2;
/// The largest number of tokens of a text that are examined.
const TOKENS_MAX: usize = 5_000;

/// The frequencies of the terms in the given texts, by key prefix of the field.
type Frequencies = BTreeMap<String, BTreeMap<Vec<u8>, u64>>;

/// A term of the texts.
struct RankedTerm<'t> {
    /// How significant the term is.
    score: f64,
    field: &'t str,
    term: &'t [u8],
}

impl Compiler<'_> {
    /// Returns a query for records that are similar to the texts.
    pub(super) fn more_like(&self, texts: &[TextAtPath]) -> Result<Query, Error> {
        let mut frequencies = Frequencies::new();
        for TextAtPath { path, text } in texts {
            let field = self.definition.field(path);
            let Some(string) = field.and_then(|field| field.string.as_ref()) else {
                continue;
            };
            add(&mut frequencies, prefix(path, TERM), text, string);
            for multi in &string.multi {
                let path = multi_path(path, &multi.name);
                add(&mut frequencies, prefix(&path, TERM), text, &multi.string);
            }
        }
        let all = self.facts.records() as f64;
        let mut found: Vec<RankedTerm<'_>> = Vec::new();
        for (field, terms) in &frequencies {
            for (term, frequency) in terms {
                let records = self.facts.records_with(field, term)?;
                if records >= RECORDS_MIN {
                    // Lucene's classic inverse document frequency.
                    let weight = ((all + 1.0) / (records as f64 + 1.0)).ln() + 1.0;
                    found.push(RankedTerm {
                        score: *frequency as f64 * weight,
                        field,
                        term,
                    });
                }
            }
        }
        found.sort_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then_with(|| (one.field, one.term).cmp(&(other.field, other.term)))
        });
        let best = found.into_iter().take(TERMS_MAX);
        let terms = best.map(|ranked| Query::Term {
            field: ranked.field.to_owned(),
            term: ranked.term.to_owned(),
        });
        Ok(one_of(terms.collect()))
    }
}

fn add(frequencies: &mut Frequencies, field: String, text: &str, mapping: &StringMapping) {
    let terms = frequencies.entry(field).or_default();
    let analyzer: &SearchAnalyzer = &mapping.search_analyzer;
    let mut tokens = 0;
    analyzer.tokenizer().tokens(text, &mut |token| {
        tokens += 1;
        if tokens <= TOKENS_MAX {
            *terms.entry(token.term.as_bytes().to_vec()).or_default() += 1;
        }
    });
}
