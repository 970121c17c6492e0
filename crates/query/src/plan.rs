//! Plans: what to do, as data. `print` prints them and `operators` runs them.

use windrow_document::Value;
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use crate::bounds::IndexBounds;
use crate::bounds::interval::Intervals;
use crate::bounds::key_ends::KeyEnds;
use crate::key_range::KeyRange;
use crate::near::NearScan;
use crate::source::{Direction, SourceIndex};
use crate::text::TextScan;

/// A tree of steps. The rows come from the leaves.
#[derive(Clone, Debug)]
pub enum Plan {
    /// No rows.
    Eof,
    /// All records that match, in natural order.
    CollectionScan {
        /// The direction of the scan.
        direction: Direction,
        /// The filter, if not all records match.
        filter: Option<Filter>,
    },
    /// The document with an `_id`.
    IdHack {
        /// The `_id`.
        id: Value,
        /// `true` if the collection is clustered.
        clustered: bool,
    },
    /// The entries of an index, as rows without documents.
    IndexScan(IndexScan),
    /// Documents of a clustered collection, by their `_id`s.
    ClusteredScan(ClusteredScan),
    /// Documents that contain a term of a `$text`.
    Text {
        /// The scan of the text index.
        scan: TextScan,
        /// The rows of other indexes. If present, only their records are returned.
        within: Option<Box<Plan>>,
    },
    /// Documents by their distance from a point.
    Near(Box<NearScan>),
    /// The rows of all inputs, each record once.
    Or(Vec<Plan>),
    /// The sorted rows of all inputs, merged. Each record comes once.
    SortMerge {
        /// The order of the inputs and of the result.
        sort: Sort,
        /// The sorted inputs.
        inputs: Vec<Plan>,
    },
    /// The records that all inputs have. The inputs are in the order of record ids.
    AndSorted(Vec<Plan>),
    /// Reads the document of each row, and keeps the rows that match.
    Fetch {
        /// The filter, if not all rows match.
        filter: Option<Filter>,
        /// The rows to fetch.
        input: Box<Plan>,
    },
    /// The sorted rows.
    Sort {
        /// The order.
        sort: Sort,
        /// The largest number of rows.
        limit: Option<u64>,
        /// The sort may use files if it exceeds its memory limit.
        allow_disk_use: bool,
        /// The rows to sort.
        input: Box<Plan>,
    },
    /// Leaves out the first rows.
    Skip {
        /// The number of rows to skip.
        amount: u64,
        /// The rows.
        input: Box<Plan>,
    },
    /// Ends after a number of rows.
    Limit {
        /// The largest number of rows.
        amount: u64,
        /// The rows.
        input: Box<Plan>,
    },
    /// Applies a projection to the rows.
    Project {
        /// What explain calls the projection.
        kind: ProjectionKind,
        /// The projection.
        projection: Projection,
        /// The order whose keys the projection shows.
        sort: Option<Sort>,
        /// The rows.
        input: Box<Plan>,
    },
    /// Replaces the rows by the index keys by which they were found.
    ReturnKey {
        /// The sort keys to show, if any.
        sort_keys: Option<Box<ShownSortKeys>>,
        /// The rows.
        input: Box<Plan>,
    },
    /// Adds `$recordId` to each document.
    RecordIds {
        /// The rows.
        input: Box<Plan>,
    },
}

/// The sort keys that `returnKey` shows.
#[derive(Clone, Debug)]
pub struct ShownSortKeys {
    /// The part of the projection that shows sort keys.
    pub projection: Projection,
    /// The sort.
    pub sort: Sort,
}

/// What explain calls a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionKind {
    /// Computed from index keys only.
    Covered,
    /// Includes whole fields and does nothing else.
    Simple,
    /// Any other projection.
    Default,
}

/// A scan of an index.
#[derive(Clone, Debug)]
pub struct IndexScan {
    /// The index.
    pub index: SourceIndex,
    /// The direction of the scan.
    pub direction: Direction,
    /// The bounds of the fields.
    pub bounds: IndexBounds,
    /// The range of keys between `min` and `max`. If present, it replaces the bounds.
    pub range: Option<KeyRange>,
    /// A filter that is tested on the document made of the key, or on the document beside the key.
    pub filter: Option<Filter>,
    /// What the scan returns for each key.
    pub output: KeyOutput,
    /// If present, the scan returns only one of the entries that have the same values in the fields
    /// up to this one.
    pub distinct_prefix: Option<usize>,
}

/// What a scan returns for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutput {
    /// Nothing: the documents are fetched afterwards.
    Nothing,
    /// Nothing: the rows are only counted.
    Counted,
    /// A document with the values at their paths.
    Document,
    /// A document with the value of only one field, given by its position, at its path.
    Field(usize),
    /// The document that `returnKey` shows: the paths are the field names.
    Flat,
    /// The document beside the key, in a clustered collection.
    Stored,
}

/// A scan of a clustered collection by its `_id`s.
#[derive(Clone, Debug)]
pub struct ClusteredScan {
    /// The scan of the index on `_id`.
    pub scan: IndexScan,
    /// The filter that the scan answers. The scan tests what the bounds do not decide.
    pub answers: Option<Filter>,
}

impl IndexScan {
    /// What explain and the log call the scan.
    pub fn stage(&self) -> &'static str {
        match self.output {
            _ if self.distinct_prefix.is_some() => "DISTINCT_SCAN",
            KeyOutput::Counted if self.counted_ends().is_some() => "COUNT_SCAN",
            _ => "IXSCAN",
        }
    }

    /// Returns the first and the last key if the scan only counts the entries of one interval.
    pub(crate) fn counted_ends(&self) -> Option<KeyEnds> {
        let definition = &self.index.definition;
        let counts = self.output == KeyOutput::Counted && self.filter.is_none();
        if !counts || self.range.is_some() || definition.is_wildcard() {
            return None;
        }
        KeyEnds::new(definition, &self.bounds, self.direction)
    }

    /// Returns `true` if the scan can return a record more than once. A scan of distinct prefixes
    /// returns each record at most once.
    pub fn may_repeat(&self) -> bool {
        if self.distinct_prefix.is_some() {
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
    /// The steps from which this one takes its rows.
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
            | Plan::Project { input, .. }
            | Plan::ReturnKey { input, .. }
            | Plan::RecordIds { input } => vec![input],
        }
    }

    /// Returns `true` if a scan in the plan returns only one of the entries with the same values.
    pub(crate) fn reads_distinct_prefix(&self) -> bool {
        let scan = match self {
            Plan::IndexScan(scan) => scan.distinct_prefix,
            _ => None,
        };
        scan.is_some() || self.inputs().into_iter().any(Plan::reads_distinct_prefix)
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
