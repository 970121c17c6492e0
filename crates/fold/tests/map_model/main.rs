//! Random writes, folds and merges are compared with a plain map: every read at every open snapshot
//! has the same result, forward, backward, by entry key and by key.

mod map;
mod postings;
mod reads;

use windrow_fold::merge::MergeSizes;
use windrow_fold::postings::END;
use windrow_fold::{Entry, EntryBufferBuilder, Position, RecordId, SnapshotLifetime};

use map::{Map, Places, Random, first_of, posting};
use reads::{check_presence, check_tombstone_ranges, check_view};

fn check(places: Places, seed: u64, splits: bool) {
    let (mut map, mut random) = (Map::new(places), Random(seed));
    map.splits = splits;
    map.merge_sizes = MergeSizes::with_tiers_from(1 << (7 + seed % 10));
    for step in 0..places.steps() {
        match random.below(21) {
            20 => map.delete_first(&mut random),
            0..=12 => map.write(&mut random),
            13..=15 => map.fold(),
            16 => map.merge(),
            17 => {
                let position = map.position;
                let snapshot = map.snapshots.open(SnapshotLifetime::Limited, || position);
                map.open.push((snapshot, map.view(), map.model.clone()));
            }
            18 if !map.open.is_empty() => {
                let number = random.below(map.open.len() as u64) as usize;
                map.open.swap_remove(number);
            }
            18 => map.drop_past_sections(),
            _ => map.check(map.position, &map.model.clone(), &mut random),
        }
        if let Some((snapshot, view, model)) = map.open.last().filter(|_| random.below(4) == 0) {
            check_view(view, model, places, &mut random);
            map.check(snapshot.position(), model, &mut random);
            check_tombstone_ranges(view, model, &map, &mut random);
        }
        check_tombstone_ranges(&map.view(), &map.model, &map, &mut random);
        if step % 8 == 0 {
            check_presence(&map);
            if splits {
                map.check_present();
            }
        }
    }
}

#[test]
fn every_read_matches_the_model() {
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

/// Writes postings of a key, and folds them.
fn fold_postings(map: &mut Map, ids: &[RecordId], random: &mut Random) {
    map.position = Position(map.position.0 + 1);
    let settled = map.position;
    let mut builder = EntryBufferBuilder::new(settled, 0);
    for id in ids {
        builder.add(Entry {
            key: b"t2",
            id: *id,
            position: settled,
            deleted: false,
            payload: &posting(*id, random),
        });
    }
    map.tail
        .parts_up_to(settled, |_| (vec![builder.finish().into()], settled));
    map.fold();
}

/// Many postings of a key are packed, and a seek unpacks only the groups that it moves to.
#[test]
fn packed_postings_are_skipped() {
    let (mut map, mut random) = (Map::new(Places::Postings), Random(5));
    let ids = (0..3_000).map(|number| RecordId(number * 7 + number % 5));
    let ids: Vec<RecordId> = ids.collect();
    fold_postings(&mut map, &ids, &mut random);
    let view = map.view();
    let mut list = view.postings(b"t2").unwrap();
    assert_eq!(list.count(), Some(ids.len() as u64));
    assert_eq!(list.id(), ids[0]);
    for at in [300, 1_000, ids.len() - 200] {
        assert_eq!(list.seek(ids[at]), ids[at]);
    }
    assert_eq!(list.groups_read(), 4);
    assert_eq!(list.seek(ids[ids.len() - 1].next()), END);
}

/// The extent of a long list is kept by its section. Lists that have moved do not change it.
#[test]
fn extents_of_long_lists_stay_the_same() {
    let (mut map, mut random) = (Map::new(Places::Postings), Random(6));
    let ids: Vec<RecordId> = (0..2_000).map(|number| RecordId(number * 3)).collect();
    fold_postings(&mut map, &ids, &mut random);
    let view = map.view();
    let mut moved = view.postings(b"t2").unwrap();
    moved.seek(ids[1_900]);
    assert!(moved.count_at_most() <= 2_000);
    let mut first = view.postings(b"t2").unwrap();
    let (count, bounds) = (first.count(), first.bounds());
    assert_eq!(count, Some(2_000));
    for _ in 0..2 {
        let mut again = view.postings(b"t2").unwrap();
        assert_eq!((again.count(), again.bounds()), (count, bounds));
        assert_eq!(again.id(), ids[0]);
        assert_eq!(again.seek(ids[1_000]), ids[1_000]);
    }
}

/// A record that is first in two sections counts once.
#[test]
fn an_updated_first_record_is_counted_once() {
    let (mut map, mut random) = (Map::new(Places::Postings), Random(7));
    fold_postings(&mut map, &[RecordId(5), RecordId(9)], &mut random);
    fold_postings(&mut map, &[RecordId(5), RecordId(6)], &mut random);
    let mut list = map.view().postings(b"t2").unwrap();
    assert!(matches!(list.count(), None | Some(3)), "{:?}", list.count());
    let mut ids = vec![list.id()];
    while list.next() != END {
        ids.push(list.id());
    }
    assert_eq!(ids, [5, 6, 9].map(RecordId));
}

/// A section without tombstones is counted without reading all of it.
#[test]
fn counts_come_from_fences() {
    let (mut map, mut random) = (Map::new(Places::ByKey), Random(7));
    while map.model.len() < 40 {
        map.write(&mut random);
    }
    map.fold();
    let view = map.view();
    let all = view.count(first_of(""), first_of("zzz")).unwrap();
    assert_eq!(all, Some(map.model.len() as u64));
    assert_eq!(view.count(first_of("zzz"), first_of("")).unwrap(), Some(0));
}

#[test]
fn approximate_counts_are_near() {
    let (mut map, mut random) = (Map::new(Places::ByKey), Random(7));
    for _ in 0..300 {
        map.write(&mut random);
        if random.below(10) == 0 {
            map.fold();
        }
    }
    let view = map.view();
    let all = view.approximate_count(first_of(""), first_of("z")).unwrap();
    assert!(
        all >= map.model.len() as u64,
        "{all} of {}",
        map.model.len()
    );
    assert_eq!(
        view.approximate_count(first_of("z"), first_of("zz"))
            .unwrap(),
        0
    );
}
