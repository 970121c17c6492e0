//! The terms of a field that are similar to a word.

use windrow_interrupt::{Interrupted, PacedInterrupt};

use crate::automaton::{Fuzzy, Memo, Walk};
use crate::terms::Terms;

/// A term that is similar to a word.
pub(crate) struct SimilarTerm {
    pub term: Vec<u8>,
    pub edits: u8,
    /// 1 if it is equal, less the more edits it has for its length.
    pub similarity: f32,
    /// About how many records have it.
    pub records: u64,
}

/// Returns the terms that an automaton accepts, in the order of their bytes. `letters` is the
/// number of characters of its word. As in Lucene, a term has to have fewer edits than letters.
pub(crate) fn similar_terms<T: Terms>(
    cursor: T,
    fuzzy: &Fuzzy,
    letters: usize,
    interrupt: &mut PacedInterrupt<'_>,
) -> Result<Vec<SimilarTerm>, Interrupted> {
    let memo = Memo::new(fuzzy);
    let mut walk = Walk::new(&memo, cursor);
    let mut found = Vec::new();
    while let Some(is_match) = walk.step() {
        interrupt.step()?;
        if !is_match {
            continue;
        }
        let state = walk.state().and_then(|state| memo.state_of(state));
        let Some(edits) = state.and_then(|state| fuzzy.distance(&state)) else {
            continue;
        };
        let cursor = walk.terms_mut();
        let records = cursor.records();
        if records == 0 {
            continue;
        }
        let term = cursor.term().unwrap_or_default();
        let shorter = letters.min(String::from_utf8_lossy(term).chars().count());
        if edits == 0 || usize::from(edits) < shorter {
            found.push(SimilarTerm {
                term: term.to_vec(),
                edits,
                similarity: 1.0 - f32::from(edits) / shorter.max(1) as f32,
                records,
            });
        }
    }
    Ok(found)
}
