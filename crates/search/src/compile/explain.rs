//! From a query to explanations of scores.

use super::{CompileError, Compiled, Compiler, Context, Limits};
use windrow_interrupt::Interrupt;

use crate::explanation::Explanation;
use crate::matches::Matches;
use crate::operators::Node;
use crate::postings::{END, Postings};
use crate::query::{BooleanQuery, FuzzyQuery, PhraseQuery, Query};
use crate::score::{Bm25Similarity, ExplainedBm25};
use crate::source::Source;

/// Explains the scores that a query gives to records by BM25.
pub struct Explainer<'d, I: Source> {
    root: Part<I>,
    describe: &'d dyn Fn(&Query) -> String,
}

/// A query that has a part in the score.
enum Part<I: Source> {
    /// All records have the same score.
    Constant {
        node: Compiled<I, Bm25Similarity>,
        query: Query,
    },
    Term {
        list: Option<I::Postings>,
        scorer: ExplainedBm25,
        query: Query,
    },
    Phrase {
        node: Compiled<I, Bm25Similarity>,
        scorer: ExplainedBm25,
        query: Query,
    },
    Boolean(BooleanParts<I>),
}

struct BooleanParts<I: Source> {
    must: Vec<Part<I>>,
    filter: Vec<Part<I>>,
    should: Vec<Part<I>>,
    must_not: Vec<Part<I>>,
    minimum: usize,
}

/// The parts of a query that is compiled, or why it cannot be compiled.
type Outcome<I> = Result<Part<I>, CompileError<<I as Source>::Error>>;

impl<'d, I: Source> Explainer<'d, I> {
    /// Compiles a query. `describe` returns how a query is named: one without others inside, or one
    /// whose records all have one score.
    ///
    /// # Errors
    /// Those of [`compile`](super::compile()).
    pub fn new(
        query: &Query,
        source: &I,
        limits: &Limits,
        describe: &'d dyn Fn(&Query) -> String,
        interrupt: &dyn Interrupt,
    ) -> Result<Explainer<'d, I>, CompileError<I::Error>> {
        let similarity = Bm25Similarity;
        let mut compiler = Compiler::new(source, &similarity, limits, interrupt);
        let root = compiler.part(query, Context::default())?;
        Ok(Explainer { root, describe })
    }

    /// Explains the score of a record. Returns `None` if the record does not match. Ids may not
    /// decrease from call to call.
    pub fn explanation(&mut self, id: u64) -> Option<Explanation> {
        self.root.explanation(id, self.describe)
    }
}

impl<I: Source> Compiler<'_, I, Bm25Similarity> {
    fn part(&mut self, query: &Query, mut context: Context) -> Outcome<I> {
        match query {
            Query::Term { field, term } => self.term_part(field, term, query, context),
            Query::Phrase(phrase) => self.phrase_part(phrase, query, context),
            Query::Fuzzy(fuzzy) => self.fuzzy_part(fuzzy, context),
            Query::Boolean(boolean) => {
                context.depth += 1;
                if context.depth > self.limits.depth {
                    let limit = self.limits.depth;
                    return Err(CompileError::TooDeep { limit });
                }
                self.boolean_part(boolean, context)
            }
            Query::Boost { query, boost } => {
                context.boost *= boost.max(0.0);
                self.part(query, context)
            }
            query => self.constant_part(query, context),
        }
    }

    fn constant_part(&mut self, query: &Query, context: Context) -> Outcome<I> {
        Ok(Part::Constant {
            node: self.compile(query, context)?,
            query: query.clone(),
        })
    }

    fn term_part(
        &mut self,
        field: &str,
        term: &[u8],
        query: &Query,
        context: Context,
    ) -> Outcome<I> {
        let mut list = self.open(field, term)?;
        let records = list.as_mut().map_or(0, Postings::count_at_most);
        let statistics = self.statistics(field)?;
        Ok(Part::Term {
            list,
            scorer: ExplainedBm25::new(context.boost, statistics, vec![records]),
            query: query.clone(),
        })
    }

    fn phrase_part(&mut self, phrase: &PhraseQuery, query: &Query, context: Context) -> Outcome<I> {
        let PhraseQuery { field, words, .. } = phrase;
        if let [word] = words.as_slice() {
            let query = Query::Term {
                field: field.clone(),
                term: word.term.clone(),
            };
            return self.term_part(field, &word.term, &query, context);
        }
        let mut records = Vec::new();
        for word in words {
            let list = self.open(field, &word.term)?;
            records.push(list.map_or(0, |mut list| list.count_at_most()));
        }
        let statistics = self.statistics(field)?;
        Ok(Part::Phrase {
            node: self.phrase(phrase, context)?,
            scorer: ExplainedBm25::new(context.boost, statistics, records),
            query: query.clone(),
        })
    }

    fn fuzzy_part(&mut self, fuzzy: &FuzzyQuery, context: Context) -> Outcome<I> {
        let similar = self.similar(fuzzy)?;
        let records = similar.iter().map(|term| term.records).max().unwrap_or(0);
        let statistics = self.statistics(&fuzzy.field)?;
        let mut should = Vec::new();
        for term in similar {
            let boost = context.boost * term.similarity;
            should.push(Part::Term {
                list: self.open(&fuzzy.field, &term.term)?,
                scorer: ExplainedBm25::new(boost, statistics, vec![records]),
                query: Query::Term {
                    field: fuzzy.field.clone(),
                    term: term.term,
                },
            });
        }
        Ok(Part::Boolean(BooleanParts {
            must: Vec::new(),
            filter: Vec::new(),
            should,
            must_not: Vec::new(),
            minimum: 1,
        }))
    }

    fn boolean_part(&mut self, boolean: &BooleanQuery, context: Context) -> Outcome<I> {
        let mut scored = |queries: &[Query]| -> Result<Vec<Part<I>>, CompileError<I::Error>> {
            let parts = queries.iter().map(|query| self.part(query, context));
            parts.collect()
        };
        let (must, should) = (scored(&boolean.must)?, scored(&boolean.should)?);
        let mut unscored = |queries: &[Query]| -> Result<Vec<Part<I>>, CompileError<I::Error>> {
            let parts = queries
                .iter()
                .map(|query| self.constant_part(query, context.filter()));
            parts.collect()
        };
        Ok(Part::Boolean(BooleanParts {
            must,
            filter: unscored(&boolean.filter)?,
            should,
            must_not: unscored(&boolean.must_not)?,
            minimum: boolean.minimum(),
        }))
    }
}

impl<I: Source> Part<I> {
    fn explanation(&mut self, id: u64, describe: &dyn Fn(&Query) -> String) -> Option<Explanation> {
        match self {
            Part::Constant { node, query } => {
                let is_found = id != END && node.seek(id) == id;
                is_found.then(|| Explanation::new(node.score(), describe(query), Vec::new()))
            }
            Part::Term {
                list,
                scorer,
                query,
            } => {
                let list = list.as_mut()?;
                let is_found = id != END && list.seek(id) == id;
                is_found.then(|| {
                    let score = scorer.explanation(list.frequency() as f32, list.length());
                    result_of(score, &describe(query))
                })
            }
            Part::Phrase {
                node,
                scorer,
                query,
            } => {
                if id == END || node.seek(id) != id {
                    return None;
                }
                let Node::Phrase(phrase) = node else {
                    return None;
                };
                let score = scorer.explanation(phrase.frequency(), phrase.length());
                Some(result_of(score, &describe(query)))
            }
            Part::Boolean(parts) => parts.explanation(id, describe),
        }
    }
}

/// The score of a term or phrase, as Lucene's weights explain it.
fn result_of(score: Explanation, shown: &str) -> Explanation {
    let description = format!("{shown} [BM25Similarity], result of:");
    Explanation::new(score.value, description, vec![score])
}

impl<I: Source> BooleanParts<I> {
    fn explanation(&mut self, id: u64, describe: &dyn Fn(&Query) -> String) -> Option<Explanation> {
        let clauses = [&self.filter, &self.must, &self.should, &self.must_not];
        if clauses.iter().all(|parts| parts.is_empty()) {
            return None;
        }
        let mut details = Vec::new();
        for part in &mut self.filter {
            let found = part.explanation(id, describe)?;
            let parts = vec![
                Explanation::new(0.0, "# clause", Vec::new()),
                Explanation {
                    value: 1.0,
                    ..found
                },
            ];
            let description = "match on required clause, product of:";
            details.push(Explanation::new(0.0, description, parts));
        }
        for part in &mut self.must {
            details.push(part.explanation(id, describe)?);
        }
        let mut matching = 0;
        for part in &mut self.should {
            if let Some(found) = part.explanation(id, describe) {
                matching += 1;
                details.push(found);
            }
        }
        let mut must_not = self.must_not.iter_mut();
        let is_excluded = must_not.any(|part| part.explanation(id, describe).is_some());
        if matching < self.minimum || is_excluded {
            return None;
        }
        let sum = details.iter().fold(0.0, |sum, one| sum + one.value);
        Some(Explanation::new(sum, "sum of:", details))
    }
}
