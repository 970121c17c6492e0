//! Checks of cursors, lookups, counts and marks against the plain map.

use std::collections::BTreeSet;
use std::ops::Bound;

use windrow_fold::{Cursor, Direction, HashedKey, RecordId, View, keys_in_section};

use crate::map::{MARK, Map, Model, ModelKey, Places, Random, all_of, as_key};
use crate::postings::{check_key_lists, check_postings};

pub fn read(
    view: &View,
    direction: Direction,
    from: Option<&ModelKey>,
) -> Vec<(ModelKey, Vec<u8>)> {
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

/// Returns the id of the next entry, if it has this key.
pub fn next_of_key(cursor: &mut Cursor, key: &[u8]) -> Option<RecordId> {
    let is_there = cursor.next().unwrap() && cursor.key() == key;
    is_there.then(|| cursor.id())
}

pub fn plain<'m>(
    range: impl Iterator<Item = (&'m ModelKey, &'m Vec<u8>)>,
) -> Vec<(ModelKey, Vec<u8>)> {
    range
        .map(|(place, payload)| (place.clone(), payload.clone()))
        .collect()
}

pub fn check_view(view: &View, model: &Model, places: Places, random: &mut Random) {
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
    let split_keys = view.split_keys(7).unwrap();
    assert!(split_keys.len() <= 7 && split_keys.is_sorted_by(|one, next| one < next));
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
        let count = view.count(as_key(&place), as_key(&end)).unwrap();
        if let Some(count) = count {
            let expected = if place < end {
                model.range(place.clone()..end).count()
            } else {
                0
            };
            assert_eq!(count, expected as u64);
        }
        let found = view.get(&place.0, place.1).unwrap();
        assert_eq!(found.as_deref(), model.get(&place).map(Vec::as_slice));
        if matches!(places, Places::ById) {
            check_get_all(view, model, random);
        }
        let first = model.range(all_of(&place.0)).next();
        let first = first.map(|(place, _)| place.1);
        let mut cursor = view.cursor_for_key(&place.0).unwrap();
        cursor.seek(&place.0, RecordId::MIN).unwrap();
        assert_eq!(next_of_key(&mut cursor, &place.0), first);
        keys_sought.seek_key(&place.0).unwrap();
        assert_eq!(next_of_key(&mut keys_sought, &place.0), first);
    }
    let marks: BTreeSet<Vec<u8>> = view.marks(MARK).unwrap().unwrap().into_iter().collect();
    let expected = model.keys().map(|place| place.0.clone());
    let expected: BTreeSet<Vec<u8>> = expected.filter(|key| key.first() == Some(&MARK)).collect();
    assert_eq!(marks, expected);
}

/// Several lookups at once return the same as single ones, in any order of the ids.
fn check_get_all(view: &View, model: &Model, random: &mut Random) {
    let ids: Vec<RecordId> = (0..random.below(100))
        .map(|_| Places::ById.any(random).1)
        .collect();
    let mut left = ids.as_slice();
    while !left.is_empty() {
        // One call reads one block of a file.
        let found = view.get_all(left).unwrap();
        assert!((1..=left.len()).contains(&found.len()));
        let (ids, rest) = left.split_at(found.len());
        for (id, found) in ids.iter().zip(found) {
            let expected = model.get(&(Vec::new(), *id));
            assert_eq!(found.as_deref(), expected.map(Vec::as_slice));
        }
        left = rest;
    }
}

/// Cursors that skip and record tombstone ranges show what the model has.
pub fn check_tombstone_ranges(view: &View, model: &Model, map: &Map, random: &mut Random) {
    for _ in 0..6 {
        let direction = match random.below(3) {
            0 => Direction::Backward,
            _ => Direction::Forward,
        };
        let mut cursor = view
            .cursor(direction)
            .with_tombstone_ranges(&map.tombstone_ranges);
        if direction == Direction::Forward && random.below(3) == 0 {
            assert!(places_of(&mut cursor, usize::MAX).iter().eq(model.keys()));
            continue;
        }
        for _ in 0..2 {
            let place = map.places.any(random);
            cursor.seek(&place.0, place.1).unwrap();
            let count = random.below(6) as usize;
            let found = places_of(&mut cursor, count);
            let expected: Vec<&ModelKey> = match direction {
                Direction::Forward => model.range(place..).map(|it| it.0).take(count).collect(),
                Direction::Backward => {
                    let before = model.range(..=place).rev();
                    before.map(|it| it.0).take(count).collect()
                }
            };
            assert!(found.iter().eq(expected));
            let place = map.places.any(random);
            let mut of_key = view
                .cursor_for_key(&place.0)
                .unwrap()
                .with_tombstone_ranges(&map.tombstone_ranges);
            of_key.seek(&place.0, place.1).unwrap();
            check_key(&mut of_key, place, model);
            if direction == Direction::Forward && random.below(2) == 0 {
                let key = map.places.any(random).0;
                cursor.seek_key(&key).unwrap();
                check_key(&mut cursor, (key, RecordId::MIN), model);
            }
        }
    }
}

/// After a seek, a cursor shows the entries of its key from there on.
pub fn check_key(cursor: &mut Cursor, place: ModelKey, model: &Model) {
    let mut found = places_of(cursor, usize::MAX);
    found.retain(|it| it.0 == place.0);
    let last = (place.0.clone(), RecordId::MAX);
    assert!(found.iter().eq(model.range(place..=last).map(|it| it.0)));
}

/// Returns at most `count` entry keys that a cursor shows next.
pub fn places_of(cursor: &mut Cursor, count: usize) -> Vec<ModelKey> {
    let mut found = Vec::new();
    while found.len() < count && cursor.next().unwrap() {
        found.push((cursor.key().to_vec(), cursor.id()));
    }
    found
}

/// Existing keys are distinguished from keys that never existed.
pub fn check_presence(map: &Map) {
    let model = &map.model;
    let mut keys: Vec<Vec<u8>> = model.keys().map(|place| place.0.clone()).collect();
    let absent = keys
        .iter()
        .map(|key| [key.as_slice(), b"\x01none"].concat());
    let absent: Vec<Vec<u8>> = absent.collect();
    keys.extend(absent.iter().cloned());
    keys.sort();
    keys.dedup();
    let wanted: Vec<HashedKey<'_>> = keys.iter().map(|key| HashedKey::new(key)).collect();
    let view = map.view();
    let has = |key: &Vec<u8>| {
        view.parts
            .iter()
            .any(|part| part.buffer_with_key(key).is_some())
    };
    let mut held: Vec<bool> = keys.iter().map(has).collect();
    for section in view.sections.present() {
        let found = keys_in_section(section, view.snapshot, &wanted).unwrap();
        found.into_iter().for_each(|number| held[number] = true);
    }
    for (key, held) in keys.iter().zip(held) {
        let is_there = model.keys().any(|place| place.0 == *key);
        assert_eq!(held, is_there, "{key:?}");
    }
}
