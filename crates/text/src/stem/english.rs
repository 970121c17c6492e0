//! A fast English stemmer: the algorithm Porter2 of Snowball
//! (<https://snowballstem.org/algorithms/english/stemmer.html>). It works in one buffer and keeps
//! the vowels of the word as a bit mask.
//!
//! English is the default language of text indexes, and the generated code of Snowball takes 300 ns
//! per word if the cache of stems misses. The tests compare this stemmer with Snowball's. Words
//! with capitals, letters outside ASCII, or 64 bytes and more are left to Snowball. Names such as
//! R1, and the numbers of the steps, are those of the algorithm's description.

/// The maximum length of a word in bytes. Each position needs a bit of the vowel mask, and one bit
/// stays free for the shifts.
pub(super) const WORD_BYTES_MAX: usize = 63;

/// Words whose stem the rules would get wrong, with their stems: the exceptions of the algorithm.
const EXCEPTIONS: [(&str, &str); 18] = [
    ("skis", "ski"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];

/// Words that are final if they remain after step 1a: the second list of exceptions.
const FINISHED_EARLY: [&str; 8] = [
    "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed",
];

/// A suffix and its replacement.
type Rule = (&'static str, &'static str);

/// Replaces the content of `stem` with the stem of `word`. The word must be ASCII without capitals
/// and have at most [`WORD_BYTES_MAX`] bytes.
pub(super) fn stem(word: &str, stem: &mut String) {
    stem.clear();
    if !may_change(word) {
        stem.push_str(word);
        return;
    }
    if let Some((_, special)) = exception(word) {
        stem.push_str(special);
        return;
    }
    stem.push_str(word.strip_prefix('\'').unwrap_or(word));
    let mut word = Word::new(stem);
    word.step_1a();
    if FINISHED_EARLY.contains(&word.stem.as_str()) {
        return;
    }
    word.step_1b();
    word.step_1c();
    word.step_2();
    word.step_3();
    word.step_4();
    word.step_5();
}

/// Returns `false` if no rule applies to the word, so it is its own stem. Two letters at the end
/// decide that for most words.
pub(super) fn may_change(word: &str) -> bool {
    match word.as_bytes() {
        [] | [_] | [_, _] => false,
        [b'\'', ..] => true,
        [.., before, last] => {
            let endings = ENDINGS.get(usize::from(*last)).copied().unwrap_or(0);
            endings >> (before & 127) & 1 == 1
        }
    }
}

/// For each last letter the set of letters that precede it in a suffix of a rule or in an
/// exception.
#[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
const ENDINGS: [u128; 128] = {
    let mut endings = [0; 128];
    endings[b'e' as usize] = u128::MAX;
    endings[b's' as usize] = u128::MAX;
    endings[b'\'' as usize] = u128::MAX;
    endings[b'y' as usize] = !letters(b"aeiou");
    endings[b'c' as usize] = letters(b"i");
    endings[b'd' as usize] = letters(b"e");
    endings[b'g' as usize] = letters(b"n");
    endings[b'i' as usize] = letters(b"cglt");
    endings[b'l' as usize] = letters(b"alu");
    endings[b'm' as usize] = letters(b"s");
    endings[b'n' as usize] = letters(b"o");
    endings[b'r' as usize] = letters(b"eo");
    endings[b't' as usize] = letters(b"n");
    endings
};

/// Returns the set of letters, one bit per letter.
const fn letters(letters: &[u8]) -> u128 {
    let mut mask = 0;
    let mut rest = letters;
    while let [letter, others @ ..] = rest {
        mask |= 1 << *letter;
        rest = others;
    }
    mask
}

/// Returns the exception for a word.
fn exception(word: &str) -> Option<&'static Rule> {
    // The longest exceptions have six letters.
    if word.len() > 6 {
        return None;
    }
    EXCEPTIONS.iter().find(|(exception, _)| *exception == word)
}

/// A word while it is stemmed.
struct Word<'a> {
    stem: &'a mut String,
    /// Bit i is set if letter i is a vowel. A `y` at the start or after a vowel is a consonant.
    vowels: u64,
    /// The position at which the region R1 starts.
    region_1: usize,
    /// The position at which the region R2 starts.
    region_2: usize,
}

impl<'a> Word<'a> {
    fn new(stem: &'a mut String) -> Word<'a> {
        let vowels = vowels(stem);
        let length = stem.len();
        let after_prefix = ["gener", "commun", "arsen"]
            .iter()
            .find(|prefix| stem.starts_with(**prefix))
            .map(|prefix| prefix.len());
        let region_1 = after_prefix.unwrap_or_else(|| region_after(vowels, 0, length));
        let region_2 = region_after(vowels, region_1, length);
        Word {
            stem,
            vowels,
            region_1,
            region_2,
        }
    }

    fn step_1a(&mut self) {
        for suffix in ["'s'", "'s", "'"] {
            if self.stem.ends_with(suffix) {
                self.cut(suffix.len());
                break;
            }
        }
        match self.stem.as_bytes() {
            [.., b's', b's', b'e', b's'] => self.cut(2),
            [.., b'i', b'e', b'd' | b's'] => self.cut(if self.stem.len() > 4 { 2 } else { 1 }),
            [.., b'u' | b's', b's'] => {}
            // The `s` stays if the only vowel directly precedes it: `gas`, `this`.
            [.., b's'] if self.has_vowel_before(self.stem.len().saturating_sub(2)) => self.cut(1),
            _ => {}
        }
    }

    fn step_1b(&mut self) {
        let length = self.stem.len();
        let suffix_length = match self.stem.as_bytes() {
            [.., b'e', b'e', b'd'] => return self.step_1b_eed(3),
            [.., b'e', b'e', b'd', b'l', b'y'] => return self.step_1b_eed(5),
            [.., b'e', b'd'] => 2,
            [.., b'i', b'n', b'g'] => 3,
            [.., b'e', b'd', b'l', b'y'] => 4,
            [.., b'i', b'n', b'g', b'l', b'y'] => 5,
            _ => return,
        };
        if !self.has_vowel_before(length - suffix_length) {
            return;
        }
        self.cut(suffix_length);
        match self.stem.as_bytes() {
            [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => self.push("e"),
            [.., first, second] if first == second && b"bdfgmnprt".contains(first) => self.cut(1),
            _ if self.stem.len() == self.region_1 && self.ends_short() => self.push("e"),
            _ => {}
        }
    }

    fn step_1b_eed(&mut self, suffix_length: usize) {
        if self.stem.len() - suffix_length >= self.region_1 {
            self.cut(suffix_length - 2);
        }
    }

    fn step_1c(&mut self) {
        let length = self.stem.len();
        if length > 2 && self.stem.ends_with('y') && !self.is_vowel(length - 2) {
            self.cut(1);
            self.push("i");
        }
    }

    fn step_2(&mut self) {
        let rules: &[Rule] = match self.stem.as_bytes() {
            [.., b'a', b'l'] => &[("ational", "ate"), ("tional", "tion")],
            [.., b'i'] => &[
                ("biliti", "ble"),
                ("lessli", "less"),
                ("entli", "ent"),
                ("ousli", "ous"),
                ("fulli", "ful"),
                ("aliti", "al"),
                ("iviti", "ive"),
                ("enci", "ence"),
                ("anci", "ance"),
                ("abli", "able"),
                ("alli", "al"),
                ("bli", "ble"),
                ("ogi", "og"),
                ("li", ""),
            ],
            [.., b'o', b'n'] => &[("ization", "ize"), ("ation", "ate")],
            [.., b'r'] => &[("izer", "ize"), ("ator", "ate")],
            [.., b's', b'm'] => &[("alism", "al")],
            [.., b's', b's'] => &[("fulness", "ful"), ("ousness", "ous"), ("iveness", "ive")],
            _ => return,
        };
        let Some((suffix, replacement)) = self.rule_in(rules, self.region_1) else {
            return;
        };
        let before = self.byte_before(suffix.len());
        let is_allowed = match *suffix {
            "ogi" => before == Some(b'l'),
            "li" => before.is_some_and(|before| b"cdeghkmnrt".contains(&before)),
            _ => true,
        };
        if is_allowed {
            self.replace(suffix.len(), replacement);
        }
    }

    fn step_3(&mut self) {
        let rules: &[Rule] = match self.stem.as_bytes() {
            [.., b'a', b'l'] => &[("ational", "ate"), ("tional", "tion"), ("ical", "ic")],
            [.., b'e'] => &[("alize", "al"), ("icate", "ic"), ("ative", "")],
            [.., b't', b'i'] => &[("iciti", "ic")],
            [.., b'u', b'l'] => &[("ful", "")],
            [.., b's', b's'] => &[("ness", "")],
            _ => return,
        };
        let Some((suffix, replacement)) = self.rule_in(rules, self.region_1) else {
            return;
        };
        if *suffix != "ative" || self.stem.len() - suffix.len() >= self.region_2 {
            self.replace(suffix.len(), replacement);
        }
    }

    fn step_4(&mut self) {
        let rules: &[Rule] = match self.stem.as_bytes() {
            [.., b'a', b'l'] => &[("al", "")],
            [.., b'c', b'e'] => &[("ance", ""), ("ence", "")],
            [.., b'l', b'e'] => &[("able", ""), ("ible", "")],
            [.., b't' | b'v' | b'z', b'e'] => &[("ate", ""), ("ive", ""), ("ize", "")],
            [.., b'e', b'r'] => &[("er", "")],
            [.., b'i', b'c'] => &[("ic", "")],
            [.., b'n', b't'] => &[("ement", ""), ("ment", ""), ("ent", ""), ("ant", "")],
            [.., b's', b'm'] => &[("ism", "")],
            [.., b't', b'i'] => &[("iti", "")],
            [.., b'u', b's'] => &[("ous", "")],
            [.., b'o', b'n'] => &[("ion", "")],
            _ => return,
        };
        let Some((suffix, _)) = self.rule_in(rules, self.region_2) else {
            return;
        };
        let before = self.byte_before(suffix.len());
        if *suffix != "ion" || matches!(before, Some(b's' | b't')) {
            self.cut(suffix.len());
        }
    }

    fn step_5(&mut self) {
        let Some(position) = self.stem.len().checked_sub(1) else {
            return;
        };
        match self.stem.as_bytes() {
            [.., b'e'] => {
                let is_short = || self.is_short_at(position);
                if position >= self.region_2 || (position >= self.region_1 && !is_short()) {
                    self.cut(1);
                }
            }
            [.., b'l', b'l'] if position >= self.region_2 => self.cut(1),
            _ => {}
        }
    }

    /// Returns the first rule whose suffix the word has, if the suffix lies in the region. If it
    /// lies outside, shorter suffixes are not tried: the algorithm demands the longest match. So
    /// rules must be sorted with longer suffixes first.
    fn rule_in(&self, rules: &'static [Rule], region: usize) -> Option<&'static Rule> {
        rules
            .iter()
            .find(|(suffix, _)| self.stem.ends_with(suffix))
            .filter(|(suffix, _)| self.stem.len() - suffix.len() >= region)
    }

    fn byte_before(&self, suffix_length: usize) -> Option<u8> {
        let position = self.stem.len().checked_sub(suffix_length + 1)?;
        self.stem.as_bytes().get(position).copied()
    }

    /// Removes `length` bytes at the end.
    fn cut(&mut self, length: usize) {
        self.stem.truncate(self.stem.len().saturating_sub(length));
    }

    /// Appends letters. None may be a `y`, whose vowel bit depends on the letter before it.
    fn push(&mut self, letters: &str) {
        for byte in letters.bytes() {
            let bit = 1 << self.stem.len();
            self.vowels = if is_plain_vowel(byte) {
                self.vowels | bit
            } else {
                self.vowels & !bit
            };
            self.stem.push(char::from(byte));
        }
    }

    fn replace(&mut self, suffix_length: usize, replacement: &str) {
        self.cut(suffix_length);
        self.push(replacement);
    }

    fn is_vowel(&self, position: usize) -> bool {
        self.vowels >> position & 1 == 1
    }

    fn has_vowel_before(&self, position: usize) -> bool {
        self.vowels & ((1 << position) - 1) != 0
    }

    fn ends_short(&self) -> bool {
        self.is_short_at(self.stem.len())
    }

    /// Returns `true` if the part before position `end` ends in a short syllable. A short syllable
    /// is a consonant, a vowel, and a consonant other than `w`, `x` and `y`, or a vowel and a
    /// consonant at the start of the word.
    fn is_short_at(&self, end: usize) -> bool {
        let is_vowel = |from_end: usize| self.is_vowel(end - from_end);
        match end {
            0 | 1 => false,
            2 => is_vowel(2) && !is_vowel(1),
            _ => {
                let (stem, _) = self.stem.as_bytes().split_at(end);
                let ends_in_wxy = matches!(stem, [.., b'w' | b'x' | b'y']);
                !is_vowel(3) && is_vowel(2) && !is_vowel(1) && !ends_in_wxy
            }
        }
    }
}

fn is_plain_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

fn vowels(word: &str) -> u64 {
    let mut vowels = 0_u64;
    let mut follows_vowel = true;
    for (position, byte) in word.bytes().enumerate() {
        follows_vowel = is_plain_vowel(byte) || (byte == b'y' && !follows_vowel);
        vowels |= u64::from(follows_vowel) << position;
    }
    vowels
}

/// Returns the position after the first consonant that follows a vowel at or after `start`. Returns
/// `length` if there is none.
fn region_after(vowels: u64, start: usize, length: usize) -> usize {
    let first_vowel = start + (vowels >> start).trailing_zeros() as usize;
    if first_vowel >= length {
        return length;
    }
    let first_consonant = first_vowel + (!vowels >> first_vowel).trailing_zeros() as usize;
    (first_consonant + 1).min(length)
}

#[cfg(test)]
mod tests {
    use super::stem;

    /// Returns the next number of a xorshift generator.
    fn next(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 16) as usize
    }

    #[test]
    fn stems_of_generated_words_equal_those_of_snowball() {
        const PARTS: [&str; 78] = [
            "a", "e", "i", "o", "u", "y", "b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p",
            "r", "s", "t", "v", "w", "x", "z", "'", "1", "gener", "commun", "arsen", "at", "bl",
            "iz", "bb", "tt", "ll", "ied", "ies", "sses", "us", "eed", "eedly", "ed", "edly",
            "ing", "ingly", "tional", "ization", "ational", "ogi", "biliti", "bli", "lessli",
            "fulli", "entli", "ator", "alism", "fulness", "li", "izer", "icate", "alize", "iciti",
            "ical", "ative", "ness", "ful", "ance", "ement", "ment", "ent", "ion", "sion", "ism",
            "iti", "ous", "ive", "able", "'s",
        ];
        let snowball = rust_stemmers::Stemmer::create(rust_stemmers::Algorithm::English);
        let mut state = 0x1234_5678_9abc_def1;
        let mut buffer = String::new();
        for _ in 0..400_000 {
            let parts_count = 1 + next(&mut state) % 6;
            let word: String = (0..parts_count)
                .map(|_| PARTS[next(&mut state) % PARTS.len()])
                .collect();
            stem(&word, &mut buffer);
            assert_eq!(buffer, snowball.stem(&word), "of {word:?}");
        }
    }

    #[test]
    fn stems_equal_those_of_the_published_vocabulary() {
        let check = |word: &str, expected: &str| {
            let mut buffer = String::new();
            stem(word, &mut buffer);
            assert_eq!(buffer, expected, "of {word:?}");
        };
        // The sample vocabulary of the algorithm's description.
        for (word, expected) in [
            ("consign", "consign"),
            ("consignment", "consign"),
            ("consisted", "consist"),
            ("consistency", "consist"),
            ("consolation", "consol"),
            ("consolatory", "consolatori"),
            ("consolingly", "consol"),
            ("conspicuous", "conspicu"),
            ("constable", "constabl"),
            ("knaves", "knave"),
            ("kneeling", "kneel"),
            ("knightly", "knight"),
            ("knitting", "knit"),
            ("skies", "sky"),
            ("news", "news"),
            ("proceeding", "proceed"),
            ("generously", "generous"),
            ("at", "at"),
            ("'tis", "tis"),
            ("john's", "john"),
            ("dogs'", "dog"),
            ("hoping", "hope"),
            ("hopping", "hop"),
            ("by", "by"),
            ("say", "say"),
            ("cry", "cri"),
            ("", ""),
        ] {
            check(word, expected);
        }
    }
}
