//! The documents of W9: `{_id, user: one of 5,000, age: 0–99, pad: 180 letters, x: double}`.

use super::{Corpus, document_random};
use crate::bson;
use crate::entries::Entries;
use crate::random::Random;

/// The number of users.
pub const USERS: u64 = 5_000;
/// The number of ages.
pub const AGES: u64 = 100;

/// The corpus of users.
pub struct Users {
    /// The seed.
    pub seed: u64,
}

/// The fields that queries use.
pub struct User {
    /// The user's number, below [`USERS`].
    pub user: i32,
    /// The age, below [`AGES`].
    pub age: i32,
    /// A number from 0 to 1 (exclusive).
    pub x: f64,
}

impl Users {
    /// Returns the fields of a document.
    pub fn user(&self, number: u64) -> User {
        self.drawn(number).0
    }

    /// Appends the 180 letters of a document's `pad`.
    pub fn pad(&self, number: u64, out: &mut Vec<u8>) {
        self.drawn(number).1.letters(180, out);
    }

    /// Returns the fields, and the generator in its state after them.
    fn drawn(&self, number: u64) -> (User, Random) {
        let mut random = document_random(self.seed, number);
        let user = User {
            user: random.below(USERS) as i32,
            age: random.below(AGES) as i32,
            x: random.below(1 << 53) as f64 / (1u64 << 53) as f64,
        };
        (user, random)
    }
}

impl Corpus for Users {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let (user, mut random) = self.drawn(number);
        bson::document(out, |writer| {
            writer.int32("_id", number as i32);
            writer.int32("user", user.user);
            writer.int32("age", user.age);
            writer.string_by("pad", |out| random.letters(180, out));
            writer.double("x", user.x);
        });
    }
}

/// The entries of W9's indexes {user} and {age, x}. No value is negative, so big-endian bytes are
/// in order.
impl Entries for Users {
    fn tables(&self) -> u8 {
        2
    }

    fn each(&self, number: u64, put: &mut dyn FnMut(u8, &[u8])) {
        let user = self.user(number);
        let x = user.x.to_bits().to_be_bytes();
        put(0, &user.user.to_be_bytes());
        put(1, &[&user.age.to_be_bytes()[..], &x].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::{Document, Value};

    #[test]
    fn documents_have_the_announced_fields() {
        let users = Users { seed: 1 };
        let (mut bytes, mut pad) = (Vec::new(), Vec::new());
        users.write(7, &mut bytes);
        users.pad(7, &mut pad);
        let (read, told) = (Document::from_prefix(&bytes).unwrap(), users.user(7));
        let pad = std::str::from_utf8(&pad).unwrap();
        assert_eq!(read.get("user"), Some(Value::Int32(told.user)));
        assert_eq!(read.get("age"), Some(Value::Int32(told.age)));
        assert_eq!(read.get("pad"), Some(Value::String(pad)));
        assert_eq!(read.get("x"), Some(Value::Double(told.x)));
        assert_eq!(pad.len(), 180);
        assert!((0.0..1.0).contains(&told.x));
    }
}
