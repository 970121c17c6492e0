//! Removes articles and suffixes that are joined to a word by an apostrophe.

use crate::language::Grammar;

/// Elided French articles and other short words.
const FRENCH: &[&str] = &[
    "c", "d", "j", "jusqu", "l", "lorsqu", "m", "n", "puisqu", "qu", "quoiqu", "s", "t",
];

/// Elided Italian articles and other short words.
const ITALIAN: &[&str] = &[
    "agl", "all", "c", "coll", "d", "dagl", "dall", "degl", "dell", "gl", "l", "m", "negl", "nell",
    "pell", "s", "sugl", "sull", "t", "un", "v",
];

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '\u{2019}')
}

/// Returns a lower-case word without its elided article (French, Italian), without the suffix after
/// its apostrophe (Turkish), or without the possessive `'s` (English).
pub(super) fn without_affix(grammar: Grammar, word: &str) -> &str {
    match grammar {
        Grammar::French => without_article(FRENCH, word),
        Grammar::Italian => without_article(ITALIAN, word),
        Grammar::Turkish => word
            .split_once(is_apostrophe)
            .map_or(word, |(stem, _)| stem),
        Grammar::English => {
            let is_mark = |one| is_apostrophe(one) || one == '\u{ff07}';
            let stem = word.strip_suffix('s');
            stem.and_then(|stem| stem.strip_suffix(is_mark))
                .unwrap_or(word)
        }
        _ => word,
    }
}

fn without_article<'w>(articles: &[&str], word: &'w str) -> &'w str {
    match word.split_once(is_apostrophe) {
        Some((article, rest)) if articles.contains(&article) && !rest.is_empty() => rest,
        _ => word,
    }
}
