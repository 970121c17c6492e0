//! The documents of W1: `{_id, body}`. A body has 10 to 40 words of 4 to 12 random letters, nearly
//! all distinct.

use super::{Corpus, document_random};
use crate::bson;

/// The corpus of random words.
pub struct Words {
    /// The seed.
    pub seed: u64,
}

impl Words {
    /// Appends the body of a document: its words, separated by spaces.
    pub fn body(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = document_random(self.seed, number);
        for word in 0..random.between(10, 40) {
            if word > 0 {
                out.push(b' ');
            }
            let letters = random.between(4, 12) as usize;
            random.letters(letters, out);
        }
    }
}

impl Corpus for Words {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        bson::document(out, |writer| {
            writer.int32("_id", number as i32);
            writer.string_by("body", |out| self.body(number, out));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published corpus has 135 MB and 15.0 million words in 600,000 bodies.
    #[test]
    fn bodies_are_as_large_as_published() {
        let mut text = Vec::new();
        for number in 0..6_000 {
            Words { seed: 1 }.body(number, &mut text);
            text.push(b'\n');
        }
        let words = text
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty());
        let lengths: Vec<usize> = words.map(<[u8]>::len).collect();
        assert!(
            (147_000..153_000).contains(&lengths.len()),
            "{} words",
            lengths.len()
        );
        assert!(
            (1_320_000..1_380_000).contains(&text.len()),
            "{} bytes",
            text.len()
        );
        assert_eq!(
            (lengths.iter().min(), lengths.iter().max()),
            (Some(&4), Some(&12))
        );
    }
}
