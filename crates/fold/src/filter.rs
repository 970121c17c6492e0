//! Filters: whether a key may stand in a stretch of blocks, or an id where keys are empty.
//!
//! A page is an array of lines of 64 bytes. A key's hash chooses a line and six bits in it, so a
//! question touches one cache line and is answered from the page's bytes as they lie in the cache.
//! With 10 bits a key about 1 in 100 absent keys passes, with 16 about 1 in 700.

const LINE_BYTES: usize = 64;
const PROBES: u32 = 6;

use crate::ahead;
pub(crate) use crate::sum::key_hash as hash;

/// What filters know an entry with an empty key by.
pub(crate) fn id_hash(id: u64) -> u64 {
    hash(&id.to_be_bytes())
}

/// A key with what filters know it by.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'k> {
    pub key: &'k [u8],
    /// XXH3-64.
    pub hash: u64,
}

impl<'k> HashedKey<'k> {
    pub fn of(key: &'k [u8]) -> HashedKey<'k> {
        HashedKey {
            key,
            hash: hash(key),
        }
    }
}

/// The page of these hashes, with so many bits for each.
pub fn build(hashes: &[u64], bits_per_key: usize) -> Vec<u8> {
    let lines = (hashes.len() * bits_per_key)
        .div_ceil(LINE_BYTES * 8)
        .max(1);
    let mut page = vec![0; lines * LINE_BYTES];
    for hash in hashes {
        let start = line_of(*hash, lines) * LINE_BYTES;
        for bit in bits_of(*hash) {
            if let Some(byte) = page.get_mut(start + bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }
    page
}

/// Fetches the lines that these hashes are asked of.
pub fn touch(page: &[u8], hashes: impl Iterator<Item = u64>) {
    let lines = page.len() / LINE_BYTES;
    ahead::touch(hashes.filter_map(|hash| page.get(line_of(hash, lines) * LINE_BYTES)));
}

/// False only where the key is not among those the page was built of.
pub fn may_hold(page: &[u8], hash: u64) -> bool {
    let lines = page.len() / LINE_BYTES;
    if lines == 0 {
        return true;
    }
    let start = line_of(hash, lines) * LINE_BYTES;
    let Some(line) = page.get(start..).and_then(<[u8]>::first_chunk) else {
        return true;
    };
    // All bits are looked at: which of them is the first that is not set, nobody could foresee.
    bits_of(hash).fold(true, |all, bit| all & is_set(line, bit))
}

#[inline]
fn is_set(line: &[u8; LINE_BYTES], bit: usize) -> bool {
    line[(bit / 8) % LINE_BYTES] >> (bit % 8) & 1 == 1
}

fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..PROBES).map(move |probe| (mixed >> (9 * probe + 1)) as usize & (LINE_BYTES * 8 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_pass_and_few_others_do() {
        let hash_of = |number: u64| hash(&number.to_be_bytes());
        let members: Vec<u64> = (0..20_000).map(hash_of).collect();
        for (bits, strangers_max) in [(10, 2_500), (16, 300)] {
            let page = build(&members, bits);
            assert!(members.iter().all(|member| may_hold(&page, *member)));
            let strangers = (20_000..120_000)
                .map(hash_of)
                .filter(|hash| may_hold(&page, *hash))
                .count();
            assert!(strangers < strangers_max, "{strangers} of 100,000");
        }
    }
}
