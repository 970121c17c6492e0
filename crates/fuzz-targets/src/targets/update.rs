//! The target `update`: parsing, application and upserts of updates.

use windrow_document::{Document, DocumentBuf, Timestamp, ValueRef};
use windrow_mql::filter::Filter;
use windrow_mql::update::{Update, UpdateContext};

use crate::value_encoding::ValueDecoder;

/// The input is an update, its array filters, a document and a filter. The result must be BSON with
/// an equal `_id`.
pub fn run(bytes: &[u8]) {
    let mut source = ValueDecoder::new(bytes);
    let (update, array_filters) = (source.value(), source.array());
    let array_filters: Vec<Document<'_>> = array_filters
        .iter()
        .filter_map(ValueRef::as_document)
        .collect();
    let Ok(update) = Update::parse(update.as_ref(), &array_filters) else {
        return;
    };
    let (document, filter) = (with_id(source.document()), source.document());
    let timestamp = Timestamp {
        seconds: 1,
        increment: 1,
    };
    let context = UpdateContext::new(1_700_000_000_000, timestamp);
    let _ = apply(&update, &document, &context);
    if let Ok(filter) = Filter::parse(filter.as_document()) {
        let _ = apply(&update, &document, &context.with_filter(&filter));
        if let Ok(upserted) = update.upsert(&filter, &context) {
            check_bson(&upserted);
        }
    }
}

fn with_id(document: DocumentBuf) -> DocumentBuf {
    let mut result = DocumentBuf::new();
    result.push("_id", 1);
    let others = document.iter().filter(|(name, _)| *name != "_id");
    others.for_each(|(name, value)| result.push(name, value));
    result
}

fn apply(update: &Update, document: &DocumentBuf, context: &UpdateContext<'_>) -> Option<()> {
    let applied = update.apply(document.as_document(), context).ok()?;
    let changed = applied.document?;
    check_bson(&changed);
    if !update.is_replacement() {
        let id = changed.get("_id").expect("an update preserves the `_id`");
        assert!(id.compare(ValueRef::Int32(1)).is_eq(), "{changed}");
    }
    Some(())
}

fn check_bson(document: &DocumentBuf) {
    Document::from_bytes(document.as_bytes()).expect("an updated document is BSON");
}
