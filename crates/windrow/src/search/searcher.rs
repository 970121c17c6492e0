//! Runs aggregations on the documents of files. The engine and a server run the same pipelines, so
//! both return the same results.

use std::path::Path;
use std::sync::Arc;

use windrow_collection::{Engine, Namespace};
use windrow_document::{ArrayBuf, doc};
use windrow_file_search::{DocumentSink, DocumentSource, SearchError};
use windrow_ingest::{DATABASE_NAME, StoreCollection};
use windrow_mql::filter::Environment;
use windrow_query::{Aggregate, EngineCollections, Interrupt, Pipeline, Uninterrupted};

use crate::client::{self, Client};
use crate::command_line::Failure;
use crate::data_folder::DataFolder;
use crate::memory;

/// Searches the documents of a data folder.
pub struct Searcher {
    documents: Documents,
    interrupt: Box<dyn Interrupt + Send>,
}

/// The documents of a data folder, opened in this process or by a server.
enum Documents {
    Local(Arc<EngineCollections>),
    Server(Client),
}

/// A searcher and the engine that it uses.
pub struct OpenedSearcher {
    pub searcher: Searcher,
    /// `None` if a server has the data folder open.
    pub engine: Option<Arc<Engine>>,
}

impl Searcher {
    /// Opens a data folder.
    pub fn open(data_folder: &Path) -> Result<Searcher, Failure> {
        Searcher::open_with_engine(data_folder).map(|opened| opened.searcher)
    }

    /// Like [`open`](Self::open). Also returns the engine if this process has opened the folder.
    pub fn open_with_engine(data_folder: &Path) -> Result<OpenedSearcher, Failure> {
        if !DataFolder::exists(data_folder) {
            return Err(not_indexed_failure(data_folder));
        }
        let opened = DataFolder::open(data_folder, memory::default_memory_bytes())?;
        let engine = match &opened {
            DataFolder::Local(engine) => Some(engine.clone()),
            DataFolder::Server(_) => None,
        };
        let searcher = Searcher::from_folder(opened)?;
        let searcher = searcher.ok_or_else(|| not_indexed_failure(data_folder))?;
        Ok(OpenedSearcher { searcher, engine })
    }

    /// Searches an open data folder. Returns `None` if it has no indexed files.
    pub fn from_folder(opened: DataFolder) -> Result<Option<Searcher>, Failure> {
        match opened {
            DataFolder::Local(engine) => {
                if !has_documents(&engine)? {
                    return Ok(None);
                }
                if has_outdated_index(&engine)? {
                    eprintln!(
                        "windrow: the search index was made by another version of windrow, and words \
                         may be missing; windrow index builds it again"
                    );
                }
                let collections = Arc::new(EngineCollections::new(engine));
                Ok(Some(Searcher::new(Documents::Local(collections))))
            }
            DataFolder::Server(address) => {
                let mut client = client::connect(&address).map_err(Failure::runtime)?;
                if !server_has_documents(&mut client)? {
                    return Ok(None);
                }
                Ok(Some(Searcher::new(Documents::Server(client))))
            }
        }
    }

    fn new(documents: Documents) -> Searcher {
        Searcher {
            documents,
            interrupt: Box::new(Uninterrupted),
        }
    }

    /// Returns `true` if a server has the data folder open.
    pub fn is_served(&self) -> bool {
        matches!(self.documents, Documents::Server(_))
    }

    /// Sets the interrupt of searches. Searches on a server are not interrupted.
    pub fn set_interrupt(&mut self, interrupt: impl Interrupt + Send + 'static) {
        self.interrupt = Box::new(interrupt);
    }

    /// Calls `sink` with the documents of a pipeline on a collection of the database of files.
    pub fn aggregate_on(
        &mut self,
        collection: &str,
        pipeline: &ArrayBuf,
        sink: &mut DocumentSink<'_>,
    ) -> Result<(), Failure> {
        match &mut self.documents {
            Documents::Local(collections) => {
                aggregate_local(collections, collection, pipeline, &*self.interrupt, sink)
            }
            Documents::Server(client) => {
                let command = doc! {
                    "aggregate": (collection),
                    "pipeline": (pipeline.clone()), "cursor": {}, "$db": DATABASE_NAME,
                };
                let result = client.for_each_document(command.as_document(), sink);
                result.map_err(Failure::runtime)
            }
        }
    }
}

impl DocumentSource for Searcher {
    type Error = Failure;

    fn aggregate(
        &mut self,
        pipeline: &ArrayBuf,
        sink: &mut DocumentSink<'_>,
    ) -> Result<(), Failure> {
        self.aggregate_on(StoreCollection::Documents.name(), pipeline, sink)
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Failure {
        match error {
            SearchError::Query(text) => Failure::Usage(text),
            SearchError::File(text) => Failure::Runtime(text),
        }
    }
}

fn namespace(collection: &str) -> Result<Namespace, Failure> {
    Namespace::new(DATABASE_NAME, collection).map_err(Failure::runtime)
}

fn has_documents(engine: &Engine) -> Result<bool, Failure> {
    let documents = namespace(StoreCollection::Documents.name())?;
    Ok(engine.collection(&documents).is_some())
}

/// Returns `true` if the search index was created with other analyzers than those of this program.
/// A server rebuilds such indexes automatically.
fn has_outdated_index(engine: &Engine) -> Result<bool, Failure> {
    let documents = engine.collection(&namespace(StoreCollection::Documents.name())?);
    Ok(documents.is_some_and(|documents| !documents.outdated_search_indexes().is_empty()))
}

/// Returns `true` if the server has the collection of documents. A search in a missing collection
/// would find nothing.
fn server_has_documents(client: &mut Client) -> Result<bool, Failure> {
    let command = doc! {
        "listCollections": 1, "filter": { "name": (StoreCollection::Documents.name()) },
        "nameOnly": true, "$db": DATABASE_NAME,
    };
    let mut is_there = false;
    let listed = client.for_each_document(command.as_document(), &mut |_| {
        is_there = true;
        false
    });
    listed.map_err(Failure::runtime)?;
    Ok(is_there)
}

fn aggregate_local(
    collections: &Arc<EngineCollections>,
    collection: &str,
    pipeline: &ArrayBuf,
    interrupt: &dyn Interrupt,
    sink: &mut DocumentSink<'_>,
) -> Result<(), Failure> {
    let pipeline = Pipeline::parse(pipeline.as_array(), &Environment::default());
    let aggregate = Aggregate::new(pipeline.map_err(Failure::runtime)?);
    let source = collections
        .open(&namespace(collection)?)
        .map_err(Failure::runtime)?;
    let cursor = aggregate.open(&source, collections);
    let mut cursor = cursor.map_err(Failure::runtime)?;
    while let Some(found) = cursor.next(interrupt).map_err(Failure::runtime)? {
        if !sink(found.as_document()) {
            break;
        }
    }
    Ok(())
}

/// Returns the failure of a search in a data folder without indexed files.
pub fn not_indexed_failure(data_folder: &Path) -> Failure {
    let data_folder = data_folder.display();
    Failure::Runtime(format!(
        "no files are indexed in {data_folder}; run `windrow index FOLDER --data {data_folder}` first"
    ))
}
