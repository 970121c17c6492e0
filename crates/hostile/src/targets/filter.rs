//! Filters: parsed, matched, printed; and what is told of documents that they refuse.

use windrow_document::{BsonError, DocumentBuf};
use windrow_mql::Meta;
use windrow_mql::filter::{Environment, Filter, failure};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use crate::grammar::Source;

/// A filter, a document, a projection and a sort. What explain prints of a filter is a filter.
pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let (query, document) = (source.document(), source.document());
    let Ok(filter) = Filter::parse(query.as_document()) else {
        return;
    };
    let matched = filter.matches(document.as_document());
    if matched.as_ref().ok() != Some(&true) {
        let environment = Environment::default();
        let (query, document) = (query.as_document(), document.as_document());
        let told = failure::information(query, document, &environment);
        DocumentBuf::from_bytes(told.into_bytes()).expect("what is told of a failure is BSON");
    }
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
