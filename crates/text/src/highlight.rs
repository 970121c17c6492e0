//! The best piece of a text for a query, with the matched words marked.

use std::collections::VecDeque;
use std::ops::Range;

use crate::analyzer::{Analyzer, Sensitivity};
use crate::language::Language;
use crate::query::Query;

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
    let hits = hits(text, language, query);
    let cluster = best_cluster(text, &hits, options.characters_max);
    let piece = grow(text, cluster, options.characters_max);
    let ranges = hits
        .iter()
        .filter(|hit| piece.start <= hit.range.start && hit.range.end <= piece.end)
        .map(|hit| hit.range.start - piece.start..hit.range.end - piece.start)
        .collect();
    Snippet {
        text: text.get(piece.clone()).unwrap_or("").to_string(),
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
/// hits; the first of several.
fn best_cluster(text: &str, hits: &[Hit], characters_max: usize) -> Range<usize> {
    let mut best = (0, 0, 0..0);
    let mut window: VecDeque<&Hit> = VecDeque::new();
    for hit in hits {
        window.push_back(hit);
        while let Some(first) = window.front() {
            let range = first.range.start..hit.range.end;
            if window.len() == 1 || fits(text, range, characters_max) {
                break;
            }
            window.pop_front();
        }
        let start = window
            .front()
            .map_or(hit.range.start, |first| first.range.start);
        let distinct_count = distinct_terms(&window);
        if (distinct_count, window.len()) > (best.0, best.1) {
            best = (distinct_count, window.len(), start..hit.range.end);
        }
    }
    best.2
}

fn distinct_terms(window: &VecDeque<&Hit>) -> usize {
    let mut terms: Vec<usize> = window.iter().map(|hit| hit.term).collect();
    terms.sort_unstable();
    terms.dedup();
    terms.len()
}

/// Is that stretch at most so many characters long?
fn fits(text: &str, range: Range<usize>, characters_max: usize) -> bool {
    // A character has at most four bytes, so most answers need no counting.
    range.len() <= characters_max
        || (range.len() <= characters_max * 4
            && text
                .get(range)
                .is_some_and(|piece| piece.chars().count() <= characters_max))
}

/// Widen a stretch evenly to the wanted length, to word borders where there are some near.
fn grow(text: &str, cluster: Range<usize>, characters_max: usize) -> Range<usize> {
    let (before, after) = (
        text.get(..cluster.start).unwrap_or(""),
        text.get(cluster.end..).unwrap_or(""),
    );
    let inside_count = text
        .get(cluster.clone())
        .unwrap_or("")
        .chars()
        .take(characters_max)
        .count();
    let spare = characters_max - inside_count;
    let after_count = after.chars().take(spare).count();
    let before_count = before
        .chars()
        .rev()
        .take(spare)
        .count()
        .min(spare - (spare / 2).min(after_count));
    let after_count = after_count.min(spare - before_count);
    let start = word_start(before, before_count);
    let end = cluster.end + word_end(after, after_count);
    start..end.min(end_of(text, start, characters_max))
}

/// Where the last `count` characters of a text start, moved forward behind a space if they cut a word.
fn word_start(before: &str, count: usize) -> usize {
    let start = match count {
        0 => before.len(),
        _ => before
            .char_indices()
            .rev()
            .nth(count - 1)
            .map_or(0, |(index, _)| index),
    };
    if start == 0 {
        return 0;
    }
    let taken = before.get(start..).unwrap_or("");
    taken.find(char::is_whitespace).map_or(start, |space| {
        start
            + space
            + taken
                .get(space..)
                .unwrap_or("")
                .chars()
                .next()
                .map_or(0, char::len_utf8)
    })
}

/// Where the first `count` characters of a text end, moved back before a space if they cut a word.
fn word_end(after: &str, count: usize) -> usize {
    let end = after
        .char_indices()
        .nth(count)
        .map_or(after.len(), |(index, _)| index);
    if end == after.len() {
        return end;
    }
    after
        .get(..end)
        .and_then(|taken| taken.rfind(char::is_whitespace))
        .unwrap_or(end)
}

fn end_of(text: &str, start: usize, characters_max: usize) -> usize {
    let rest = text.get(start..).unwrap_or("");
    rest.char_indices()
        .nth(characters_max)
        .map_or(text.len(), |(index, _)| start + index)
}
