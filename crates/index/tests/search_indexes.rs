//! Definitions and entries of search indexes.

use std::collections::{BTreeMap, BTreeSet};

use windrow_document::{DocumentBuf, ObjectId, Value, ValueRef, array, doc};
use windrow_index::search::{
    NAME_PREFIX, SearchDefinition, VALUE, append_exists_key, append_term_key, append_value_key,
};
use windrow_index::{Definition, Scratch};
use windrow_postings::Posting;

fn search(definition: DocumentBuf) -> SearchDefinition {
    let id = ObjectId([7; 12]);
    SearchDefinition::parse("default", id, 0, 0, definition.as_document()).unwrap()
}

fn code_of(definition: DocumentBuf) -> (i32, String) {
    let id = ObjectId([7; 12]);
    let parsed = SearchDefinition::parse("default", id, 0, 0, definition.as_document());
    let error = parsed.expect_err("the definition should be refused");
    (error.code, error.message)
}

fn dynamic() -> DocumentBuf {
    doc! { "mappings": { "dynamic": true } }
}

/// A mapping of one field.
fn field_definition(name: &str, field: impl Into<Value>) -> DocumentBuf {
    let mut fields = DocumentBuf::new();
    fields.push(name, field);
    doc! { "mappings": { "fields": fields } }
}

/// The values that are read from a document are those of its entries.
fn check_values(search: &SearchDefinition, document: &DocumentBuf) {
    let definition = Definition::from_search(search.clone());
    let mut expected: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut emit = |key: &[u8], _: &[u8]| {
        let end = key.iter().position(|byte| *byte == 0).unwrap();
        let path = String::from_utf8(key[..end].to_vec()).unwrap();
        let values = expected.entry(path).or_default();
        if key[end + 1] == VALUE {
            values.insert(key.to_vec());
        }
    };
    let scratch = &mut Scratch::default();
    definition
        .entries(document.as_document(), scratch, &mut emit)
        .unwrap();
    for (path, expected) in expected {
        let mut found = BTreeSet::new();
        search.values_at(document.as_document(), &path, &mut |value| {
            let mut key = Vec::new();
            append_value_key(&mut key, &path, value);
            found.insert(key);
        });
        assert_eq!(found, expected, "{path:?} of {document}");
    }
}

/// Entries as text, in the order of their keys: `path/term@positions`, `path=value` and `path?`,
/// each with its length.
fn entries(definition: DocumentBuf, document: DocumentBuf) -> Vec<String> {
    let search = search(definition);
    check_values(&search, &document);
    let definition = Definition::from_search(search);
    let mut found = BTreeMap::new();
    let mut emit = |key: &[u8], payload: &[u8]| {
        let end = key.iter().position(|byte| *byte == 0).unwrap();
        let path = String::from_utf8_lossy(&key[..end]).replace('\u{1}', "!");
        let rest = &key[end + 2..];
        let posting = Posting::read(payload).unwrap();
        let positions: Vec<u32> = posting.positions().collect();
        let (frequency, length) = (posting.frequency, posting.length);
        let shown = match key[end + 1] {
            b't' => {
                let term = String::from_utf8_lossy(rest).into_owned();
                format!("{path}/{term}*{frequency}@{positions:?} of {length}")
            }
            b'e' => format!("{path}? of {length}"),
            b'p' => format!("{path} point {rest:02x?}"),
            b's' => format!("{path} shape with cells of {} bytes", rest.len()),
            b'v' => {
                assert_eq!(frequency, 1);
                let mut reader = windrow_document::key::KeyReader::new(rest, &[]);
                let value = reader.value(false).unwrap();
                let shown = doc! { "": value }.to_string();
                let shown = &shown[r#"{"":"#.len()..shown.len() - 1];
                format!("{path}={shown} of {length}")
            }
            other => panic!("kind {other}"),
        };
        assert_eq!(
            found.insert(key.to_vec(), shown),
            None,
            "{key:?} comes twice"
        );
    };
    let mut scratch = Scratch::default();
    definition
        .entries(document.as_document(), &mut scratch, &mut emit)
        .unwrap();
    found.into_values().collect()
}

#[track_caller]
fn check(definition: DocumentBuf, document: DocumentBuf, expected: &[&str]) {
    let found = entries(definition, document);
    assert_eq!(found, expected);
}

#[test]
fn dynamic_mappings_index_all_types() {
    check(
        dynamic(),
        doc! { "t": "The fox, the owl", "n": 5, "d": 1.5, "b": true, "z": null },
        &[
            "b? of 1",
            "b=true of 1",
            "d? of 1",
            "d=1.5 of 1",
            "n? of 1",
            "n=5 of 1",
            "t? of 4",
            "t/fox*1@[1] of 4",
            "t/owl*1@[3] of 4",
            "t/the*2@[0, 2] of 4",
            "z? of 1",
            "z=null of 1",
        ],
    );
    let uuid = Value::Binary {
        subtype: 4,
        bytes: vec![1; 16],
    };
    let other = Value::Binary {
        subtype: 0,
        bytes: vec![1; 16],
    };
    let document =
        doc! { "i": (ObjectId([1; 12])), "u": uuid, "o": other, "x": (ValueRef::MinKey) };
    let found = entries(dynamic(), document);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(
        found
            .iter()
            .all(|one| one.starts_with('i') || one.starts_with('u')),
        "{found:?}"
    );
}

#[test]
fn arrays_and_documents_share_the_path() {
    check(
        dynamic(),
        doc! { "a": [{ "b": "one two" }, { "b": ["three", 7] }, "four"] },
        &[
            "a? of 1",
            "a/four*1@[0] of 1",
            "a.b? of 3",
            "a.b/one*1@[0] of 3",
            "a.b/three*1@[101] of 3",
            "a.b/two*1@[1] of 3",
            "a.b=7 of 3",
        ],
    );
    check(
        dynamic(),
        doc! { "a": [["x"], [[1]]] },
        &["a? of 1", "a/x*1@[0] of 1", "a=1 of 1"],
    );
    check(dynamic(), doc! { "a": [], "b": {} }, &["b? of 1"]);
}

/// A key without a path would begin with a zero byte, as marks do.
#[test]
fn names_at_the_edges() {
    check(dynamic(), doc! { "": "x", "$a": "x", "a\u{1}b": "x" }, &[]);
    check(
        dynamic(),
        doc! { "a": { "": "x" } },
        &["a? of 1", "a.? of 1", "a./x*1@[0] of 1"],
    );
    // A field with a dot in its name has the path of a nested one.
    check(
        dynamic(),
        doc! { "a.b": "x", "a": { "b": "y" } },
        &[
            "a? of 1",
            "a.b? of 2",
            "a.b/x*1@[0] of 2",
            "a.b/y*1@[100] of 2",
        ],
    );
    check(
        dynamic(),
        doc! { "n": "a\0b", "e": "" },
        &["e? of 1", "n? of 2", "n/a*1@[0] of 2", "n/b*1@[1] of 2"],
    );
    let keyword = field_definition("k", doc! { "type": "string", "analyzer": "lucene.keyword" });
    check(
        keyword,
        doc! { "k": ["a\0b", ""] },
        &["k? of 2", "k/*1@[100] of 2", "k/a\0b*1@[0] of 2"],
    );
}

#[test]
fn a_document_may_have_a_thousand_fields() {
    let mut document = DocumentBuf::new();
    for number in 0..1_000 {
        document.push(&format!("f{number}"), "word");
    }
    assert_eq!(entries(dynamic(), document).len(), 2_000);
}

#[test]
fn static_mappings_take_their_types_only() {
    let number = || field_definition("a", doc! { "type": "number" });
    check(number(), doc! { "a": "x", "b": 1 }, &[]);
    check(
        number(),
        doc! { "a": [1, "x", null] },
        &["a? of 1", "a=null of 1", "a=1 of 1"],
    );
    check(number(), doc! { "a": { "b": 1 } }, &[]);
    let integers = field_definition("a", doc! { "type": "number", "indexDoubles": false });
    check(integers, doc! { "a": [1, 1.5] }, &["a? of 1", "a=1 of 1"]);
    // A static mapping replaces the dynamic one.
    let mixed = doc! { "mappings": { "dynamic": true, "fields": {
        "a": { "type": "token", "normalizer": "lowercase" },
        "d": { "type": "document", "fields": { "x": { "type": "date" } } },
        "n": { "type": "document", "dynamic": true },
    } } };
    check(
        mixed,
        doc! { "a": "X Y", "d": { "x": 1, "y": 1 }, "n": { "m": { "k": true } }, "o": { "p": false } },
        &[
            "a? of 1",
            "a=\"x y\" of 1",
            "d? of 1",
            "n? of 1",
            "n.m? of 1",
            "n.m.k? of 1",
            "n.m.k=true of 1",
            "o? of 1",
            "o.p? of 1",
            "o.p=false of 1",
        ],
    );
}

#[test]
fn geo_fields_take_geojson() {
    let point = doc! { "type": "Point", "coordinates": [0, 0] };
    let line = doc! { "type": "LineString", "coordinates": [[0, 0], [1e-9, 0]] };
    let not_geojson = array![
        "Rome",
        [1, 2],
        { "x": 1, "y": 2 },
        { "type": "Point", "coordinates": [200, 0] },
        { "type": "Point" },
    ];
    let document = doc! { "at": [(point.clone()), (line.clone())], "other": (not_geojson) };
    let of_both = |field: DocumentBuf| {
        doc! { "mappings": { "fields": { "at": (field.clone()), "other": field } } }
    };
    let at = "at point [10, 00, 00, 00, 00, 00, 00, 01]";
    // The line lies at a corner of four cells.
    let cell = "at shape with cells of 8 bytes";
    check(
        of_both(doc! { "type": "geo" }),
        document.clone(),
        &["at? of 1", at],
    );
    check(
        of_both(doc! { "type": "geo", "indexShapes": true }),
        document,
        &["at? of 1", at, cell, cell, cell, cell],
    );
    // A type of its own beside the fields of the document.
    let both = array![
        { "type": "geo" },
        { "type": "document", "fields": { "type": { "type": "token" } } },
    ];
    check(
        field_definition("at", both),
        doc! { "at": (point) },
        &["at? of 1", at, "at.type? of 1", "at.type=\"Point\" of 1"],
    );
}

#[test]
fn strings_have_several_analyses() {
    let field = array![
        doc! { "type": "string", "analyzer": "lucene.english", "multi": {
            "exact": { "type": "string", "analyzer": "lucene.keyword", "indexOptions": "docs" },
        } },
        doc! { "type": "stringFacet" },
    ];
    check(
        field_definition("t", field),
        doc! { "t": "The Foxes" },
        &[
            "t? of 1",
            "t/fox*1@[1] of 1",
            "t=\"The Foxes\" of 1",
            "t!exact? of 1",
            "t!exact/The Foxes*1@[] of 1",
        ],
    );
    let freqs = doc! { "type": "string", "indexOptions": "freqs", "ignoreAbove": 5 };
    check(
        field_definition("t", freqs),
        doc! { "t": ["a a é", "a a a b"] },
        &["t? of 3", "t/a*2@[] of 3", "t/é*1@[] of 3"],
    );
}

#[test]
fn what_is_too_long_is_left_out() {
    let long = "x".repeat(40_000);
    let keyword = field_definition("k", doc! { "type": "string", "analyzer": "lucene.keyword" });
    check(keyword, doc! { "k": long.as_str() }, &[]);
    check(
        field_definition("k", doc! { "type": "token" }),
        doc! { "k": long },
        &[],
    );
}

#[test]
fn fields_are_found_by_path() {
    let definition = search(doc! {
        "analyzer": "lucene.french",
        "mappings": { "dynamic": true, "fields": {
            "a": { "type": "document", "fields": { "b": { "type": "token" } } },
            "x.y": { "type": "date" },
            "x": { "type": "document", "dynamic": true },
        } },
    });
    let field = |path| definition.field(path);
    assert!(field("other.path").unwrap().string.is_some());
    assert!(field("a").unwrap().document.is_some());
    assert!(field("a.b").unwrap().token.is_some());
    assert!(field("a.c").is_none());
    assert!(field("a.b.c").is_none());
    assert!(field("x.y").unwrap().date && field("x.y").unwrap().string.is_none());
    assert!(field("x.z").unwrap().string.is_some());
    assert!(field("$x").is_none() && field("q.$x").is_none());
}

#[test]
fn type_sets_are_dynamic_mappings() {
    let definition = doc! {
        "typeSets": [{ "name": "s", "types": [{ "type": "token" }, { "type": "number" }] }],
        "mappings": { "dynamic": { "typeSet": "s" } },
    };
    check(
        definition,
        doc! { "a": { "b": "X", "c": true } },
        &["a? of 1", "a.b? of 1", "a.b=\"X\" of 1"],
    );
}

fn check_refused(definition: DocumentBuf, code: i32, part: &str) {
    let (found, message) = code_of(definition);
    assert_eq!(found, code, "{message}");
    assert!(message.contains(part), "{message} has no {part}");
}

#[test]
fn definitions_are_refused_by_name() {
    check_refused(doc! {}, 9, "\"mappings\" is required");
    check_refused(doc! { "mappings": 1 }, 9, "\"mappings\" must be a document");
    check_refused(
        doc! { "mappings": { "dynamic": 1 } },
        9,
        "\"mappings.dynamic\"",
    );
    check_refused(
        doc! { "mappings": { "dynamic": { "typeSet": "x" } } },
        9,
        "type set \"x\"",
    );
    check_refused(
        doc! { "mappings": { "field": {} } },
        9,
        "\"mappings.field\" is not an option",
    );
    check_refused(doc! { "mappings": {}, "x": 1 }, 9, "\"x\" is not a part");
    check_refused(
        doc! { "mappings": {}, "analyzer": "mine" },
        2,
        "unknown analyzer \"mine\"",
    );
    check_refused(
        doc! { "mappings": {}, "analyzer": "lucene.thai" },
        238,
        "analyzer \"lucene.thai\"",
    );
    check_refused(
        doc! { "mappings": {}, "synonyms": [{}] },
        9,
        "\"synonyms[0].analyzer\"",
    );
    check_refused(
        doc! { "mappings": {}, "storedSource": { "include": [], "exclude": [] } },
        9,
        "\"storedSource\"",
    );
}

#[test]
fn fields_are_refused_by_name() {
    check_refused(
        field_definition("a", 1),
        9,
        "\"mappings.fields.a\" must be a document",
    );
    check_refused(
        field_definition("a", doc! {}),
        9,
        "\"mappings.fields.a.type\" is required",
    );
    check_refused(field_definition("a", array![]), 9, "cannot be empty");
    check_refused(
        field_definition("a", doc! { "type": "text" }),
        2,
        "unknown type \"text\"",
    );
    for kind in ["embeddedDocuments", "knnVector", "vector"] {
        check_refused(field_definition("a", doc! { "type": kind }), 238, kind);
    }
    check_refused(
        field_definition("a", doc! { "type": "date", "x": 1 }),
        9,
        "\"mappings.fields.a.x\"",
    );
    check_refused(
        field_definition("a", doc! { "type": "geo", "indexShapes": 1 }),
        9,
        "\"mappings.fields.a.indexShapes\" must be a boolean",
    );
    check_refused(
        field_definition("a", doc! { "type": "token", "normalizer": "x" }),
        2,
        "none, lowercase",
    );
    check_refused(
        field_definition(
            "a",
            array![doc! { "type": "date" }, doc! { "type": "date" }],
        ),
        9,
        "the type \"date\" twice",
    );
    let inner = doc! { "type": "document", "fields": { "b": { "type": "vector" } } };
    check_refused(
        field_definition("a", inner),
        238,
        "\"mappings.fields.a.fields.b\"",
    );
}

#[test]
fn options_of_autocomplete_are_refused_by_name() {
    let autocomplete = |options: DocumentBuf| {
        let mut field = doc! { "type": "autocomplete" };
        for (name, value) in options.as_document() {
            field.push(name, value.to_value());
        }
        field_definition("a", field)
    };
    check_refused(
        autocomplete(doc! { "minGrams": 16 }),
        9,
        "minGrams 16 above maxGrams 15",
    );
    check_refused(
        autocomplete(doc! { "maxGrams": 0 }),
        9,
        "\"mappings.fields.a.maxGrams\"",
    );
    check_refused(autocomplete(doc! { "maxGrams": 1000 }), 9, "255 at most");
    check_refused(
        autocomplete(doc! { "tokenization": "gram" }),
        2,
        "edgeGram, rightEdgeGram, nGram",
    );
    check_refused(
        autocomplete(doc! { "searchAnalyzer": "lucene.standard" }),
        9,
        "searchAnalyzer",
    );
}

/// The parser calls itself for each level.
#[test]
fn deep_definitions_are_refused() {
    let mut field = doc! { "type": "date" };
    for _ in 0..150 {
        field = doc! { "type": "document", "fields": { "a": field } };
    }
    let (code, message) = code_of(field_definition("a", field));
    assert_eq!(code, 9);
    assert!(message.contains("nested"), "{message}");
}

#[test]
fn specifications_are_read_as_written() {
    let definition = Definition::from_search(search(dynamic()));
    assert_eq!(definition.name, format!("{NAME_PREFIX}default.0"));
    let again = Definition::parse(definition.specification.as_document()).unwrap();
    assert_eq!(again.specification, definition.specification);
    let (one, other) = (definition.search.unwrap(), again.search.unwrap());
    assert_eq!((one.id, &one.mappings), (other.id, &other.mappings));
    // A client's createIndexes creates none.
    let within = Definition::parse_within(definition.specification.as_document(), None);
    assert_eq!(within.map(drop).map_err(|error| error.code), Err(197));
    let reserved = doc! { "key": { "a": 1 }, "name": "$search.x" };
    let within = Definition::parse_within(reserved.as_document(), None);
    assert_eq!(within.map(drop).map_err(|error| error.code), Err(67));
}

#[test]
fn only_mapped_fields_are_read() {
    let dynamic = Definition::from_search(search(dynamic()));
    assert!(dynamic.reads("a") && !dynamic.reads("$a"));
    let one = Definition::from_search(search(field_definition("a", doc! { "type": "date" })));
    assert!(one.reads("a") && !one.reads("b"));
}

#[test]
fn keys_are_those_of_the_entries() {
    let mut key = Vec::new();
    append_term_key(&mut key, "p", "fox");
    assert_eq!(key, b"p\0tfox");
    key.clear();
    append_exists_key(&mut key, "p");
    assert_eq!(key, b"p\0e");
    let (mut one, mut other) = (Vec::new(), Vec::new());
    append_value_key(&mut one, "p", ValueRef::Int32(1));
    append_value_key(&mut other, "p", ValueRef::Double(1.0));
    assert_eq!(one, other);
}
