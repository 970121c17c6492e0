//! Sets of patterns: a search tests if any pattern of the set matches a text.

use regex_syntax::hir::Hir;

use windrow_interrupt::Interrupt;

use crate::linear::Linear;
use crate::{MatchError, ParseError, Regex};

/// The number of patterns that are joined to one. It is larger if the set would otherwise have more
/// than [`JOINED_MAX`] joined patterns.
const BRANCHES: usize = 250;

/// The most joined patterns of a set.
const JOINED_MAX: usize = 32;

/// The number of patterns between two checks of the interrupt. Small, because a pattern that is not
/// compiled must be parsed.
const PATTERNS_PER_CHECK: usize = 16;

/// A set of patterns that is joined to few large patterns. A search reads the text once for each
/// joined pattern, not once for each pattern.
///
/// Patterns that need the backtracking engine cannot be joined, nor can patterns that are too large
/// together. [`RegexSet::new`] returns the numbers of those patterns, and the caller searches with
/// each of them.
#[derive(Default)]
pub struct RegexSet {
    joined: Vec<Linear>,
}

impl RegexSet {
    /// Joins the patterns. Each has a number that the caller chooses. Returns the set and the
    /// numbers of the patterns that are not in it. Fails if it is interrupted.
    pub fn new<'r>(
        patterns: impl Iterator<Item = (usize, &'r Regex)>,
        interrupt: &dyn Interrupt,
    ) -> Result<(RegexSet, Vec<usize>), MatchError> {
        let (mut joinable, mut separate) = (Vec::new(), Vec::new());
        for (count, (number, regex)) in patterns.enumerate() {
            if count % PATTERNS_PER_CHECK == 0 {
                interrupt.check()?;
            }
            match regex.linear() {
                Some(hir) => joinable.push((number, hir)),
                None => separate.push(number),
            }
        }
        let size = BRANCHES.max(joinable.len().div_ceil(JOINED_MAX));
        let mut joined = Vec::new();
        for patterns in joinable.chunks(size) {
            interrupt.check()?;
            match join(patterns) {
                Ok(linear) => joined.push(linear),
                Err(_) => separate.extend(patterns.iter().map(|(number, _)| *number)),
            }
        }
        Ok((RegexSet { joined }, separate))
    }

    /// Returns the number of joined patterns, each of which reads the text of a search.
    pub fn count(&self) -> usize {
        self.joined.len()
    }

    /// Returns `true` if any pattern of the set matches the text. Fails as [`Regex::is_match`]
    /// does.
    pub fn is_match(&self, text: &str, interrupt: &dyn Interrupt) -> Result<bool, MatchError> {
        for linear in &self.joined {
            if linear.is_match(text, interrupt)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Joins patterns as branches of one. Fails if they are too large together.
fn join(patterns: &[(usize, Hir)]) -> Result<Linear, ParseError> {
    let branches = patterns.iter().map(|(_, hir)| hir.clone()).collect();
    Linear::joined(Hir::alternation(branches))
}
