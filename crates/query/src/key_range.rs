//! Ranges of index keys.

/// The keys from `from` up to, but without, `to`, as bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// The first possible key.
    pub from: Vec<u8>,
    /// The exclusive end.
    pub to: Vec<u8>,
}

impl KeyRange {
    /// Returns `true` if the key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.starts_by(key) && self.ends_after(key)
    }

    /// Returns `true` if the range starts at this key or before.
    pub(crate) fn starts_by(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key
    }

    /// Returns `true` if the range ends after this key.
    pub(crate) fn ends_after(&self, key: &[u8]) -> bool {
        key < self.to.as_slice()
    }

    /// Returns the range of the keys that consist of the prefix and a key of this range.
    pub(crate) fn with_prefix(&self, prefix: &[u8]) -> KeyRange {
        KeyRange {
            from: [prefix, &self.from].concat(),
            to: [prefix, &self.to].concat(),
        }
    }
}
