//! The sections of a map, ordered by age.
//!
//! If a snapshot at an old position is open, folds and merges keep the versions that only it needs.
//! They are written to *past* sections, which current readers do not read:
//!
//! ```text
//!              position 40           position 70           position 90
//! past         A(12) B(7) C(30)                            A(41) D deleted(80) D(66)
//! present      A(35) B(20)           D(66) A(41)           A(85)
//! ```
//!
//! A past section has versions that were replaced or deleted up to its position. Present sections
//! of that position or a later one have the newer versions. A tombstone that hides nothing present
//! is past, too. A reader at the position of a past section or later needs nothing of it. For other
//! readers it ranks as older than the present sections of its position and younger than all earlier
//! ones. The catalog does not know past sections: after a start, no snapshot is older than the
//! start.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_storage::Position;

use crate::section::{Section, SectionDescriptor};

/// The sections of a map, oldest first, grouped into chains. It is immutable: changes create a new
/// one.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    present: Vec<Arc<Section>>,
    chains: Vec<Chain>,
    past: Vec<Arc<Section>>,
}

/// Consecutive sections that do not overlap, in the order of their keys. A cursor reads them as one
/// source.
pub type Chain = Arc<Vec<Arc<Section>>>;

/// A section with its kind, in a list ordered by age.
#[derive(Clone, Debug)]
pub struct RankedSection {
    /// The section.
    pub section: Arc<Section>,
    /// It is a past section.
    pub is_past: bool,
}

pub(crate) fn chains_of<'s>(sections: impl Iterator<Item = &'s Arc<Section>>) -> Vec<Chain> {
    let mut chains: Vec<Vec<Arc<Section>>> = Vec::new();
    for section in sections {
        match chains.last_mut() {
            Some(chain) if chain.last().is_some_and(|last| last.is_before(section)) => {
                chain.push(section.clone());
            }
            _ => chains.push(vec![section.clone()]),
        }
    }
    chains.into_iter().map(Arc::new).collect()
}

fn position(section: &Arc<Section>) -> Position {
    section.descriptor().position
}

/// Compares sections by age. Sections of one position have no entry key in common, and the one with
/// the smaller keys counts as older: a fold writes changes of older entries and new entries, which
/// are after all others, into two sections. A merge of older sections and the changes has the same
/// position and stays before the new entries. A merge that ended with the new entries, but without
/// the changes, would override the changes.
fn compare_ages(one: &Arc<Section>, other: &Arc<Section>) -> Ordering {
    let (one, other) = (one.descriptor(), other.descriptor());
    let positions = one.position.cmp(&other.position);
    positions.then_with(|| one.first_entry_key().cmp(&other.first_entry_key()))
}

impl Sections {
    /// Creates a list without past sections. The sections can be in any order: their age is the
    /// position up to which they have folded, and for equal positions the order of their keys.
    pub fn new(present: Vec<Arc<Section>>) -> Sections {
        Sections::with_past(present, Vec::new())
    }

    /// Creates a list with past sections.
    pub fn with_past(mut present: Vec<Arc<Section>>, mut past: Vec<Arc<Section>>) -> Sections {
        present.sort_by(compare_ages);
        past.sort_by(compare_ages);
        let chains = chains_of(present.iter());
        Sections {
            present,
            chains,
            past,
        }
    }

    /// Returns the list with further sections.
    pub fn with_added(
        &self,
        present: impl IntoIterator<Item = Arc<Section>>,
        past: impl IntoIterator<Item = Arc<Section>>,
    ) -> Sections {
        let joined = self.present.iter().cloned().chain(present);
        let joined_past = self.past.iter().cloned().chain(past);
        Sections::with_past(joined.collect(), joined_past.collect())
    }

    /// Returns the list without the sections for which `is_gone` returns `true`.
    pub fn without(&self, is_gone: impl Fn(&Arc<Section>) -> bool) -> Sections {
        let left = |sections: &[Arc<Section>]| {
            let left = sections.iter().filter(|section| !is_gone(section));
            left.cloned().collect()
        };
        Sections::with_past(left(&self.present), left(&self.past))
    }

    /// Returns the sections that a snapshot needs, all as present ones.
    pub fn visible_at(self: &Arc<Sections>, snapshot: Position) -> Arc<Sections> {
        match self.past_at(snapshot).next() {
            None => self.clone(),
            Some(_) => {
                let by_age = self.by_age().into_iter();
                let visible = by_age.filter(|it| !it.is_past || position(&it.section) > snapshot);
                let present: Vec<Arc<Section>> = visible.map(|it| it.section).collect();
                let chains = chains_of(present.iter());
                let past = Vec::new();
                Arc::new(Sections {
                    present,
                    chains,
                    past,
                })
            }
        }
    }

    /// Returns the past sections that a snapshot at this position needs.
    pub fn past_at(&self, snapshot: Position) -> impl Iterator<Item = &Arc<Section>> {
        let first = self.past.partition_point(|it| position(it) <= snapshot);
        self.past[first..].iter()
    }

    /// Returns the present sections, oldest first.
    pub fn present(&self) -> &[Arc<Section>] {
        &self.present
    }

    /// Returns the past sections, oldest first.
    pub fn past(&self) -> &[Arc<Section>] {
        &self.past
    }

    /// Returns all sections, oldest first.
    pub fn by_age(&self) -> Vec<RankedSection> {
        let ranked = |section: &Arc<Section>, is_past| RankedSection {
            section: section.clone(),
            is_past,
        };
        let past = self.past.iter().map(|it| ranked(it, true));
        let present = self.present.iter().map(|it| ranked(it, false));
        let mut by_age: Vec<RankedSection> = past.chain(present).collect();
        // The sort is stable: past sections stay before the present ones of the same position.
        by_age.sort_by_key(|it| position(&it.section));
        by_age
    }

    /// Returns the chains of the present sections, oldest first. Entries of a younger chain
    /// override those of an older one.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Returns the descriptors of the present sections, which the catalog has.
    pub fn descriptors(&self) -> impl Iterator<Item = &SectionDescriptor> {
        self.present.iter().map(|section| section.descriptor())
    }

    /// Returns the descriptors of the past sections, which the catalog does not have.
    pub fn past_descriptors(&self) -> impl Iterator<Item = &SectionDescriptor> {
        self.past.iter().map(|section| section.descriptor())
    }

    /// Returns the bytes of the blocks of the present sections, before compression.
    pub fn bytes_raw(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.bytes_raw)
            .sum()
    }

    /// Returns the bytes of all sections in run files.
    pub fn bytes_stored(&self) -> u64 {
        let present: u64 = self.descriptors().map(|it| it.bytes_stored).sum();
        present + self.past_bytes()
    }

    /// Returns the bytes of the past sections in run files.
    pub fn past_bytes(&self) -> u64 {
        self.past_descriptors().map(|it| it.bytes_stored).sum()
    }

    /// Returns the number of entries of the present sections, including tombstones and older
    /// versions.
    pub fn entries(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.entries)
            .sum()
    }
}
