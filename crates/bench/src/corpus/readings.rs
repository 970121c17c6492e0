//! The small documents of W8: 250 bytes of eight fields, as an application's would be.

use super::{Corpus, object_id, random_of};
use crate::bson;

pub struct Readings {
    pub seed: u64,
}

impl Corpus for Readings {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = random_of(self.seed, number);
        bson::document(out, |one| {
            one.object_id("_id", object_id(number));
            one.int32("user", random.below(5_000) as i32);
            one.string_by("name", |out| random.letters(17, out));
            one.int32("age", random.below(100) as i32);
            one.double("score", random.below(1_000_000) as f64 / 1_000.0);
            one.date("created", 1_600_000_000_000 + number as i64);
            one.boolean("active", random.below(2) == 1);
            one.string_by("note", |out| {
                for place in 0..13 {
                    if place > 0 {
                        out.push(b' ');
                    }
                    random.letters(9, out);
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_250_bytes() {
        for number in [0, 1, 999_999] {
            let mut bytes = Vec::new();
            Readings { seed: 1 }.write(number, &mut bytes);
            assert_eq!(bytes.len(), 250);
        }
    }
}
