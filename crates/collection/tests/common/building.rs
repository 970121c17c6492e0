//! Builds an index at once, for tests that need one.

use windrow_collection::{BuildControl, Collection, Uninterrupted};
use windrow_document::DocumentBuf;
use windrow_index::Definition;

pub fn build(collection: &Collection, specification: DocumentBuf) {
    let definition = Definition::parse(specification.as_document()).unwrap();
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &|_| (),
    };
    collection
        .create_indexes(vec![definition], &control)
        .unwrap();
}
