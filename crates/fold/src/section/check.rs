//! Reads a whole section, and checks that its content is what was written.

use windrow_storage::{Caching, StorageError};

use super::{FILTER_BLOCKS, Section};
use crate::entry::{EntryKey, RecordId};
use crate::entry_digest::EntryDigest;
use crate::restart_interval::RestartInterval;

/// A check of all blocks of a section. Stopping it between two blocks is up to the caller.
pub struct SectionCheck<'s> {
    section: &'s Section,
    block_count: usize,
    next_block: usize,
    interval: RestartInterval,
    last_key: Vec<u8>,
    last_id: RecordId,
    digest: EntryDigest,
}

impl Section {
    /// Begins a check that reads the whole section without the cache.
    ///
    /// # Errors
    /// Fails if the object store or the file system does, and with `Damaged` if the fences are not
    /// what was written.
    pub fn check(&self) -> Result<SectionCheck<'_>, StorageError> {
        for span in self.fences()?.all_lengths() {
            self.runs.open_block(self.address(span), Caching::Past)?;
        }
        Ok(SectionCheck {
            section: self,
            block_count: self.block_count()?,
            next_block: 0,
            interval: RestartInterval::default(),
            last_key: Vec::new(),
            last_id: RecordId::MIN,
            digest: EntryDigest::default(),
        })
    }
}

impl SectionCheck<'_> {
    /// Checks the next block. Returns `false` if all blocks and the digest of their entries were
    /// checked.
    ///
    /// # Errors
    /// Fails as [`Section::check`] does, also if the entries are not those that were written.
    pub fn check_next(&mut self) -> Result<bool, StorageError> {
        if self.next_block == self.block_count {
            self.check_digest()?;
            return Ok(false);
        }
        let (section, number) = (self.section, self.next_block);
        self.next_block += 1;
        if number.is_multiple_of(FILTER_BLOCKS) {
            section.filter_bits(number / FILTER_BLOCKS, Caching::Past)?;
        }
        let block = section.read(number, Caching::Past)?;
        for within in 0..section.layout(&block, number)?.intervals() {
            section.decode(&block, number, within, &mut self.interval)?;
            for at in 0..self.interval.len() {
                let entry = self.interval.get(&block, at);
                let entry = entry.ok_or_else(|| section.undecodable_block(number))?;
                if EntryKey::new(&self.last_key, self.last_id) > entry.entry_key() {
                    return Err(section.damaged("its entries are not in order".to_owned()));
                }
                if self.last_key != entry.key {
                    self.last_key.clear();
                    self.last_key.extend_from_slice(entry.key);
                }
                self.last_id = entry.id;
                self.digest.add(entry.key, entry.id, entry.payload);
            }
        }
        Ok(true)
    }

    fn check_digest(&self) -> Result<(), StorageError> {
        let section = self.section;
        let has_other_digest = section.digest().is_some_and(|it| it != self.digest);
        if self.digest.entries == section.descriptor.entries && !has_other_digest {
            return Ok(());
        }
        let what = "its entries are not those that it was written with";
        Err(section.damaged(what.to_owned()))
    }
}
