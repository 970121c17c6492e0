//! The `count` command.

use std::sync::Arc;

use windrow_interrupt::Interrupt;
use windrow_mql::filter::{Filter, Node};

use crate::Error;
use crate::cursor::Cursor;
use crate::find::{Find, Hint};
use crate::operators::{self, Operator};
use crate::source::Source;

/// The parsed request of a `count`.
#[derive(Clone, Debug)]
pub struct Count {
    /// The filter.
    pub filter: Filter,
    /// The number of documents to skip.
    pub skip: u64,
    /// The largest number of documents to count.
    pub limit: Option<u64>,
    /// The index to use.
    pub hint: Option<Hint>,
}

impl Count {
    /// The query whose rows are counted. It needs no paths of its documents.
    pub fn find(&self) -> Find {
        Find {
            skip: self.skip,
            limit: self.limit,
            hint: self.hint.clone(),
            needs: Some(Vec::new()),
            ..Find::new(self.filter.clone())
        }
    }

    /// Counts the documents that match, less the skipped ones, up to the limit. `note` receives the
    /// operator that read the documents, if any had to be read.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow_mql::filter::Filter;
    /// use windrow_query::{Count, NoCollection, Source, Uninterrupted};
    /// let source: Arc<dyn Source> = Arc::new(NoCollection { namespace: "a.b".to_owned() });
    /// let count = Count { filter: Filter::all(), skip: 0, limit: None, hint: None };
    /// assert_eq!(count.run(&source, &Uninterrupted, |_| {})?, 0);
    /// # Ok::<(), windrow_query::Error>(())
    /// ```
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
        let mut cursor = Cursor::new(operators::open(&plan, source)?);
        let count = cursor.count(interrupt);
        note(cursor.operator());
        count
    }
}
