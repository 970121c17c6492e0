//! Small documents for measuring indexes: `{_id, key: unique and in random order, n}`.

use super::Corpus;
use crate::bson;
use crate::random::mix;

/// The corpus of pairs.
pub struct Pairs {
    /// The seed.
    pub seed: u64,
}

impl Pairs {
    /// The unique key of a document.
    pub fn key(&self, number: u64) -> i64 {
        mix(number ^ self.seed << 40) as i64
    }
}

impl Corpus for Pairs {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        bson::document(out, |writer| {
            writer.int32("_id", number as i32);
            writer.int64("key", self.key(number));
            writer.int32("n", (number % 1_000) as i32);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct() {
        let pairs = Pairs { seed: 1 };
        let mut keys: Vec<i64> = (0..10_000).map(|number| pairs.key(number)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 10_000);
    }
}
