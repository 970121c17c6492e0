//! Short words as two numbers, which are compared faster than their bytes.

/// The first and the last eight bytes of a string, which may overlap; shorter strings have fewer.
/// With the length, they determine a string of at most [`WordEnds::BYTES`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordEnds {
    first: u64,
    last: u64,
}

impl WordEnds {
    /// The length up to which the ends determine a word.
    pub(crate) const BYTES: usize = 16;

    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> WordEnds {
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            return WordEnds {
                first: u64::from_le_bytes(*first),
                last: u64::from_le_bytes(*last),
            };
        }
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            return WordEnds {
                first: u32::from_le_bytes(*first).into(),
                last: u32::from_le_bytes(*last).into(),
            };
        }
        if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            return WordEnds {
                first: u16::from_le_bytes(*first).into(),
                last: u16::from_le_bytes(*last).into(),
            };
        }
        WordEnds {
            first: bytes.first().copied().unwrap_or(0).into(),
            last: 0,
        }
    }

    /// Returns a hash for tables whose words nobody can choose: there is no random seed.
    pub(crate) fn hash(self) -> usize {
        let mixed = self.first.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ self
                .last
                .wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
                .rotate_left(32);
        (mixed ^ (mixed >> 29)) as usize
    }
}
