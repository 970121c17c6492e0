//! The record ids of all keys of a range, key by key.
//!
//! Most keys have few ids, and a lookup of one key costs more than reading these. A scan reads each
//! block of the range once:
//! 1. Each section and each part of a tail has a *current* key.
//! 2. The least of these is the key of the [`KeyLists`]. Mostly only one source has it. Its ids are
//!    decoded in place, without frequencies and lengths.
//! 3. If several sources have the key, a [`PostingList`](super::PostingList) merges them.

mod sources;

use std::sync::Arc;

use windrow_postings::GROUP;
use windrow_storage::{Position, StorageError};

use super::{END, PostingList};
use crate::entry::{EntryKey, RecordId};
use crate::section::Section;
use crate::view::View;
use sources::{BufferKeys, KeySource, SectionKeys};

/// The keys of a range with their record ids. A new one is before the first key.
#[derive(Debug)]
pub struct KeyLists {
    view: View,
    /// The end of the range, which is not included.
    to: Vec<u8>,
    sources: Vec<KeySource>,
    key: Vec<u8>,
    holder: Holder,
    /// The least current key of the sources other than the only holder, or the end of the range. It
    /// never decreases.
    limit: Vec<u8>,
}

/// The sources that have the current key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// Not searched yet.
    Unknown,
    Only(usize),
    Several,
    /// The ids were read. The only source that had the key, if there was one, has moved behind it.
    Read(Option<usize>),
}

impl View {
    /// Opens the keys from `from` up to, but not including, `to`. The payloads of the map must be
    /// postings.
    pub fn key_lists(&self, from: &[u8], to: &[u8]) -> Result<KeyLists, StorageError> {
        let mut sources = Vec::new();
        for chain in self.sections.chains() {
            let met = chain.iter().filter(|section| {
                let descriptor = section.descriptor();
                !descriptor.ends_before(from, RecordId::MIN) && descriptor.first_key.as_slice() < to
            });
            let sections: Vec<Arc<Section>> = met.cloned().collect();
            if !sections.is_empty() {
                let keys = SectionKeys::open(sections, from, self.snapshot)?;
                sources.push(KeySource::Sections(Box::new(keys)));
            }
        }
        let first_own = self.parts.len() - self.own_parts;
        for (number, part) in self.parts.iter().enumerate() {
            if part.count(EntryKey::first_of(from), EntryKey::first_of(to)) > 0 {
                let snapshot = if number >= first_own {
                    Position::MAX
                } else {
                    self.snapshot
                };
                let keys = BufferKeys::new(part.sorted().clone(), from, snapshot);
                sources.push(KeySource::Buffer(keys));
            }
        }
        Ok(KeyLists {
            view: self.clone(),
            to: to.to_vec(),
            sources,
            key: Vec::new(),
            holder: Holder::Unknown,
            limit: Vec::new(),
        })
    }
}

impl KeyLists {
    /// Moves to the next key. Returns `false` at the end. A key has no ids if all were deleted.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator would copy each key"
    )]
    pub fn next(&mut self) -> Result<bool, StorageError> {
        match self.holder {
            Holder::Only(holder) => self.pass(holder)?,
            Holder::Several => self.leave_key()?,
            Holder::Unknown | Holder::Read(_) => {}
        }
        let known = match self.holder {
            Holder::Only(holder) | Holder::Read(Some(holder)) => Some(holder),
            _ => None,
        };
        if let Some(holder) = known
            && let Some(source) = self.sources.get_mut(holder)
            && source.is_before(&self.limit)?
            && let Some(key) = source.key()
        {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.holder = Holder::Only(holder);
            return Ok(true);
        }
        self.find_least();
        if self.holder == Holder::Unknown {
            self.sources.clear();
        }
        Ok(self.holder != Holder::Unknown)
    }

    /// Moves to the first key of the range that is `key` or greater. Does not move if the current
    /// key is there or beyond and its ids were not read. Returns `false` at the end.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, StorageError> {
        for source in &mut self.sources {
            source.seek(key)?;
        }
        self.find_least();
        if self.holder == Holder::Unknown {
            self.sources.clear();
        }
        Ok(self.holder != Holder::Unknown)
    }

    /// Finds the least current key of the range and its holders.
    fn find_least(&mut self) {
        let keys = self.sources.iter().map(KeySource::key).enumerate();
        let to = self.to.as_slice();
        let keys = keys.map(|(number, key)| (number, key.filter(|key| *key < to)));
        let mut least: Option<(usize, &[u8])> = None;
        let (mut others, mut is_shared): (Option<&[u8]>, bool) = (None, false);
        for (number, key) in keys {
            let Some(key) = key else {
                continue;
            };
            match least {
                Some((_, known)) if key == known => is_shared = true,
                Some((_, known)) if key > known => {
                    others = Some(others.map_or(key, |others| others.min(key)));
                }
                known => {
                    others = known.map(|(_, key)| key);
                    (least, is_shared) = (Some((number, key)), false);
                }
            }
        }
        self.limit = others.unwrap_or(to).to_vec();
        self.holder = match least {
            None => Holder::Unknown,
            Some((number, key)) => {
                self.key.clear();
                self.key.extend_from_slice(key);
                if is_shared {
                    Holder::Several
                } else {
                    Holder::Only(number)
                }
            }
        };
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns `true` if the key has at most `most` entries, as far as that is known without
    /// reading them. In this case [`read`](Self::read) costs less than opening the list of the key.
    pub fn has_few(&self, most: u64) -> bool {
        match self.holder {
            Holder::Only(holder) => {
                let source = self.sources.get(holder);
                source.is_some_and(|source| source.has_few(most))
            }
            Holder::Unknown | Holder::Several | Holder::Read(_) => false,
        }
    }

    /// Passes the ids of the key to `take` in ascending order. Can be called once for a key.
    pub fn read(&mut self, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        match self.holder {
            Holder::Only(holder) => {
                self.move_on(holder, take)?;
                self.holder = Holder::Read(Some(holder));
            }
            Holder::Several => {
                let mut list = self.merged()?;
                let mut id = list.id();
                let mut batch = Vec::with_capacity(GROUP);
                while id != END {
                    batch.push(id.0);
                    if batch.len() == GROUP {
                        take(&batch);
                        batch.clear();
                    }
                    id = list.next();
                }
                list.take_error().map_or(Ok(()), Err)?;
                take(&batch);
                self.leave_key()?;
                self.holder = Holder::Read(None);
            }
            Holder::Unknown | Holder::Read(_) => {}
        }
        Ok(())
    }

    /// Returns the number of ids of the key. Can be called once for a key, instead of
    /// [`read`](Self::read). Ids are not unpacked if the number is known without.
    pub fn count(&mut self) -> Result<u64, StorageError> {
        let mut count = 0;
        match self.holder {
            Holder::Only(holder) => {
                if let Some(source) = self.sources.get_mut(holder) {
                    count = source.count()?;
                }
                self.holder = Holder::Read(Some(holder));
            }
            Holder::Several => match self.merged()?.count() {
                Some(known) => {
                    count = known;
                    self.leave_key()?;
                    self.holder = Holder::Read(None);
                }
                None => self.read(&mut |ids| count += ids.len() as u64)?,
            },
            Holder::Unknown | Holder::Read(_) => {}
        }
        Ok(count)
    }

    fn merged(&self) -> Result<PostingList, StorageError> {
        self.view.postings(&self.key)
    }

    /// Moves a source behind the key.
    fn move_on(&mut self, source: usize, take: &mut dyn FnMut(&[u64])) -> Result<(), StorageError> {
        match self.sources.get_mut(source) {
            Some(source) => source.read(take),
            None => Ok(()),
        }
    }

    /// Moves a source behind the key without reading ids.
    fn pass(&mut self, source: usize) -> Result<(), StorageError> {
        match self.sources.get_mut(source) {
            Some(source) => source.pass(),
            None => Ok(()),
        }
    }

    /// Moves all sources that have the key behind it.
    fn leave_key(&mut self) -> Result<(), StorageError> {
        for source in &mut self.sources {
            if source.key() == Some(&self.key) {
                source.pass()?;
            }
        }
        Ok(())
    }
}
