//! The sections of a map: ordered by age, and read as chains.
//!
//! Where somebody reads at an old position, folds and merges keep versions for him that have a newer one.
//! They stand in sections of their own, the past ones, so that who reads what is there now meets none of
//! them:
//!
//! ```text
//!              position 40           position 70           position 90
//! past         A(12) B(7) C(30)                            A(41) D gone(80) D(66)
//! present      A(35) B(20)           D(66) A(41)           A(85)
//! ```
//!
//! A past section has versions that were replaced or deleted up to its position, by what present ones of
//! that position or later ones have. A deletion that hides nothing present is past, too. Who reads at the
//! position of a past section or behind it needs none of that; for others it ranks as older than the present
//! sections of its position, and younger than all of earlier ones. Nobody reads before what was there at a
//! start: no catalog knows past sections.

use std::sync::Arc;

use windrow_storage::Position;

use crate::section::{Section, SectionDescriptor};

/// The sections of a map, oldest first, grouped into chains. Immutable: a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    all: Vec<Arc<Section>>,
    chains: Vec<Chain>,
    past: Vec<Arc<Section>>,
}

/// Sections that follow each other without overlap, in order of their keys: read as one.
pub type Chain = Arc<Vec<Arc<Section>>>;

/// Sections, oldest first, as chains.
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

impl Sections {
    /// Sections in any order; the position up to which each has folded tells their age.
    pub fn new(all: Vec<Arc<Section>>) -> Sections {
        Sections::with_past(all, Vec::new())
    }

    /// The same with past ones.
    pub fn with_past(mut all: Vec<Arc<Section>>, mut past: Vec<Arc<Section>>) -> Sections {
        all.sort_by_key(position);
        past.sort_by_key(position);
        let chains = chains_of(all.iter());
        Sections { all, chains, past }
    }

    /// With others, which are present or past.
    pub fn and(
        &self,
        all: impl IntoIterator<Item = Arc<Section>>,
        past: impl IntoIterator<Item = Arc<Section>>,
    ) -> Sections {
        let joined = self.all.iter().cloned().chain(all);
        let joined_past = self.past.iter().cloned().chain(past);
        Sections::with_past(joined.collect(), joined_past.collect())
    }

    /// Without those of which `is_gone` says so.
    pub fn without(&self, is_gone: impl Fn(&Arc<Section>) -> bool) -> Sections {
        let left = |sections: &[Arc<Section>]| {
            let left = sections.iter().filter(|section| !is_gone(section));
            left.cloned().collect()
        };
        Sections::with_past(left(&self.all), left(&self.past))
    }

    /// Those that have what a snapshot sees, as present ones.
    pub fn visible_at(self: &Arc<Sections>, snapshot: Position) -> Arc<Sections> {
        match self.past_at(snapshot).next() {
            None => self.clone(),
            Some(_) => {
                let wanted = self.by_age().into_iter();
                let wanted =
                    wanted.filter(|(section, is_past)| !is_past || position(section) > snapshot);
                let all: Vec<Arc<Section>> = wanted.map(|(section, _)| section).collect();
                let chains = chains_of(all.iter());
                let past = Vec::new();
                Arc::new(Sections { all, chains, past })
            }
        }
    }

    /// The past ones that somebody needs who reads at a position.
    pub fn past_at(&self, snapshot: Position) -> impl Iterator<Item = &Arc<Section>> {
        let first = self.past.partition_point(|it| position(it) <= snapshot);
        self.past[first..].iter()
    }

    /// The present ones, oldest first.
    pub fn all(&self) -> &[Arc<Section>] {
        &self.all
    }

    /// The past ones, oldest first.
    pub fn past(&self) -> &[Arc<Section>] {
        &self.past
    }

    /// All, oldest first, each with whether it is past.
    pub fn by_age(&self) -> Vec<(Arc<Section>, bool)> {
        let past = self.past.iter().map(|it| (it.clone(), true));
        let all = self.all.iter().map(|it| (it.clone(), false));
        let mut by_age: Vec<(Arc<Section>, bool)> = past.chain(all).collect();
        // Stable: of one position the past ones stay in front.
        by_age.sort_by_key(|(section, _)| position(section));
        by_age
    }

    /// Chains of the present ones, oldest first. A younger chain overrides what an older one holds.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// What the catalog knows.
    pub fn descriptors(&self) -> impl Iterator<Item = &SectionDescriptor> {
        self.all.iter().map(|section| section.descriptor())
    }

    /// The same of the past ones, which no catalog knows.
    pub fn past_descriptors(&self) -> impl Iterator<Item = &SectionDescriptor> {
        self.past.iter().map(|section| section.descriptor())
    }

    /// Bytes of blocks before they are compressed, of the present ones.
    pub fn bytes_raw(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.bytes_raw)
            .sum()
    }

    /// Bytes in run files.
    pub fn bytes_stored(&self) -> u64 {
        let present: u64 = self.descriptors().map(|it| it.bytes_stored).sum();
        present + self.past_bytes()
    }

    /// The same of the past ones alone.
    pub fn past_bytes(&self) -> u64 {
        self.past_descriptors().map(|it| it.bytes_stored).sum()
    }

    /// Entries of the present ones, with deletions and what they delete.
    pub fn entries(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.entries)
            .sum()
    }
}
