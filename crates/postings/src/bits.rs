//! Bit packing of 128 numbers: each takes as many bits as the largest number needs.

use bitpacking::{BitPacker, BitPacker4x};

/// The number of numbers that are packed together.
pub const COUNT: usize = BitPacker4x::BLOCK_LEN;

/// Numbers that are packed or unpacked.
pub type Numbers = [u32; COUNT];

/// Returns the size in bytes of packed numbers with this many bits each.
pub fn packed_bytes(bits: u8) -> usize {
    usize::from(bits) * COUNT / 8
}

/// Appends numbers. Returns the number of bits of each.
pub fn pack(numbers: &Numbers, bytes: &mut Vec<u8>) -> u8 {
    let packer = BitPacker4x::new();
    let bits = packer.num_bits(numbers);
    append(bytes, bits, |target| packer.compress(numbers, target, bits));
    bits
}

/// Appends numbers that increase, each greater than the one before and the first greater than
/// `before`. Returns the number of bits of each.
pub fn pack_increasing(before: Option<u32>, numbers: &Numbers, bytes: &mut Vec<u8>) -> u8 {
    let packer = BitPacker4x::new();
    let bits = packer.num_bits_strictly_sorted(before, numbers);
    append(bytes, bits, |target| {
        packer.compress_strictly_sorted(before, numbers, target, bits)
    });
    bits
}

fn append(bytes: &mut Vec<u8>, bits: u8, pack: impl FnOnce(&mut [u8]) -> usize) {
    let start = bytes.len();
    bytes.resize(start + packed_bytes(bits), 0);
    let (_, target) = bytes.split_at_mut(start);
    pack(target);
}

/// Unpacks numbers. Returns `None` if there are fewer bytes than they take.
#[inline]
pub fn unpack(bytes: &[u8], bits: u8, numbers: &mut Numbers) -> Option<()> {
    let packed = packed(bytes, bits)?;
    BitPacker4x::new().decompress(packed, numbers, bits);
    Some(())
}

/// Unpacks numbers that increase. Returns `None` if there are fewer bytes than they take.
#[inline]
pub fn unpack_increasing(
    bytes: &[u8],
    bits: u8,
    before: Option<u32>,
    numbers: &mut Numbers,
) -> Option<()> {
    let packed = packed(bytes, bits)?;
    BitPacker4x::new().decompress_strictly_sorted(before, packed, numbers, bits);
    Some(())
}

fn packed(bytes: &[u8], bits: u8) -> Option<&[u8]> {
    if bits > 32 {
        return None;
    }
    bytes.get(..packed_bytes(bits))
}
