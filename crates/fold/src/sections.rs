//! The sections of a map: ordered by age, and read as chains.

use std::sync::Arc;

use crate::section::{Section, SectionDescriptor};

/// The sections of a map, oldest first, grouped into chains. Immutable: a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    all: Vec<Arc<Section>>,
    chains: Vec<Chain>,
}

/// Sections that follow each other without overlap, in order of their keys: read as one.
pub type Chain = Arc<Vec<Arc<Section>>>;

impl Sections {
    /// Sections in any order; the position up to which each has folded tells their age.
    pub fn new(mut all: Vec<Arc<Section>>) -> Sections {
        all.sort_by_key(|section| section.descriptor().position);
        let mut chains: Vec<Vec<Arc<Section>>> = Vec::new();
        for section in &all {
            match chains.last_mut() {
                Some(chain) if chain.last().is_some_and(|last| last.is_before(section)) => {
                    chain.push(section.clone());
                }
                _ => chains.push(vec![section.clone()]),
            }
        }
        Sections {
            all,
            chains: chains.into_iter().map(Arc::new).collect(),
        }
    }

    /// All sections, oldest first.
    pub fn all(&self) -> &[Arc<Section>] {
        &self.all
    }

    /// Chains, oldest first. A younger chain overrides what an older one holds.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    pub fn descriptors(&self) -> impl Iterator<Item = &SectionDescriptor> {
        self.all.iter().map(|section| section.descriptor())
    }

    /// Bytes of blocks before they are compressed.
    pub fn bytes_raw(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.bytes_raw)
            .sum()
    }

    /// Bytes in run files.
    pub fn bytes_stored(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.bytes_stored)
            .sum()
    }

    /// Entries, with deletions and what they delete.
    pub fn entries(&self) -> u64 {
        self.descriptors()
            .map(|descriptor| descriptor.entries)
            .sum()
    }
}
