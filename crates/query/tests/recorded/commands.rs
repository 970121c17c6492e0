//! A minimal implementation of the commands in the recordings.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{BuildControl, Engine, EngineOptions, InsertOrder, Namespace};
use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ObjectId, Value, ValueRef};
use windrow_index::Definition;
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{
    Aggregate, Collections, Count, Distinct, EngineCollections, Error, Find, Hint, Pipeline,
    Source, Uninterrupted,
};
use windrow_storage::MemoryDisk;

use crate::print;

pub enum Reply {
    /// There is nothing to compare.
    Done,
    Answer(Vec<String>),
    Failed(Error),
    /// The command is not part of this test.
    Unknown(String),
}

/// A database in memory.
pub struct Database {
    engine: Arc<Engine>,
}

const NAME: &str = "oracle";

impl Database {
    pub fn new() -> Database {
        let options = EngineOptions {
            threads: 1,
            ..EngineOptions::with_memory(16 << 20)
        };
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).expect("an engine");
        Database { engine }
    }

    pub fn run(&self, command: Document<'_>) -> Reply {
        let Some((name, target)) = command.first() else {
            return Reply::Unknown("nothing".to_owned());
        };
        let ValueRef::String(collection) = target else {
            return Reply::Unknown(format!("{name} without a collection"));
        };
        let known: &[&str] = match name {
            "create" => &["create"],
            "insert" => &["insert", "documents", "ordered"],
            "createIndexes" => &["createIndexes", "indexes"],
            "find" => &[
                "find",
                "filter",
                "projection",
                "sort",
                "skip",
                "limit",
                "hint",
                "min",
                "max",
                "returnKey",
                "showRecordId",
                "batchSize",
                "singleBatch",
                "comment",
                "allowDiskUse",
                "maxTimeMS",
                "let",
            ],
            "aggregate" => &[
                "aggregate",
                "pipeline",
                "cursor",
                "hint",
                "allowDiskUse",
                "comment",
            ],
            "count" => &["count", "query", "skip", "limit", "hint", "comment"],
            "distinct" => &["distinct", "key", "query", "comment", "hint"],
            _ => return Reply::Unknown(name.to_owned()),
        };
        if let Some((other, _)) = command.iter().find(|(field, _)| !known.contains(field)) {
            return Reply::Unknown(format!("{name}.{other}"));
        }
        let answer = match name {
            "create" => return self.create(collection),
            "insert" => return self.insert(collection, command),
            "createIndexes" => return self.create_indexes(collection, command),
            "find" => self.find(collection, command),
            "count" => self.count(collection, command),
            "aggregate" => self.aggregate(collection, command),
            _ => self.distinct(collection, command),
        };
        match answer {
            Ok(Some(values)) => Reply::Answer(values),
            Ok(None) => Reply::Unknown(format!("a malformed {name}")),
            Err(error) => Reply::Failed(error),
        }
    }

    fn create(&self, collection: &str) -> Reply {
        let created = Namespace::new(NAME, collection)
            .and_then(|namespace| self.engine.collection_or_create(&namespace).map(drop));
        created.map_or_else(|error| Reply::Unknown(error.to_string()), |()| Reply::Done)
    }

    fn insert(&self, collection: &str, command: Document<'_>) -> Reply {
        let documents = command.get("documents").and_then(ValueRef::as_array);
        let namespace = Namespace::new(NAME, collection);
        let (Some(documents), Ok(namespace)) = (documents, namespace) else {
            return Reply::Unknown("a malformed insert".to_owned());
        };
        let mut bytes = Vec::new();
        for (number, document) in documents
            .iter()
            .filter_map(ValueRef::as_document)
            .enumerate()
        {
            bytes.extend_from_slice(with_id(document, number).as_bytes());
        }
        let target = self
            .engine
            .collection_or_create(&namespace)
            .expect("a collection");
        match target.insert(Bytes::from(bytes), InsertOrder::Unordered) {
            Ok(_) => Reply::Done,
            Err(error) => Reply::Unknown(error.to_string()),
        }
    }

    fn create_indexes(&self, collection: &str, command: Document<'_>) -> Reply {
        let specifications = command.get("indexes").and_then(ValueRef::as_array);
        let namespace = Namespace::new(NAME, collection);
        let (Some(specifications), Ok(namespace)) = (specifications, namespace) else {
            return Reply::Unknown("a malformed createIndexes".to_owned());
        };
        let definitions = specifications.iter().filter_map(ValueRef::as_document);
        let definitions: Result<Vec<_>, _> = definitions.map(Definition::parse).collect();
        let Ok(definitions) = definitions else {
            return Reply::Unknown("an index that is refused".to_owned());
        };
        let target = self
            .engine
            .collection_or_create(&namespace)
            .expect("a collection");
        let control = BuildControl {
            interrupt: &Uninterrupted,
            on_phase: &|_| {},
        };
        match target.create_indexes(definitions, &control) {
            Ok(_) => Reply::Done,
            Err(_) => Reply::Unknown("an index that cannot be built".to_owned()),
        }
    }

    pub fn source(&self, collection: &str) -> Result<Arc<dyn Source>, Error> {
        EngineCollections::new(self.engine.clone()).source(NAME, collection)
    }

    fn find(&self, collection: &str, command: Document<'_>) -> Result<Option<Vec<String>>, Error> {
        let Some(find) = parse_find(command)? else {
            return Ok(None);
        };
        let source = self.source(collection)?;
        let mut cursor = find.open(&source)?;
        let mut found = Vec::new();
        let batch = whole(command, "batchSize").unwrap_or(101).max(1);
        while found.len() < batch as usize
            && let Some(document) = cursor.next(&Uninterrupted)?
        {
            found.push(print(ValueRef::Document(document.as_document())));
        }
        Ok(Some(found))
    }

    fn count(&self, collection: &str, command: Document<'_>) -> Result<Option<Vec<String>>, Error> {
        let (Some(query), hint) = (document(command, "query"), hint(command)?) else {
            return Ok(None);
        };
        let (skip, limit) = (whole(command, "skip"), whole(command, "limit"));
        let Ok(skip) = u64::try_from(skip.unwrap_or_default()) else {
            return Ok(None);
        };
        let limit = limit.map(i64::unsigned_abs).filter(|limit| *limit > 0);
        let filter = Filter::parse(query.as_document())?;
        let count = Count {
            filter,
            skip,
            limit,
            hint,
        };
        let count = count.run(&self.source(collection)?, &Uninterrupted, |_| {})?;
        Ok(Some(vec![count.to_string()]))
    }

    fn aggregate(
        &self,
        collection: &str,
        command: Document<'_>,
    ) -> Result<Option<Vec<String>>, Error> {
        let stages = command.get("pipeline").and_then(ValueRef::as_array);
        let (Some(stages), hint) = (stages, hint(command)?) else {
            return Ok(None);
        };
        let environment = Environment {
            now: 1_600_000_000_000,
            ..Environment::default()
        };
        let pipeline = match Pipeline::parse(stages, &environment) {
            Err(error) if error.code() == Some(238) => return Ok(None),
            pipeline => pipeline?,
        };
        let aggregate = Aggregate {
            hint,
            ..Aggregate::new(pipeline)
        };
        let collections = Arc::new(EngineCollections::new(self.engine.clone()));
        let mut cursor = aggregate.open(&self.source(collection)?, &collections)?;
        let batch = command.get("cursor").and_then(ValueRef::as_document);
        let batch = batch
            .and_then(|cursor| whole(cursor, "batchSize"))
            .unwrap_or(101);
        let mut found = Vec::new();
        while found.len() < batch as usize
            && let Some(document) = cursor.next(&Uninterrupted)?
        {
            found.push(print(ValueRef::Document(document.as_document())));
        }
        Ok(Some(found))
    }

    fn distinct(
        &self,
        collection: &str,
        command: Document<'_>,
    ) -> Result<Option<Vec<String>>, Error> {
        let key = command.get("key").and_then(ValueRef::as_str);
        let key =
            key.filter(|key| !key.is_empty() && !key.contains(['$', '\0']) && !key.ends_with('.'));
        let (Some(query), Some(key), hint) = (document(command, "query"), key, hint(command)?)
        else {
            return Ok(None);
        };
        let filter = Filter::parse(query.as_document())?;
        let distinct = Distinct {
            key: Path::parse(key),
            filter,
            hint,
        };
        let mut rows = distinct.find().open(&self.source(collection)?)?;
        let values = distinct.collect(&mut rows, &Uninterrupted)?;
        Ok(Some(values.as_array().iter().map(print).collect()))
    }
}

fn with_id(document: Document<'_>, number: usize) -> DocumentBuf {
    let mut with_id = DocumentBuf::new();
    let made = Value::ObjectId(ObjectId([number as u8; 12]));
    let id = document.get("_id").map_or(made, ValueRef::to_value);
    with_id.push("_id", id);
    for (name, value) in document.iter().filter(|(name, _)| *name != "_id") {
        with_id.push(name, value.to_value());
    }
    with_id
}

fn parse_find(command: Document<'_>) -> Result<Option<Find>, Error> {
    let environment = Environment::default();
    let (Some(filter), Some(sort), hint) = (
        document(command, "filter"),
        document(command, "sort"),
        hint(command)?,
    ) else {
        return Ok(None);
    };
    let filter = Filter::parse_with(filter.as_document(), &environment)?;
    let Some(projection) = document(command, "projection") else {
        return Ok(None);
    };
    let projection = Projection::parse_with(projection.as_document(), &filter, &environment)?;
    let (skip, limit) = (number(command, "skip"), number(command, "limit"));
    let (Some(skip), Some(limit)) = (skip, limit) else {
        return Ok(None);
    };
    let flag = |name| command.get(name).is_some_and(ValueRef::is_truthy);
    let bound = |name| {
        command
            .get(name)
            .and_then(ValueRef::as_document)
            .map(Document::to_buf)
    };
    Ok(Some(Find {
        projection: Some(projection),
        sort: Some(Sort::parse(sort.as_document())?),
        skip,
        limit: (limit > 0).then_some(limit),
        hint,
        min: bound("min"),
        max: bound("max"),
        return_key: flag("returnKey"),
        show_record_id: flag("showRecordId"),
        allow_disk_use: flag("allowDiskUse"),
        ..Find::new(filter)
    }))
}

/// Returns an optional document, empty if it is missing or null. `None` if it has another type.
fn document(command: Document<'_>, name: &str) -> Option<DocumentBuf> {
    match command.get(name) {
        None => Some(DocumentBuf::new()),
        Some(ValueRef::Null) if name == "query" => Some(DocumentBuf::new()),
        Some(value) => value.as_document().map(Document::to_buf),
    }
}

fn hint(command: Document<'_>) -> Result<Option<Hint>, Error> {
    command.get("hint").map_or(Ok(None), Hint::parse)
}

fn whole(command: Document<'_>, name: &str) -> Option<i64> {
    command.get(name).and_then(ValueRef::as_whole)
}

fn number(command: Document<'_>, name: &str) -> Option<u64> {
    match command.get(name) {
        None => Some(0),
        Some(value) => value
            .as_whole()
            .and_then(|number| u64::try_from(number).ok()),
    }
}
