//! The target `filter`: parsing, matching and printing of filters, and reports of validation
//! failures.

use windrow_document::{BsonError, DocumentBuf};
use windrow_mql::Meta;
use windrow_mql::filter::{Environment, EqualityScope, Filter, validation_report};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use crate::value_encoding::ValueDecoder;

/// The input is a filter, a document, a projection and a sort. The printed filter must be BSON.
pub fn run(bytes: &[u8]) {
    let mut source = ValueDecoder::new(bytes);
    let (query, document) = (source.document(), source.document());
    let Ok(filter) = Filter::parse(query.as_document()) else {
        return;
    };
    let matched = filter.matches(document.as_document());
    if matched.as_ref().ok() != Some(&true) {
        let environment = Environment::default();
        let (query, document) = (query.as_document(), document.as_document());
        let information = validation_report::report(query, document, &environment).unwrap();
        DocumentBuf::from_bytes(information.into_bytes()).expect("a report is BSON");
    }
    let position = filter.matching_position(document.as_document());
    if let (Ok(matched), Ok(position)) = (&matched, position) {
        assert_eq!(position.is_some(), *matched, "{}", filter.to_document());
    }
    let _ = (
        filter.dependencies(),
        filter.equality_fields(EqualityScope::AllFields),
    );
    match DocumentBuf::from_bytes(filter.to_document().into_bytes()) {
        // Printing can add a level of nesting: `{a: 1}` is printed with `$eq`.
        Ok(_) | Err(BsonError::Depth) => {}
        Err(error) => panic!("a printed filter is not BSON: {error}"),
    }
    check_projection_and_sort(&mut source, &filter, document);
}

fn check_projection_and_sort(
    source: &mut ValueDecoder<'_>,
    filter: &Filter,
    document: DocumentBuf,
) {
    let (projection, sort) = (source.document(), source.document());
    if let Ok(projection) = Projection::parse(projection.as_document(), filter)
        && let Ok(projected) = projection.apply(document.as_document(), &Meta::default())
    {
        DocumentBuf::from_bytes(projected.into_bytes()).expect("a projected document is BSON");
    }
    let _ = Sort::parse(sort.as_document());
}
