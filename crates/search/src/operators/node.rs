//! An enum of all operators.

use super::{
    AtLeast, Conjunction, ConstantScore, Disjunction, Filter, FunctionScore, Near, Optional,
    Phrase, Rescore, Union, Without,
};
use crate::batch::Batch;
use crate::ids::{Ids, SetIds};
use crate::matches::Matches;
use crate::postings::{END, Postings};
use crate::score::Scorer;
use crate::term::Term;

/// A compiled query: a tree of operators over postings `P` with scorers `S` and filters `F`.
///
/// Operators whose lists are all terms have separate variants. Their loops then call the functions
/// of the terms directly, without a `match` for each call.
#[derive(Clone, Debug)]
pub enum Node<P, S, F> {
    /// No record.
    Empty,
    /// The records with a term.
    Term(Box<Term<P, S>>),
    /// The records with a phrase.
    Phrase(Box<Phrase<P, S>>),
    /// The records that another index has found.
    Filter(Filter<F>),
    /// The records of a set in memory.
    Set(Filter<SetIds>),
    /// The records that have a value, with scores by its distance from an origin.
    Near(Near),
    /// The records with all of some terms.
    AllTerms(Box<Conjunction<Term<P, S>>>),
    /// The records in all of some lists.
    All(Box<Conjunction<Node<P, S, F>>>),
    /// The records with any of some terms.
    AnyTerm(Box<Disjunction<Term<P, S>>>),
    /// The records in any of some lists.
    Any(Box<Disjunction<Node<P, S, F>>>),
    /// The records with any of some terms, all with one score.
    Union(Box<Union<Term<P, S>>>),
    /// The records in at least a minimum number of some lists.
    AtLeast(Box<AtLeast<Node<P, S, F>>>),
    /// The records of a list that are not in another one.
    Without(Box<Without<Node<P, S, F>>>),
    /// The records of a list, with a higher score if they are in another one.
    Optional(Box<Optional<Node<P, S, F>>>),
    /// The records of a list, all with one score.
    Constant(Box<Rescore<Node<P, S, F>, ConstantScore>>),
    /// The records of a list, with scores that a function changes.
    Function(Box<Rescore<Node<P, S, F>, FunctionScore>>),
}

/// Evaluates an expression on the operator inside a node.
macro_rules! dispatch {
    ($node:expr, $list:ident => $result:expr, $empty:expr) => {
        match $node {
            Node::Empty => $empty,
            Node::Term($list) => $result,
            Node::Phrase($list) => $result,
            Node::Filter($list) => $result,
            Node::Set($list) => $result,
            Node::Near($list) => $result,
            Node::AllTerms($list) => $result,
            Node::All($list) => $result,
            Node::AnyTerm($list) => $result,
            Node::Any($list) => $result,
            Node::Union($list) => $result,
            Node::AtLeast($list) => $result,
            Node::Without($list) => $result,
            Node::Optional($list) => $result,
            Node::Constant($list) => $result,
            Node::Function($list) => $result,
        }
    };
}

impl<P: Postings, S: Scorer, F: Ids> Matches for Node<P, S, F> {
    #[inline]
    fn id(&self) -> u64 {
        dispatch!(self, list => list.id(), END)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        dispatch!(self, list => list.next(), END)
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        dispatch!(self, list => list.seek(id), END)
    }

    #[inline]
    fn probe(&mut self, id: u64) -> u64 {
        dispatch!(self, list => list.probe(id), END)
    }

    #[inline]
    fn score(&mut self) -> f64 {
        dispatch!(self, list => list.score(), 0.0)
    }

    fn count_at_most(&mut self) -> u64 {
        dispatch!(self, list => list.count_at_most(), 0)
    }

    fn count(&mut self) -> Option<u64> {
        dispatch!(self, list => list.count(), Some(0))
    }

    fn block_end(&mut self, id: u64) -> u64 {
        dispatch!(self, list => list.block_end(id), END)
    }

    fn block_bound(&mut self) -> f64 {
        dispatch!(self, list => list.block_bound(), 0.0)
    }

    fn bound(&mut self) -> f64 {
        dispatch!(self, list => list.bound(), 0.0)
    }

    fn postings_read(&self) -> u64 {
        dispatch!(self, list => list.postings_read(), 0)
    }

    fn postings(&mut self) -> u64 {
        dispatch!(self, list => list.postings(), 0)
    }

    fn read(&mut self, last: u64, batch: &mut Batch) {
        dispatch!(self, list => list.read(last, batch), batch.clear())
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        dispatch!(self, list => list.fill(first, bits), END)
    }
}
