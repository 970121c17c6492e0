//! Reads the fixtures.

use std::path::Path;

use windrow_extract::{ExtractedDocument, Limits, Output, extract};

/// Returns the documents of a fixture. Panics if any member fails or is skipped.
pub fn read_documents(name: &str) -> Vec<ExtractedDocument> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bytes = std::fs::read(folder.join(name)).expect(name);
    let mut documents = Vec::new();
    let mut emit = |output| match output {
        Output::Document(document) => documents.push(*document),
        other => panic!("{name}: {other:?}"),
    };
    extract(name, &bytes, &Limits::default(), &mut emit).expect(name);
    documents
}
