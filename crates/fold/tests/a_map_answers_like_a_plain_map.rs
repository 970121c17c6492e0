//! Random writes, folds and merges on one side, a plain map on the other: every read at every open
//! snapshot answers the same, forward, backward, by place and by key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use windrow_fold::cursor::Merge;
use windrow_fold::merge::{self, Chosen, Keep, Older, Sinks};
use windrow_fold::postings::{Bounds, END, PostingList};
use windrow_fold::sections::Sections;
use windrow_fold::{
    Age, Cursor, Direction, Entry, Gone, HashedKey, Part, PileBuilder, PostingsForm, RunSink,
    Section, SectionOptions, Snapshot, Snapshots, Tail, View, held_in_section,
};
use windrow_postings::{Impact, Posting, payload::put_position};
use windrow_storage::{Compression, MemoryDisk, Storage, StorageOptions};

type Place = (Vec<u8>, u64);
type Model = BTreeMap<Place, Vec<u8>>;

/// Keys that begin with it are marks.
const MARK: u8 = b'a';

/// A small generator (xorshift), so that a seed names a run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A posting of a record. Mostly the length of its field is the same for all keys.
fn posting(id: u64, random: &mut Random) -> Vec<u8> {
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
            _ => 100 + (id % 50) as u32 * 10,
        },
        score: (random.below(100) == 0).then_some(id as f64 / 7.0),
        positions: &positions,
    };
    let mut payload = Vec::new();
    posting.write(&mut payload);
    payload
}

struct Map {
    places: Places,
    storage: Storage,
    sections: Arc<Sections>,
    tail: Tail,
    position: u64,
    snapshots: Arc<Snapshots>,
    model: Model,
    open: Vec<(Snapshot, View, Model)>,
    /// Whether past versions stand in sections of their own.
    splits: bool,
    /// What cursors have found gone.
    gone: Arc<Gone>,
}

fn key_of(number: u64) -> Vec<u8> {
    let long = number.is_multiple_of(17);
    let first = if number % 40 < 3 { MARK.into() } else { 'k' };
    let mut key = format!("{first}{:02}", number % 40).into_bytes();
    key.resize(if long { 60 } else { key.len() }, b'x');
    key
}

/// What places a map has.
#[derive(Clone, Copy, Debug)]
enum Places {
    /// Keys, some of them long, each with several ids.
    ByKey,
    /// The empty key with ids, most of which are never there.
    ById,
    /// Few keys, each with many ids, and payloads that are postings.
    Postings,
}

impl Places {
    fn any(self, random: &mut Random) -> Place {
        match self {
            Places::ByKey => (key_of(random.below(60)), random.below(40)),
            Places::ById => (Vec::new(), random.below(1_500)),
            Places::Postings => {
                let number = [0, 1, 1, 2, 2, 2, 3][random.below(7) as usize];
                let key = format!("f{}\0t{number}", number / 2);
                (key.into_bytes(), random.below(4_000) * 50)
            }
        }
    }

    /// How many places a commit may touch, at most.
    fn written(self) -> u64 {
        match self {
            Places::Postings => 300,
            Places::ByKey | Places::ById => 30,
        }
    }

    /// Maps with more entries are read less often.
    fn steps(self) -> usize {
        match self {
            Places::Postings => 60,
            Places::ByKey | Places::ById => 400,
        }
    }

    fn payload(self, id: u64, position: u64, random: &mut Random) -> Vec<u8> {
        if matches!(self, Places::Postings) {
            return posting(id, random);
        }
        let size = if random.below(9) == 0 {
            3000
        } else {
            random.below(30) as usize
        };
        vec![position as u8; size]
    }
}

impl Map {
    fn new(places: Places) -> Map {
        let disk = Arc::new(MemoryDisk::new());
        Map {
            places,
            storage: Storage::open(disk, StorageOptions::default()).unwrap(),
            sections: Arc::default(),
            tail: Tail::default(),
            position: 0,
            snapshots: Arc::default(),
            model: Model::new(),
            open: Vec::new(),
            splits: true,
            gone: Arc::default(),
        }
    }

    fn view(&self) -> View {
        let parts = self
            .tail
            .settle(self.position, |_| unreachable!("settled on writing"));
        View {
            sections: self.sections.clone(),
            parts: parts.to_vec(),
            snapshot: self.position,
            own: 0,
        }
    }

    /// Takes out what is first behind a place, as from a queue.
    fn take_out(&mut self, random: &mut Random) {
        self.position += 1;
        let position = self.position;
        let mut builder = PileBuilder::new(position, 0);
        let from = self.places.any(random);
        let first = self.model.range(from..).take(random.below(40) as usize);
        let gone: Vec<Place> = first.map(|(place, _)| place.clone()).collect();
        for (key, id) in gone {
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
            .settle(position, |_| (vec![builder.finish().into()], position));
    }

    fn write(&mut self, random: &mut Random) {
        self.position += 1;
        let position = self.position;
        let mut builder = PileBuilder::new(position, 0);
        let mut touched = BTreeSet::new();
        for _ in 0..=random.below(self.places.written()) {
            let (key, id) = self.places.any(random);
            if !touched.insert((key.clone(), id)) {
                continue;
            }
            let deleted = self.model.contains_key(&(key.clone(), id)) && random.below(3) > 0;
            let payload = match deleted {
                true => vec![],
                false => self.places.payload(id, position, random),
            };
            builder.add(Entry {
                key: &key,
                id,
                position,
                deleted,
                payload: &payload,
            });
            match deleted {
                true => self.model.remove(&(key, id)),
                false => self.model.insert((key, id), payload),
            };
        }
        self.tail
            .settle(position, |_| (vec![builder.finish().into()], position));
    }

    fn keep(&self, older: Older) -> Keep {
        Keep {
            snapshots: self.snapshots.positions(|| self.position),
            older,
        }
    }

    /// The sections of what is there now, and of what was.
    fn write_sections(
        &self,
        merge: &mut Merge,
        keep: &Keep,
        position: u64,
    ) -> (Option<Arc<Section>>, Option<Arc<Section>>) {
        let sink = || RunSink::new(self.storage.runs.create().unwrap());
        let (present, past) = (sink(), sink());
        let options = SectionOptions {
            filter_bits: 10,
            marked: Some(MARK),
            packed: position.is_multiple_of(3),
            postings: matches!(self.places, Places::Postings).then_some(PostingsForm::ByField),
            summed: true,
            compression: Compression::Lz4,
            position,
        };
        let sinks = Sinks {
            present: &present,
            past: Some(&past).filter(|_| self.splits),
        };
        let made = merge::write(merge, None, keep, sinks, options).unwrap();
        present.finish().unwrap();
        past.finish().unwrap();
        let open = |it| Arc::new(Section::open(&self.storage.runs, it).unwrap());
        (made.present.map(open), made.past.map(open))
    }

    fn fold(&mut self) {
        let parts: Vec<Arc<Part>> = self.view().parts;
        let chunks = parts.iter().map(|part| part.chunk().clone());
        let mut merge = Merge::of_chunks(chunks).unwrap();
        let keep = self.keep(Older::Present);
        let (present, past) = self.write_sections(&mut merge, &keep, self.position);
        self.sections = Arc::new(self.sections.and(present, past));
        self.tail = Tail::new(self.position);
    }

    fn merge(&mut self) {
        let range = merge::choose(self.sections.all());
        let chosen = range.and_then(|range| Chosen::present(&self.sections, range));
        let Some(chosen) = chosen.or_else(|| Chosen::past(&self.sections)) else {
            return;
        };
        let mut merge = Merge::of_ranked(&chosen.ranked).unwrap();
        let keep = self.keep(chosen.older);
        let (present, past) = self.write_sections(&mut merge, &keep, chosen.position);
        let is_gone = |it: &Arc<Section>| chosen.ranked.iter().any(|(one, _)| Arc::ptr_eq(one, it));
        let left = self.sections.without(is_gone);
        self.sections = Arc::new(left.and(present, past));
    }

    /// Past sections that nobody reads any more go.
    fn let_go(&mut self) {
        let oldest = self.snapshots.positions(|| self.position)[0];
        let is_past = |it: &Arc<Section>| {
            let mut past = self.sections.past().iter();
            past.any(|one| Arc::ptr_eq(one, it)) && it.descriptor().position <= oldest
        };
        self.sections = Arc::new(self.sections.without(is_past));
    }

    /// Who reads what is there now meets no versions: each place stands once in a section.
    fn check_present(&self) {
        for section in self.sections.all() {
            let mut merge = Merge::of_ranked(&[(section.clone(), false)]).unwrap();
            let mut last = None;
            while let Some(entry) = merge.current() {
                let place = Some((entry.key.to_vec(), entry.id));
                assert!(last < place, "{place:?} stands twice");
                last = place;
                merge.advance().unwrap();
            }
        }
    }

    fn check(&self, snapshot: u64, model: &Model, random: &mut Random) {
        let view = View {
            snapshot,
            sections: self.sections.seen_at(snapshot),
            ..self.view()
        };
        check_view(&view, model, self.places, random);
    }
}

fn read(view: &View, direction: Direction, from: Option<&Place>) -> Vec<(Place, Vec<u8>)> {
    let mut cursor = view.cursor(direction);
    if let Some((key, id)) = from {
        cursor.seek(key, *id).unwrap();
    }
    let mut found = Vec::new();
    while cursor.next().unwrap() {
        let shared = cursor.payload_bytes();
        assert_eq!(cursor.payload(), shared);
        found.push((
            (cursor.key().to_vec(), cursor.id()),
            cursor.payload().to_vec(),
        ));
    }
    found
}

/// The id of the entry that comes next, if it is of this key.
fn next_of_key(cursor: &mut Cursor, key: &[u8]) -> Option<u64> {
    let is_there = cursor.next().unwrap() && cursor.key() == key;
    is_there.then(|| cursor.id())
}

fn plain<'m>(range: impl Iterator<Item = (&'m Place, &'m Vec<u8>)>) -> Vec<(Place, Vec<u8>)> {
    range
        .map(|(place, payload)| (place.clone(), payload.clone()))
        .collect()
}

fn check_view(view: &View, model: &Model, places: Places, random: &mut Random) {
    assert_eq!(read(view, Direction::Forward, None), plain(model.iter()));
    assert_eq!(
        read(view, Direction::Backward, None),
        plain(model.iter().rev())
    );
    if matches!(places, Places::Postings) {
        for key in ["f0\0t0", "f0\0t1", "f1\0t2", "f1\0t3", "f2\0t4"] {
            check_postings(view, model, key.as_bytes(), random);
        }
        for (from, to) in [
            ("", "g"),
            ("f0\0t1", "f1\0t3"),
            ("f1\0t2x", "f2\0t9"),
            ("g", "h"),
        ] {
            check_key_lists(view, model, (from.as_bytes(), to.as_bytes()), random);
        }
    }
    let cuts = view.cuts(7).unwrap();
    assert!(cuts.len() <= 7 && cuts.is_sorted_by(|one, next| one < next));
    let mut keys_sought = view.cursor(Direction::Forward);
    for _ in 0..5 {
        let place = places.any(random);
        let after = (Bound::Included(place.clone()), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Included(place.clone()));
        assert_eq!(
            read(view, Direction::Forward, Some(&place)),
            plain(model.range(after))
        );
        let expected = plain(model.range(before).rev());
        assert!(read(view, Direction::Backward, Some(&place)) == expected);
        let end = places.any(random);
        let count = view.count((&place.0, place.1), (&end.0, end.1)).unwrap();
        if let Some(count) = count {
            let expected = match place < end {
                true => model.range(place.clone()..end).count(),
                false => 0,
            };
            assert_eq!(count, expected as u64);
        }
        let found = view.get(&place.0, place.1).unwrap();
        assert_eq!(found.as_deref(), model.get(&place).map(Vec::as_slice));
        let first = model
            .range((place.0.clone(), 0)..=(place.0.clone(), u64::MAX))
            .next();
        let first = first.map(|(place, _)| place.1);
        let mut cursor = view.cursor_of_key(&place.0).unwrap();
        cursor.seek(&place.0, 0).unwrap();
        assert_eq!(next_of_key(&mut cursor, &place.0), first);
        keys_sought.seek_key(&place.0).unwrap();
        assert_eq!(next_of_key(&mut keys_sought, &place.0), first);
    }
    let marks: BTreeSet<Vec<u8>> = view.marks(MARK).unwrap().unwrap().into_iter().collect();
    let expected = model.keys().map(|place| place.0.clone());
    let expected: BTreeSet<Vec<u8>> = expected.filter(|key| key.first() == Some(&MARK)).collect();
    assert_eq!(marks, expected);
}

/// The keys of a range with their ids are those of the model, whether ids are read, counted or passed.
fn check_key_lists(view: &View, model: &Model, (from, to): (&[u8], &[u8]), random: &mut Random) {
    let mut expected: BTreeMap<&[u8], Vec<u64>> = BTreeMap::new();
    for (key, id) in model.keys() {
        if (from..to).contains(&key.as_slice()) {
            expected.entry(key).or_default().push(*id);
        }
    }
    let mut lists = view.key_lists(from, to).unwrap();
    let mut last: Option<Vec<u8>> = None;
    while lists.next().unwrap() {
        let key = lists.key().to_vec();
        assert!(last.is_none_or(|last| last < key), "{key:?}");
        let ids = expected.remove(key.as_slice());
        match random.below(3) {
            0 => {
                let mut found = Vec::new();
                lists.read(&mut |ids| found.extend_from_slice(ids)).unwrap();
                assert_eq!(found, ids.unwrap_or_default(), "{key:?}");
            }
            1 => {
                let count = ids.map_or(0, |ids| ids.len() as u64);
                assert_eq!(lists.count().unwrap(), count, "{key:?}");
            }
            _ => {}
        }
        last = Some(key);
    }
    assert!(expected.is_empty(), "{expected:?}");
    assert!(!lists.next().unwrap());
    check_key_seeks(view, model, (from, to), random);
}

/// Seeks among the keys of a range find the least key that is not less, and its ids.
fn check_key_seeks(view: &View, model: &Model, (from, to): (&[u8], &[u8]), random: &mut Random) {
    let mut lists = view.key_lists(from, to).unwrap();
    let keys: BTreeSet<&Vec<u8>> = model.keys().map(|(key, _)| key).collect();
    let keys: Vec<&Vec<u8>> = keys.into_iter().collect();
    let mut least = from.to_vec();
    loop {
        let is_next = random.below(3) == 0;
        let has_key = if is_next {
            lists.next().unwrap()
        } else if let Some(key) = keys.get(random.below(keys.len() as u64 + 1) as usize) {
            let key = key.get(..key.len() - random.below(2) as usize).unwrap();
            least = least.max(key.to_vec());
            lists.seek(&least).unwrap()
        } else {
            lists.seek(&least).unwrap()
        };
        let mut later = keys
            .iter()
            .filter(|key| (&least[..]..to).contains(&key.as_slice()));
        if !has_key {
            assert_eq!(later.next(), None, "from {least:?}");
            return;
        }
        // Keys without ids may be there, but no key with ids is left out.
        let key = lists.key().to_vec();
        assert!(key >= least && key.as_slice() < to);
        assert!(later.next().is_none_or(|first| **first >= key), "{key:?}");
        let mut found = Vec::new();
        lists.read(&mut |ids| found.extend_from_slice(ids)).unwrap();
        let range = (key.clone(), 0)..=(key.clone(), u64::MAX);
        let expected: Vec<u64> = model.range(range).map(|(it, _)| it.1).collect();
        assert_eq!(found, expected, "{key:?}");
        least = [key.as_slice(), &[0]].concat();
    }
}

/// The postings of a key are those of the model, however they are read.
fn check_postings(view: &View, model: &Model, key: &[u8], random: &mut Random) {
    let range = (key.to_vec(), 0)..=(key.to_vec(), u64::MAX);
    let expected: Vec<(u64, &Vec<u8>)> = model.range(range).map(|(it, all)| (it.1, all)).collect();
    let mut list = view.postings(key).unwrap();
    if let Some(count) = list.count() {
        assert_eq!(count, expected.len() as u64);
    }
    assert!(list.count_at_most() >= expected.len() as u64);
    // To ask for the bounds of all moves nothing.
    let whole = list.bounds();
    for (_, payload) in &expected {
        let posting = Posting::read(payload).unwrap();
        assert!(bounds_hold(&whole, &posting), "{posting:?} in {whole:?}");
    }
    check_runs(view, &expected, key, random);
    let mut at = 0;
    let far = random.below(2_000) * 50 + 1;
    while let Some((id, payload)) = expected.get(at) {
        assert_eq!(list.id(), *id);
        check_posting(&mut list, payload);
        let (target, is_next) = match random.below(3) {
            0 => (id + random.below(far), false),
            _ => (id + 1, true),
        };
        if random.below(4) == 0 {
            check_bounds(&mut list, &expected[at..], target);
        }
        match is_next {
            true => list.next(),
            false => list.seek(target),
        };
        at += expected[at..]
            .iter()
            .take_while(|(id, _)| *id < target)
            .count();
    }
    assert_eq!(list.id(), END);
    assert_eq!(list.next(), END);
    assert!(list.take_error().is_none());
}

fn check_posting(list: &mut PostingList, payload: &[u8]) {
    let expected = Posting::read(payload).unwrap();
    assert_eq!(list.frequency(), expected.frequency);
    assert_eq!(list.length(), expected.length);
    assert_eq!(list.stored_score(), expected.score);
    let mut positions = Vec::new();
    list.positions(&mut positions);
    assert!(expected.positions().eq(positions));
}

/// What is passed on in runs is what is there.
fn check_runs(view: &View, expected: &[(u64, &Vec<u8>)], key: &[u8], random: &mut Random) {
    let mut list = view.postings(key).unwrap();
    let mut found: Vec<(u64, u32, u32, Option<f64>)> = Vec::new();
    while list.id() != END {
        let last = list.id() + random.below(30_000);
        let most = 1 + random.below(200) as usize;
        let has_run = list.read_run(last, most, |run| {
            assert!(run.ids.len() <= most && run.ids.iter().all(|id| *id <= last));
            let numbers = run.frequencies.iter().zip(run.lengths);
            for (at, (id, (frequency, length))) in run.ids.iter().zip(numbers).enumerate() {
                let score = run.scores.iter().find(|(place, _)| *place == at);
                found.push((*id, *frequency, *length, score.map(|it| it.1)));
            }
        });
        if !has_run {
            found.push((
                list.id(),
                list.frequency(),
                list.length(),
                list.stored_score(),
            ));
            list.next();
        }
    }
    let wanted = expected.iter().map(|(id, payload)| {
        let posting = Posting::read(payload).unwrap();
        (*id, posting.frequency, posting.length, posting.score)
    });
    assert!(found.into_iter().eq(wanted));
}

/// Bounds from a record on hold up to the end that is told.
fn check_bounds(list: &mut PostingList, expected: &[(u64, &Vec<u8>)], from: u64) {
    let end = list.block_end(from);
    let bounds = list.block_bounds();
    let mut rest = expected.iter().filter(|(id, _)| *id >= from);
    if rest.clone().next().is_some() {
        assert!(end >= from && end < END);
    }
    let within = rest.by_ref().take_while(|(id, _)| *id <= end);
    for (id, payload) in within {
        let posting = Posting::read(payload).unwrap();
        assert!(
            bounds_hold(&bounds, &posting),
            "{id}: {posting:?} in {bounds:?}"
        );
    }
}

fn bounds_hold(bounds: &Bounds, posting: &Posting<'_>) -> bool {
    let own = Impact::of(posting.frequency, posting.length);
    let covers = |it: &Impact| it.frequency >= own.frequency && it.length <= own.length;
    bounds.impacts.iter().any(covers) && bounds.score >= posting.score.unwrap_or(0.0)
}

/// What others have noted to be gone hides nothing, and what is gone through is noted.
fn check_gone(view: &View, model: &Model, map: &Map, random: &mut Random) {
    for _ in 0..6 {
        let direction = match random.below(3) {
            0 => Direction::Backward,
            _ => Direction::Forward,
        };
        let mut cursor = view.cursor(direction).noting(&map.gone);
        if direction == Direction::Forward && random.below(3) == 0 {
            assert!(places_of(&mut cursor, usize::MAX).iter().eq(model.keys()));
            continue;
        }
        for _ in 0..2 {
            let place = map.places.any(random);
            cursor.seek(&place.0, place.1).unwrap();
            let count = random.below(6) as usize;
            let found = places_of(&mut cursor, count);
            let expected: Vec<&Place> = match direction {
                Direction::Forward => model.range(place..).map(|it| it.0).take(count).collect(),
                Direction::Backward => {
                    let before = model.range(..=place).rev();
                    before.map(|it| it.0).take(count).collect()
                }
            };
            assert!(found.iter().eq(expected));
            let place = map.places.any(random);
            let mut of_key = view.cursor_of_key(&place.0).unwrap().noting(&map.gone);
            of_key.seek(&place.0, place.1).unwrap();
            check_key(&mut of_key, place, model);
            if direction == Direction::Forward && random.below(2) == 0 {
                let key = map.places.any(random).0;
                cursor.seek_key(&key).unwrap();
                check_key(&mut cursor, (key, 0), model);
            }
        }
    }
}

/// A cursor that was sent to a place shows what there is of its key from there on.
fn check_key(cursor: &mut Cursor, place: Place, model: &Model) {
    let mut found = places_of(cursor, usize::MAX);
    found.retain(|it| it.0 == place.0);
    let last = (place.0.clone(), u64::MAX);
    assert!(found.iter().eq(model.range(place..=last).map(|it| it.0)));
}

/// At most so many of the places that a cursor shows next.
fn places_of(cursor: &mut Cursor, count: usize) -> Vec<Place> {
    let mut found = Vec::new();
    while found.len() < count && cursor.next().unwrap() {
        found.push((cursor.key().to_vec(), cursor.id()));
    }
    found
}

/// Keys that are there are told from keys that never were.
fn check_presence(map: &Map) {
    let model = &map.model;
    let mut keys: Vec<Vec<u8>> = model.keys().map(|place| place.0.clone()).collect();
    let absent = keys
        .iter()
        .map(|key| [key.as_slice(), b"\x01none"].concat());
    let absent: Vec<Vec<u8>> = absent.collect();
    keys.extend(absent.iter().cloned());
    keys.sort();
    keys.dedup();
    let wanted: Vec<HashedKey<'_>> = keys.iter().map(|key| HashedKey::of(key)).collect();
    let view = map.view();
    let has = |key: &Vec<u8>| view.parts.iter().any(|part| part.of_key(key).is_some());
    let mut held: Vec<bool> = keys.iter().map(has).collect();
    for section in view.sections.all() {
        let found = held_in_section(section, view.snapshot, &wanted).unwrap();
        found.into_iter().for_each(|number| held[number] = true);
    }
    for (key, held) in keys.iter().zip(held) {
        let is_there = model.keys().any(|place| place.0 == *key);
        assert_eq!(held, is_there, "{key:?}");
    }
}

fn check(places: Places, seed: u64, splits: bool) {
    let (mut map, mut random) = (Map::new(places), Random(seed));
    map.splits = splits;
    for step in 0..places.steps() {
        match random.below(21) {
            20 => map.take_out(&mut random),
            0..=12 => map.write(&mut random),
            13..=15 => map.fold(),
            16 => map.merge(),
            17 => {
                let position = map.position;
                let snapshot = map.snapshots.open(Age::Limited, || position);
                map.open.push((snapshot, map.view(), map.model.clone()));
            }
            18 if !map.open.is_empty() => {
                let number = random.below(map.open.len() as u64) as usize;
                map.open.swap_remove(number);
            }
            18 => map.let_go(),
            _ => map.check(map.position, &map.model.clone(), &mut random),
        }
        if let Some((snapshot, view, model)) = map.open.last().filter(|_| random.below(4) == 0) {
            check_view(view, model, places, &mut random);
            map.check(snapshot.position(), model, &mut random);
            check_gone(view, model, &map, &mut random);
        }
        check_gone(&map.view(), &map.model, &map, &mut random);
        if step % 8 == 0 {
            check_presence(&map);
            if splits {
                map.check_present();
            }
        }
    }
}

#[test]
fn every_read_agrees() {
    for seed in 1..=8 {
        for places in [Places::ByKey, Places::ById, Places::Postings] {
            // Maps of postings are large.
            if matches!(places, Places::Postings) && seed > 3 {
                continue;
            }
            let splits = seed % 3 > 0;
            check(places, 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed), splits);
        }
    }
}

/// Where many records have a key, their postings are packed, and a seek unpacks only what it goes to.
#[test]
fn packed_postings_are_skipped() {
    let (mut map, mut random) = (Map::new(Places::Postings), Random(5));
    let ids: Vec<u64> = (0..3_000).map(|number| number * 7 + number % 5).collect();
    let mut builder = PileBuilder::new(1, 0);
    for id in &ids {
        builder.add(Entry {
            key: b"t2",
            id: *id,
            position: 1,
            deleted: false,
            payload: &posting(*id, &mut random),
        });
    }
    map.position = 1;
    map.tail.settle(1, |_| (vec![builder.finish().into()], 1));
    map.fold();
    let view = map.view();
    let mut list = view.postings(b"t2").unwrap();
    assert_eq!(list.count(), Some(ids.len() as u64));
    assert_eq!(list.id(), ids[0]);
    for at in [300, 1_000, ids.len() - 200] {
        assert_eq!(list.seek(ids[at]), ids[at]);
    }
    assert_eq!(list.groups_read(), 4);
    assert_eq!(list.seek(ids[ids.len() - 1] + 1), END);
}

/// One section of which nothing was deleted is counted without reading all of it.
#[test]
fn counts_come_from_fences() {
    let (mut map, mut random) = (Map::new(Places::ByKey), Random(7));
    while map.model.len() < 40 {
        map.write(&mut random);
    }
    map.fold();
    let view = map.view();
    let all = view.count((b"", 0), (b"zzz", 0)).unwrap();
    assert_eq!(all, Some(map.model.len() as u64));
    assert_eq!(view.count((b"zzz", 0), (b"", 0)).unwrap(), Some(0));
}

#[test]
fn counts_are_near() {
    let (mut map, mut random) = (Map::new(Places::ByKey), Random(7));
    for _ in 0..300 {
        map.write(&mut random);
        if random.below(10) == 0 {
            map.fold();
        }
    }
    let view = map.view();
    let all = view.count_about((b"", 0), (b"z", 0)).unwrap();
    assert!(
        all >= map.model.len() as u64,
        "{all} of {}",
        map.model.len()
    );
    assert_eq!(view.count_about((b"z", 0), (b"zz", 0)).unwrap(), 0);
}
