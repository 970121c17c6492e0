//! Checks of posting lists and key lists against the plain map.

use std::collections::{BTreeMap, BTreeSet};

use windrow_fold::postings::{Bounds, END, PostingList};
use windrow_fold::{RecordId, View};
use windrow_postings::{Impact, Posting};

use crate::map::{Model, Random, all_of};

/// The ids of all keys of a range are those of the model, whether they are read, counted or
/// skipped.
pub fn check_key_lists(
    view: &View,
    model: &Model,
    (from, to): (&[u8], &[u8]),
    random: &mut Random,
) {
    let mut expected: BTreeMap<&[u8], Vec<u64>> = BTreeMap::new();
    for (key, id) in model.keys() {
        if (from..to).contains(&key.as_slice()) {
            expected.entry(key).or_default().push(id.0);
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

/// Seeks find the least key that is not less, and its ids.
pub fn check_key_seeks(
    view: &View,
    model: &Model,
    (from, to): (&[u8], &[u8]),
    random: &mut Random,
) {
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
        // Keys without ids are possible, but no key with ids is left out.
        let key = lists.key().to_vec();
        assert!(key >= least && key.as_slice() < to);
        assert!(later.next().is_none_or(|first| **first >= key), "{key:?}");
        let mut found = Vec::new();
        lists.read(&mut |ids| found.extend_from_slice(ids)).unwrap();
        let of_key = model.range(all_of(&key));
        let expected: Vec<u64> = of_key.map(|(it, _)| it.1.0).collect();
        assert_eq!(found, expected, "{key:?}");
        least = [key.as_slice(), &[0]].concat();
    }
}

/// The postings of a key are those of the model, however they are read.
pub fn check_postings(view: &View, model: &Model, key: &[u8], random: &mut Random) {
    let expected = model.range(all_of(key));
    let expected: Vec<(RecordId, &Vec<u8>)> = expected.map(|(it, all)| (it.1, all)).collect();
    let mut list = view.postings(key).unwrap();
    if let Some(count) = list.count() {
        assert_eq!(count, expected.len() as u64);
    }
    assert!(list.count_at_most() >= expected.len() as u64);
    // Computing the bounds does not move the list.
    let whole = list.bounds();
    for (_, payload) in &expected {
        let posting = Posting::read(payload).unwrap();
        assert!(bounds_hold(&whole, &posting), "{posting:?} in {whole:?}");
    }
    check_batches(view, &expected, key, random);
    let mut at = 0;
    let far = random.below(2_000) * 50 + 1;
    while let Some((id, payload)) = expected.get(at) {
        assert_eq!(list.id(), *id);
        check_posting(&mut list, payload);
        let (target, is_next) = match random.below(3) {
            0 => (RecordId(id.0 + random.below(far)), false),
            _ => (id.next(), true),
        };
        if random.below(4) == 0 {
            check_bounds(&mut list, &expected[at..], target);
        }
        if is_next {
            list.next()
        } else {
            list.seek(target)
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

pub fn check_posting(list: &mut PostingList, payload: &[u8]) {
    let expected = Posting::read(payload).unwrap();
    assert_eq!(list.frequency(), expected.frequency);
    assert_eq!(list.length(), expected.length);
    assert_eq!(list.stored_score(), expected.score);
    let mut positions = Vec::new();
    list.positions(&mut positions);
    assert!(expected.positions().eq(positions));
}

/// Batches have the postings of the model.
pub fn check_batches(
    view: &View,
    expected: &[(RecordId, &Vec<u8>)],
    key: &[u8],
    random: &mut Random,
) {
    let mut list = view.postings(key).unwrap();
    let mut found: Vec<(RecordId, u32, u32, Option<f64>)> = Vec::new();
    while list.id() != END {
        let last = RecordId(list.id().0 + random.below(30_000));
        let most = 1 + random.below(200) as usize;
        let has_batch = list.read_batch(last, most, |run| {
            assert!(run.ids.len() <= most && run.ids.iter().all(|id| *id <= last.0));
            let numbers = run.frequencies.iter().zip(run.lengths);
            for (at, (id, (frequency, length))) in run.ids.iter().zip(numbers).enumerate() {
                let score = run.scores.iter().find(|(place, _)| *place == at);
                found.push((RecordId(*id), *frequency, *length, score.map(|it| it.1)));
            }
        });
        if !has_batch {
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

/// Score bounds hold up to the end that `block_end` returns.
pub fn check_bounds(list: &mut PostingList, expected: &[(RecordId, &Vec<u8>)], from: RecordId) {
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

pub fn bounds_hold(bounds: &Bounds, posting: &Posting<'_>) -> bool {
    let own = Impact::new(posting.frequency, posting.length);
    let covers = |it: &Impact| it.frequency >= own.frequency && it.length <= own.length;
    bounds.impacts.iter().any(covers) && bounds.score >= posting.score.unwrap_or(0.0)
}
