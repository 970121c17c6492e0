//! Whether to try compressing what comes next: not where the last of its kind did not get smaller.

/// After a failure so many are not tried, twice as many each time, up to the most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trial {
    /// How many were not tried after the last failure; 0 after a success.
    patience: u32,
    /// How many still are not.
    untried: u32,
}

/// Between two tries are at most so many that are not tried.
pub const UNTRIED_MAX: u32 = 32;

impl Trial {
    /// Whether the next is to be tried. One that is, is [noted](Self::note).
    pub fn is_due(&mut self) -> bool {
        let is_due = self.untried == 0;
        self.untried = self.untried.saturating_sub(1);
        is_due
    }

    pub fn note(&mut self, paid: bool) {
        self.patience = match paid {
            true => 0,
            false => (2 * self.patience).clamp(1, UNTRIED_MAX),
        };
        self.untried = self.patience;
    }
}
