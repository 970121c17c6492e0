//! A map under test: tail, sections and snapshots, and a plain map with the same content.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use windrow_fold::cursor::MergeCursor;
use windrow_fold::merge::{
    self, MergeInput, MergeSizes, OlderData, Retention, SectionSinks, WrittenSections,
};
use windrow_fold::sections::{RankedSection, Sections};
use windrow_fold::{
    Entry, EntryBufferBuilder, EntryKey, Position, PostingsForm, RecordId, RunSink, Section,
    SectionOptions, Snapshot, Snapshots, StorageError, Tail, TailPart, TombstoneRanges, View,
};
use windrow_postings::{Posting, payload::put_position};
use windrow_storage::{Compression, MemoryDisk, Storage, StorageOptions};

use crate::reads::check_view;

/// The key and the id of an entry.
pub type ModelKey = (Vec<u8>, RecordId);
pub type Model = BTreeMap<ModelKey, Vec<u8>>;

/// Keys that begin with it are marks.
pub const MARK: u8 = b'a';

/// A small generator (xorshift). A seed identifies a run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Creates a posting of a record. The length of its field is mostly the same for all keys.
pub fn posting(id: RecordId, random: &mut Random) -> Vec<u8> {
    let frequency = 1 + [0, 0, 1, 5][random.below(4) as usize];
    let (mut positions, mut last) = (Vec::new(), None);
    for _ in 0..frequency {
        let next = last.map_or(0, |last| last + 1) + random.below(200) as u32;
        put_position(&mut positions, last, next);
        last = Some(next);
    }
    let posting = Posting {
        frequency,
        length: match random.below(500) {
            0 => 70_000,
            1 => 7,
            _ => 100 + (id.0 % 50) as u32 * 10,
        },
        score: (random.below(100) == 0).then_some(id.0 as f64 / 7.0),
        positions: &positions,
    };
    let mut payload = Vec::new();
    posting.write(&mut payload);
    payload
}

pub struct Map {
    pub places: Places,
    pub storage: Storage,
    pub sections: Arc<Sections>,
    pub tail: Tail,
    pub position: Position,
    pub snapshots: Arc<Snapshots>,
    pub model: Model,
    pub open: Vec<(Snapshot, View, Model)>,
    /// Past versions are in sections of their own.
    pub splits: bool,
    pub merge_sizes: MergeSizes,
    /// The tombstone ranges that cursors have recorded.
    pub tombstone_ranges: Arc<TombstoneRanges>,
}

pub fn key_of(number: u64) -> Vec<u8> {
    let long = number.is_multiple_of(17);
    let first = if number % 40 < 3 { MARK.into() } else { 'k' };
    let mut key = format!("{first}{:02}", number % 40).into_bytes();
    key.resize(if long { 60 } else { key.len() }, b'x');
    key
}

/// The kinds of entry keys of a map.
#[derive(Clone, Copy, Debug)]
pub enum Places {
    /// Keys, some of them long, each with several ids.
    ByKey,
    /// The empty key with ids, most of which never exist.
    ById,
    /// Few keys, each with many ids, and payloads that are postings.
    Postings,
}

impl Places {
    pub fn any(self, random: &mut Random) -> ModelKey {
        match self {
            Places::ByKey => (key_of(random.below(60)), RecordId(random.below(40))),
            Places::ById => (Vec::new(), RecordId(random.below(1_500))),
            Places::Postings => {
                let number = [0, 1, 1, 2, 2, 2, 3][random.below(7) as usize];
                let key = format!("f{}\0t{number}", number / 2);
                (key.into_bytes(), RecordId(random.below(4_000) * 50))
            }
        }
    }

    /// Returns the largest number of entries of a commit.
    pub fn written(self) -> u64 {
        match self {
            Places::Postings => 300,
            Places::ByKey | Places::ById => 30,
        }
    }

    /// Maps with more entries are read less often.
    pub fn steps(self) -> usize {
        match self {
            Places::Postings => 60,
            Places::ByKey | Places::ById => 400,
        }
    }

    pub fn payload(self, id: RecordId, position: Position, random: &mut Random) -> Vec<u8> {
        if matches!(self, Places::Postings) {
            return posting(id, random);
        }
        let size = if random.below(9) == 0 {
            3000
        } else {
            random.below(30) as usize
        };
        vec![position.0 as u8; size]
    }
}

impl Map {
    pub fn new(places: Places) -> Map {
        let disk = Arc::new(MemoryDisk::new());
        Map {
            places,
            storage: Storage::open(disk, StorageOptions::default()).unwrap(),
            sections: Arc::default(),
            tail: Tail::default(),
            position: Position::ZERO,
            snapshots: Arc::default(),
            model: Model::new(),
            open: Vec::new(),
            splits: true,
            merge_sizes: MergeSizes::default(),
            tombstone_ranges: Arc::default(),
        }
    }

    pub fn view(&self) -> View {
        let parts = self
            .tail
            .parts_up_to(self.position, |_| unreachable!("settled on writing"));
        View {
            sections: self.sections.clone(),
            parts: parts.to_vec(),
            snapshot: self.position,
            own_parts: 0,
        }
    }

    /// Deletes the first entries from an entry key on, as from a queue.
    pub fn delete_first(&mut self, random: &mut Random) {
        self.position = self.position.next();
        let position = self.position;
        let mut builder = EntryBufferBuilder::new(position, 0);
        let from = self.places.any(random);
        let first = self.model.range(from..).take(random.below(40) as usize);
        let removed: Vec<ModelKey> = first.map(|(place, _)| place.clone()).collect();
        for (key, id) in removed {
            builder.add(Entry {
                key: &key,
                id,
                position,
                deleted: true,
                payload: b"",
            });
            self.model.remove(&(key, id));
        }
        self.tail
            .parts_up_to(position, |_| (vec![builder.finish().into()], position));
    }

    pub fn write(&mut self, random: &mut Random) {
        self.position = self.position.next();
        let position = self.position;
        let mut builder = EntryBufferBuilder::new(position, 0);
        let mut touched = BTreeSet::new();
        for _ in 0..=random.below(self.places.written()) {
            let (key, id) = self.places.any(random);
            if !touched.insert((key.clone(), id)) {
                continue;
            }
            let deleted = self.model.contains_key(&(key.clone(), id)) && random.below(3) > 0;
            let payload = if deleted {
                vec![]
            } else {
                self.places.payload(id, position, random)
            };
            builder.add(Entry {
                key: &key,
                id,
                position,
                deleted,
                payload: &payload,
            });
            if deleted {
                self.model.remove(&(key, id))
            } else {
                self.model.insert((key, id), payload)
            };
        }
        self.tail
            .parts_up_to(position, |_| (vec![builder.finish().into()], position));
    }

    pub fn keep(&self, older: OlderData) -> Retention {
        Retention {
            snapshots: self.snapshots.positions(|| self.position),
            older,
        }
    }

    /// Writes a present and a past section.
    pub fn write_sections(
        &self,
        position: Position,
        write: impl FnOnce(SectionSinks<'_>, SectionOptions) -> Result<WrittenSections, StorageError>,
    ) -> (Option<Arc<Section>>, Option<Arc<Section>>) {
        let sink = || RunSink::new(self.storage.runs.create().unwrap());
        let (present, past) = (sink(), sink());
        let is_postings = matches!(self.places, Places::Postings);
        let options = SectionOptions {
            filter_bits: if is_postings { 0 } else { 10 },
            mark_byte: Some(MARK),
            packed: position.0.is_multiple_of(3),
            postings: is_postings.then_some(PostingsForm::ByField),
            with_digest: true,
            compression: Compression::Lz4,
            position,
        };
        let sinks = SectionSinks {
            present: &present,
            past: Some(&past).filter(|_| self.splits),
        };
        let made = write(sinks, options).unwrap();
        present.finish().unwrap();
        past.finish().unwrap();
        let open = |it| Arc::new(Section::open(&self.storage.runs, it).unwrap());
        (made.present.map(open), made.past.map(open))
    }

    pub fn fold(&mut self) {
        let parts: Vec<Arc<TailPart>> = self.view().parts;
        let buffers: Vec<_> = parts.iter().map(|part| part.sorted().clone()).collect();
        let keep = self.keep(OlderData::Present);
        let threads = 1 + self.position.0 as usize % 4;
        let (present, past) = self.write_sections(self.position, |sinks, options| {
            merge::write_buffers(&buffers, &keep, sinks, options, threads)
        });
        self.sections = Arc::new(self.sections.with_added(present, past));
        self.tail = Tail::new(self.position);
    }

    pub fn merge(&mut self) {
        let range = self.merge_sizes.pick_sections(self.sections.present());
        let chosen = range.and_then(|range| MergeInput::present(&self.sections, range));
        let Some(chosen) = chosen.or_else(|| self.merge_sizes.pick_past(&self.sections)) else {
            return;
        };
        let mut merge = MergeCursor::from_sections(&chosen.sections).unwrap();
        let keep = self.keep(chosen.older);
        let (present, past) = self.write_sections(chosen.position, |sinks, options| {
            merge::write_sections(&mut merge, None, &keep, sinks, options)
        });
        let is_gone = |it: &Arc<Section>| {
            chosen
                .sections
                .iter()
                .any(|one| Arc::ptr_eq(&one.section, it))
        };
        let left = self.sections.without(is_gone);
        self.sections = Arc::new(left.with_added(present, past));
    }

    /// Drops the past sections that no snapshot needs.
    pub fn drop_past_sections(&mut self) {
        let oldest = self.snapshots.positions(|| self.position)[0];
        let is_past = |it: &Arc<Section>| {
            let mut past = self.sections.past().iter();
            past.any(|one| Arc::ptr_eq(one, it)) && it.descriptor().position <= oldest
        };
        self.sections = Arc::new(self.sections.without(is_past));
    }

    /// Present sections have one version of each entry.
    pub fn check_present(&self) {
        for section in self.sections.present() {
            let alone = RankedSection {
                section: section.clone(),
                is_past: false,
            };
            let mut merge = MergeCursor::from_sections(&[alone]).unwrap();
            let mut last = None;
            while let Some(entry) = merge.current() {
                let place = Some((entry.key.to_vec(), entry.id));
                assert!(last < place, "{place:?} stands twice");
                last = place;
                merge.advance().unwrap();
            }
        }
    }

    pub fn check(&self, snapshot: Position, model: &Model, random: &mut Random) {
        let view = View {
            snapshot,
            sections: self.sections.visible_at(snapshot),
            ..self.view()
        };
        check_view(&view, model, self.places, random);
    }
}

/// Returns the range of the model with all entries of a key.
pub fn all_of(key: &[u8]) -> RangeInclusive<ModelKey> {
    (key.to_vec(), RecordId::MIN)..=(key.to_vec(), RecordId::MAX)
}

pub fn as_key(place: &ModelKey) -> EntryKey<'_> {
    EntryKey::new(&place.0, place.1)
}

pub fn first_of(key: &str) -> EntryKey<'_> {
    EntryKey::first_of(key.as_bytes())
}
