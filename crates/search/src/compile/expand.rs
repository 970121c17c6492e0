//! Queries for many terms: prefixes, patterns, ranges, sets, similar words.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::clauses::any;
use super::{CompileError, Compiler, Context, Outcome, UNION_LISTS_MAX, constant};
use crate::automaton::{Automaton, Dfa, Fuzzy, PatternError, Prefix, Walk};
use crate::bits::WINDOW_IDS;
use crate::ids::IdSet;
use crate::operators::{Filter, Node, Union};
use crate::postings::{END, Postings};
use crate::query::{FuzzyQuery, Query};
use crate::score::Similarity;
use crate::similar::{SimilarTerm, similar_terms};
use crate::source::Source;
use crate::term::Term;
use crate::terms::Terms;

/// What a prefix, a pattern, a range or a set of terms stands for.
#[derive(Default)]
struct Expansion {
    /// A few terms whose lists are opened.
    terms: Vec<Vec<u8>>,
    /// The records of the other terms: of those with few records, and of all if there are more
    /// terms than lists may be open at the same time.
    records: Option<IdSet>,
    /// There are more terms than that.
    is_set: bool,
}

impl<I: Source, S: Similarity> Compiler<'_, I, S> {
    /// Compiles a query whose records all have the same score because they have any of many terms.
    pub(super) fn expanded(&mut self, query: &Query, context: Context) -> Outcome<I, S> {
        let (field, expansion) = match query {
            Query::Prefix { field, prefix } => (
                field,
                self.accepted(field, &Prefix::new(prefix.as_slice()))?,
            ),
            Query::Wildcard { field, pattern } => {
                let expansion = match literal_prefix(pattern) {
                    Some(prefix) => self.accepted(field, &Prefix::new(prefix))?,
                    None => self.accepted(field, &pattern_dfa(pattern, Dfa::wildcard)?)?,
                };
                (field, expansion)
            }
            Query::Regex { field, pattern } => {
                let dfa = pattern_dfa(pattern, Dfa::regex)?;
                (field, self.accepted(field, &dfa)?)
            }
            Query::Terms { field, terms } => (field, self.some_terms(field, terms)?),
            Query::Range {
                field,
                lower,
                upper,
            } => (field, self.between(field, lower, upper)?),
            _ => return Ok(Node::Empty),
        };
        let Expansion { terms, records, .. } = expansion;
        let Some(records) = records else {
            return self.union_of(field, &terms, context);
        };
        let score = context.constant_score();
        let set = |score| Node::Set(Filter::new(records.into_ids(), score));
        if terms.is_empty() {
            return Ok(set(score));
        }
        let union = self.union_of(field, &terms, context.filter())?;
        Ok(constant(any(vec![union, set(0.0)]), score))
    }

    /// Returns the records with any of a few terms.
    fn union_of(&mut self, field: &str, terms: &[Vec<u8>], context: Context) -> Outcome<I, S> {
        let score = context.constant_score();
        let context = context.filter();
        if let [term] = terms {
            let node = self.term(field, term, context)?;
            return Ok(constant(node, score));
        }
        let mut lists = Vec::new();
        for term in terms {
            if let Some(list) = self.open(field, term)? {
                lists.push(Term::new(list, self.scorer(field, context, &[1])?));
            }
        }
        match lists.len() {
            0 => Ok(Node::Empty),
            _ => Ok(Node::Union(Box::new(Union::new(lists, score)))),
        }
    }

    /// Collects the records with any of the terms.
    fn set_of(&mut self, field: &str, terms: &[Vec<u8>]) -> Result<IdSet, CompileError<I::Error>> {
        let mut set = IdSet::default();
        for term in terms {
            self.interrupt.step()?;
            let list = self.source.postings(field, term);
            let Some(mut list) = list.map_err(CompileError::Source)? else {
                continue;
            };
            let mut id = list.id();
            while id != END {
                self.interrupt.step()?;
                let number = id / WINDOW_IDS;
                id = list.fill(number * WINDOW_IDS, set.window(number));
            }
        }
        Ok(set)
    }

    /// Returns the expansion of a set of terms.
    fn some_terms(
        &mut self,
        field: &str,
        terms: &[Vec<u8>],
    ) -> Result<Expansion, CompileError<I::Error>> {
        let terms: BTreeSet<&Vec<u8>> = terms.iter().collect();
        let terms: Vec<Vec<u8>> = terms.into_iter().cloned().collect();
        if terms.len() <= UNION_LISTS_MAX {
            return Ok(Expansion {
                terms,
                ..Expansion::default()
            });
        }
        Ok(Expansion {
            records: Some(self.set_of(field, &terms)?),
            is_set: true,
            ..Expansion::default()
        })
    }

    /// Adds the term on which a cursor stands to an expansion.
    fn expand(
        &mut self,
        field: &str,
        expansion: &mut Expansion,
        cursor: &mut I::Terms,
    ) -> Result<(), CompileError<I::Error>> {
        let records = &mut expansion.records;
        if expansion.is_set || cursor.has_few_records() {
            cursor.add_records(records.get_or_insert_default());
        } else if expansion.terms.len() < UNION_LISTS_MAX {
            expansion.terms.extend(cursor.term().map(<[u8]>::to_vec));
        } else {
            expansion.is_set = true;
            let terms = std::mem::take(&mut expansion.terms);
            let records = records.get_or_insert_default();
            records.extend_from(&self.set_of(field, &terms)?);
            cursor.add_records(records);
        }
        Ok(())
    }

    fn cursor(&self, field: &str) -> Result<I::Terms, CompileError<I::Error>> {
        self.source.terms(field).map_err(CompileError::Source)
    }

    /// Expands a query to the terms of a field that an automaton accepts.
    fn accepted<B: Automaton>(
        &mut self,
        field: &str,
        automaton: &B,
    ) -> Result<Expansion, CompileError<I::Error>> {
        let mut walk = Walk::new(automaton, self.cursor(field)?);
        let mut expansion = Expansion::default();
        while let Some(is_match) = walk.step() {
            self.interrupt.step()?;
            if is_match {
                self.expand(field, &mut expansion, walk.terms_mut())?;
            }
        }
        Ok(expansion)
    }

    /// Expands a query to the terms of a field that are between two others.
    fn between(
        &mut self,
        field: &str,
        lower: &Bound<Vec<u8>>,
        upper: &Bound<Vec<u8>>,
    ) -> Result<Expansion, CompileError<I::Error>> {
        let mut cursor = self.cursor(field)?;
        if let Bound::Included(least) | Bound::Excluded(least) = lower {
            cursor.seek(least);
            if matches!(lower, Bound::Excluded(_)) && cursor.term() == Some(least.as_slice()) {
                cursor.next();
            }
        }
        let mut expansion = Expansion::default();
        while let Some(term) = cursor.term() {
            let is_within = match upper {
                Bound::Included(greatest) => term <= greatest.as_slice(),
                Bound::Excluded(end) => term < end.as_slice(),
                Bound::Unbounded => true,
            };
            if !is_within {
                break;
            }
            self.interrupt.step()?;
            self.expand(field, &mut expansion, &mut cursor)?;
            cursor.next();
        }
        Ok(expansion)
    }

    /// Compiles a query for similar words, as Lucene's fuzzy query is rewritten: a disjunction of
    /// the most similar terms, with scores as if each of them had as many records as the most
    /// frequent one.
    pub(super) fn fuzzy(&mut self, query: &FuzzyQuery, context: Context) -> Outcome<I, S> {
        let similar = self.similar(query)?;
        let records = similar.iter().map(|term| term.records).max().unwrap_or(0);
        let mut nodes = Vec::new();
        for term in similar {
            let Some(list) = self.open(&query.field, &term.term)? else {
                continue;
            };
            let similar = Context {
                boost: context.boost * term.similarity,
                ..context
            };
            let scorer = self.scorer(&query.field, similar, &[records])?;
            nodes.push(Node::Term(Box::new(Term::new(list, scorer))));
        }
        Ok(any(nodes))
    }

    /// Returns the terms that are most similar to a word, in the order of their bytes.
    pub(super) fn similar(
        &mut self,
        query: &FuzzyQuery,
    ) -> Result<Vec<SimilarTerm>, CompileError<I::Error>> {
        let count = query.expansions.min(self.limits.fuzzy_terms);
        let letters = query.word.chars().count();
        let mut found = Vec::new();
        // A word with at least three letters is more similar to each term with one edit than to one
        // with two. So most walks need not look at the many terms with two.
        let first = if letters > 2 {
            query.edits.min(1)
        } else {
            query.edits
        };
        for edits in first..=query.edits {
            let fuzzy = Fuzzy::new(&query.word, edits, query.prefix);
            let fuzzy = fuzzy.ok_or(CompileError::TooManyEdits { edits })?;
            let cursor = self.cursor(&query.field)?;
            found = similar_terms(cursor, &fuzzy, letters, &mut self.interrupt)?;
            if found.len() >= count {
                break;
            }
        }
        found.sort_by(|one, other| {
            let by_similarity = other.similarity.total_cmp(&one.similarity);
            by_similarity.then_with(|| one.term.cmp(&other.term))
        });
        found.truncate(count);
        found.sort_by(|one, other| one.term.cmp(&other.term));
        Ok(found)
    }
}

/// Returns what is before the asterisk of a wildcard whose only special character is the one at its
/// end.
fn literal_prefix(pattern: &str) -> Option<&str> {
    let prefix = pattern.strip_suffix('*')?;
    (!prefix.contains(['*', '?', '\\'])).then_some(prefix)
}

fn pattern_dfa<E>(
    pattern: &str,
    parse: impl FnOnce(&str) -> Result<Dfa, PatternError>,
) -> Result<Dfa, CompileError<E>> {
    parse(pattern).map_err(|error| CompileError::Pattern {
        pattern: pattern.to_owned(),
        error,
    })
}
