//! The index entries of documents, precomputed for key-value engines, so that a baseline spends its
//! time only on storing them.
//!
//! A baseline reads, for each document, the size of its entries as u32, then for each entry
//!
//! ```text
//! table u8 | key length u16 | key
//! ```
//!
//! in little-endian. A key ends with the document's number (4 bytes), which makes it unique.

use std::io::Write;

const NUMBER_BYTES: u16 = 4;

/// A generator of the index entries of documents.
pub trait Entries {
    /// The number of indexes.
    fn tables(&self) -> u8;

    /// Calls `put` with the key of each entry of a document, without the number at its end.
    fn each(&self, number: u64, put: &mut dyn FnMut(u8, &[u8]));
}

/// Writes the entries of all documents.
pub fn feed(entries: &dyn Entries, documents: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for number in 0..documents {
        bytes.clear();
        entries.each(number, &mut |table, key| {
            bytes.push(table);
            bytes.extend_from_slice(&(key.len() as u16 + NUMBER_BYTES).to_le_bytes());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&(number as u32).to_be_bytes());
        });
        out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        out.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Entries for Two {
        fn tables(&self) -> u8 {
            2
        }

        fn each(&self, _: u64, put: &mut dyn FnMut(u8, &[u8])) {
            put(0, b"a");
            put(1, b"");
        }
    }

    #[test]
    fn entries_have_the_documented_layout() {
        let mut out = Vec::new();
        feed(&Two, 1, &mut out).unwrap();
        let first = b"\x0f\0\0\0\x00\x05\0a\0\0\0\0";
        let second = b"\x01\x04\0\0\0\0\0";
        assert_eq!(out, [&first[..], second].concat());
    }
}
