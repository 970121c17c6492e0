//! The key of a group. Short keys are stored inline, so that a lookup in the table touches no other
//! memory.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

/// The largest number of bytes that are stored inline.
const INLINE_BYTES: usize = 22;

/// The key bytes of a group.
#[derive(Debug)]
pub enum GroupKey {
    /// The first `length` of the bytes.
    Short {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Long(Box<[u8]>),
}

impl GroupKey {
    pub fn new(bytes: &[u8]) -> GroupKey {
        let mut inline = [0; INLINE_BYTES];
        match inline.get_mut(..bytes.len()) {
            Some(used) => {
                used.copy_from_slice(bytes);
                GroupKey::Short {
                    length: bytes.len() as u8,
                    bytes: inline,
                }
            }
            None => GroupKey::Long(bytes.into()),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            // Panics if the length is larger than `new` allows.
            GroupKey::Short { length, bytes } => bytes.split_at(usize::from(*length)).0,
            GroupKey::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &GroupKey) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for GroupKey {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_lengths_are_found_by_their_bytes() {
        let bytes: Vec<u8> = (0..60).collect();
        let all: std::collections::HashSet<GroupKey> = (0..60)
            .map(|length| GroupKey::new(&bytes[..length]))
            .collect();
        assert_eq!(all.len(), 60);
        assert!((0..60).all(|length| all.contains(&bytes[..length])));
        assert!(!all.contains(&bytes[1..3]));
    }
}
