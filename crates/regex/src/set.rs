//! Many patterns of which one is to match.

use regex_syntax::hir::Hir;

use windrow_interrupt::Interrupt;

use crate::linear::Linear;
use crate::{MatchError, ParseError, Regex};

/// Branches of one joined pattern, unless that makes too many patterns.
const BRANCHES: usize = 250;

/// The most joined patterns.
const JOINED_MAX: usize = 32;

/// Patterns between two checks of the interrupt: each may have to be parsed.
const PATTERNS_PER_CHECK: usize = 16;

/// Patterns joined as branches of few large ones, each of which reads the text once.
///
/// Patterns for the backtracking engine, and those that are too large together, cannot be joined:
/// [`RegexSet::new`] returns their places.
#[derive(Default)]
pub struct RegexSet {
    joined: Vec<Linear>,
}

impl RegexSet {
    /// Joins the patterns. Returns the places of those that the set does not have. Fails if
    /// it is interrupted.
    pub fn new<'r>(
        patterns: impl Iterator<Item = (usize, &'r Regex)>,
        interrupt: &dyn Interrupt,
    ) -> Result<(RegexSet, Vec<usize>), MatchError> {
        let (mut joinable, mut apart) = (Vec::new(), Vec::new());
        for (count, (place, regex)) in patterns.enumerate() {
            if count % PATTERNS_PER_CHECK == 0 {
                interrupt.check()?;
            }
            match regex.linear() {
                Some(hir) => joinable.push((place, hir)),
                None => apart.push(place),
            }
        }
        let size = BRANCHES.max(joinable.len().div_ceil(JOINED_MAX));
        let mut joined = Vec::new();
        for some in joinable.chunks(size) {
            interrupt.check()?;
            match join(some) {
                Ok(linear) => joined.push(linear),
                Err(_) => apart.extend(some.iter().map(|(place, _)| *place)),
            }
        }
        Ok((RegexSet { joined }, apart))
    }

    /// How many joined patterns read each text.
    pub fn count(&self) -> usize {
        self.joined.len()
    }

    /// Whether any of the joined patterns matches the text. Fails if the search was interrupted.
    pub fn is_match(&self, text: &str, interrupt: &dyn Interrupt) -> Result<bool, MatchError> {
        for linear in &self.joined {
            if linear.is_match(text, interrupt)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Fails if the patterns are too large together.
fn join(some: &[(usize, Hir)]) -> Result<Linear, ParseError> {
    let branches = some.iter().map(|(_, hir)| hir.clone()).collect();
    Linear::joined(Hir::alternation(branches))
}
