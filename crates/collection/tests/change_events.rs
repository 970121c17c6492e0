//! Change events describe everything that happens to a collection: replaying them on a plain map
//! gives its documents, across folds, restarts and renames.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Background, Change, Collection, DdlKind, Direction, Engine, EngineOptions, Error, Event,
    EventKind, Events, InsertOrder, Namespace, Renaming, Step, Work,
};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_mql::update::{Update, UpdateContext};
use windrow_storage::MemoryDisk;

fn open(disk: &MemoryDisk) -> Arc<Engine> {
    let options = EngineOptions {
        background: Background::Caller,
        ..EngineOptions::with_memory(32 << 20)
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn named(name: &str) -> Namespace {
    Namespace::new("d", name).unwrap()
}

fn insert(collection: &Collection, documents: &[DocumentBuf]) {
    let bytes: Vec<u8> = documents
        .iter()
        .flat_map(|it| it.as_bytes().to_vec())
        .collect();
    let inserted = collection
        .insert(Bytes::from(bytes), InsertOrder::Ordered)
        .unwrap();
    assert_eq!(inserted.count, documents.len());
}

fn change(collection: &Collection, id: i32, mut decide: impl FnMut(Document<'_>) -> Change) {
    let found = collection
        .reader()
        .unwrap()
        .find_id(ValueRef::Int32(id))
        .unwrap();
    let mut batch = collection.batch();
    batch
        .change(found.unwrap(), |old| Ok::<Change, Error>(decide(old)))
        .unwrap();
    batch.commit().unwrap();
}

fn update(collection: &Collection, id: i32, operators: DocumentBuf) {
    let update = Update::parse(ValueRef::Document(operators.as_document()), &[]).unwrap();
    change(collection, id, |old| {
        let context = UpdateContext::new(0, windrow_document::Timestamp::from_bits(1));
        let applied = update.apply(old, &context).unwrap();
        Change::described(applied.document.unwrap(), applied.description)
    });
}

fn drain(events: &mut Events) -> Vec<Event> {
    let mut found = Vec::new();
    loop {
        match events.step().unwrap() {
            Step::Event(event) => found.push(*event),
            Step::Passed => {}
            Step::AtEnd => return found,
        }
    }
}

type Documents = BTreeMap<i64, DocumentBuf>;

fn id(document: Document<'_>) -> i64 {
    document.get("_id").and_then(ValueRef::as_whole).unwrap()
}

fn replay(documents: &mut Documents, events: &[Event]) {
    for event in events {
        match &event.kind {
            EventKind::Insert(new) | EventKind::Update { new, .. } => {
                let new = Document::from_validated(new);
                documents.insert(id(new), new.to_buf());
            }
            EventKind::Delete { key, .. } => {
                documents.remove(&id(key.as_document())).unwrap();
            }
            EventKind::Catalog { .. } => {}
        }
    }
}

fn contents(collection: &Collection) -> Documents {
    let mut found = Documents::new();
    let mut records = collection.reader().unwrap().records(Direction::Forward);
    while records.next().unwrap() {
        let document = Document::from_validated(records.document());
        found.insert(id(document), document.to_buf());
    }
    found
}

fn deeds(events: &[Event]) -> Vec<(DdlKind, String)> {
    let catalog_event = |event: &Event| match &event.kind {
        EventKind::Catalog { operation, .. } => {
            Some((*operation, event.namespace.collection.clone()))
        }
        _ => None,
    };
    events.iter().filter_map(catalog_event).collect()
}

#[test]
fn replaying_the_events_gives_the_collection() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let mut events = engine.events(|_| true).unwrap();
    let start = events.until();
    let collection = engine.create(&named("c"), doc! {}.as_document()).unwrap();
    let things: Vec<DocumentBuf> = (0..20).map(|n| doc! { "_id": n, "n": n }).collect();
    insert(&collection, &things);
    update(&collection, 3, doc! { "$set": { "n": 30, "x": "y" } });
    change(&collection, 4, |_| {
        Change::Replace(doc! { "_id": 4, "r": 1 })
    });
    engine.work(Work::Fold).unwrap();
    change(&collection, 5, |_| Change::Delete);
    let received = drain(&mut events);
    assert_eq!(deeds(&received), [(DdlKind::Create, "c".to_owned())]);
    let mut replayed = Documents::new();
    replay(&mut replayed, &received);
    assert_eq!(replayed, contents(&collection));
    let sorted = received
        .windows(2)
        .all(|pair| (pair[0].time, pair[0].number) < (pair[1].time, pair[1].number));
    assert!(sorted);
    drop((events, collection, engine));

    let engine = open(&disk);
    let mut events = engine.events_since(start, |_| true).unwrap();
    assert_eq!(
        drain(&mut events),
        received,
        "the same again after a restart"
    );
    let last = received.last().unwrap().time;
    let mut events = engine.events_since(last, |_| true).unwrap();
    assert_eq!(drain(&mut events), received[received.len() - 1..]);
}

#[test]
fn events_use_the_names_of_their_time() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let start = engine.events(|_| true).unwrap().until();
    let old = engine.create(&named("old"), doc! {}.as_document()).unwrap();
    insert(&old, &[doc! { "_id": 1 }]);
    engine
        .rename(&named("old"), &named("new"), &Renaming::default())
        .unwrap();
    insert(&old, &[doc! { "_id": 2 }]);
    engine.create(&named("old"), doc! {}.as_document()).unwrap();
    engine.drop_database("d").unwrap();
    drop((old, engine));
    let engine = open(&disk);
    let received = drain(&mut engine.events_since(start, |_| true).unwrap());
    let inserted: Vec<&str> = received
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Insert(_)))
        .map(|event| event.namespace.collection.as_str())
        .collect();
    assert_eq!(inserted, ["old", "new"]);
    let expected = [
        (DdlKind::Create, "old"),
        (DdlKind::Rename, "old"),
        (DdlKind::Create, "old"),
        (DdlKind::Drop, "new"),
        (DdlKind::Drop, "old"),
        (DdlKind::DropDatabase, ""),
    ];
    let expected = expected.map(|(operation, name)| (operation, name.to_owned()));
    assert_eq!(deeds(&received), expected);
    let of_one = drain(
        &mut engine
            .events_since(start, |it| it.collection == "new")
            .unwrap(),
    );
    let is_insert = |event: &&Event| matches!(event.kind, EventKind::Insert(_));
    assert_eq!(of_one.iter().filter(is_insert).count(), 1);
}

#[test]
fn old_versions_are_recorded_on_request() {
    let engine = open(&MemoryDisk::new());
    let images = doc! { "changeStreamPreAndPostImages": { "enabled": true } };
    let collection = engine.create(&named("c"), images.as_document()).unwrap();
    insert(&collection, &[doc! { "_id": 1, "a": 1 }]);
    let mut events = engine.events(|_| true).unwrap();
    update(&collection, 1, doc! { "$inc": { "a": 1 } });
    change(&collection, 1, |_| Change::Delete);
    let kinds: Vec<EventKind> = drain(&mut events).into_iter().map(|it| it.kind).collect();
    let [
        EventKind::Update { old: first, .. },
        EventKind::Delete { old: second, .. },
    ] = &kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert_eq!(*first, Some(doc! { "_id": 1, "a": 1 }));
    assert_eq!(*second, Some(doc! { "_id": 1, "a": 2 }));
}

#[test]
fn trimmed_documents_are_not_reported() {
    let engine = open(&MemoryDisk::new());
    let capped = doc! { "capped": true, "size": 4096, "max": 2 };
    let collection = engine.create(&named("c"), capped.as_document()).unwrap();
    let mut events = engine.events(|_| true).unwrap();
    let things: Vec<DocumentBuf> = (0..5).map(|n| doc! { "_id": n }).collect();
    insert(&collection, &things);
    change(&collection, 4, |_| Change::Delete);
    let received = drain(&mut events);
    let inserts = received
        .iter()
        .filter(|it| matches!(it.kind, EventKind::Insert(_)));
    assert_eq!((inserts.count(), received.len()), (5, 6));
}
