//! A search index whose entries were made by analyzers of another version is built again when the
//! server starts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_collection::{BuildControl, Collection, Namespace, Uninterrupted};
use windrow_document::{ObjectId, doc};
use windrow_index::Definition;
use windrow_index::search::SearchDefinition;
use windrow_server::{Config, Log, Services};

use crate::client::start_with;

const CONTROL: BuildControl<'_> = BuildControl {
    interrupt: &Uninterrupted,
    on_phase: &|_| {},
};

fn definition(name: &str) -> SearchDefinition {
    let source = doc! { "mappings": { "dynamic": true } };
    SearchDefinition::parse(name, ObjectId([7; 12]), 3, 0, source.as_document()).unwrap()
}

/// Creates a search index as a program with the analyzers of a version left it.
fn create(collection: &Arc<Collection>, name: &str, analysis: i32) {
    let search = SearchDefinition {
        analysis,
        ..definition(name)
    };
    let definitions = vec![Definition::from_search(search)];
    collection.create_indexes(definitions, &CONTROL).unwrap();
}

/// Returns the names, versions and analyses of the search indexes.
fn indexes(collection: &Collection) -> Vec<(String, i32, i32)> {
    let indexes = collection.search_indexes();
    let ready = indexes.iter().filter(|index| index.is_ready());
    let described = ready.filter_map(|index| {
        let search = index.definition.search.as_ref()?;
        Some((search.name.clone(), search.version, search.analysis))
    });
    let mut described: Vec<(String, i32, i32)> = described.collect();
    described.sort();
    described
}

#[test]
fn outdated_search_indexes_are_built_again() {
    let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
    let namespace = Namespace::new("shop", "articles").unwrap();
    let collection = services.engine.collection_or_create(&namespace).unwrap();
    let current = definition("new").analysis;
    create(&collection, "old", 0);
    create(&collection, "new", current);
    let (old, new) = ("old".to_owned(), ("new".to_owned(), 3, current));
    assert_eq!(indexes(&collection), [new.clone(), (old.clone(), 3, 0)]);

    let server = start_with(Config::default(), services);
    let renewed = [new, (old, 4, current)];
    let deadline = Instant::now() + Duration::from_secs(20);
    while indexes(&collection) != renewed && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(indexes(&collection), renewed);
    assert!(server.has_logged("Search indexes of an older version are built again"));
}
