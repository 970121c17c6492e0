//! Views, resolved to the collection below them and the stages above it.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{ClusterSnapshot, Engine, Namespace, Transaction, View};
use windrow_document::{ArrayBuf, Collation, DocumentBuf, ValueRef};
use windrow_index::{Definition, Multikey};

use crate::Error;
use crate::planner_settings::PlannerSettings;
use crate::snapshot::Snapshot;
use crate::source::{
    Collections, Direction, EntryCursor, NoCollection, RecordCursor, RecordId, Source, ViewParts,
};
use crate::statistics::{Statistics, StatisticsProvider, unknown};

/// The largest number of views on views.
pub const DEPTH_MAX: usize = 20;

const DEPTH_EXCEEDED: i32 = 165;
const NOT_ON_VIEWS: i32 = 166;

const NOT_IN_TRANSACTIONS: i32 = 263;

const INVALID_OPTIONS: i32 = 72;

/// The collections and views of an engine: in their current state, as a transaction sees them, or
/// at an earlier point in time.
#[derive(Clone)]
pub struct EngineCollections {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The planner settings.
    pub planner_settings: Option<Arc<PlannerSettings>>,
    /// The transaction that reads, if there is one.
    pub transaction: Option<Arc<Transaction>>,
    /// The snapshot that is read, if it is not the current state.
    pub cluster_snapshot: Option<Arc<ClusterSnapshot>>,
    /// Provides the statistics of collections for stages such as `$collStats`.
    pub statistics_provider: Option<Arc<dyn StatisticsProvider>>,
}

impl EngineCollections {
    /// Returns the collections in their current state, without planner settings.
    pub fn new(engine: Arc<Engine>) -> EngineCollections {
        EngineCollections {
            engine,
            planner_settings: None,
            transaction: None,
            cluster_snapshot: None,
            statistics_provider: None,
        }
    }

    /// Opens a collection or view. A name that does not exist gives a source without documents.
    pub fn open(&self, namespace: &Namespace) -> Result<Arc<dyn Source>, Error> {
        if let Some(snapshot) = self.snapshot(namespace)? {
            return Ok(snapshot);
        }
        let Some(first) = self.view(namespace)? else {
            return Ok(missing_collection(namespace));
        };
        let collation = first.collation;
        let mut pipelines = vec![first.pipeline];
        let mut below = Namespace {
            database: namespace.database.clone(),
            collection: first.on,
        };
        let base = loop {
            if let Some(snapshot) = self.snapshot(&below)? {
                break snapshot;
            }
            let Some(view) = self.view(&below)? else {
                break missing_collection(&below);
            };
            if pipelines.last().is_some_and(reads_view_statistics) {
                break missing_collection(&below);
            }
            pipelines.push(view.pipeline);
            below.collection = view.on;
            if pipelines.len() > DEPTH_MAX {
                return Err(too_deep());
            }
        };
        let stages = pipelines.iter().rev().flat_map(|pipeline| pipeline.iter());
        Ok(Arc::new(ViewSource {
            namespace: namespace.to_string(),
            base,
            collation,
            stages: stages.collect(),
        }))
    }

    /// Returns a snapshot of the collection with this name, if it exists.
    fn snapshot(&self, namespace: &Namespace) -> Result<Option<Arc<dyn Source>>, Error> {
        let planner_settings = self.planner_settings.clone();
        if let Some(cluster_snapshot) = &self.cluster_snapshot {
            let Some(collection) = cluster_snapshot.collection(namespace)? else {
                return Ok(None);
            };
            let reader = cluster_snapshot.reader(&collection)?;
            return Ok(Some(Snapshot::before(
                &collection,
                reader,
                planner_settings,
            )));
        }
        let transaction = self.transaction.as_deref();
        let collection = match transaction {
            None => self.engine.collection(namespace),
            Some(transaction) => transaction.collection(namespace)?,
        };
        collection
            .map(|it| Snapshot::within(&it, transaction, planner_settings))
            .transpose()
    }

    fn view(&self, namespace: &Namespace) -> Result<Option<View>, Error> {
        let of_transaction = self
            .transaction
            .as_ref()
            .and_then(|it| it.cluster_snapshot());
        Ok(match self.cluster_snapshot.as_deref().or(of_transaction) {
            Some(cluster_snapshot) => cluster_snapshot.view(namespace)?,
            None => self.engine.view(namespace)?,
        })
    }
}

/// Returns `true` if the pipeline begins with `$collStats`. Such a view reads the statistics of the
/// view below it, not those of the collection below both.
fn reads_view_statistics(pipeline: &ArrayBuf) -> bool {
    let first = pipeline.iter().next().and_then(ValueRef::as_document);
    first.is_some_and(|stage| stage.contains("$collStats"))
}

fn missing_collection(namespace: &Namespace) -> Arc<dyn Source> {
    Arc::new(NoCollection {
        namespace: namespace.to_string(),
    })
}

/// The error for views that are nested too deeply.
pub fn too_deep() -> Error {
    let message = format!("View depth too deep or view cycle detected; maximum depth: {DEPTH_MAX}");
    Error::new(DEPTH_EXCEEDED, message)
}

/// A view. It has no records and no indexes. Its readers use [`Source::view`].
struct ViewSource {
    namespace: String,
    base: Arc<dyn Source>,
    /// The collation of the view. It replaces that of the collection below.
    collation: Option<Arc<Collation>>,
    stages: ArrayBuf,
}

impl ViewSource {
    fn refuse<T>(&self) -> Result<T, Error> {
        let message = format!("Namespace {} is a view, not a collection", self.namespace);
        Err(Error::new(NOT_ON_VIEWS, message))
    }
}

impl Source for ViewSource {
    fn view(&self) -> Option<ViewParts<'_>> {
        Some(ViewParts {
            base: &self.base,
            stages: self.stages.as_array(),
        })
    }

    fn namespace(&self) -> String {
        self.namespace.clone()
    }

    fn collation(&self) -> Option<Arc<Collation>> {
        self.collation.clone()
    }

    fn count(&self) -> u64 {
        self.base.count()
    }

    fn indexes(&self) -> Vec<Arc<Definition>> {
        Vec::new()
    }

    fn multikey(&self, _: usize) -> Result<Multikey, Error> {
        self.refuse()
    }

    fn get(&self, _: RecordId) -> Result<Option<Bytes>, Error> {
        self.refuse()
    }

    fn find(&self, _: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error> {
        self.refuse()
    }

    fn records(&self, _: Direction) -> Result<Box<dyn RecordCursor>, Error> {
        self.refuse()
    }

    fn entries(&self, _: usize, _: Direction) -> Result<Box<dyn EntryCursor>, Error> {
        self.refuse()
    }

    fn approximate_count(&self, _: usize, _: &[u8], _: &[u8]) -> Result<u64, Error> {
        self.refuse()
    }
}

impl Collections for EngineCollections {
    fn source(&self, database: &str, collection: &str) -> Result<Arc<dyn Source>, Error> {
        let namespace = Namespace::new(database, collection)?;
        self.open(&namespace)
    }

    fn statistics(
        &self,
        database: &str,
        collection: &str,
        statistics: &Statistics,
    ) -> Result<Vec<DocumentBuf>, Error> {
        if self.transaction.is_some() {
            let message = format!("{} cannot be used in a transaction", statistics.stage());
            return Err(Error::new(NOT_IN_TRANSACTIONS, message));
        }
        if self.cluster_snapshot.is_some() {
            let stage = statistics.stage();
            let message = format!(
                "Aggregation stage {stage} cannot run with a readConcern other than 'local', or in a \
                 multi-document transaction. Current readConcern: snapshot"
            );
            return Err(Error::new(INVALID_OPTIONS, message));
        }
        match &self.statistics_provider {
            Some(statistics_provider) => {
                statistics_provider.report(database, collection, statistics)
            }
            None => Err(unknown()),
        }
    }
}

impl std::fmt::Debug for EngineCollections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EngineCollections")
    }
}
