//! A plan: what will be done, as data. Printing it is the work of `explain`, running it that of
//! `operators`.

use windrow_document::Value;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use crate::bounds::IndexBounds;
use crate::bounds::ends::Ends;
use crate::bounds::interval::Intervals;
use crate::bounds::range::KeyRange;
use crate::near::NearScan;
use crate::source::{Direction, SourceIndex};
use crate::text::TextScan;

/// A tree of steps; rows come from the leaves.
#[derive(Clone, Debug)]
pub enum Plan {
    /// No rows.
    Eof,
    /// All records in natural order, those that match.
    CollectionScan {
        direction: Direction,
        filter: Option<Filter>,
    },
    /// The one document of an `_id`. `clustered`: the collection is.
    IdHack {
        id: Value,
        clustered: bool,
    },
    /// Entries of an index: rows without their documents.
    IndexScan(IndexScan),
    /// Documents of a clustered collection, by their `_id`s.
    ClusteredScan(ClusteredScan),
    /// Documents that have a term of a `$text`.
    Text {
        scan: TextScan,
        /// The rows of other indexes whose records alone are wanted.
        within: Option<Box<Plan>>,
    },
    /// Documents by their distance from a point.
    Near(Box<NearScan>),
    /// The rows of all inputs, each record once.
    Or(Vec<Plan>),
    /// The rows of all inputs, which are each in order, in order; each record once.
    SortMerge {
        sort: Sort,
        inputs: Vec<Plan>,
    },
    /// The records that all inputs have, which come by record id.
    AndSorted(Vec<Plan>),
    /// Gets the document of each row; keeps those that match.
    Fetch {
        filter: Option<Filter>,
        input: Box<Plan>,
    },
    /// The rows in order; at most `limit` of them.
    Sort {
        sort: Sort,
        limit: Option<u64>,
        allow_disk_use: bool,
        input: Box<Plan>,
    },
    Skip {
        amount: u64,
        input: Box<Plan>,
    },
    Limit {
        amount: u64,
        input: Box<Plan>,
    },
    Projection {
        kind: ProjectionKind,
        projection: Projection,
        /// The order whose keys the projection shows.
        sort: Option<Sort>,
        input: Box<Plan>,
    },
    /// Rows are the index keys that they were found by.
    ReturnKey {
        /// What shows the keys of the order beside them.
        sort_keys: Option<Box<(Projection, Sort)>>,
        input: Box<Plan>,
    },
    /// Adds `$recordId` to each document.
    RecordIds {
        input: Box<Plan>,
    },
}

/// How explain calls a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionKind {
    /// From index keys alone.
    Covered,
    /// Includes whole fields and does nothing else.
    Simple,
    Default,
}

/// What is read of an index.
#[derive(Clone, Debug)]
pub struct IndexScan {
    pub index: SourceIndex,
    pub direction: Direction,
    pub bounds: IndexBounds,
    /// Where `min` and `max` were given: the key bytes in place of the bounds.
    pub range: Option<KeyRange>,
    /// Tested on the document that the key makes, or that stands beside it.
    pub filter: Option<Filter>,
    pub output: KeyOutput,
    /// Of the entries with the same values in the fields up to this one, one is enough: the others are
    /// passed over.
    pub one_of_each: Option<usize>,
}

/// What a scan makes of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutput {
    /// Nothing: the rows are fetched.
    Nothing,
    /// Nothing: the rows are only counted.
    Counted,
    /// A document with the values at their paths.
    Document,
    /// A document with the value of the field of that number alone, at its path.
    Field(usize),
    /// The document that `returnKey` shows: the paths are names.
    Flat,
    /// The document that stands beside the key, in a clustered collection.
    Stored,
}

/// What is read of a clustered collection.
#[derive(Clone, Debug)]
pub struct ClusteredScan {
    pub scan: IndexScan,
    /// The filter that the scan answers. What of it the bounds do not settle the scan tests.
    pub answers: Option<Filter>,
}

impl IndexScan {
    /// How explain and the log call it.
    pub fn stage(&self) -> &'static str {
        match self.output {
            _ if self.one_of_each.is_some() => "DISTINCT_SCAN",
            KeyOutput::Counted if self.counted_ends().is_some() => "COUNT_SCAN",
            _ => "IXSCAN",
        }
    }

    /// Where it only counts what lies in one interval of the index: the ends of that.
    pub(crate) fn counted_ends(&self) -> Option<Ends> {
        let definition = &self.index.definition;
        let counts = self.output == KeyOutput::Counted && self.filter.is_none();
        if !counts || self.range.is_some() || definition.is_wildcard() {
            return None;
        }
        Ends::of(definition, &self.bounds, self.direction)
    }

    /// Whether a record may come by several keys. Of those that begin alike and of which one is read, it comes
    /// by one alone.
    pub fn may_repeat(&self) -> bool {
        if self.one_of_each.is_some() {
            return false;
        }
        let definition = &self.index.definition;
        let path = definition.path_place();
        let paths = path.and_then(|place| self.bounds.fields.get(place));
        self.index.multikey.any()
            || definition.is_wildcard() && !paths.is_some_and(Intervals::is_one_point)
    }
}

impl Plan {
    /// The steps that this one takes its rows from.
    pub fn inputs(&self) -> Vec<&Plan> {
        match self {
            Plan::Eof
            | Plan::CollectionScan { .. }
            | Plan::IdHack { .. }
            | Plan::IndexScan(_)
            | Plan::ClusteredScan(_)
            | Plan::Near(_) => Vec::new(),
            Plan::Text { within, .. } => within.as_deref().into_iter().collect(),
            Plan::Or(inputs) | Plan::SortMerge { inputs, .. } | Plan::AndSorted(inputs) => {
                inputs.iter().collect()
            }
            Plan::Fetch { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Skip { input, .. }
            | Plan::Limit { input, .. }
            | Plan::Projection { input, .. }
            | Plan::ReturnKey { input, .. }
            | Plan::RecordIds { input } => vec![input],
        }
    }

    /// Whether entries of an index are passed over, of which others have the same values.
    pub(crate) fn reads_one_of_each(&self) -> bool {
        let scan = match self {
            Plan::IndexScan(scan) => scan.one_of_each,
            _ => None,
        };
        scan.is_some() || self.inputs().into_iter().any(Plan::reads_one_of_each)
    }

    pub(crate) fn fetched(self, filter: Option<Filter>) -> Plan {
        Plan::Fetch {
            filter,
            input: Box::new(self),
        }
    }

    pub(crate) fn skipped(self, amount: u64) -> Plan {
        match amount {
            0 => self,
            _ => Plan::Skip {
                amount,
                input: Box::new(self),
            },
        }
    }

    pub(crate) fn limited(self, limit: Option<u64>) -> Plan {
        match limit {
            None => self,
            Some(amount) => Plan::Limit {
                amount,
                input: Box::new(self),
            },
        }
    }
}
