//! The order of documents under a sort, as MongoDB documents it.

use windrow_document::{DocumentBuf, doc};
use windrow_mql::Meta;
use windrow_mql::sort::{Natural, Sort};

fn key(sort: &Sort, document: &DocumentBuf) -> Vec<u8> {
    let mut key = Vec::new();
    sort.key(document.as_document(), &Meta::default(), &mut key)
        .unwrap();
    key
}

/// Checks that the documents are in the order of the sort. Documents of one group have equal keys.
fn check(sort: DocumentBuf, groups: &[&[DocumentBuf]]) {
    let sort = Sort::parse(sort.as_document()).unwrap();
    let keys: Vec<(usize, &DocumentBuf, Vec<u8>)> = groups
        .iter()
        .enumerate()
        .flat_map(|(rank, group)| group.iter().map(move |one| (rank, one)))
        .map(|(rank, one)| (rank, one, key(&sort, one)))
        .collect();
    for (rank, one, key) in &keys {
        for (other_rank, other, other_key) in &keys {
            assert_eq!(
                key.cmp(other_key),
                rank.cmp(other_rank),
                "{one} against {other}"
            );
        }
    }
}

fn check_refused(sort: DocumentBuf, code: i32) {
    match Sort::parse(sort.as_document()) {
        Ok(_) => panic!("{sort} was taken"),
        Err(error) => assert_eq!(error.code, code, "{sort}: {error}"),
    }
}

#[test]
fn an_array_sorts_by_its_least_or_greatest_element() {
    check(
        doc! { "a": 1 },
        &[
            &[doc! { "a": [] }],
            &[doc! {}, doc! { "a": null }, doc! { "a": [null, 7] }],
            &[doc! { "a": 1 }, doc! { "a": [5, 1] }],
            &[doc! { "a": [2, 9] }],
            &[doc! { "a": "x" }],
            &[doc! { "a": [[]] }],
        ],
    );
    check(
        doc! { "a": (-1) },
        &[
            &[doc! { "a": [2, 9] }, doc! { "a": 9 }],
            &[doc! { "a": [5, 1] }],
            &[doc! {}],
            &[doc! { "a": [] }],
        ],
    );
}

/// `{$sort: {_id: 1}}` after a `$group` by an array used to sort by the least element of the array,
/// so that the order of groups differed from MongoDB's, which compares the whole array.
#[test]
fn an_id_alone_is_compared_as_a_whole() {
    let ids = [
        doc! { "a": 1 },
        doc! { "_id": 7 },
        doc! { "_id": "x" },
        doc! { "_id": [] },
        doc! { "_id": [1, 9] },
        doc! { "_id": [2] },
        doc! { "_id": [2, 0] },
        doc! { "_id": [[]] },
    ];
    let up: Vec<&[DocumentBuf]> = ids.iter().map(std::slice::from_ref).collect();
    let down: Vec<&[DocumentBuf]> = up.iter().rev().copied().collect();
    check(doc! { "_id": 1 }, &up);
    check(doc! { "_id": (-1) }, &down);
    // With another path in the sort, and within a document, the array is compared by its elements.
    check(
        doc! { "_id": (-1), "a": 1 },
        &[&[doc! { "_id": [1, 9] }], &[doc! { "_id": [2, 0] }]],
    );
    check(
        doc! { "_id.a": (-1) },
        &[
            &[doc! { "_id": { "a": [1, 9] } }],
            &[doc! { "_id": { "a": [2, 0] } }],
        ],
    );
    let sort = Sort::parse(doc! { "_id": 1 }.as_document()).unwrap();
    let array = doc! { "_id": [3, 1] };
    let values = sort.values(array.as_document(), &Meta::default()).unwrap();
    assert_eq!(array.get("_id").unwrap(), values[0].as_ref());
}

/// An empty array at an index of an array used to be its own key, so that it sorted after numbers
/// instead of before null.
#[test]
fn an_empty_array_at_an_index_sorts_before_null() {
    check(
        doc! { "a.0": 1 },
        &[
            &[doc! { "a": [[], 7] }, doc! { "a": [[]] }],
            &[doc! {}, doc! { "a": [] }, doc! { "a": 1 }],
            &[doc! { "a": [3] }],
            &[doc! { "a": [[1]] }],
            &[doc! { "a": [[1, 0]] }],
        ],
    );
}

#[test]
fn fields_through_one_array_use_one_element() {
    check(
        doc! { "a.b": 1, "a.c": (-1) },
        &[
            &[doc! { "a": [{ "b": 1, "c": 2 }, { "b": 2, "c": 9 }] }],
            &[doc! { "a": { "b": 1, "c": 1 } }],
        ],
    );
    check(
        doc! { "a.1": 1 },
        &[
            &[doc! { "a": [9] }, doc! {}],
            &[doc! { "a": [9, 1] }],
            &[doc! { "a": [0, 2] }],
        ],
    );
    let sort = Sort::parse(doc! { "a": 1, "b": 1 }.as_document()).unwrap();
    let parallel = doc! { "a": [1], "b": [2] };
    let error = sort
        .key(parallel.as_document(), &Meta::default(), &mut Vec::new())
        .unwrap_err();
    assert_eq!(error.code, 2);
    let sort = Sort::parse(doc! { "a.0": 1 }.as_document()).unwrap();
    let ambiguous = doc! { "a": [{ "0": 1 }] };
    let error = sort
        .key(ambiguous.as_document(), &Meta::default(), &mut Vec::new())
        .unwrap_err();
    assert_eq!(error.code, 16746);
}

#[test]
fn text_scores_sort_descending() {
    let specification = doc! { "s": { "$meta": "textScore" }, "a": 1 };
    let sort = Sort::parse(specification.as_document()).unwrap();
    assert!(sort.needs_text_score());
    let key = |score: f64| {
        let mut key = Vec::new();
        let meta = Meta {
            text_score: Some(score),
            ..Meta::default()
        };
        sort.key(doc! { "a": 1 }.as_document(), &meta, &mut key)
            .unwrap();
        key
    };
    assert!(key(2.5) < key(1.0));
    assert_eq!(sort.to_document(), specification);
}

#[test]
fn random_values_sort_within_the_earlier_fields() {
    let specification = doc! { "p": 1, "_id": { "$meta": "randVal" } };
    let sort = Sort::parse(specification.as_document()).unwrap();
    assert_eq!(sort.to_document(), specification);
    assert!(sort.needs_metadata() && !sort.needs_text_score());
    let keys = |p: i32| -> std::collections::BTreeSet<Vec<u8>> {
        (0..50).map(|_| key(&sort, &doc! { "p": p })).collect()
    };
    let (low, high) = (keys(1), keys(2));
    assert_eq!((low.len(), high.len()), (50, 50));
    assert!(low.last() < high.first());
}

#[test]
fn natural_order_allows_no_other_fields() {
    let natural = |direction: i32| {
        Sort::parse(doc! { "$natural": direction }.as_document())
            .unwrap()
            .natural()
    };
    assert_eq!(natural(1), Some(Natural::Forward));
    assert_eq!(natural(-1), Some(Natural::Backward));
    check_refused(doc! { "a": 1, "$natural": 1 }, 2);
}

#[test]
fn invalid_specifications_are_refused() {
    for (sort, code) in [
        (doc! { "a": "asc" }, 15974),
        (doc! { "a": 2 }, 15975),
        (doc! { "a": {} }, 17312),
        (doc! { "a": { "$meta": "bogus" } }, 31138),
        (doc! { "a": { "$meta": "textScore", "b": 1 } }, 9),
        (doc! { "": 1 }, 40352),
        (doc! { "a.": 1 }, 40353),
        (doc! { ".a": 1 }, 15998),
        (doc! { "$a": 1 }, 16410),
    ] {
        check_refused(sort, code);
    }
    let wide: DocumentBuf = (0..33)
        .map(|number| (format!("f{number}"), windrow_document::ValueRef::Int32(1)))
        .collect();
    check_refused(wide, 13103);
}
