//! Field lengths by record id, in pages.
//!
//! All postings of a field have the same field length in a record, so a section stores the length
//! once for the record. A posting with another length is packed with its own length, see
//! [`piece`](crate::piece).
//!
//! ```text
//! page     0 | first id u16 LE | length u8*          of the ids from the first on; 0: no length
//!          1 | first id u16 LE | length u16 LE*      the same for lengths above 255
//!          2 | (id u16 LE, length u16 LE)*           if there are few lengths, in order of ids
//! ```
//! An id in a page is the lowest 16 bits of the record id.

use std::collections::BTreeMap;

/// The number of record ids for which a page has room.
pub const PAGE_IDS: u64 = 1 << 16;

const DENSE_SHORT: u8 = 0;
const DENSE: u8 = 1;
const SPARSE: u8 = 2;

/// Collects the lengths of a field.
#[derive(Debug, Default)]
pub struct LengthsWriter {
    pages: BTreeMap<u64, Page>,
    /// The page that was used last, and its number.
    last: Option<(u64, Page)>,
}

/// The lengths of a page, in parts. A part without lengths takes no memory.
type Page = Vec<Option<Box<[u16; PART_IDS]>>>;

const PART_IDS: usize = 256;
const PARTS: usize = PAGE_IDS as usize / PART_IDS;

/// The number of records with a length, and the sum of the lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthTotals {
    /// The number of records.
    pub records: u64,
    /// The sum of the lengths.
    pub sum: u64,
}

impl LengthsWriter {
    /// Adds the length of a record. The first length of a record stays. Returns `true` if readers
    /// will find this length by the id.
    #[inline]
    pub fn add(&mut self, id: u64, length: u32) -> bool {
        let Ok(length @ 1..) = u16::try_from(length) else {
            return false;
        };
        let number = id / PAGE_IDS;
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            self.open(number);
        }
        let within = (id % PAGE_IDS) as usize;
        let page = self.last.as_mut();
        let Some(part) = page.and_then(|(_, page)| page.get_mut(within / PART_IDS)) else {
            return false;
        };
        let part = part.get_or_insert_with(|| Box::new([0; PART_IDS]));
        let slot = part.get_mut(within % PART_IDS);
        slot.is_some_and(|slot| {
            if *slot == 0 {
                *slot = length;
            }
            *slot == length
        })
    }

    #[cold]
    fn open(&mut self, number: u64) {
        if let Some((last, page)) = self.last.take() {
            self.pages.insert(last, page);
        }
        let known = self.pages.remove(&number);
        let page = known.unwrap_or_else(|| vec![None; PARTS]);
        self.last = Some((number, page));
    }

    /// Returns the totals of the lengths that were added.
    pub fn totals(&self) -> LengthTotals {
        let last = self.last.as_ref().map(|(_, page)| page);
        let parts = self.pages.values().chain(last).flatten().flatten();
        let lengths = parts.flat_map(|part| part.iter()).filter(|it| **it > 0);
        lengths.fold(LengthTotals::default(), |totals, length| LengthTotals {
            records: totals.records + 1,
            sum: totals.sum + u64::from(*length),
        })
    }

    /// Returns `true` if no length was added.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns the encoded pages with their numbers, in order. The writer is empty afterwards.
    pub fn finish(&mut self) -> impl Iterator<Item = (u64, Vec<u8>)> + use<> {
        if let Some((last, page)) = self.last.take() {
            self.pages.insert(last, page);
        }
        let pages = std::mem::take(&mut self.pages);
        pages
            .into_iter()
            .map(|(number, page)| (number, encode(&page)))
    }
}

/// A page is encoded as sparse if it has less than one length for this many ids.
const IDS_PER_LENGTH: usize = 4;

fn encode(page: &Page) -> Vec<u8> {
    let known = || {
        let parts = page.iter().zip((0u32..).step_by(PART_IDS));
        let parts = parts.filter_map(|(part, first)| Some((part.as_deref()?, first)));
        let lengths = parts.flat_map(|(part, first)| part.iter().zip(first..));
        lengths.filter(|(length, _)| **length > 0)
    };
    let (count, first) = (known().count(), known().next().map_or(0, |(_, id)| id));
    let last = known().last().map_or(0, |(_, id)| id);
    let span = (last - first) as usize + 1;
    if count * IDS_PER_LENGTH < span {
        let mut bytes = vec![SPARSE];
        for (length, id) in known() {
            bytes.extend_from_slice(&(id as u16).to_le_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        return bytes;
    }
    let mut dense = vec![0; span];
    for (length, id) in known() {
        if let Some(slot) = dense.get_mut((id - first) as usize) {
            *slot = *length;
        }
    }
    let is_short = dense.iter().all(|length| u8::try_from(*length).is_ok());
    let mut bytes = vec![if is_short { DENSE_SHORT } else { DENSE }];
    bytes.extend_from_slice(&(first as u16).to_le_bytes());
    for length in dense {
        if is_short {
            bytes.push(length as u8);
        } else {
            bytes.extend_from_slice(&length.to_le_bytes());
        }
    }
    bytes
}

/// An encoded page of lengths.
#[derive(Clone, Copy, Debug)]
pub enum LengthsPage<'a> {
    /// The first id, and the lengths of the ids from it on, all below 256.
    DenseShort(u16, &'a [u8]),
    /// The first id, and the lengths of the ids from it on.
    Dense(u16, &'a [[u8; 2]]),
    /// Pairs of an id and a length.
    Sparse(&'a [[u8; 4]]),
}

impl<'a> LengthsPage<'a> {
    /// Reads a page. Returns `None` if it is damaged.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<LengthsPage<'a>> {
        let (&form, rest) = bytes.split_first()?;
        if form == SPARSE {
            let (pairs, rest) = rest.as_chunks();
            return rest.is_empty().then_some(LengthsPage::Sparse(pairs));
        }
        let (first, rest) = rest.split_first_chunk::<2>()?;
        let first = u16::from_le_bytes(*first);
        match form {
            DENSE_SHORT => Some(LengthsPage::DenseShort(first, rest)),
            DENSE => {
                let (lengths, rest) = rest.as_chunks();
                rest.is_empty()
                    .then_some(LengthsPage::Dense(first, lengths))
            }
            _ => None,
        }
    }

    /// Returns the length of a record whose id is on this page. Returns `None` if it is not known.
    #[inline]
    pub fn get(&self, id: u64) -> Option<u32> {
        let id = (id % PAGE_IDS) as u16;
        let place = |first: u16| id.checked_sub(first).map(usize::from);
        let length = match self {
            LengthsPage::DenseShort(first, lengths) => u32::from(*lengths.get(place(*first)?)?),
            LengthsPage::Dense(first, lengths) => {
                u32::from(u16::from_le_bytes(*lengths.get(place(*first)?)?))
            }
            LengthsPage::Sparse(pairs) => {
                let id_of = |pair: &[u8; 4]| u16::from_le_bytes([pair[0], pair[1]]);
                let at = pairs.binary_search_by_key(&id, id_of).ok()?;
                let [_, _, low, high] = *pairs.get(at)?;
                u32::from(u16::from_le_bytes([low, high]))
            }
        };
        (length > 0).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ids: &[u64], length_of: impl Fn(u64) -> u32) {
        let mut writer = LengthsWriter::default();
        assert!(writer.is_empty());
        for id in ids.iter().rev().chain(ids) {
            assert!(writer.add(*id, length_of(*id)), "{id}");
        }
        assert!(!writer.add(ids[0], length_of(ids[0]) + 1));
        let sum: u64 = ids.iter().map(|id| u64::from(length_of(*id))).sum();
        let records = ids.len() as u64;
        assert_eq!(writer.totals(), LengthTotals { records, sum });
        let pages: BTreeMap<u64, Vec<u8>> = writer.finish().collect();
        assert!(writer.is_empty());
        let find = |id: u64| {
            let page = pages.get(&(id / PAGE_IDS))?;
            LengthsPage::read(page).unwrap().get(id)
        };
        for id in ids {
            assert_eq!(find(*id), Some(length_of(*id)));
            if !ids.contains(&(id + 1)) {
                assert_eq!(find(id + 1), None);
            }
        }
    }

    #[test]
    fn lengths_are_found_by_id() {
        let dense: Vec<u64> = (65_000..67_000).collect();
        check(&dense, |id| 1 + (id % 200) as u32);
        check(&dense, |id| 1 + (id % 2_000) as u32);
        let sparse: Vec<u64> = (0..300).map(|number| number * 997 + (5 << 40)).collect();
        check(&sparse, |id| 1 + (id % 60_000) as u32);
        check(&[7], |_| 9);
    }

    #[test]
    fn unknown_and_very_long_lengths_are_not_kept() {
        let mut writer = LengthsWriter::default();
        assert!(!writer.add(3, 0));
        assert!(!writer.add(3, 1 << 16));
        assert!(writer.is_empty());
    }

    #[test]
    fn damaged_pages_do_no_harm() {
        let pages: [&[u8]; 5] = [
            b"",
            b"\x00",
            b"\x01\x00\x00\x01",
            b"\x02\x01",
            b"\x03\x00\x00",
        ];
        for page in pages {
            assert!(LengthsPage::read(page).is_none(), "{page:?}");
        }
    }
}
