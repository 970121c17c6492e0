//! Pipelines: parsed, and run on a few documents.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use windrow_document::Document;
use windrow_mql::filter::Environment;
use windrow_query::{Aggregate, Collections, EngineCollections, Error, Interrupt, Pipeline};

use super::plan::{COLLECTION, DATABASE, database};
use crate::grammar::Source;

/// So many rows of a result are looked at.
const ROWS_MAX: usize = 2_000;
/// A pipeline may go on for ever; so many questions whether to go on are answered with yes.
const CHECKS_MAX: u32 = 200;

struct Patience(Cell<u32>);

impl Interrupt for Patience {
    fn check(&self) -> Result<(), Error> {
        self.0.set(self.0.get() + 1);
        match self.0.get() > CHECKS_MAX {
            true => Err(Error::Interrupted {
                code: 11601,
                message: "it takes too long".to_owned(),
            }),
            false => Ok(()),
        }
    }
}

static COLLECTIONS: LazyLock<Arc<EngineCollections>> =
    LazyLock::new(|| Arc::new(EngineCollections::of(database())));

pub fn run(bytes: &[u8]) {
    let stages = Source::new(bytes).array();
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
    let Ok(mut cursor) = Aggregate::of(pipeline).open(&source, &COLLECTIONS) else {
        return;
    };
    let patience = Patience(Cell::new(0));
    for _ in 0..ROWS_MAX {
        let Ok(Some(row)) = cursor.next(&patience) else {
            return;
        };
        if let Err(error) = Document::from_bytes(row.as_document().as_bytes()) {
            assert!(error.to_string().contains("nest"), "{error}");
        }
    }
}
