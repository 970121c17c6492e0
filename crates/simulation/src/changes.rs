//! Checks change streams: replaying all events from the beginning must produce the model.

use std::collections::BTreeMap;

use windrow_collection::{ClusterTime, DdlKind, Event, EventKind, Step};
use windrow_document::{Document, ValueRef};

use crate::world::World;

/// Documents by collection and `_id`.
type ReplayedDocuments = BTreeMap<String, BTreeMap<i32, Vec<u8>>>;

impl World {
    /// Replays all events since the start of the run. Requires that the model is certain.
    pub(crate) fn replay_changes(&self) {
        let engine = self.engine();
        let events = engine.events_since(ClusterTime(0), |_| true);
        let mut events = events.expect("the history is preserved");
        let (mut replayed, mut count) = (ReplayedDocuments::new(), 0);
        loop {
            match events.step().expect("the log is readable") {
                Step::Event(event) => {
                    replay(&mut replayed, *event);
                    count += 1;
                }
                Step::Passed => {}
                Step::AtEnd => break,
            }
        }
        let model = self.with(|state| state.model.clone());
        for (name, collection_model) in &model {
            let found = replayed.remove(name).unwrap_or_default();
            let bytes = |(id, it): (&i32, &std::sync::Arc<_>)| {
                let document: &windrow_document::DocumentBuf = it;
                (*id, document.as_bytes().to_vec())
            };
            let expected: BTreeMap<i32, Vec<u8>> =
                collection_model.documents.iter().map(bytes).collect();
            assert!(
                found == expected,
                "the changes of {name} do not produce its documents"
            );
        }
        replayed.retain(|_, documents| !documents.is_empty());
        let names: Vec<&String> = replayed.keys().collect();
        assert!(
            names.is_empty(),
            "changes of collections that do not exist: {names:?}"
        );
        self.record("changes", count);
    }
}

fn replay(replayed: &mut ReplayedDocuments, event: Event) {
    let name = event.namespace.collection;
    match event.kind {
        EventKind::Insert(new) | EventKind::Update { new, .. } => {
            let id = id(Document::from_validated(&new));
            let documents = replayed.entry(name).or_default();
            documents.insert(id, new.to_vec());
        }
        EventKind::Delete { key, .. } => {
            let documents = replayed.entry(name).or_default();
            let removed = documents.remove(&id(key.as_document()));
            assert!(removed.is_some(), "{key} is deleted but did not exist");
        }
        EventKind::Catalog { operation, to, .. } => match (operation, to) {
            (DdlKind::Create, _) => _ = replayed.insert(name, BTreeMap::new()),
            (DdlKind::Drop, _) => _ = replayed.remove(&name),
            (DdlKind::Rename, Some(to)) => {
                let documents = replayed.remove(&name).unwrap_or_default();
                replayed.insert(to.collection, documents);
            }
            _ => {}
        },
    }
}

fn id(document: Document<'_>) -> i32 {
    match document.get("_id") {
        Some(ValueRef::Int32(id)) => id,
        other => panic!("an unexpected _id: {other:?}"),
    }
}
