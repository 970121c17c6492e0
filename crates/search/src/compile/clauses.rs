//! Boolean queries.

use super::{Compiled, Compiler, Context, Outcome, UNION_LISTS_MAX, constant};
use crate::ids::Ids;
use crate::operators::{AtLeast, Conjunction, Disjunction, Node, Optional, Union, Without};
use crate::postings::Postings;
use crate::query::{BooleanQuery, Query};
use crate::score::{Scorer, Similarity};
use crate::source::Source;

/// The clauses of a boolean query, compiled, without those that match nothing.
struct Clauses<N> {
    /// All of them must match.
    required: Vec<N>,
    should: Vec<N>,
    must_not: Vec<N>,
}

impl<I: Source, S: Similarity> Compiler<'_, I, S> {
    pub(super) fn boolean(&mut self, query: &BooleanQuery, context: Context) -> Outcome<I, S> {
        let Some(clauses) = self.clauses(query, context)? else {
            return Ok(Node::Empty);
        };
        let Clauses {
            mut required,
            should,
            must_not,
        } = clauses;
        let minimum = query.minimum();
        let mut optional = Node::Empty;
        match minimum {
            // It would change only scores.
            0 if context.is_filter => {}
            0 => optional = any(should),
            1 => required.push(any_in(should, context)),
            _ if minimum > should.len() => return Ok(Node::Empty),
            _ if minimum == should.len() => required.extend(should),
            _ => required.push(Node::AtLeast(Box::new(AtLeast::new(should, minimum)))),
        }
        if required.iter().any(|node| matches!(node, Node::Empty)) {
            return Ok(Node::Empty);
        }
        let mut node = match (required.is_empty(), optional) {
            (false, Node::Empty) => all(required),
            (false, optional) => Node::Optional(Box::new(Optional::new(all(required), optional))),
            (true, _) if query.must_not.is_empty() => return Ok(Node::Empty),
            (true, _) => self.filter(I::all, 0.0)?,
        };
        let excluded = any_in(must_not, context.filter());
        if !matches!(excluded, Node::Empty) {
            node = Node::Without(Box::new(Without::new(node, excluded)));
        }
        Ok(node)
    }

    /// Compiles the clauses. Returns `None` if the query matches nothing.
    #[expect(
        clippy::type_complexity,
        reason = "the error type belongs to the source"
    )]
    fn clauses(
        &mut self,
        query: &BooleanQuery,
        context: Context,
    ) -> Result<Option<Clauses<Compiled<I, S>>>, super::CompileError<I::Error>> {
        let mut required = Vec::new();
        for clause in nested_clauses(&query.must, conjunction_of, NESTING_MAX) {
            match self.compile(clause, context)? {
                Node::Empty => return Ok(None),
                node => required.push(node),
            }
        }
        for clause in &query.filter {
            match self.compile(clause, context.filter())? {
                Node::Empty => return Ok(None),
                node => required.push(constant(node, 0.0)),
            }
        }
        let mut should = Vec::new();
        let is_flat = query.minimum() > 1;
        let nesting = if is_flat { 0 } else { NESTING_MAX };
        for clause in nested_clauses(&query.should, disjunction_of, nesting) {
            should.push(self.compile(clause, context)?);
        }
        let mut must_not = Vec::new();
        for clause in &query.must_not {
            must_not.push(self.compile(clause, context.filter())?);
        }
        should.retain(|node| !matches!(node, Node::Empty));
        must_not.retain(|node| !matches!(node, Node::Empty));
        Ok(Some(Clauses {
            required,
            should,
            must_not,
        }))
    }
}

/// Combinations of the same kind inside each other become one, up to this depth. The rest is
/// compiled as it stands, with the limit for the depth of queries.
const NESTING_MAX: usize = 30;

/// Returns queries, with the clauses of combinations of one kind in their place.
fn nested_clauses(
    queries: &[Query],
    clauses_of: fn(&Query) -> Option<&[Query]>,
    nesting: usize,
) -> Vec<&Query> {
    let clauses = queries.iter().flat_map(|query| match clauses_of(query) {
        Some(inner) if nesting > 0 => nested_clauses(inner, clauses_of, nesting - 1),
        _ => vec![query],
    });
    clauses.collect()
}

/// Returns the clauses of a query that is a conjunction and nothing else.
fn conjunction_of(query: &Query) -> Option<&[Query]> {
    let Query::Boolean(inner) = query else {
        return None;
    };
    let has_others = !inner.should.is_empty() || !inner.must_not.is_empty();
    let is_conjunction = !has_others && inner.filter.is_empty() && inner.minimum() == 0;
    (is_conjunction && !inner.must.is_empty()).then_some(&inner.must)
}

/// Returns the clauses of a query that is a disjunction and nothing else.
fn disjunction_of(query: &Query) -> Option<&[Query]> {
    let Query::Boolean(inner) = query else {
        return None;
    };
    let has_others = !inner.must.is_empty() || !inner.must_not.is_empty();
    let is_disjunction = !has_others && inner.filter.is_empty() && inner.minimum() == 1;
    is_disjunction.then_some(&inner.should)
}

/// Returns the records that are in any of the lists. Scores of filters are not computed.
fn any_in<P: Postings, S: Scorer, F: Ids>(
    nodes: Vec<Node<P, S, F>>,
    context: Context,
) -> Node<P, S, F> {
    let are_terms = nodes.iter().all(|node| matches!(node, Node::Term(_)));
    if context.is_filter && are_terms && (2..=UNION_LISTS_MAX).contains(&nodes.len()) {
        return Node::Union(Box::new(Union::new(terms(nodes), 0.0)));
    }
    any(nodes)
}

/// Returns the records that are in any of the lists.
pub(super) fn any<P: Postings, S: Scorer, F: Ids>(nodes: Vec<Node<P, S, F>>) -> Node<P, S, F> {
    if nodes.iter().all(|node| matches!(node, Node::Term(_))) && nodes.len() > 1 {
        return Node::AnyTerm(Box::new(Disjunction::new(terms(nodes))));
    }
    match one_or_more(nodes) {
        Ok(node) => node,
        Err(nodes) => Node::Any(Box::new(Disjunction::new(nodes))),
    }
}

/// Returns the records that are in all lists.
fn all<P: Postings, S: Scorer, F: Ids>(nodes: Vec<Node<P, S, F>>) -> Node<P, S, F> {
    if nodes.iter().all(|node| matches!(node, Node::Term(_))) && nodes.len() > 1 {
        return Node::AllTerms(Box::new(Conjunction::new(terms(nodes))));
    }
    match one_or_more(nodes) {
        Ok(node) => node,
        Err(nodes) => Node::All(Box::new(Conjunction::new(nodes))),
    }
}

/// Returns the only node. Returns the nodes if they are several.
#[expect(clippy::type_complexity, reason = "nodes have three parameters")]
fn one_or_more<P, S, F>(
    mut nodes: Vec<Node<P, S, F>>,
) -> Result<Node<P, S, F>, Vec<Node<P, S, F>>> {
    match nodes.len() {
        0 => Ok(Node::Empty),
        1 => Ok(nodes.pop().unwrap_or(Node::Empty)),
        _ => Err(nodes),
    }
}

fn terms<P, S, F>(nodes: Vec<Node<P, S, F>>) -> Vec<crate::term::Term<P, S>> {
    let terms = nodes.into_iter().filter_map(|node| match node {
        Node::Term(term) => Some(*term),
        _ => None,
    });
    terms.collect()
}
