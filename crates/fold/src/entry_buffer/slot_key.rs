//! The part of a key that is stored in a slot of a buffer.

use crate::entry::KeyHead;

/// The first bytes of a key, padded with zeros.
#[derive(Clone, Copy, Debug)]
pub struct SlotKey([u8; SlotKey::BYTES]);

impl SlotKey {
    pub const BYTES: usize = 20;

    #[inline]
    pub fn new(key: &[u8]) -> SlotKey {
        if let Some(bytes) = key.first_chunk() {
            return SlotKey(*bytes);
        }
        let head = KeyHead::new(key).number();
        let behind = match key.last_chunk() {
            Some(last) if key.len() > KeyHead::BYTES => {
                u32::from_be_bytes(*last) << (8 * (SlotKey::BYTES - key.len()))
            }
            _ => 0,
        };
        let mut bytes = [0; SlotKey::BYTES];
        let (first, last) = bytes.split_at_mut(KeyHead::BYTES);
        first.copy_from_slice(&head.to_be_bytes());
        last.copy_from_slice(&behind.to_be_bytes());
        SlotKey(bytes)
    }

    /// See [`KeyHead::number`].
    #[inline]
    pub fn head(&self) -> u128 {
        let (head, _) = self.halves();
        head
    }

    #[inline]
    fn halves(&self) -> (u128, u32) {
        let [.., a, b, c, d] = self.0;
        let mut first = [0; KeyHead::BYTES];
        first.copy_from_slice(&self.0[..KeyHead::BYTES]);
        (u128::from_be_bytes(first), u32::from_be_bytes([a, b, c, d]))
    }

    /// Returns a hash of a key of this length, which must fit into the slot.
    #[inline]
    pub fn fingerprint(&self, length: usize) -> u32 {
        let (head, last) = self.halves();
        let behind = (head as u64 ^ length as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let last = u64::from(last).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let folded = (head >> 64) as u64 ^ behind.rotate_left(32) ^ last;
        (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    /// Returns the whole key of `length` bytes, or `None` if it is longer.
    #[inline]
    pub fn key(&self, length: usize) -> Option<&[u8]> {
        self.0.get(..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_keys_are_returned_for_all_lengths() {
        let bytes: Vec<u8> = (1..=30).rev().collect();
        for length in 0..bytes.len() {
            let key = &bytes[..length];
            let slot = SlotKey::new(key);
            assert_eq!(slot.head(), KeyHead::new(key).number());
            let expected = (length <= SlotKey::BYTES).then_some(key);
            assert_eq!(slot.key(length), expected);
        }
    }

    #[test]
    fn fingerprints_of_keys_that_differ_in_a_byte_mostly_differ() {
        let mut fingerprints = std::collections::BTreeSet::new();
        for place in 0..SlotKey::BYTES {
            for byte in 1..=100 {
                let mut key = [0; SlotKey::BYTES];
                key[place] = byte;
                fingerprints.insert(SlotKey::new(&key).fingerprint(key.len()));
            }
        }
        let zeros =
            (0..=SlotKey::BYTES).map(|length| SlotKey::new(&[0; 20][..length]).fingerprint(length));
        fingerprints.extend(zeros);
        assert!(
            fingerprints.len() >= 1_900,
            "{} of 2,021",
            fingerprints.len()
        );
    }
}
