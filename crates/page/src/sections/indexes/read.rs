//! Reads indexes with their statistics from the server.

use windrow_client::server_status::section;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::database::Database;
use crate::error::PageError;
use crate::namespace::Namespace;

/// The indexes of a collection.
pub struct CollectionIndexes {
    /// The name of the collection.
    pub namespace: Namespace,
    /// The number of documents.
    pub documents: i64,
    /// The indexes.
    pub indexes: Vec<IndexState>,
    /// The search indexes.
    pub search_indexes: Vec<SearchIndexState>,
}

/// An index with its statistics.
#[derive(Clone, Debug)]
pub struct IndexState {
    /// The name.
    pub name: String,
    /// The definition, as `listIndexes` returns it.
    pub definition: DocumentBuf,
    /// The bytes on disk and in memory. `None` if the user may not see them.
    pub bytes: Option<i64>,
    /// The number of entries in sections.
    pub entries: Option<i64>,
    /// The number of uses.
    pub uses: Option<i64>,
    /// The start of counting the uses, in milliseconds since 1970-01-01 UTC.
    pub uses_since: Option<i64>,
    /// The index is being built.
    pub is_building: bool,
}

impl IndexState {
    /// Returns the fields of the key.
    pub fn key(&self) -> Document<'_> {
        let key = self.definition.get("key").and_then(ValueRef::as_document);
        key.unwrap_or(Document::EMPTY)
    }

    /// Returns `true` if an option is set.
    pub fn has(&self, option: &str) -> bool {
        self.definition.get(option).is_some_and(ValueRef::is_truthy)
    }
}

/// A search index with its status.
#[derive(Clone, Debug)]
pub struct SearchIndexState {
    /// The name.
    pub name: String,
    /// The newest definition.
    pub definition: DocumentBuf,
    /// The bytes on disk and in memory. `None` until it is ready, or if the user may not see them.
    pub bytes: Option<i64>,
    /// The newest definition is ready.
    pub is_ready: bool,
    /// Queries can use it, possibly by an older definition.
    pub is_queryable: bool,
}

/// The maximum number of collections of a database.
const COLLECTIONS_MAX: usize = 2_000;
/// The maximum number of indexes of a collection.
const INDEXES_MAX: usize = 1_000;

/// Returns the collections of a database that can have indexes.
pub fn collections(database: &mut Database, name: &str) -> Result<Vec<Namespace>, PageError> {
    let command = doc! {
        "listCollections": 1, "filter": { "type": { "$ne": "view" } }, "nameOnly": true,
        "authorizedCollections": true, "$db": name,
    };
    let listed = database.documents(command, COLLECTIONS_MAX)?;
    let mut names: Vec<&str> = listed
        .iter()
        .filter_map(|it| it.get("name").and_then(ValueRef::as_str))
        .collect();
    names.sort_unstable();
    let namespaces = names.into_iter().map(|collection| Namespace {
        database: name.to_owned(),
        collection: collection.to_owned(),
    });
    Ok(namespaces.collect())
}

/// Reads the indexes of a collection. Statistics that the user may not see are omitted.
pub fn read_indexes(
    database: &mut Database,
    namespace: Namespace,
) -> Result<CollectionIndexes, PageError> {
    let (name, in_database) = (namespace.collection.as_str(), namespace.database.as_str());
    let list = doc! { "listIndexes": name, "$db": in_database };
    let listed = database.documents(list, INDEXES_MAX)?;
    let statistics = doc! { "collStats": name, "$db": in_database };
    let statistics = database.run(statistics).unwrap_or_default();
    let uses = doc! {
        "aggregate": name, "pipeline": [{ "$indexStats": {} }], "cursor": {}, "$db": in_database,
    };
    let uses = database.documents(uses, INDEXES_MAX).unwrap_or_default();
    let search = doc! {
        "aggregate": name, "pipeline": [{ "$listSearchIndexes": {} }], "cursor": {}, "$db": in_database,
    };
    let searched = database.documents(search, INDEXES_MAX).unwrap_or_default();
    let search_indexes = searched
        .iter()
        .filter_map(|it| search_index_state(it.as_document(), statistics.as_document()));
    let whole = |name: &str| statistics.get(name).and_then(ValueRef::as_whole);
    let indexes = listed
        .into_iter()
        .filter_map(|it| index_state(it, statistics.as_document(), &uses));
    Ok(CollectionIndexes {
        documents: whole("count").unwrap_or(0),
        indexes: indexes.collect(),
        search_indexes: search_indexes.collect(),
        namespace,
    })
}

fn index_state(
    definition: DocumentBuf,
    statistics: Document<'_>,
    uses: &[DocumentBuf],
) -> Option<IndexState> {
    let name = definition.get("name")?.as_str()?.to_owned();
    let section = |document: Document<'_>, field: &str| {
        let section = document.get(field).and_then(ValueRef::as_document);
        section.map(Document::to_buf)
    };
    let whole =
        |document: &DocumentBuf, field: &str| document.get(field).and_then(ValueRef::as_whole);
    let details = section(statistics, "indexDetails");
    let details = details.and_then(|it| section(it.as_document(), &name));
    let of_index = |it: &&DocumentBuf| it.get("name").and_then(ValueRef::as_str) == Some(&name);
    let accesses = uses.iter().find(of_index);
    let accesses = accesses.and_then(|it| section(it.as_document(), "accesses"));
    let since = accesses.as_ref().and_then(|it| match it.get("since") {
        Some(ValueRef::DateTime(millis)) => Some(millis),
        _ => None,
    });
    let building = statistics.get("indexBuilds").and_then(ValueRef::as_array);
    let mut building = building.into_iter().flatten().filter_map(ValueRef::as_str);
    Some(IndexState {
        bytes: section(statistics, "indexSizes").and_then(|it| whole(&it, &name)),
        entries: details.and_then(|it| whole(&it, "entriesStored")),
        uses: accesses.as_ref().and_then(|it| whole(it, "ops")),
        uses_since: since,
        is_building: building.any(|it| it == name),
        name,
        definition,
    })
}

fn search_index_state(listed: Document<'_>, statistics: Document<'_>) -> Option<SearchIndexState> {
    let name = listed.get("name")?.as_str()?;
    let sizes = section(statistics, &["windrow", "searchIndexSizes"]);
    let sizes = sizes.and_then(ValueRef::as_document);
    let definition = listed.get("latestDefinition")?.as_document()?;
    Some(SearchIndexState {
        name: name.to_owned(),
        definition: definition.to_buf(),
        bytes: sizes
            .and_then(|it| it.get(name))
            .and_then(ValueRef::as_whole),
        is_ready: listed.get("status").and_then(ValueRef::as_str) == Some("READY"),
        is_queryable: listed.get("queryable").is_some_and(ValueRef::is_truthy),
    })
}
