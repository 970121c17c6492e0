//! The use of each collection, for `top`: the number and total duration of commands.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use windrow_collection::{Engine, Namespace};
use windrow_document::{DocumentBuf, doc};

use crate::latency::{Latencies, LatencyClass};
use crate::metrics::Kind;
use crate::sync::lock;

/// The commands of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TimeAndCount {
    micros: u64,
    count: u64,
}

impl TimeAndCount {
    fn add(&mut self, took: Duration) {
        self.micros += took.as_micros() as u64;
        self.count += 1;
    }

    fn merge(&mut self, other: &TimeAndCount) {
        self.micros += other.micros;
        self.count += other.count;
    }

    fn describe(&self) -> DocumentBuf {
        doc! { "time": (self.micros as i64), "count": (self.count as i64) }
    }
}

/// The names of the kinds in the order of [`place`].
const KINDS: [&str; 6] = [
    "queries", "getmore", "insert", "update", "remove", "commands",
];

fn place(kind: Kind) -> usize {
    match kind {
        Kind::Query => 0,
        Kind::GetMore => 1,
        Kind::Insert => 2,
        Kind::Update => 3,
        Kind::Delete => 4,
        Kind::Command => 5,
    }
}

#[derive(Clone, Debug, Default)]
struct CollectionUsage {
    spent: [TimeAndCount; KINDS.len()],
    /// By command class.
    latencies: Latencies,
}

impl CollectionUsage {
    fn merge(&mut self, other: &CollectionUsage) {
        let spent = self.spent.iter_mut().zip(&other.spent);
        spent.for_each(|(sum, one)| sum.merge(one));
        let latencies = self.latencies.iter_mut().zip(&other.latencies);
        latencies.for_each(|(sum, one)| sum.merge(one));
    }
}

/// The number of tables, which reduces contention between connections.
const TABLES: usize = 16;

/// The use of all collections since the start.
#[derive(Debug, Default)]
pub struct Usage {
    tables: [Mutex<HashMap<String, CollectionUsage>>; TABLES],
}

/// A command that has ended.
#[derive(Clone, Copy, Debug)]
pub struct CommandUse<'a> {
    /// The id of the connection. It selects the table.
    pub connection: i32,
    pub namespace: &'a str,
    pub kind: Kind,
    pub class: LatencyClass,
    pub took: Duration,
}

impl Usage {
    /// Records a command on a collection or view. A name that neither has is not recorded:
    /// otherwise clients could fill the memory with names.
    pub fn record(&self, engine: &Engine, used: CommandUse<'_>) {
        let table = used.connection.unsigned_abs() as usize % TABLES;
        let Some(table) = self.tables.get(table) else {
            return;
        };
        let mut table = lock(table);
        let usage = match table.get_mut(used.namespace) {
            Some(usage) => usage,
            None if exists(engine, used.namespace) => {
                table.entry(used.namespace.to_owned()).or_default()
            }
            None => return,
        };
        if let Some(spent) = usage.spent.get_mut(place(used.kind)) {
            spent.add(used.took);
        }
        if let Some(latency) = usage.latencies.get_mut(used.class as usize) {
            latency.add(used.took);
        }
    }

    /// Removes the counts of a dropped collection or view.
    pub fn forget(&self, namespace: &str) {
        for table in &self.tables {
            lock(table).remove(namespace);
        }
    }

    /// Removes the counts of collections and views that do not exist any more.
    pub fn forget_dropped(&self, engine: &Engine) {
        for table in &self.tables {
            // The table is not locked while the catalog is read.
            let names: Vec<String> = lock(table).keys().cloned().collect();
            for name in names.into_iter().filter(|name| !exists(engine, name)) {
                lock(table).remove(&name);
            }
        }
    }

    /// Returns the durations of commands on a collection or view, by command class.
    pub fn latencies(&self, namespace: &str) -> Latencies {
        let mut all = CollectionUsage::default();
        for table in &self.tables {
            if let Some(usage) = lock(table).get(namespace) {
                all.merge(usage);
            }
        }
        all.latencies
    }

    /// Returns the durations of commands on each collection, by command class, sorted by name.
    pub fn all_latencies(&self) -> Vec<(String, Latencies)> {
        let all = self.by_collection().into_iter();
        all.map(|(name, usage)| (name, usage.latencies)).collect()
    }

    fn by_collection(&self) -> BTreeMap<String, CollectionUsage> {
        let mut all: BTreeMap<String, CollectionUsage> = BTreeMap::new();
        for table in &self.tables {
            for (name, usage) in lock(table).iter() {
                all.entry(name.clone()).or_default().merge(usage);
            }
        }
        all
    }

    /// Returns the use of each collection, sorted by name.
    pub fn describe(&self) -> DocumentBuf {
        let mut described = DocumentBuf::new();
        for (name, usage) in &self.by_collection() {
            described.push(name, describe(usage));
        }
        described
    }
}

/// Returns `true` if there is a collection or view with this name, or if the catalog cannot be
/// read.
fn exists(engine: &Engine, namespace: &str) -> bool {
    let parts = namespace.split_once('.');
    // Commands without a collection have the name "$cmd".
    let Some((database, collection)) = parts.filter(|(_, name)| !name.starts_with("$cmd")) else {
        return false;
    };
    let namespace = Namespace {
        database: database.to_owned(),
        collection: collection.to_owned(),
    };
    let is_view = || engine.view(&namespace).map_or(true, |view| view.is_some());
    engine.collection(&namespace).is_some() || is_view()
}

/// Returns the document of a collection in `top`. The counts of locks follow from the kinds of
/// commands: queries read; inserts, updates and removes write.
fn describe(usage: &CollectionUsage) -> DocumentBuf {
    let sum = |is_meant: fn(usize) -> bool| {
        let mut sum = TimeAndCount::default();
        let meant = usage.spent.iter().enumerate();
        meant
            .filter(|(place, _)| is_meant(*place))
            .for_each(|(_, one)| sum.merge(one));
        sum.describe()
    };
    let mut described = doc! {
        "total": (sum(|_| true)), "readLock": (sum(|place| place < 2 || place == 5)),
        "writeLock": (sum(|place| (2..5).contains(&place))),
    };
    for (name, spent) in KINDS.iter().zip(&usage.spent) {
        described.push(name, spent.describe());
    }
    described
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_collection::{EngineOptions, View};
    use windrow_document::ArrayBuf;
    use windrow_storage::MemoryDisk;

    use super::*;

    /// Returns an engine with the collection `d.c` and the view `d.v`.
    fn engine() -> Arc<Engine> {
        let options = EngineOptions::with_memory(64 << 20);
        let engine = Engine::open(Arc::new(MemoryDisk::default()), options).unwrap();
        let options = DocumentBuf::new();
        engine.create(&name("c"), options.as_document()).unwrap();
        let view = View {
            on: "c".to_owned(),
            pipeline: ArrayBuf::new(),
            collation: None,
        };
        engine.create_view(&name("v"), &view).unwrap();
        engine
    }

    fn name(collection: &str) -> Namespace {
        Namespace {
            database: "d".to_owned(),
            collection: collection.to_owned(),
        }
    }

    fn record(usage: &Usage, engine: &Engine, namespace: &str, kind: Kind, micros: u64) {
        let used = CommandUse {
            connection: micros as i32,
            namespace,
            kind,
            class: LatencyClass::Read,
            took: Duration::from_micros(micros),
        };
        usage.record(engine, used);
    }

    fn names(usage: &Usage) -> Vec<String> {
        let described = usage.describe();
        described.iter().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn time_is_summed_by_collection_and_kind() {
        let (usage, engine) = (Usage::default(), engine());
        record(&usage, &engine, "d.c", Kind::Query, 5);
        record(&usage, &engine, "d.c", Kind::Query, 6);
        record(&usage, &engine, "d.c", Kind::Insert, 7);
        let described = usage.describe();
        let of_c = described.get("d.c").and_then(|one| one.as_document());
        let check = |name: &str, time: i64, count: i64| {
            let found = of_c.unwrap().get(name).unwrap().to_value();
            assert_eq!(
                found,
                doc! { "time": time, "count": count }.into(),
                "{name}"
            );
        };
        check("total", 18, 3);
        check("queries", 11, 2);
        check("writeLock", 7, 1);
        check("remove", 0, 0);
    }

    /// Each name that a client sent had got an entry for ever, before any login.
    #[test]
    fn only_collections_and_views_are_counted() {
        let (usage, engine) = (Usage::default(), engine());
        for namespace in ["admin", "d.$cmd", "x.$cmd", "d.missing", "d.v", "d.c"] {
            record(&usage, &engine, namespace, Kind::Command, 1);
        }
        assert_eq!(names(&usage), ["d.c", "d.v"]);
        engine.drop_collection(&name("c")).unwrap();
        usage.forget_dropped(&engine);
        assert_eq!(names(&usage), ["d.v"]);
        usage.forget("d.v");
        assert!(names(&usage).is_empty());
    }
}
