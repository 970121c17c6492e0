//! A set of record ids: a bitmap in chunks, which are allocated on demand.

use crate::source::RecordId;

/// The number of ids in a chunk.
const CHUNK_IDS: u64 = 4096;
const WORD_BITS: u64 = 64;

/// A set of record ids.
#[derive(Debug, Default)]
pub struct IdSet {
    chunks: Vec<Option<Box<[u64; (CHUNK_IDS / WORD_BITS) as usize]>>>,
}

impl IdSet {
    /// Inserts an id. Returns `false` if the set already contains it.
    pub fn insert(&mut self, id: RecordId) -> bool {
        let (chunk, within) = ((id.0 / CHUNK_IDS) as usize, id.0 % CHUNK_IDS);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let (word, bit) = ((within / WORD_BITS) as usize, 1u64 << (within % WORD_BITS));
        let Some(slot) = self.chunks.get_mut(chunk) else {
            return false;
        };
        let words = slot.get_or_insert_with(|| Box::new([0; (CHUNK_IDS / WORD_BITS) as usize]));
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_set_is_like_a_plain_one() {
        let (mut set, mut plain) = (IdSet::default(), BTreeSet::new());
        let mut number = 7u64;
        for _ in 0..20_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let id = (number >> 33) % 30_000;
            assert_eq!(set.insert(RecordId(id)), plain.insert(id));
        }
    }
}
