//! Passages: the sentences of a text with the most hits.

use std::collections::HashMap;
use std::ops::Range;

use super::Token;

/// A part of a text with hits.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The bytes of the passage.
    pub bytes: Range<usize>,
    /// The bytes of the hits in it.
    pub hits: Vec<Range<usize>>,
    /// The score: better passages have higher scores.
    pub score: f64,
}

/// The greatest length of a sentence in bytes. A longer one is cut, if possible between words.
pub const PASSAGE_BYTES_MAX: usize = 1_000;

/// Returns the best passages with hits, in the order of the text. `hits` are numbers of tokens, in
/// order.
///
/// A passage is a sentence with the blanks after it. A zero byte ends a sentence and is not part of
/// any. The score is that of Lucene's `PassageScorer`: BM25 with the text as the collection and its
/// sentences as the documents. The first sentences of a text have slightly higher scores. As in
/// Lucene, lengths are measured in UTF-16.
pub fn passages(text: &str, tokens: &[Token<'_>], hits: &[usize], count: usize) -> Vec<Passage> {
    let tokens: Vec<&Token<'_>> = hits.iter().filter_map(|hit| tokens.get(*hit)).collect();
    let mut frequencies: HashMap<&[u8], f64> = HashMap::new();
    for token in &tokens {
        *frequencies.entry(token.term).or_default() += 1.0;
    }
    let mut found = Vec::new();
    let mut rest = tokens.as_slice();
    let total = utf16_length(text);
    let (mut start, mut start_bytes) = (0, 0);
    for sentence in sentences(text) {
        let end = rest.partition_point(|token| token.bytes.start < sentence.end);
        let (within, after) = rest.split_at(end);
        rest = after;
        if !within.is_empty() {
            start += utf16_length(text.get(start_bytes..sentence.start).unwrap_or_default());
            start_bytes = sentence.start;
            let length = utf16_length(text.get(sentence.clone()).unwrap_or_default());
            found.push(Passage {
                score: score(total, start..start + length, within, &frequencies),
                hits: within.iter().map(|token| token.bytes.clone()).collect(),
                bytes: sentence,
            });
        }
        if rest.is_empty() {
            break;
        }
    }
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found.truncate(count);
    found.sort_by_key(|passage| passage.bytes.start);
    found
}

/// BM25's parameters, and the length of an average passage.
const K1: f64 = 1.2;
const B: f64 = 0.75;
const PIVOT: f64 = 87.0;

fn utf16_length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns the score of a sentence in a text.
fn score(
    total: usize,
    sentence: Range<usize>,
    tokens: &[&Token<'_>],
    frequencies: &HashMap<&[u8], f64>,
) -> f64 {
    let mut within: HashMap<&[u8], f64> = HashMap::new();
    for token in tokens {
        *within.entry(token.term).or_default() += 1.0;
    }
    let sentences = 1.0 + total as f64 / PIVOT;
    let norm = K1 * ((1.0 - B) + B * sentence.len() as f64 / PIVOT);
    let mut scores: Vec<f64> = within
        .iter()
        .map(|(term, frequency)| {
            let total = frequencies.get(term).copied().unwrap_or(*frequency);
            let weight = (K1 + 1.0) * (1.0 + (sentences + 0.5) / (total + 0.5)).ln();
            weight * frequency / (frequency + norm)
        })
        .collect();
    // The order of a hash map is random, and the last bits of the sum depend on the order.
    scores.sort_by(f64::total_cmp);
    let early = 1.0 + 1.0 / (PIVOT + sentence.start as f64).ln();
    early * scores.iter().sum::<f64>()
}

/// Returns the sentences of a text with the blanks after them.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..)?;
        start += rest.len() - rest.trim_start_matches('\0').len();
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let bytes = start..start + sentence_length(rest);
        start = bytes.end;
        Some(bytes)
    })
}

/// The kind of a mark that may end a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    /// Ends a sentence if a blank follows, and no lower-case letter after it.
    Dot,
    /// Ends a sentence if a blank follows.
    Final,
    /// Ends a sentence in Chinese and Japanese, where no blank follows.
    WithoutBlank,
}

/// Returns the length in bytes of the first sentence. It ends with a mark and the blanks after it,
/// with an empty line, or at the greatest length of a sentence.
fn sentence_length(text: &str) -> usize {
    let mut mark = Mark::None;
    // The end of the sentence if only blanks have followed its mark so far.
    let mut is_after_blank = false;
    let mut is_after_line = false;
    let mut last_blank = 0;
    for (at, character) in text.char_indices() {
        let is_blank = character.is_whitespace();
        let ends_after_blank = match mark {
            Mark::None => false,
            Mark::Dot => !character.is_lowercase(),
            Mark::Final | Mark::WithoutBlank => true,
        };
        let is_end = !is_blank && is_after_blank && (ends_after_blank || is_after_line);
        if is_end || character == '\0' {
            return at;
        }
        let is_within_mark = is_blank || is_closing(character) || mark_of(character) != Mark::None;
        if mark == Mark::WithoutBlank && !is_within_mark {
            return at;
        }
        if at >= PASSAGE_BYTES_MAX {
            return if last_blank > 0 { last_blank } else { at };
        }
        if is_blank {
            // Two line feeds end a paragraph, and so a sentence without a mark.
            is_after_line |= character == '\n' && text.get(..at).is_some_and(ends_with_line);
            last_blank = at + character.len_utf8();
        } else if mark_of(character) != Mark::None {
            mark = mark_of(character);
        } else if is_after_blank || !is_closing(character) {
            mark = Mark::None;
        }
        is_after_blank = is_blank;
    }
    text.len()
}

fn ends_with_line(text: &str) -> bool {
    text.trim_end_matches([' ', '\t', '\r']).ends_with('\n')
}

fn mark_of(character: char) -> Mark {
    match character {
        '.' => Mark::Dot,
        '!' | '?' | '…' => Mark::Final,
        '。' | '！' | '？' => Mark::WithoutBlank,
        _ => Mark::None,
    }
}

/// Returns `true` if a character may be between the mark that ends a sentence and the blank after
/// it.
fn is_closing(character: char) -> bool {
    matches!(
        character,
        ')' | ']' | '"' | '\'' | '”' | '’' | '»' | '」' | '』'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_sentences(text: &str, expected: &[&str]) {
        let found: Vec<&str> = sentences(text).map(|bytes| &text[bytes]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn sentences_end_at_marks() {
        check_sentences(
            "One.  Two! (Three?) \"Four.\" Five",
            &["One.  ", "Two! ", "(Three?) ", "\"Four.\" ", "Five"],
        );
        check_sentences(
            "Version 1.5 of it.\nNext",
            &["Version 1.5 of it.\n", "Next"],
        );
        check_sentences("Some, e.g. this. That", &["Some, e.g. this. ", "That"]);
        check_sentences("Really?! yes", &["Really?! ", "yes"]);
        check_sentences(
            "a title\n \nand text\nhere",
            &["a title\n \n", "and text\nhere"],
        );
        check_sentences("水。火！「土。」木", &["水。", "火！", "「土。」", "木"]);
        check_sentences(" \n ", &[" \n "]);
        check_sentences(" One\0two. \0\0Three", &[" One", "two. ", "Three"]);
        check_sentences("\0", &[]);
        let long = "word ".repeat(1_000);
        assert!(sentences(&long).all(|bytes| bytes.len() <= PASSAGE_BYTES_MAX));
        let unbroken = "水".repeat(1_000);
        let total: usize = sentences(&unbroken).map(|bytes| bytes.len()).sum();
        assert_eq!(total, unbroken.len());
    }

    #[test]
    fn the_best_passages_are_found() {
        let text = "Tea is old. Coffee and tea are hot. Milk is cold. Coffee again. Coffee!";
        let tokens: Vec<Token<'_>> = text
            .split(' ')
            .zip(0..)
            .map(|(word, position)| {
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                let word = word.trim_end_matches(['.', '!']);
                Token {
                    term: word.as_bytes(),
                    bytes: start..start + word.len(),
                    position,
                }
            })
            .collect();
        let is_hit = |term: &[u8]| [&b"Coffee"[..], b"tea"].contains(&term);
        let hits: Vec<usize> = (0..tokens.len())
            .filter(|hit| is_hit(tokens[*hit].term))
            .collect();
        let texts = |count| -> Vec<&str> {
            let found = passages(text, &tokens, &hits, count);
            found
                .iter()
                .map(|passage| &text[passage.bytes.clone()])
                .collect()
        };
        assert_eq!(texts(1), ["Coffee and tea are hot. "]);
        assert_eq!(texts(2), ["Coffee and tea are hot. ", "Coffee!"]);
        assert_eq!(texts(9).len(), 3);
        let best = &passages(text, &tokens, &hits, 1)[0];
        let words: Vec<&str> = best.hits.iter().map(|hit| &text[hit.clone()]).collect();
        assert_eq!(words, ["Coffee", "tea"]);
        assert_eq!(passages(text, &tokens, &[], 3), []);
        assert_eq!(passages("", &[], &[7], 3), []);
    }
}
