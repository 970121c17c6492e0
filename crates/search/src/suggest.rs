//! "Did you mean": frequent terms that are similar to a word.

use std::cmp::Reverse;

use windrow_interrupt::{Interrupt, Interrupted, PacedInterrupt};

use crate::automaton::{EDITS_MAX, Fuzzy};
use crate::similar::{SimilarTerm, similar_terms};
use crate::terms::Terms;

/// What [`suggest`] looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestOptions {
    /// The greatest number of suggestions.
    pub count: usize,
    /// The greatest number of edits. More than 2 are taken as 2.
    pub edits: u8,
    /// The number of characters at the beginning that must be equal. Errors in the first letter are
    /// rare, and with an equal first letter far fewer terms are visited.
    pub prefix: usize,
}

impl Default for SuggestOptions {
    fn default() -> SuggestOptions {
        SuggestOptions {
            count: 5,
            edits: EDITS_MAX,
            prefix: 1,
        }
    }
}

/// A term that may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The term.
    pub term: Vec<u8>,
    /// The number of edits between it and the word.
    pub edits: u8,
    /// The approximate number of records with the term.
    pub records: u64,
}

/// Returns terms that are similar to a word and that more records have: those with the fewest edits
/// first, and of these the most frequent ones. `open` opens a cursor over the terms of a field.
///
/// ```
/// use windrow_interrupt::{Interrupted, Uninterrupted};
/// use windrow_search::memory::MemoryTerms;
/// use windrow_search::{SuggestOptions, suggest};
///
/// let terms = MemoryTerms::new([("coffee", 90), ("cofee", 1), ("coffees", 4), ("toffee", 70)]);
/// let options = SuggestOptions::default();
/// let found = suggest("cofee", options, || Ok(terms.clone()), &Uninterrupted)?;
/// let found: Vec<_> = found.iter().map(|one| (one.term.as_slice(), one.edits)).collect();
/// assert_eq!(found, [(&b"coffee"[..], 1), (b"coffees", 2)]);
/// # Ok::<(), Interrupted>(())
/// ```
///
/// # Errors
/// Fails if `open` fails or the search is interrupted. `interrupt` is checked about every 1,000
/// terms.
pub fn suggest<T: Terms, E: From<Interrupted>>(
    word: &str,
    options: SuggestOptions,
    mut open: impl FnMut() -> Result<T, E>,
    interrupt: &dyn Interrupt,
) -> Result<Vec<Suggestion>, E> {
    let mut interrupt = PacedInterrupt::new(interrupt);
    let letters = word.chars().count();
    let mut found = Vec::new();
    for edits in 1..=options.edits.min(EDITS_MAX) {
        let Some(fuzzy) = Fuzzy::new(word, edits, options.prefix) else {
            break;
        };
        let similar = similar_terms(open()?, &fuzzy, letters, &mut interrupt)?;
        found = more_frequent(similar);
        if found.len() >= options.count {
            break;
        }
    }
    found.sort_by(|one, other| {
        let order = |one: &Suggestion| (one.edits, Reverse(one.records));
        order(one)
            .cmp(&order(other))
            .then_with(|| one.term.cmp(&other.term))
    });
    found.truncate(options.count);
    Ok(found)
}

/// Returns the terms that have more records than the word itself.
fn more_frequent(similar: Vec<SimilarTerm>) -> Vec<Suggestion> {
    let own = similar.iter().find(|term| term.edits == 0);
    let own = own.map_or(0, |term| term.records);
    let others = similar
        .into_iter()
        .filter(|term| term.edits > 0 && term.records > own);
    let suggestions = others.map(|term| Suggestion {
        term: term.term,
        edits: term.edits,
        records: term.records,
    });
    suggestions.collect()
}
