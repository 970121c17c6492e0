//! How many words and terms keep their numbers between documents.

/// The limits of the number of words and terms. The large one still fits into the caches of a CPU.
const TERMS_MAX: usize = 1 << 15;
const TERMS_MAX_SMALL: usize = 1 << 12;
/// The total length of the words and terms, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// Decides when words and terms are forgotten. Most texts repeat their words, so that many are kept.
/// If words hardly repeat, as random ones do, large tables would only be slower than small ones.
///
/// ```
/// use windrow_text::KeptTerms;
///
/// let mut kept = KeptTerms::default();
/// kept.count_lookups(5_000);
/// assert!(!kept.is_full(4_000, 32_000));
/// assert!(kept.is_full(4_100, 32_800));
/// // Words were repeated: more are kept from now on.
/// assert!(kept.are_repeated() && !kept.is_full(20_000, 160_000));
/// ```
#[derive(Debug)]
pub struct KeptTerms {
    terms_max: usize,
    /// Since terms were forgotten.
    lookups: usize,
}

impl Default for KeptTerms {
    fn default() -> KeptTerms {
        KeptTerms {
            terms_max: TERMS_MAX_SMALL,
            lookups: 0,
        }
    }
}

impl KeptTerms {
    /// Adds a number of words that were looked up.
    pub fn count_lookups(&mut self, words: usize) {
        self.lookups = self.lookups.saturating_add(words);
    }

    /// Returns `true` if words repeat. Otherwise the numbers of terms are not worth using.
    pub fn are_repeated(&self) -> bool {
        self.terms_max == TERMS_MAX
    }

    /// Returns `true` if this number of words and terms with this total length is too large, so
    /// that all must be forgotten.
    pub fn is_full(&mut self, terms: usize, bytes: usize) -> bool {
        let is_full = terms > self.terms_max || bytes > BYTES_MAX;
        if is_full {
            // Words that do not repeat have half a lookup for each: they and their terms count.
            self.terms_max = if self.lookups >= terms {
                TERMS_MAX
            } else {
                TERMS_MAX_SMALL
            };
            self.lookups = 0;
        }
        is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_terms_are_kept_if_words_do_not_repeat() {
        let mut kept = KeptTerms::default();
        for (terms, lookups, limit) in [
            (TERMS_MAX_SMALL + 1, TERMS_MAX_SMALL, TERMS_MAX_SMALL),
            (TERMS_MAX_SMALL + 1, TERMS_MAX_SMALL + 1, TERMS_MAX),
            (TERMS_MAX + 1, 200_000, TERMS_MAX),
            (TERMS_MAX + 1, 20_000, TERMS_MAX_SMALL),
            (TERMS_MAX_SMALL + 1, 0, TERMS_MAX_SMALL),
        ] {
            kept.count_lookups(lookups);
            assert!(!kept.is_full(terms - 1, 0));
            assert!(kept.is_full(terms, 0));
            // The limit follows from the lookups before.
            assert_eq!(kept.terms_max, limit, "after {lookups} lookups");
            assert_eq!(kept.are_repeated(), limit == TERMS_MAX);
        }
        assert!(!kept.is_full(0, BYTES_MAX) && kept.is_full(0, BYTES_MAX + 1));
    }
}
