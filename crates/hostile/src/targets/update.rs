//! Updates: parsed, applied to a document, and as upserts.

use windrow_document::{Document, DocumentBuf, Timestamp, ValueRef};
use windrow_mql::filter::Filter;
use windrow_mql::update::{Update, UpdateContext};

use crate::grammar::Source;

/// An update (a document or an array), its array filters, a document and a filter. What comes out is
/// BSON with an `_id` equal to the one that went in.
pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
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
    let context = UpdateContext::at(1_700_000_000_000, timestamp);
    let _ = apply(&update, &document, &context);
    if let Ok(filter) = Filter::parse(filter.as_document()) {
        let _ = apply(&update, &document, &context.with_filter(&filter));
        if let Ok(upserted) = update.upsert(&filter, &context) {
            check_bson(&upserted);
        }
    }
}

fn with_id(document: DocumentBuf) -> DocumentBuf {
    let mut whole = DocumentBuf::new();
    whole.push("_id", 1);
    let others = document.iter().filter(|(name, _)| *name != "_id");
    others.for_each(|(name, value)| whole.push(name, value));
    whole
}

fn apply(update: &Update, document: &DocumentBuf, context: &UpdateContext<'_>) -> Option<()> {
    let applied = update.apply(document.as_document(), context).ok()?;
    let changed = applied.document?;
    check_bson(&changed);
    if !update.is_replacement() {
        let id = changed.get("_id").expect("an update keeps the `_id`");
        assert!(id.compare(ValueRef::Int32(1)).is_eq(), "{changed}");
    }
    Some(())
}

fn check_bson(document: &DocumentBuf) {
    Document::from_bytes(document.as_bytes()).expect("an update leaves BSON");
}
