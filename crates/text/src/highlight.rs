//! Snippets: the part of a text that matches a query best, with the byte ranges of the matched
//! words.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::analyzer::{Analyzer, Sensitivity};
use crate::language::Language;
use crate::query::Query;
use crate::visible;

/// Options of [`highlight`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighlightOptions {
    /// The maximum length of a snippet in characters. 200 by default.
    pub characters_max: usize,
}

impl Default for HighlightOptions {
    fn default() -> HighlightOptions {
        HighlightOptions {
            characters_max: 200,
        }
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The part, unchanged.
    pub text: String,
    /// The byte ranges of the matched words in `self.text`, ascending.
    pub ranges: Vec<Range<usize>>,
    /// The byte position in the whole text at which the part starts.
    pub start: usize,
    /// `true` if the part does not start at the start of the text.
    pub is_cut_before: bool,
    /// `true` if the part does not end at the end of the text.
    pub is_cut_after: bool,
}

/// Returns the part of `text` that contains the most distinct terms of the query, or the start of
/// the text if it contains none. `language` is the language of the text.
///
/// ```
/// use windrow_text::{HighlightOptions, Language, Query, Sensitivity, TextVersion, highlight};
///
/// let query = Query::parse("cakes", Language::ENGLISH, Sensitivity::NONE, TextVersion::V3);
/// let options = HighlightOptions { characters_max: 9 };
/// let snippet = highlight("She is baking a cake", Language::ENGLISH, &query, options);
/// assert_eq!(snippet.text, "a cake");
/// assert_eq!(snippet.ranges, [2..6]);
/// assert_eq!(snippet.start, 14);
/// assert!(snippet.is_cut_before && !snippet.is_cut_after);
/// ```
pub fn highlight(
    text: &str,
    language: Language,
    query: &Query,
    options: HighlightOptions,
) -> Snippet {
    let text = visible(text);
    let hits = hits(text, language, query);
    let cluster = best_cluster(text, &hits, options.characters_max);
    let piece = grow(text, cluster, options.characters_max);
    let ranges = hits
        .iter()
        .filter(|hit| piece.start <= hit.range.start && hit.range.end <= piece.end)
        .map(|hit| hit.range.start - piece.start..hit.range.end - piece.start)
        .collect();
    Snippet {
        text: part(text, piece.clone()).to_string(),
        ranges,
        start: piece.start,
        is_cut_before: piece.start > 0,
        is_cut_after: piece.end < text.len(),
    }
}

/// A word of the text that has a term of the query.
struct Hit {
    range: Range<usize>,
    /// The index of the term in [`Query::terms`].
    term: usize,
}

fn hits(text: &str, language: Language, query: &Query) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut analyzer = Analyzer::with_sensitivity(language, query.version(), Sensitivity::NONE);
    analyzer.terms(text, |found| {
        let known = query
            .terms()
            .binary_search_by(|term| term.as_str().cmp(found.term));
        if let Ok(term) = known {
            hits.push(Hit {
                range: found.range,
                term,
            });
        }
    });
    hits
}

/// Returns the byte range from one hit to another that has the most distinct terms and, among
/// equals, the most hits. The range is at most `characters_max` characters long, unless a single
/// hit is longer. Returns the first of several such ranges, and `0..0` if there are no hits.
fn best_cluster(text: &str, hits: &[Hit], characters_max: usize) -> Range<usize> {
    let mut best = (0, 0, 0..0);
    let mut window = Window::default();
    for hit in hits {
        window.push(hit);
        while window.hits.len() > 1 && !fits(text, window.range(), characters_max) {
            window.pop();
        }
        if (window.distinct_count, window.hits.len()) > (best.0, best.1) {
            best = (window.distinct_count, window.hits.len(), window.range());
        }
    }
    best.2
}

/// Consecutive hits, and the number of distinct terms among them.
#[derive(Default)]
struct Window<'a> {
    hits: VecDeque<&'a Hit>,
    /// The number of hits per term.
    counts: HashMap<usize, usize>,
    distinct_count: usize,
}

impl<'a> Window<'a> {
    fn push(&mut self, hit: &'a Hit) {
        self.hits.push_back(hit);
        let count = self.counts.entry(hit.term).or_insert(0);
        *count += 1;
        self.distinct_count += usize::from(*count == 1);
    }

    fn pop(&mut self) {
        let Some(hit) = self.hits.pop_front() else {
            return;
        };
        let count = self.counts.entry(hit.term).or_insert(1);
        *count -= 1;
        self.distinct_count -= usize::from(*count == 0);
    }

    fn range(&self) -> Range<usize> {
        let start = self.hits.front().map_or(0, |hit| hit.range.start);
        start..self.hits.back().map_or(start, |hit| hit.range.end)
    }
}

/// Returns `true` if the byte range has at most `characters_max` characters.
fn fits(text: &str, range: Range<usize>, characters_max: usize) -> bool {
    // A character has one to four bytes, so most calls return without counting.
    range.len() <= characters_max
        || (range.len() <= characters_max.saturating_mul(4)
            && text
                .get(range)
                .is_some_and(|piece| piece.chars().count() <= characters_max))
}

/// Returns the part of the text in a byte range that lies on character boundaries.
fn part(text: &str, range: Range<usize>) -> &str {
    let Some(part) = text.get(range.clone()) else {
        unreachable!("{range:?} is not a part of {} bytes of text", text.len());
    };
    part
}

/// Extends a byte range by whole words on both sides to at most `characters_max` characters. Each
/// side gets half of the remaining characters. If one side does not use its half, the other side
/// may use the rest.
fn grow(text: &str, cluster: Range<usize>, characters_max: usize) -> Range<usize> {
    let before = part(text, 0..cluster.start);
    let inside = part(text, cluster.clone());
    let after = part(text, cluster.end..text.len());
    let spare = characters_max - inside.chars().take(characters_max).count();
    let after_count = characters(after, 0..word_end(after, spare / 2));
    let start = word_start(before, spare - after_count);
    let before_count = characters(before, start..before.len());
    let end = cluster.end + word_end(after, spare - before_count);
    if start == end {
        // There are no hits and the first word is longer than the snippet, so the word is cut.
        return 0..end_after(text, 0, characters_max);
    }
    start..end.min(end_after(text, start, characters_max))
}

/// Returns the number of characters in a byte range.
fn characters(text: &str, range: Range<usize>) -> usize {
    part(text, range).chars().count()
}

/// Returns the byte position at which the last `count` characters of a text start. If that position
/// cuts a word, returns the start of the next word.
fn word_start(text: &str, count: usize) -> usize {
    let start = match count {
        0 => text.len(),
        _ => text
            .char_indices()
            .rev()
            .nth(count - 1)
            .map_or(0, |(index, _)| index),
    };
    let (left_out, taken) = text.split_at(start);
    if left_out.is_empty() || left_out.ends_with(char::is_whitespace) {
        return start;
    }
    let rest = taken.trim_start_matches(|character: char| !character.is_whitespace());
    text.len() - rest.trim_start().len()
}

/// Returns the byte position at which the first `count` characters of a text end. If that position
/// cuts a word, returns the end of the word before it.
fn word_end(text: &str, count: usize) -> usize {
    let end = text
        .char_indices()
        .nth(count)
        .map_or(text.len(), |(index, _)| index);
    let (taken, left_out) = text.split_at(end);
    if left_out.is_empty() || left_out.starts_with(char::is_whitespace) {
        return end;
    }
    taken
        .trim_end_matches(|character: char| !character.is_whitespace())
        .trim_end()
        .len()
}

/// Returns the byte position `characters_max` characters after `start`, or the end of the text.
fn end_after(text: &str, start: usize, characters_max: usize) -> usize {
    let rest = part(text, start..text.len());
    rest.char_indices()
        .nth(characters_max)
        .map_or(text.len(), |(index, _)| start + index)
}

#[cfg(test)]
mod tests {
    use super::{HighlightOptions, highlight};
    use crate::{Language, Query, Sensitivity, TextVersion};

    /// Returns the snippet with its matched words in brackets, and with `…` at each end that is
    /// cut.
    fn marked(text: &str, search: &str, characters_max: usize) -> String {
        let query = Query::parse(
            search,
            Language::ENGLISH,
            Sensitivity::NONE,
            TextVersion::V3,
        );
        let options = HighlightOptions { characters_max };
        let snippet = highlight(text, Language::ENGLISH, &query, options);
        assert!(
            snippet.text.chars().count() <= characters_max,
            "{snippet:?}"
        );
        assert_eq!(&text[snippet.start..][..snippet.text.len()], snippet.text);
        let mut marked = String::new();
        let mut end = 0;
        for range in &snippet.ranges {
            marked += &snippet.text[end..range.start];
            marked += &format!("[{}]", &snippet.text[range.clone()]);
            end = range.end;
        }
        let ellipsis = |is_cut| if is_cut { "…" } else { "" };
        let (before, after) = (
            ellipsis(snippet.is_cut_before),
            ellipsis(snippet.is_cut_after),
        );
        format!("{before}{marked}{}{after}", &snippet.text[end..])
    }

    #[test]
    fn returns_the_best_part_with_its_matches() {
        let check = |text: &str, search: &str, characters_max: usize, expected: &str| {
            assert_eq!(
                marked(text, search, characters_max),
                expected,
                "{search:?} in {text:?}"
            );
        };
        check("Baking a cake", "cakes", 100, "Baking a [cake]");
        check("Baking a cake", "bake cake", 100, "[Baking] a [cake]");
        check("Baking a cake", "tea", 100, "Baking a cake");
        check("Baking a cake", "tea", 9, "Baking a…");
        check("Baking a cake", "", 100, "Baking a cake");
        check("", "cake", 100, "");
        check("日本語日本語", "cake", 3, "日本語…");
        check("CAFÉ naïve", "cafe", 100, "[CAFÉ] naïve");
        check(
            "a cake, tea here and far away some cake with tea",
            "cake tea",
            14,
            "a [cake], [tea]…",
        );
        check(
            "cake one two three four five tea cake six seven",
            "cake tea",
            13,
            "…five [tea] [cake]…",
        );
        check(
            "one two three cake four five six",
            "cake",
            14,
            "…[cake] four five…",
        );
        check("one two three cake four five six", "cake", 4, "…[cake]…");
        check("one two three cake four five six", "cake", 2, "…ca…");
        check("one two three cake", "cake", 0, "……");
        check("日本語 東京都 全文検索", "東京都", 7, "日本語 [東京都]…");
        check("tea\0cake", "cake", 100, "tea");
    }

    /// The search for the best part must be linear in the number of hits.
    #[test]
    fn a_text_with_many_hits_takes_linear_time() {
        let text = "cake tea ".repeat(100_000);
        for characters_max in [10, 1000, usize::MAX] {
            let query = Query::parse(
                "cake tea",
                Language::ENGLISH,
                Sensitivity::NONE,
                TextVersion::V3,
            );
            let options = HighlightOptions { characters_max };
            let snippet = highlight(&text, Language::ENGLISH, &query, options);
            assert!(snippet.ranges.len() >= 2);
        }
    }
}
