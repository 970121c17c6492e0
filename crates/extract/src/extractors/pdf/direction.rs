//! Lines in Hebrew, Arabic and other scripts that are written from right to left.
//!
//! Most programs draw such a line from left to right, so its characters are in visual order: the
//! first letter of a word comes last. Others draw it from right to left, in the order of reading.
//! The steps between the glyphs tell these orders apart.

use unicode_normalization::UnicodeNormalization;

/// The direction of a character, after Unicode Standard Annex 9.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    LeftToRight,
    RightToLeft,
    Digit,
    Neutral,
}

/// The order in which a line draws its letters from right to left.
#[derive(Default)]
pub(super) struct DrawingOrder {
    /// The number of steps between two such letters to the right, and to the left.
    forward: usize,
    backward: usize,
    /// The line contains letters that are written from right to left.
    is_used: bool,
}

impl DrawingOrder {
    /// Adds the step from the last character to a letter that is written from right to left.
    pub(super) fn add_step(&mut self, last: Option<char>, is_backward: bool) {
        self.is_used = true;
        if last.is_some_and(is_right_to_left) {
            self.forward += usize::from(!is_backward);
            self.backward += usize::from(is_backward);
        }
    }

    /// Returns `true` if the line is drawn in the order of reading.
    pub(super) fn is_backward(&self) -> bool {
        self.backward > self.forward
    }

    /// Returns the line in the order of reading, with letters instead of their forms for positions
    /// in a word. Returns `None` if the line is unchanged.
    pub(super) fn read_line(&self, line: &str) -> Option<String> {
        if !self.is_used {
            return None;
        }
        let ordered = if self.forward > self.backward {
            to_reading_order(line)
        } else {
            line.to_owned()
        };
        Some(replace_forms(&ordered))
    }
}

/// Returns `true` if a character belongs to a script that is written from right to left.
pub(super) fn is_right_to_left(character: char) -> bool {
    direction(character) == Direction::RightToLeft
}

/// Returns `true` for vowel signs of Hebrew and Arabic, which are drawn over or below a letter.
pub(super) fn is_vowel_sign(character: char) -> bool {
    matches!(character,
        '\u{591}'..='\u{5bd}' | '\u{5bf}'..='\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6ed}' | '\u{fb1e}')
}

fn direction(character: char) -> Direction {
    match character {
        '0'..='9' | '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}' => Direction::Digit,
        // The comma and other marks of Arabic belong to it.
        '\u{590}'..='\u{8ff}'
        | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}' => Direction::RightToLeft,
        _ if character.is_alphabetic() => Direction::LeftToRight,
        _ => Direction::Neutral,
    }
}

/// Converts a line from visual order. If most of its letters are written from right to left, the
/// whole line is, or else only the parts between such letters are.
fn to_reading_order(line: &str) -> String {
    let mut characters: Vec<char> = line.chars().collect();
    let count = |wanted| {
        let directions = characters.iter().copied().map(direction);
        directions.filter(|found| *found == wanted).count()
    };
    if count(Direction::RightToLeft) > count(Direction::LeftToRight) {
        reverse(&mut characters);
    } else {
        for part in parts_of(&mut characters, Direction::RightToLeft) {
            reverse(part);
        }
    }
    characters.into_iter().collect()
}

/// Reverses characters, but not the words from left to right and the numbers among them.
fn reverse(characters: &mut [char]) {
    characters.reverse();
    for character in characters.iter_mut() {
        *character = mirror(*character);
    }
    for part in parts_of(characters, Direction::LeftToRight) {
        part.reverse();
        for character in part.iter_mut() {
            *character = mirror(*character);
        }
    }
}

/// Returns the longest parts that begin and end with a character of `wanted` and contain no letter
/// of the other direction. Numbers are written from left to right, also between letters from right
/// to left.
fn parts_of(characters: &mut [char], wanted: Direction) -> Vec<&mut [char]> {
    let is_number = |found| wanted == Direction::LeftToRight && found == Direction::Digit;
    let (mut ranges, mut open) = (Vec::new(), None);
    for (at, character) in characters.iter().enumerate() {
        let found = direction(*character);
        if found == wanted || is_number(found) {
            let (start, _) = open.unwrap_or((at, at));
            open = Some((start, at + 1));
        } else if matches!(found, Direction::LeftToRight | Direction::RightToLeft) {
            ranges.extend(open.take());
        }
    }
    ranges.extend(open);
    let (mut parts, mut rest, mut done) = (Vec::new(), characters, 0);
    for (start, end) in ranges {
        let (_, behind) = rest.split_at_mut(start - done);
        let (part, behind) = behind.split_at_mut(end - start);
        parts.push(part);
        (rest, done) = (behind, end);
    }
    parts
}

/// Returns the other one of a pair of brackets.
fn mirror(character: char) -> char {
    match character {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        other => other,
    }
}

/// Replaces the forms of letters at the beginning, in the middle and at the end of a word, and
/// ligatures, by the letters.
fn replace_forms(line: &str) -> String {
    let mut letters = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
                letters.extend(std::iter::once(character).nfkc());
            }
            other => letters.push(other),
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_visual_order_are_reversed() {
        let check = |visual: &str, expected: &str| {
            assert_eq!(to_reading_order(visual), expected, "{visual}");
        };
        check("םולש", "שלום");
        check("the word םולש is", "the word שלום is");
        check("the words םלוע םולש are", "the words שלום עולם are");
        check("(םולש) 12.5 םלוע", "עולם 12.5 (שלום)");
        check("Word 2 םולש םלוע ןב", "בן עולם שלום Word 2");
        check("a (b) 1", "a (b) 1");
        check("", "");
    }

    #[test]
    fn forms_of_letters_are_replaced() {
        assert_eq!(replace_forms("\u{fed7}\u{fefb} x\u{fb2a}"), "قلا xש\u{5c1}");
    }
}
