//! `count`.

use std::sync::Arc;

use windrow_mql::filter::{Filter, Node};

use crate::Error;
use crate::cursor::Cursor;
use crate::find::{Find, Hint};
use crate::operators::{self, Operator};
use crate::row::Interrupt;
use crate::source::Source;

/// The parts of a `count`.
#[derive(Clone, Debug)]
pub struct Count {
    pub filter: Filter,
    pub skip: u64,
    pub limit: Option<u64>,
    pub hint: Option<Hint>,
}

impl Count {
    /// The query that is counted: nothing of its documents is needed.
    pub fn find(&self) -> Find {
        Find {
            skip: self.skip,
            limit: self.limit,
            hint: self.hint.clone(),
            needs: Some(Vec::new()),
            ..Find::of(self.filter.clone())
        }
    }

    /// The number of documents that match, less those skipped, up to the limit.
    /// `note` sees what has read the documents, where that was needed.
    pub fn run(
        &self,
        source: &Arc<dyn Source>,
        interrupt: &dyn Interrupt,
        note: impl FnOnce(&dyn Operator),
    ) -> Result<u64, Error> {
        if matches!(self.filter.root(), Node::AlwaysTrue) && self.hint.is_none() {
            let count = source.count().saturating_sub(self.skip);
            return Ok(self.limit.map_or(count, |limit| count.min(limit)));
        }
        let plan = self.find().plan(&**source)?.winner;
        let mut cursor = Cursor::of(operators::open(&plan, source)?);
        let count = cursor.count(interrupt);
        note(cursor.operator());
        count
    }
}
