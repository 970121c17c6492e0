//! The documents of W4 and the large documents of W8: `{_id, name, someId1, str1, date1, bio}` with
//! 2,400 bytes. `bio` is a sentence, repeated 100 times.

use super::{Corpus, document_random, object_id};
use crate::bson;

const SENTENCE: &str = "Born in a small town. ";

/// The corpus of people.
pub struct People {
    seed: u64,
    bio: String,
}

impl People {
    /// Creates the corpus of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            bio: SENTENCE.repeat(100),
        }
    }
}

impl Corpus for People {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = document_random(self.seed, number);
        bson::document(out, |writer| {
            writer.object_id("_id", object_id(number));
            writer.string_by("name", |out| {
                random.letters(8, out);
                out.push(b' ');
                random.letters(10, out);
            });
            writer.int64("someId1", random.below(1 << 40) as i64);
            writer.string_by("str1", |out| random.letters(24, out));
            writer.date(
                "date1",
                1_300_000_000_000 + random.below(300_000_000_000) as i64,
            );
            writer.string("bio", &self.bio);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_about_2400_bytes_and_differ() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        People::new(1).write(0, &mut first);
        People::new(1).write(1, &mut second);
        assert!(
            (2_300..2_450).contains(&first.len()),
            "{} bytes",
            first.len()
        );
        assert_eq!(first.len(), second.len());
        assert_ne!(first[17..60], second[17..60]);
    }
}
