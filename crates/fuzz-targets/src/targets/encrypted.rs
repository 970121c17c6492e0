//! The target `encrypted`: payloads, stored values and schemas of encrypted fields.

use windrow_document::{Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_queryable_encryption::compaction::CompactionTokens;
use windrow_queryable_encryption::counter::Counter;
use windrow_queryable_encryption::find::Tags;
use windrow_queryable_encryption::stored::tags;
use windrow_queryable_encryption::{EncryptedFields, Error, FindPayload, InsertPayload};

/// No query may need more memory.
const TAG_BYTES_MAX: usize = 10_000;

/// The first byte selects the reader of the others: a payload with its kind, a stored value, or a
/// document (a schema, tokens, a document of the compaction collection).
pub fn run(bytes: &[u8]) {
    let Some((reader, bytes)) = bytes.split_first() else {
        return;
    };
    match reader % 4 {
        0 => insertion(bytes),
        1 => query(bytes),
        2 => stored(bytes),
        _ => documents(bytes),
    }
}

/// A stored value has a tag for each entry of its payload.
fn insertion(bytes: &[u8]) {
    let Ok(payload) = InsertPayload::parse(bytes) else {
        return;
    };
    let counts = vec![u64::MAX; payload.entries.len()];
    let stored = payload.store(&counts).expect("a parsed payload is stored");
    assert_eq!(stored.tags.len(), counts.len());
    let value = ValueRef::Binary {
        subtype: 6,
        bytes: &stored.bytes,
    };
    assert_eq!(tags(value).expect("a stored value has tags"), stored.tags);
    for entry in &payload.entries {
        let counter = Counter::from_insertion(entry);
        check_counter(&counter);
    }
}

/// Counts what an anchor says, and nothing without documents.
fn check_counter(counter: &Counter) {
    let anchor = counter.null_anchor(3, 7).expect("an anchor is encrypted");
    let null = counter.anchor_id(0);
    let found = counter.find::<Error>(&mut |id| Ok((id == null).then(|| anchor.clone())));
    let found = found.expect("the anchor is whole");
    assert_eq!((found.count, found.anchor), (7, 3));
    let empty = counter.find::<Error>(&mut |_| Ok(None));
    assert_eq!(empty.expect("nothing is damaged").count, 0);
}

/// A query has no tags if nothing was inserted, and fails if the state is no anchor.
fn query(bytes: &[u8]) {
    let payloads = [
        FindPayload::parse_equality(bytes),
        FindPayload::parse_range(bytes),
    ];
    // More factors take longer, and are no other case.
    let payloads = payloads.into_iter().flatten();
    for payload in payloads.filter(|it| it.contention_max < 100) {
        let mut found = Tags::new(TAG_BYTES_MAX);
        let added = found.add::<Error>(&payload, &mut |_| Ok(None));
        assert!(added.is_ok() && found.take().is_empty());
        let damaged = found.add::<Error>(&payload, &mut |_| Ok(Some(doc! { "value": 1 })));
        let has_edges = payload.edges.is_some_and(|edges| !edges.is_empty());
        assert_eq!(damaged.is_err(), has_edges);
    }
}

/// A stored value has no more tags than fit in it.
fn stored(bytes: &[u8]) {
    /// Around each tag are two encrypted blocks.
    const METADATA_BYTES: usize = 96;
    let value = ValueRef::Binary { subtype: 6, bytes };
    if let Ok(tags) = tags(value) {
        assert!(tags.len() * METADATA_BYTES <= bytes.len());
    }
    let document = doc! { "a": (value.to_value()), "b": { "a": (value.to_value()) } };
    let _ = fields().unencrypted(document.as_document());
}

fn documents(bytes: &[u8]) {
    let Ok(document) = DocumentBuf::from_bytes(bytes.to_vec()) else {
        return;
    };
    let document = document.as_document();
    if let Ok(fields) = EncryptedFields::parse(document) {
        for field in &fields.fields {
            assert_eq!(
                fields.field(&field.path).map(|it| &it.path),
                Some(&field.path)
            );
        }
        let _ = fields.unencrypted(document);
    }
    if let Ok(tokens) = CompactionTokens::parse(document, &fields(), "compaction") {
        let _ = tokens.read(document);
    }
    let _ = fields().unencrypted(document);
}

/// A field for equality, and one for ranges.
fn fields() -> EncryptedFields {
    let uuid = |byte: u8| Value::Binary {
        subtype: 4,
        bytes: vec![byte; 16],
    };
    let fields = array![
        { "path": "a", "bsonType": "string", "keyId": (uuid(1)), "queries": { "queryType": "equality" } },
        { "path": "b.a", "bsonType": "int", "keyId": (uuid(2)), "queries": { "queryType": "range" } }
    ];
    let schema = doc! { "fields": (Value::Array(fields)) };
    parsed(schema.as_document())
}

fn parsed(schema: Document<'_>) -> EncryptedFields {
    EncryptedFields::parse(schema).expect("the schema is valid")
}
