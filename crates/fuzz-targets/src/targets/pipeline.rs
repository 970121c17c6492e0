//! The target `pipeline`: parses pipelines and runs them on a few documents.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use windrow_document::Document;
use windrow_mql::filter::Environment;
use windrow_query::{Aggregate, Collections, EngineCollections, Interrupt, Interrupted, Pipeline};

use super::plan::{COLLECTION, DATABASE, engine};
use crate::value_encoding::ValueDecoder;

/// The number of rows that are read.
const ROWS_MAX: usize = 2_000;
/// The number of interrupt checks before a pipeline is interrupted. Some run endlessly.
const CHECKS_MAX: u32 = 200;

/// Interrupts a pipeline after [`CHECKS_MAX`] checks.
pub struct CheckLimit(pub Cell<u32>);

impl Interrupt for CheckLimit {
    fn check(&self) -> Result<(), Interrupted> {
        self.0.set(self.0.get() + 1);
        if self.0.get() > CHECKS_MAX {
            let message = "the pipeline exceeded its number of checks";
            return Err(Interrupted::new(message));
        }
        Ok(())
    }
}

static COLLECTIONS: LazyLock<Arc<EngineCollections>> =
    LazyLock::new(|| Arc::new(EngineCollections::new(engine())));

/// The input is a pipeline. Its rows must be valid BSON.
pub fn run(bytes: &[u8]) {
    let stages = ValueDecoder::new(bytes).array();
    let environment = Environment {
        now: 1_700_000_000_000,
        ..Environment::default()
    };
    let Ok(pipeline) = Pipeline::parse(stages.as_array(), &environment) else {
        return;
    };
    let source = COLLECTIONS
        .source(DATABASE, COLLECTION)
        .expect("a snapshot");
    let Ok(mut cursor) = Aggregate::new(pipeline).open(&source, &COLLECTIONS) else {
        return;
    };
    let check_limit = CheckLimit(Cell::new(0));
    for _ in 0..ROWS_MAX {
        let Ok(Some(row)) = cursor.next(&check_limit) else {
            return;
        };
        if let Err(error) = Document::from_bytes(row.as_document().as_bytes()) {
            assert!(error.to_string().contains("nest"), "{error}");
        }
    }
}
