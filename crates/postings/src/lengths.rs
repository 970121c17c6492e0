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
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

/// The number of record ids for which a page has room.
pub const PAGE_IDS: u64 = 1 << 16;

const DENSE_SHORT: u8 = 0;
const DENSE: u8 = 1;
const SPARSE: u8 = 2;

/// The lengths of a field. Several threads can add to it.
#[derive(Debug, Default)]
pub struct LengthsTable {
    pages: Mutex<BTreeMap<u64, Arc<Page>>>,
}

/// Adds lengths to a table.
#[derive(Debug)]
pub struct LengthsWriter {
    table: Arc<LengthsTable>,
    /// The page that was used last, and its number.
    last: Option<(u64, Arc<Page>)>,
}

/// The lengths of a page, in parts. A part without lengths takes no memory.
#[derive(Debug)]
struct Page([OnceLock<Box<Part>>; PARTS]);

/// 0: no length.
type Part = [AtomicU16; PART_IDS];

const PART_IDS: usize = 256;
const PARTS: usize = PAGE_IDS as usize / PART_IDS;

/// A page is encoded as sparse if it has less than one length for this many ids.
const IDS_PER_LENGTH: usize = 4;

/// The number of records with a length, and the sum of the lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthTotals {
    /// The number of records.
    pub records: u64,
    /// The sum of the lengths.
    pub sum: u64,
}

impl LengthsTable {
    fn page(&self, number: u64) -> Arc<Page> {
        let empty = || Arc::new(Page([const { OnceLock::new() }; PARTS]));
        let mut pages = self.pages.lock();
        pages.entry(number).or_insert_with(empty).clone()
    }

    /// Returns the totals of the lengths that were added.
    pub fn totals(&self) -> LengthTotals {
        let mut totals = LengthTotals::default();
        for page in self.pages.lock().values() {
            for (_, length) in page.known() {
                totals.records += 1;
                totals.sum += u64::from(length);
            }
        }
        totals
    }

    /// Returns `true` if no length was added.
    pub fn is_empty(&self) -> bool {
        self.pages.lock().is_empty()
    }

    /// Returns the encoded pages with their numbers, in order.
    pub fn encode(&self) -> Vec<(u64, Vec<u8>)> {
        let pages = self.pages.lock();
        let encoded = pages.iter().map(|(number, page)| (*number, page.encode()));
        encoded.collect()
    }
}

impl LengthsWriter {
    /// Creates a writer to a table.
    pub fn new(table: Arc<LengthsTable>) -> LengthsWriter {
        LengthsWriter { table, last: None }
    }

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
        let page = self.last.as_ref();
        let slot = page.and_then(|(_, page)| page.slot((id % PAGE_IDS) as usize));
        slot.is_some_and(|slot| match slot.load(Ordering::Relaxed) {
            0 => {
                let set = slot.compare_exchange(0, length, Ordering::Relaxed, Ordering::Relaxed);
                set.is_ok() || set == Err(length)
            }
            known => known == length,
        })
    }

    #[cold]
    fn open(&mut self, number: u64) {
        self.last = Some((number, self.table.page(number)));
    }
}

impl Page {
    #[inline]
    fn slot(&self, within: usize) -> Option<&AtomicU16> {
        let part = self.0.get(within / PART_IDS)?;
        let part = part.get_or_init(|| Box::new([const { AtomicU16::new(0) }; PART_IDS]));
        part.get(within % PART_IDS)
    }

    /// Returns the lengths with their ids within the page, in order.
    fn known(&self) -> impl Iterator<Item = (u32, u16)> {
        let parts = self.0.iter().zip((0u32..).step_by(PART_IDS));
        let parts = parts.filter_map(|(part, first)| Some((part.get()?, first)));
        let slots = parts.flat_map(|(part, first)| (first..).zip(part.iter()));
        let lengths = slots.map(|(id, slot)| (id, slot.load(Ordering::Relaxed)));
        lengths.filter(|(_, length)| *length > 0)
    }

    fn encode(&self) -> Vec<u8> {
        let (count, first) = (
            self.known().count(),
            self.known().next().map_or(0, |(id, _)| id),
        );
        let last = self.known().last().map_or(0, |(id, _)| id);
        let span = (last - first) as usize + 1;
        if count * IDS_PER_LENGTH < span {
            let mut bytes = vec![SPARSE];
            for (id, length) in self.known() {
                bytes.extend_from_slice(&(id as u16).to_le_bytes());
                bytes.extend_from_slice(&length.to_le_bytes());
            }
            return bytes;
        }
        let mut dense = vec![0; span];
        for (id, length) in self.known() {
            if let Some(slot) = dense.get_mut((id - first) as usize) {
                *slot = length;
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
        let table = Arc::new(LengthsTable::default());
        assert!(table.is_empty());
        let mut writer = LengthsWriter::new(table.clone());
        for id in ids.iter().rev().chain(ids) {
            assert!(writer.add(*id, length_of(*id)), "{id}");
        }
        assert!(!writer.add(ids[0], length_of(ids[0]) + 1));
        let sum: u64 = ids.iter().map(|id| u64::from(length_of(*id))).sum();
        let records = ids.len() as u64;
        assert_eq!(table.totals(), LengthTotals { records, sum });
        let pages: BTreeMap<u64, Vec<u8>> = table.encode().into_iter().collect();
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
        let table = Arc::new(LengthsTable::default());
        let mut writer = LengthsWriter::new(table.clone());
        assert!(!writer.add(3, 0));
        assert!(!writer.add(3, 1 << 16));
        assert!(table.is_empty());
    }

    /// Each posting of a record finds its length in the table, or is packed with it.
    #[test]
    fn one_of_several_writers_sets_a_length() {
        const IDS: u64 = 100_000;
        let table = Arc::new(LengthsTable::default());
        let write = |length: u32| {
            let mut writer = LengthsWriter::new(table.clone());
            (0..IDS).filter(|id| writer.add(*id, length)).count() as u64
        };
        let (ones, twos) = std::thread::scope(|scope| {
            let other = scope.spawn(|| write(2));
            (write(1), other.join().unwrap())
        });
        assert_eq!(ones + twos, IDS);
        let (records, sum) = (IDS, ones + 2 * twos);
        assert_eq!(table.totals(), LengthTotals { records, sum });
        assert_eq!(table.encode().len() as u64, IDS.div_ceil(PAGE_IDS));
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
