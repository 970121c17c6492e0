//! From a query to operators over the lists of an index.
//!
//! - `error`: limits, and why a query cannot be compiled
//! - `clauses`: boolean queries
//! - `expand`: queries for many terms
//! - `explain`: explanations of scores

mod clauses;
mod error;
mod expand;
mod explain;

pub use error::{CompileError, Limits};
pub use explain::Explainer;

use std::collections::HashMap;
use std::sync::Arc;

use windrow_interrupt::{Interrupt, PacedInterrupt};

use crate::operators::{
    ConstantScore, Filter, FunctionScore, Near, Node, Phrase, PhraseTerm, Rescore,
};
use crate::postings::Postings;
use crate::query::{PhraseQuery, Query};
use crate::score::{
    FieldStatistics, RecordValue, RecordValues, ScoreFunction, Similarity, ValueNumber,
};
use crate::source::Source;
use crate::term::Term;

/// A query that is compiled against a source, with the scorers of a similarity.
pub type Compiled<I, S> =
    Node<<I as Source>::Postings, <S as Similarity>::Scorer, <I as Source>::Ids>;

type Outcome<I, S> = Result<Compiled<I, S>, CompileError<<I as Source>::Error>>;

/// Compiles a query. `interrupt` is checked about every 1,000 terms that are read.
///
/// ```
/// use windrow_interrupt::Uninterrupted;
/// use windrow_search::memory::MemoryIndex;
/// use windrow_search::{
///     BestOptions, Bm25Similarity, Limits, Query, Scores, TieOrder, best, compile,
/// };
///
/// let mut index = MemoryIndex::default();
/// index.add(1, "title", &["hot", "coffee"]);
/// index.add(2, "title", &["cold", "coffee", "with", "milk"]);
/// let query = Query::all(vec![Query::term("title", "coffee"), Query::term("title", "cold")]);
/// let similarity = Bm25Similarity;
/// let limits = Limits::default();
/// let mut compiled =
///     compile(&query, &index, &similarity, &limits, Scores::Computed, &Uninterrupted).unwrap();
/// let options = BestOptions::new(10, TieOrder::LowestId);
/// let found = best(&mut compiled, &options, &Uninterrupted).unwrap();
/// assert_eq!(found.hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [2]);
/// ```
///
/// # Errors
/// Fails if the source fails, a limit is exceeded, a pattern is wrong, or the compilation is
/// interrupted.
pub fn compile<I: Source, S: Similarity>(
    query: &Query,
    source: &I,
    similarity: &S,
    limits: &Limits,
    scores: Scores,
    interrupt: &dyn Interrupt,
) -> Outcome<I, S> {
    let context = match scores {
        Scores::Computed => Context::default(),
        Scores::Omitted => Context::default().filter(),
    };
    Compiler::new(source, similarity, limits, interrupt).compile(query, context)
}

/// Whether the scores of records are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// They are computed.
    Computed,
    /// They are undefined. The statistics that they need are not requested from the source.
    Omitted,
}

/// The maximum number of terms whose lists are open at the same time. The records of more terms are
/// collected in a set before the search, term by term. Lucene has the same number.
const UNION_LISTS_MAX: usize = 16;

/// The product of nested boosts. Scores stay finite below it.
const BOOST_MAX: f32 = 1e30;

/// What the queries around a query want of it.
#[derive(Clone, Copy, Debug)]
struct Context {
    boost: f32,
    /// No score is wanted.
    is_filter: bool,
    depth: usize,
}

impl Default for Context {
    fn default() -> Context {
        Context {
            boost: 1.0,
            is_filter: false,
            depth: 0,
        }
    }
}

impl Context {
    fn filter(self) -> Context {
        Context {
            is_filter: true,
            ..self
        }
    }

    /// The score of a query whose records have all the same.
    fn constant_score(self) -> f64 {
        if self.is_filter {
            0.0
        } else {
            f64::from(self.boost)
        }
    }
}

struct Compiler<'c, I, S> {
    source: &'c I,
    similarity: &'c S,
    limits: &'c Limits,
    interrupt: PacedInterrupt<'c>,
    /// The number of lists that are open.
    lists: usize,
    /// The statistics of fields that the source was asked for.
    statistics: Vec<(String, FieldStatistics)>,
    /// The values that the source was asked for, by their numbers.
    values: HashMap<usize, Arc<[RecordValue]>>,
}

impl<'c, I: Source, S: Similarity> Compiler<'c, I, S> {
    fn new(
        source: &'c I,
        similarity: &'c S,
        limits: &'c Limits,
        interrupt: &'c dyn Interrupt,
    ) -> Compiler<'c, I, S> {
        Compiler {
            source,
            similarity,
            limits,
            interrupt: PacedInterrupt::new(interrupt),
            lists: 0,
            statistics: Vec::new(),
            values: HashMap::new(),
        }
    }

    fn compile(&mut self, query: &Query, mut context: Context) -> Outcome<I, S> {
        context.depth += 1;
        if context.depth > self.limits.depth {
            let limit = self.limits.depth;
            return Err(CompileError::TooDeep { limit });
        }
        let score = context.constant_score();
        match query {
            Query::Nothing => Ok(Node::Empty),
            Query::All => self.filter(I::all, score),
            Query::Exists { field } => self.filter(|source| source.exists(field), score),
            Query::Filter { number, .. } => self.filter(|source| source.filter(*number), score),
            Query::Near {
                number, nearness, ..
            } => {
                let values = self.values(*number)?;
                Ok(Node::Near(Near::new(values, *nearness, score)))
            }
            Query::Term { field, term } => self.term(field, term, context),
            Query::Phrase(phrase) => self.phrase(phrase, context),
            Query::Fuzzy(fuzzy) => self.fuzzy(fuzzy, context),
            Query::Boolean(boolean) => self.boolean(boolean, context),
            Query::Boost { query, boost } => {
                context.boost = (context.boost * boost.max(0.0)).min(BOOST_MAX);
                self.compile(query, context)
            }
            Query::Function { query, function } => self.function(query, function, context),
            Query::Constant { query, score } => {
                let node = self.compile(query, context.filter())?;
                let score = f64::from(score.max(0.0)) * context.constant_score();
                Ok(constant(node, score))
            }
            query => self.expanded(query, context),
        }
    }

    fn function(
        &mut self,
        query: &Query,
        function: &ScoreFunction<ValueNumber>,
        context: Context,
    ) -> Outcome<I, S> {
        if context.is_filter {
            return self.compile(query, context);
        }
        let inner = Context {
            boost: 1.0,
            ..context
        };
        let node = self.compile(query, inner)?;
        if let Node::Empty = node {
            return Ok(Node::Empty);
        }
        let mut bind = |value: &ValueNumber| -> Result<RecordValues, CompileError<I::Error>> {
            Ok(RecordValues::new(
                self.values(value.number)?,
                value.undefined,
            ))
        };
        let function = function.try_map(&mut bind)?;
        let factor = f64::from(context.boost);
        let rule = FunctionScore { function, factor };
        Ok(Node::Function(Box::new(Rescore::new(node, rule))))
    }

    /// Returns the values of records with a number. The source is asked once.
    fn values(&mut self, number: usize) -> Result<Arc<[RecordValue]>, CompileError<I::Error>> {
        if let Some(known) = self.values.get(&number) {
            return Ok(known.clone());
        }
        let values = self.source.values(number).map_err(CompileError::Source)?;
        self.values.insert(number, values.clone());
        Ok(values)
    }

    fn filter(
        &mut self,
        open: impl FnOnce(&I) -> Result<I::Ids, I::Error>,
        score: f64,
    ) -> Outcome<I, S> {
        let ids = open(self.source).map_err(CompileError::Source)?;
        Ok(Node::Filter(Filter::new(ids, score)))
    }

    fn term(&mut self, field: &str, term: &[u8], context: Context) -> Outcome<I, S> {
        let Some(mut list) = self.open(field, term)? else {
            return Ok(Node::Empty);
        };
        let records = list.count_at_most();
        let scorer = self.scorer(field, context, &[records])?;
        Ok(Node::Term(Box::new(Term::new(list, scorer))))
    }

    /// Opens the postings of a term.
    fn open(
        &mut self,
        field: &str,
        term: &[u8],
    ) -> Result<Option<I::Postings>, CompileError<I::Error>> {
        self.lists += 1;
        if self.lists > self.limits.lists {
            let limit = self.limits.lists;
            return Err(CompileError::TooManyLists { limit });
        }
        self.interrupt.step()?;
        let list = self.source.postings(field, term);
        list.map_err(CompileError::Source)
    }

    fn scorer(
        &mut self,
        field: &str,
        context: Context,
        records: &[u64],
    ) -> Result<S::Scorer, CompileError<I::Error>> {
        let statistics = if context.is_filter {
            FieldStatistics::default()
        } else {
            self.statistics(field)?
        };
        Ok(self.similarity.scorer(context.boost, statistics, records))
    }

    /// Returns the statistics of a field. The source is asked once.
    fn statistics(&mut self, field: &str) -> Result<FieldStatistics, CompileError<I::Error>> {
        if let Some((_, known)) = self.statistics.iter().find(|(known, _)| known == field) {
            return Ok(*known);
        }
        let statistics = self.source.statistics(field);
        let statistics = statistics.map_err(CompileError::Source)?;
        self.statistics.push((field.to_owned(), statistics));
        Ok(statistics)
    }

    fn phrase(&mut self, phrase: &PhraseQuery, context: Context) -> Outcome<I, S> {
        let PhraseQuery { field, words, slop } = phrase;
        if let [word] = words.as_slice() {
            return self.term(field, &word.term, context);
        }
        let mut numbers: Vec<&[u8]> = words.iter().map(|word| word.term.as_slice()).collect();
        numbers.sort_unstable();
        let mut terms = Vec::new();
        let mut records = Vec::new();
        for word in words {
            let Some(mut list) = self.open(field, &word.term)? else {
                return Ok(Node::Empty);
            };
            records.push(list.count_at_most());
            terms.push(PhraseTerm {
                list,
                position: word.position,
                term: numbers.partition_point(|number| *number < word.term.as_slice()),
            });
        }
        if terms.is_empty() {
            return Ok(Node::Empty);
        }
        let scorer = self.scorer(field, context, &records)?;
        Ok(Node::Phrase(Box::new(Phrase::new(terms, *slop, scorer))))
    }
}

/// Returns the same records with this score.
fn constant<P, S, F>(node: Node<P, S, F>, score: f64) -> Node<P, S, F>
where
    P: Postings,
    S: crate::score::Scorer,
    F: crate::ids::Ids,
{
    match node {
        Node::Empty => Node::Empty,
        node => Node::Constant(Box::new(Rescore::new(node, ConstantScore(score)))),
    }
}
