//! An update does not compute entries for an index that reads none of the changed fields. Text,
//! wildcard and partial indexes computed their entries for every update.

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_index::{Definition, Scratch};

fn entries(definition: &Definition, document: Document<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut emit = |key: &[u8], payload: &[u8]| found.push((key.to_vec(), payload.to_vec()));
    definition
        .entries(document, &mut Scratch::default(), &mut emit)
        .unwrap();
    found
}

/// Changes one top-level field after the other. `read` lists the fields that the index reads. A
/// change of another field must not change the entries.
fn check(specification: DocumentBuf, read: &[&str]) {
    let definition = Definition::parse(specification.as_document()).unwrap();
    let base = doc! {
        "_id": 1, "a": { "x": "red apples" }, "b": 5, "language": "english", "l": "english",
        "s": "green pears", "other": 1, "a.x": "blue",
    };
    for (name, _) in base.iter() {
        let reads = definition.reads(name);
        assert_eq!(reads, read.contains(&name), "{name} by {specification}");
        if !reads {
            let changed: DocumentBuf = base
                .iter()
                .map(|(one, value)| {
                    if one == name {
                        (one, ValueRef::String("german"))
                    } else {
                        (one, value)
                    }
                })
                .collect();
            let (old, new) = (base.as_document(), changed.as_document());
            assert_eq!(
                entries(&definition, old),
                entries(&definition, new),
                "{name}"
            );
        }
    }
}

#[test]
fn entries_depend_only_on_the_fields_that_an_index_reads() {
    let all = ["_id", "a", "b", "language", "l", "s", "other", "a.x"];
    check(
        doc! { "key": { "a.x": 1, "b": -1 }, "name": "i" },
        &["a", "b", "a.x"],
    );
    check(
        doc! { "key": { "a.x": "hashed" }, "name": "i" },
        &["a", "a.x"],
    );
    check(
        doc! { "key": { "b": 1 }, "name": "i", "partialFilterExpression": { "a.x": { "$exists": true } } },
        &["a", "b", "a.x"],
    );
    check(
        doc! { "key": { "s": "text" }, "name": "i" },
        &["s", "language"],
    );
    check(
        doc! { "key": { "b": 1, "a.x": "text", "s": "text" }, "name": "i", "language_override": "l" },
        &["a", "b", "s", "l", "a.x"],
    );
    check(doc! { "key": { "$**": "text" }, "name": "i" }, &all);
    check(doc! { "key": { "a.$**": 1 }, "name": "i" }, &["a", "a.x"]);
    check(
        doc! { "key": { "b": 1, "a.$**": 1 }, "name": "i" },
        &["a", "b", "a.x"],
    );
    check(doc! { "key": { "$**": 1 }, "name": "i" }, &all);
    check(
        doc! { "key": { "$**": 1 }, "name": "i", "wildcardProjection": { "s": 1, "a.x": 1 } },
        &["a", "s", "a.x"],
    );
    check(
        doc! { "key": { "$**": 1 }, "name": "i", "wildcardProjection": { "s": 0 } },
        &all,
    );
}
