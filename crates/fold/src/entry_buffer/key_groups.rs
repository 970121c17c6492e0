//! Sorting of entries many of which have the same key, such as the postings of words. Only the
//! distinct keys are sorted. The entries of a key mostly arrive in order.

use super::{BufferSlot, EntryBuffer};
use crate::key_sort::KeySort;

/// Smaller buffers are sorted entry by entry.
const ENTRIES_MIN: usize = 16 << 10;

/// Entries grouped by their keys.
struct KeyGroups {
    /// The number of the group of each entry.
    of_entries: Vec<u32>,
    groups: Vec<KeyGroup>,
}

/// The entries with one key.
struct KeyGroup {
    /// The number of the first entry.
    first: u32,
    entries: u32,
}

/// Returns the numbers of the entries in sorted order, or `None` if few keys repeat.
pub(super) fn numbers_in_order(buffer: &EntryBuffer) -> Option<Vec<u32>> {
    let KeyGroups { of_entries, groups } = KeyGroups::new(buffer)?;
    let slot = |group: &KeyGroup| &buffer.slots[group.first as usize];
    let by_key = KeySort {
        entries: &groups,
        head: |group: &KeyGroup| slot(group).key.head(),
        key: |group: &KeyGroup| buffer.key(&buffer.slots[group.first as usize]),
        compare: |one: &KeyGroup, other: &KeyGroup| {
            buffer.compare_slot_keys(slot(one), slot(other))
        },
    };
    let mut order: Vec<u32> = match by_key.numbers() {
        Some(numbers) => numbers.collect(),
        None => (0..groups.len() as u32).collect(),
    };
    // Counting sort: each group gets the offset of its first entry.
    let mut places = vec![0; groups.len()];
    let mut end = 0;
    for group in &order {
        places[*group as usize] = end;
        end += groups[*group as usize].entries;
    }
    let mut numbers = vec![0; of_entries.len()];
    for (number, group) in (0..).zip(&of_entries) {
        let place = &mut places[*group as usize];
        numbers[*place as usize] = number;
        *place += 1;
    }
    let mut rest = numbers.as_mut_slice();
    for group in order.drain(..) {
        let (own, behind) = rest.split_at_mut(groups[group as usize].entries as usize);
        rest = behind;
        let slot = |number: &u32| &buffer.slots[*number as usize];
        own.sort_by(|one, other| buffer.compare_slots_of_key(slot(one), slot(other)));
    }
    Some(numbers)
}

impl KeyGroups {
    /// Groups the entries by a hash table with open addressing. A slot of the table has the
    /// fingerprint of a key in its upper half and the number of its group plus one in the lower
    /// half. Returns `None` if few keys repeat.
    fn new(buffer: &EntryBuffer) -> Option<KeyGroups> {
        if buffer.len() < ENTRIES_MIN {
            return None;
        }
        let mut groups = KeyGroups {
            of_entries: Vec::with_capacity(buffer.len()),
            groups: Vec::new(),
        };
        let mut table: Vec<u64> = vec![0; ENTRIES_MIN];
        for (slot, fingerprint) in buffer.slots.iter().zip(buffer.fingerprints()) {
            let seen = groups.of_entries.len();
            if groups.groups.len() * 2 >= table.len() {
                table = groups.rehashed(buffer, table.len() * 2);
            }
            let is_checked = seen > 0 && seen.is_multiple_of(ENTRIES_MIN);
            if is_checked && !has_few_keys(seen, groups.groups.len(), buffer.len()) {
                return None;
            }
            groups.add(buffer, slot, fingerprint, &mut table);
        }
        Some(groups)
    }

    fn add(
        &mut self,
        buffer: &EntryBuffer,
        slot: &BufferSlot,
        fingerprint: u32,
        table: &mut [u64],
    ) {
        let mask = table.len() - 1;
        let mut at = fingerprint as usize & mask;
        while table[at] != 0 {
            let number = (table[at] as u32) - 1;
            let group = &mut self.groups[number as usize];
            let is_same = table[at] >> 32 == u64::from(fingerprint)
                && buffer.have_same_key(&buffer.slots[group.first as usize], slot);
            if is_same {
                group.entries += 1;
                self.of_entries.push(number);
                return;
            }
            at = (at + 1) & mask;
        }
        let number = self.groups.len() as u32;
        table[at] = table_slot(fingerprint, number);
        self.groups.push(KeyGroup {
            first: self.of_entries.len() as u32,
            entries: 1,
        });
        self.of_entries.push(number);
    }

    /// Returns a larger table of the groups.
    fn rehashed(&self, buffer: &EntryBuffer, length: usize) -> Vec<u64> {
        let (mut table, mask) = (vec![0; length], length - 1);
        for (number, group) in (0..).zip(&self.groups) {
            let fingerprint = buffer.fingerprint_of(&buffer.slots[group.first as usize]);
            let mut at = fingerprint as usize & mask;
            while table[at] != 0 {
                at = (at + 1) & mask;
            }
            table[at] = table_slot(fingerprint, number);
        }
        table
    }
}

/// Estimates from the first entries if at most about half of all entries have distinct keys.
///
/// If each of `k` keys is equally likely, `seen` entries repeat a key about `seen² / 2k` times, and
/// `all` entries have `k (1 - exp(-all / k))` keys. That is less than half of `all` if `all` is
/// more than 1.6 `k`. In most buffers some keys are more likely than others, and there are fewer
/// keys.
fn has_few_keys(seen: usize, keys: usize, all: usize) -> bool {
    let (seen, all) = (seen as f64, all as f64);
    let repeated = seen - keys as f64;
    repeated >= seen / 4.0 || 2.0 * repeated * all >= 1.6 * seen * seen
}

fn table_slot(fingerprint: u32, number: u32) -> u64 {
    u64::from(fingerprint) << 32 | (u64::from(number) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_storage::Position;

    use crate::entry::{Entry, RecordId};
    use crate::entry_buffer::EntryBufferBuilder;

    /// A pseudorandom number (the mixer of SplitMix64).
    fn mix(number: u64) -> u64 {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Creates entries whose keys repeat in turn, some short and some long, with ascending or
    /// descending ids.
    fn buffer(entries: u64, keys: u64, ids_fall: bool) -> EntryBuffer {
        let word = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys;
        buffer_of_words(entries, word, ids_fall)
    }

    fn buffer_of_words(entries: u64, word: impl Fn(u64) -> u64, ids_fall: bool) -> EntryBuffer {
        let mut builder = EntryBufferBuilder::new(Position::ZERO, entries as usize);
        for number in 0..entries {
            let word = word(number);
            let key = match word % 3 {
                0 => format!("{word}"),
                1 => format!("a common beginning of keys {word}"),
                _ => format!("{word}\0"),
            };
            let id = if ids_fall {
                entries - number
            } else {
                number / 2
            };
            builder.add(Entry {
                key: key.as_bytes(),
                id: RecordId(id),
                position: Position(number % 7),
                deleted: false,
                payload: &number.to_le_bytes(),
            });
        }
        builder.finish()
    }

    fn check(buffer: &EntryBuffer) {
        let ordered = buffer.in_order().unwrap();
        assert!(ordered.is_in_order());
        assert_eq!(ordered.len(), buffer.len());
        let sorted = |buffer: &EntryBuffer| {
            let mut all: Vec<_> = buffer
                .entries()
                .map(|entry| {
                    (
                        entry.key.to_vec(),
                        entry.id,
                        entry.position,
                        entry.payload.to_vec(),
                    )
                })
                .collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&ordered), sorted(buffer));
    }

    #[test]
    fn grouped_entries_are_sorted() {
        let entries = 3 * ENTRIES_MIN as u64;
        for ids_fall in [false, true] {
            let buffer = buffer(entries, entries / 5, ids_fall);
            assert!(numbers_in_order(&buffer).is_some());
            check(&buffer);
        }
    }

    /// The first entries have mostly distinct keys, but there are many more entries than keys.
    #[test]
    fn entries_of_many_keys_are_grouped_if_most_keys_repeat() {
        let entries = 16 * ENTRIES_MIN as u64;
        let random_keys = |keys| buffer_of_words(entries, |number| mix(number) % keys, false);
        assert!(numbers_in_order(&random_keys(entries / 3)).is_some());
        assert!(numbers_in_order(&random_keys(entries * 4)).is_none());
    }

    #[test]
    fn few_distinct_keys_are_recognized_by_the_first_entries() {
        assert!(!has_few_keys(16_000, 16_000, 1 << 30));
        assert!(has_few_keys(16_000, 12_000, 16_000));
        assert!(has_few_keys(16_000, 15_360, 1_000_000));
        assert!(!has_few_keys(16_000, 15_360, 200_000));
    }

    #[test]
    fn entries_with_different_keys_are_not_grouped() {
        let entries = 3 * ENTRIES_MIN as u64;
        let buffer = buffer(entries, entries, false);
        assert!(numbers_in_order(&buffer).is_none());
        check(&buffer);
    }
}
