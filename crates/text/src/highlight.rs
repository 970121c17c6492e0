//! The best piece of a text for a query, with the matched words marked.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::analyzer::{Analyzer, Sensitivity};
use crate::language::Language;
use crate::query::Query;
use crate::visible;

/// What a snippet shall look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighlightOptions {
    /// The longest snippet, in characters.
    pub characters_max: usize,
}

impl Default for HighlightOptions {
    fn default() -> HighlightOptions {
        HighlightOptions {
            characters_max: 200,
        }
    }
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The piece as it stands in the text.
    pub text: String,
    /// The matched words, in bytes of `text`, in order.
    pub ranges: Vec<Range<usize>>,
    /// Where the piece starts in the text, in bytes.
    pub start: usize,
    /// Does it leave something out before or after?
    pub is_cut_before: bool,
    pub is_cut_after: bool,
}

/// The piece of `text` that has the most distinct terms of the query close together, or the start of the
/// text where it has none. `language` is that of the text.
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

/// A word of the text that the query asks for.
struct Hit {
    range: Range<usize>,
    /// Which term of the query it is.
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

/// The stretch from one hit to another within the length that has the most distinct terms, then the most
/// hits; the first of several. Empty at the start of the text where there is no hit.
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

/// Neighbouring hits, and how many terms of the query they cover.
#[derive(Default)]
struct Window<'a> {
    hits: VecDeque<&'a Hit>,
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

/// Is that stretch at most so many characters long?
fn fits(text: &str, range: Range<usize>, characters_max: usize) -> bool {
    // A character has at most four bytes, so most answers need no counting.
    range.len() <= characters_max
        || (range.len() <= characters_max.saturating_mul(4)
            && text
                .get(range)
                .is_some_and(|piece| piece.chars().count() <= characters_max))
}

/// The part of the text at a range of whole characters.
fn part(text: &str, range: Range<usize>) -> &str {
    let Some(part) = text.get(range.clone()) else {
        unreachable!("{range:?} is no part of {} bytes of text", text.len());
    };
    part
}

/// Widens a range to `characters_max` characters, on both sides alike, and to whole words. Characters
/// that the words before it do not need are available to those after it.
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
        // Nothing found, and a first word that is too long to keep whole.
        return 0..end_of(text, 0, characters_max);
    }
    start..end.min(end_of(text, start, characters_max))
}

fn characters(text: &str, range: Range<usize>) -> usize {
    part(text, range).chars().count()
}

/// Where the last `count` characters of a text start, or behind the word that this would cut.
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

/// Where the first `count` characters of a text end, or before the word that this would cut.
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

fn end_of(text: &str, start: usize, characters_max: usize) -> usize {
    let rest = part(text, start..text.len());
    rest.char_indices()
        .nth(characters_max)
        .map_or(text.len(), |(index, _)| start + index)
}

#[cfg(test)]
mod tests {
    use super::{HighlightOptions, highlight};
    use crate::{Language, Query, Sensitivity, TextVersion};

    /// The snippet with its matched words in brackets and `…` where something is left out.
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
    fn the_best_piece_is_cut_out_and_marked() {
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

    #[test]
    fn a_text_of_many_hits_stays_quick() {
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
