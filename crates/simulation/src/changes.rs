//! The stream of changes held against the model: replayed from the beginning, it gives every
//! collection.

use std::collections::BTreeMap;

use windrow_collection::{ClusterTime, Deed, Event, EventKind, Step};
use windrow_document::{Document, ValueRef};

use crate::world::World;

/// Documents by collection and `_id`.
type Replayed = BTreeMap<String, BTreeMap<i32, Vec<u8>>>;

impl World {
    /// Replays all that has ever been written. Called where the model knows what is there.
    pub(crate) fn replay_changes(&self) {
        let engine = self.engine();
        let events = engine.events_since(ClusterTime(0), |_| true);
        let mut events = events.expect("a history that is kept");
        let (mut replayed, mut count) = (Replayed::new(), 0);
        loop {
            match events.step().expect("a record of the log") {
                Step::Event(event) => {
                    replay(&mut replayed, *event);
                    count += 1;
                }
                Step::Passed => {}
                Step::AtEnd => break,
            }
        }
        let model = self.with(|state| state.model.clone());
        for (name, things) in &model {
            let found = replayed.remove(name).unwrap_or_default();
            let bytes = |(id, it): (&i32, &std::sync::Arc<_>)| {
                let document: &windrow_document::DocumentBuf = it;
                (*id, document.as_bytes().to_vec())
            };
            let expected: BTreeMap<i32, Vec<u8>> = things.documents.iter().map(bytes).collect();
            assert!(
                found == expected,
                "the changes of {name} do not give its documents"
            );
        }
        replayed.retain(|_, documents| !documents.is_empty());
        let names: Vec<&String> = replayed.keys().collect();
        assert!(names.is_empty(), "changes of what is not there: {names:?}");
        self.note("changes", count);
    }
}

fn replay(replayed: &mut Replayed, event: Event) {
    let name = event.namespace.collection;
    match event.kind {
        EventKind::Insert(new) | EventKind::Update { new, .. } => {
            let id = id(Document::from_validated(&new));
            let documents = replayed.entry(name).or_default();
            documents.insert(id, new.to_vec());
        }
        EventKind::Delete { key, .. } => {
            let documents = replayed.entry(name).or_default();
            let gone = documents.remove(&id(key.as_document()));
            assert!(gone.is_some(), "{key} is deleted, and was not there");
        }
        EventKind::Catalog { deed, to, .. } => match (deed, to) {
            (Deed::Create, _) => _ = replayed.insert(name, BTreeMap::new()),
            (Deed::Drop, _) => _ = replayed.remove(&name),
            (Deed::Rename, Some(to)) => {
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
        other => panic!("an _id that no step gives: {other:?}"),
    }
}
