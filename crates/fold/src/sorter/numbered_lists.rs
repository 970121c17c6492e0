//! The lists of keys that have numbers.

use super::KeyNumber;

/// Maps the numbers of keys to the numbers of their lists, for one generation.
#[derive(Debug, Default)]
pub struct NumberedLists {
    generation: Option<u64>,
    /// By the number of the key: the number of the list, or [`NO_LIST`].
    lists: Vec<u32>,
}

const NO_LIST: u32 = u32::MAX;

/// Greater numbers are ignored. Otherwise a gap in the numbers could take much memory.
const NUMBERS_MAX: usize = 1 << 20;

impl NumberedLists {
    /// Returns the number of the list of a key, if it is known.
    #[inline]
    pub fn list(&self, key: KeyNumber) -> Option<u32> {
        let list = self.lists.get(key.number as usize).copied();
        list.filter(|list| *list != NO_LIST && self.generation == Some(key.generation))
    }

    /// Sets the number of the list of a key. Forgets the lists of another generation.
    pub fn set(&mut self, key: KeyNumber, list: u32) {
        if self.generation != Some(key.generation) {
            self.clear();
            self.generation = Some(key.generation);
        }
        let number = key.number as usize;
        if number >= NUMBERS_MAX {
            return;
        }
        if number >= self.lists.len() {
            self.lists.resize(number + 1, NO_LIST);
        }
        self.lists[number] = list;
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.lists.len() * size_of::<u32>()
    }

    /// Forgets all lists and keeps the memory.
    pub fn clear(&mut self) {
        self.generation = None;
        self.lists.clear();
    }
}
