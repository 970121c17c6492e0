//! Numbers of keys, one for each path and term.

use windrow_text::TermGeneration;

/// Numbers keys.
pub(super) struct KeyNumbers {
    generation: TermGeneration,
    next: u32,
}

impl Default for KeyNumbers {
    fn default() -> KeyNumbers {
        KeyNumbers {
            generation: TermGeneration::new(),
            next: 0,
        }
    }
}

impl KeyNumbers {
    /// Returns the generation of the numbers.
    pub fn generation(&self) -> TermGeneration {
        self.generation
    }

    /// Returns the number of another key.
    pub fn next(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }
}
