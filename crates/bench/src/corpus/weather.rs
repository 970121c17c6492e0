//! The documents of W2: `{_id, URI: [100 strings], name: "weather", origin: 24 hex, creation,
//! expiration}`. A URI consists of five letters and four digits ("ilaor5234"), so that the keys of
//! its index arrive in random order.

use super::{Corpus, document_random, object_id};
use crate::bson::{self, Document, Value};
use crate::entries::Entries;

/// The number of URIs of a document.
pub const URIS: usize = 100;

/// The corpus of weather reports.
pub struct Weather {
    seed: u64,
    /// The names of array elements.
    places: Vec<String>,
}

impl Weather {
    /// Creates the corpus of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            places: (0..URIS).map(|place| place.to_string()).collect(),
        }
    }
}

impl Corpus for Weather {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = document_random(self.seed, number);
        let created = 1_350_000_000_000_000_000 + number as i64 * 1_000_000;
        bson::document(out, |writer| {
            writer.object_id("_id", object_id(number));
            writer.array("URI", |list| {
                for place in &self.places {
                    list.string_by(place, |out| {
                        random.letters(5, out);
                        digits(random.below(10_000), out);
                    });
                }
            });
            writer.string("name", "weather");
            writer.string(
                "origin",
                &format!("{:016x}{:08x}", random.next(), number as u32),
            );
            writer.int64("creation", created);
            writer.int64("expiration", created + 3_600_000_000_000);
        });
    }
}

/// An entry for each URI.
impl Entries for Weather {
    fn tables(&self) -> u8 {
        1
    }

    fn each(&self, number: u64, put: &mut dyn FnMut(u8, &[u8])) {
        let mut bytes = Vec::new();
        self.write(number, &mut bytes);
        let Some(Value::Array(uris)) =
            Document::from_prefix(&bytes).and_then(|item| item.get("URI"))
        else {
            return;
        };
        for (_, uri) in uris.iter() {
            if let Value::String(uri) = uri {
                put(0, uri.as_bytes());
            }
        }
    }
}

fn digits(value: u64, out: &mut Vec<u8>) {
    for unit in [1_000, 100, 10, 1] {
        out.push(b'0' + (value / unit % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_as_published() {
        let mut bytes = Vec::new();
        Weather::new(1).write(3, &mut bytes);
        let read = Document::from_prefix(&bytes).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["_id", "URI", "name", "origin", "creation", "expiration"]
        );
        let Some(Value::Array(uris)) = read.get("URI") else {
            panic!("no URIs")
        };
        assert_eq!(uris.iter().count(), 100);
        for (place, (name, value)) in uris.iter().enumerate() {
            assert_eq!(name, place.to_string());
            let Value::String(uri) = value else {
                panic!("{value:?}")
            };
            assert!(uri.len() == 9 && uri[..5].bytes().all(|item| item.is_ascii_lowercase()));
            assert!(uri[5..].bytes().all(|item| item.is_ascii_digit()), "{uri}");
        }
        let Some(Value::String(origin)) = read.get("origin") else {
            panic!("no origin")
        };
        assert_eq!(origin.len(), 24);
    }
}
