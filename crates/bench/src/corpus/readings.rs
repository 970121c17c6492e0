//! The small documents of W5 and W8: 250 bytes in eight fields, as in a typical application, with
//! growing or random `_id`s.

use super::{Corpus, document_random, object_id};
use crate::bson::{self, Writer};
use crate::random::mix;

/// The corpus of readings.
pub struct Readings {
    /// The seed.
    pub seed: u64,
    /// The kind of `_id`s.
    pub ids: IdKind,
}

/// The kind of `_id`s of a corpus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IdKind {
    /// ObjectIds in ascending order.
    Growing,
    /// UUIDs, version 4.
    Random,
}

/// The derived order is MongoDB's, if both are of the same variant.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Id {
    /// An ObjectId.
    Object([u8; 12]),
    /// A UUID.
    Uuid([u8; 16]),
}

impl Id {
    /// Appends the id as a field.
    pub fn write(&self, name: &str, out: &mut Writer) {
        match self {
            Self::Object(id) => out.object_id(name, *id),
            Self::Uuid(id) => out.uuid(name, *id),
        }
    }
}

impl Readings {
    /// Creates a corpus with growing `_id`s.
    pub fn growing(seed: u64) -> Self {
        Self {
            seed,
            ids: IdKind::Growing,
        }
    }

    /// The `_id` of a document.
    pub fn id(&self, number: u64) -> Id {
        match self.ids {
            IdKind::Growing => Id::Object(object_id(number)),
            IdKind::Random => uuid(mix(number ^ self.seed << 40), mix(!number)),
        }
    }

    /// Returns the bounds of a range with about `count` of `documents`, or exactly `count` if ids
    /// grow. The range begins at `part` of `parts`.
    pub fn range(&self, part: u64, parts: u64, count: u64, documents: u64) -> (Id, Id) {
        let first = part * (documents / parts);
        match self.ids {
            IdKind::Growing => (self.id(first), self.id(first + count)),
            IdKind::Random => {
                let at = |number: u64| ((u128::from(number) << 64) / u128::from(documents)) as u64;
                (uuid(at(first), 0), uuid(at(first + count), 0))
            }
        }
    }
}

fn uuid(high: u64, low: u64) -> Id {
    let number = u128::from(high) << 64 | u128::from(low);
    let mut bytes = number.to_be_bytes();
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    Id::Uuid(bytes)
}

impl Corpus for Readings {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = document_random(self.seed, number);
        bson::document(out, |writer| {
            self.id(number).write("_id", writer);
            writer.int32("user", random.below(5_000) as i32);
            writer.string_by("name", |out| random.letters(17, out));
            writer.int32("age", random.below(100) as i32);
            writer.double("score", random.below(1_000_000) as f64 / 1_000.0);
            writer.date("created", 1_600_000_000_000 + number as i64);
            writer.boolean("active", random.below(2) == 1);
            writer.string_by("note", |out| {
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
            Readings::growing(1).write(number, &mut bytes);
            assert_eq!(bytes.len(), 250);
        }
    }

    #[test]
    fn a_range_has_about_as_many_as_it_says() {
        for (ids, expected) in [(IdKind::Growing, 100..=100), (IdKind::Random, 50..=150)] {
            let readings = Readings { seed: 1, ids };
            let (first, end) = readings.range(3, 10, 100, 10_000);
            let within = |number: &u64| (first..end).contains(&readings.id(*number));
            let found = (0..10_000).filter(within).count();
            assert!(expected.contains(&found), "{found} with {ids:?}");
        }
    }
}
