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
    /// The higher, the better.
    pub score: f64,
}

/// A sentence is cut at this length, if possible between words.
pub const PASSAGE_BYTES_MAX: usize = 1_000;

/// Returns the best passages with hits, in the order of the text. `hits` are numbers of tokens, in
/// order.
///
/// A passage is a sentence. Its score is that of Lucene's `PassageScorer`: BM25 with the text as
/// the collection and the sentences as its documents. The first sentences of a text count slightly
/// more.
pub fn passages(text: &str, tokens: &[Token<'_>], hits: &[usize], count: usize) -> Vec<Passage> {
    let tokens: Vec<&Token<'_>> = hits.iter().filter_map(|hit| tokens.get(*hit)).collect();
    let mut frequencies: HashMap<&[u8], f64> = HashMap::new();
    for token in &tokens {
        *frequencies.entry(token.term).or_default() += 1.0;
    }
    let mut found = Vec::new();
    let mut rest = tokens.as_slice();
    for sentence in sentences(text) {
        let end = rest.partition_point(|token| token.bytes.start < sentence.end);
        let (within, after) = rest.split_at(end);
        rest = after;
        if !within.is_empty() {
            found.push(Passage {
                score: score(text, &sentence, within, &frequencies),
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

/// Returns the score of a sentence.
fn score(
    text: &str,
    sentence: &Range<usize>,
    tokens: &[&Token<'_>],
    frequencies: &HashMap<&[u8], f64>,
) -> f64 {
    let mut within: HashMap<&[u8], f64> = HashMap::new();
    for token in tokens {
        *within.entry(token.term).or_default() += 1.0;
    }
    let sentences = 1.0 + text.len() as f64 / PIVOT;
    let norm = K1 * ((1.0 - B) + B * sentence.len() as f64 / PIVOT);
    let mut scores: Vec<f64> = within
        .iter()
        .map(|(term, frequency)| {
            let total = frequencies.get(term).copied().unwrap_or(*frequency);
            let weight = (K1 + 1.0) * (1.0 + (sentences + 0.5) / (total + 0.5)).ln();
            weight * frequency / (frequency + norm)
        })
        .collect();
    // The order of a hash map is not fixed, and the last bits of the sum depend on the order.
    scores.sort_by(f64::total_cmp);
    let early = 1.0 + 1.0 / (PIVOT + sentence.start as f64).ln();
    early * scores.iter().sum::<f64>()
}

/// Returns the sentences of a text, without the blanks around them.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..)?;
        start += rest.len() - rest.trim_start().len();
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = sentence_length(rest);
        let sentence = rest.get(..length)?.trim_end();
        let bytes = start..start + sentence.len();
        start += length;
        Some(bytes)
    })
}

/// Returns the length of the first sentence: up to a mark that ends sentences and a blank, up to a
/// mark of Chinese or Japanese, up to an empty line, or as long as sentences may be.
fn sentence_length(text: &str) -> usize {
    // A mark that ends a sentence if a blank follows, and one that needs no blank.
    let (mut ends, mut ends_without_blank) = (false, false);
    let mut last = '\0';
    let mut last_blank = 0;
    for (at, character) in text.char_indices() {
        let is_paragraph = character == '\n' && last == '\n';
        if is_paragraph || ends && character.is_whitespace() {
            return at;
        }
        if ends_without_blank && !is_closing(character) {
            return at;
        }
        if at >= PASSAGE_BYTES_MAX {
            return if last_blank > 0 { last_blank } else { at };
        }
        if character.is_whitespace() {
            last_blank = at;
        }
        match character {
            '.' | '!' | '?' | '…' => ends = true,
            '。' | '！' | '？' => ends_without_blank = true,
            other => ends &= is_closing(other),
        }
        last = character;
    }
    text.len()
}

/// Returns `true` if a character may stand between the end of a sentence and the blank after it.
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
            "One. Two! (Three?) \"Four.\" five",
            &["One.", "Two!", "(Three?)", "\"Four.\"", "five"],
        );
        check_sentences("Version 1.5 of it.\nNext", &["Version 1.5 of it.", "Next"]);
        check_sentences("a title\n\nand text", &["a title", "and text"]);
        check_sentences("水。火！「土。」木", &["水。", "火！", "「土。」", "木"]);
        check_sentences(" \n ", &[]);
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
        assert_eq!(texts(1), ["Coffee and tea are hot."]);
        assert_eq!(texts(2), ["Coffee and tea are hot.", "Coffee!"]);
        assert_eq!(texts(9).len(), 3);
        let best = &passages(text, &tokens, &hits, 1)[0];
        let words: Vec<&str> = best.hits.iter().map(|hit| &text[hit.clone()]).collect();
        assert_eq!(words, ["Coffee", "tea"]);
        assert_eq!(passages(text, &tokens, &[], 3), []);
        assert_eq!(passages("", &[], &[7], 3), []);
    }
}
