//! ObjectIds: 12-byte unique identifiers.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// An ObjectId: seconds since 1970 (4 bytes), a random number of the process (5 bytes), a counter
/// (3 bytes), all big-endian.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

/// Generates object ids. A process has one generator, because the counter makes its ids unique.
///
/// ```
/// use windrow_document::object_id::ObjectIdSource;
///
/// let ids = ObjectIdSource::new(7);
/// assert_ne!(ids.next(1), ids.next(1));
/// ```
pub struct ObjectIdSource {
    process: [u8; 5],
    counter: AtomicU32,
}

impl ObjectIdSource {
    /// Creates a generator. `seed` is a random number.
    pub fn new(seed: u64) -> ObjectIdSource {
        let [a, b, c, d, e, f, g, h] = seed.to_be_bytes();
        let counter = u32::from_be_bytes([0, f, g, h]);
        ObjectIdSource {
            process: [a, b, c, d, e],
            counter: AtomicU32::new(counter),
        }
    }

    /// Returns a new id with these seconds since 1970.
    pub fn next(&self, seconds: u32) -> ObjectId {
        let count = self.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let [s0, s1, s2, s3] = seconds.to_be_bytes();
        let [p0, p1, p2, p3, p4] = self.process;
        let [_, c0, c1, c2] = count;
        ObjectId([s0, s1, s2, s3, p0, p1, p2, p3, p4, c0, c1, c2])
    }

    /// Returns a new id with the current time.
    pub fn next_now(&self) -> ObjectId {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.next(since.as_secs() as u32)
    }
}

impl ObjectId {
    /// Parses 24 hexadecimal digits. Returns `None` if the text is something else.
    pub fn parse(text: &str) -> Option<ObjectId> {
        if text.len() != 24 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 12];
        for (byte, offset) in bytes.iter_mut().zip((0..24).step_by(2)) {
            *byte = u8::from_str_radix(text.get(offset..offset + 2)?, 16).ok()?;
        }
        Some(ObjectId(bytes))
    }

    /// The seconds since 1970 at which the id was generated.
    pub fn seconds(self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ObjectId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_reverses_formatting() {
        let id = ObjectId::parse("5f0c1a2b3c4d5e6f70819aBC").unwrap();
        assert_eq!(id.to_string(), "5f0c1a2b3c4d5e6f70819abc");
        assert_eq!(id.seconds(), 0x5f0c1a2b);
        assert_eq!(ObjectId::parse("5f0c1a2b3c4d5e6f70819aB"), None);
        assert_eq!(ObjectId::parse("5f0c1a2b3c4d5e6f70819aBg"), None);
    }

    #[test]
    fn generated_ids_differ() {
        let source = ObjectIdSource::new(7);
        assert_ne!(source.next(1), source.next(1));
        assert!(source.next(2) > source.next(1));
    }
}
