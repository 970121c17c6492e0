//! Filters: parsed, matched, printed.

use windrow_document::{BsonError, DocumentBuf};
use windrow_mql::Meta;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use crate::grammar::Source;

/// A filter, a document, a projection and a sort. What explain prints of a filter is a filter.
pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let (filter, document) = (source.document(), source.document());
    let Ok(filter) = Filter::parse(filter.as_document()) else {
        return;
    };
    let matched = filter.matches(document.as_document());
    let position = filter.matching_position(document.as_document());
    if let (Ok(matched), Ok(position)) = (&matched, position) {
        assert_eq!(position.is_some(), *matched, "{}", filter.to_document());
    }
    let _ = (filter.dependencies(), filter.equality_fields(false));
    match DocumentBuf::from_bytes(filter.to_document().into_bytes()) {
        // Written out, `{a: 1}` is deeper by one.
        Ok(_) | Err(BsonError::Depth) => {}
        Err(error) => panic!("what is printed of a filter is no BSON: {error}"),
    }
    present(&mut source, &filter, document);
}

fn present(source: &mut Source<'_>, filter: &Filter, document: DocumentBuf) {
    let (projection, sort) = (source.document(), source.document());
    if let Ok(projection) = Projection::parse(projection.as_document(), filter)
        && let Ok(shown) = projection.apply(document.as_document(), &Meta::default())
    {
        DocumentBuf::from_bytes(shown.into_bytes()).expect("a projection leaves BSON");
    }
    let _ = Sort::parse(sort.as_document());
}
