//! The use of each collection, for `top`: the number and total duration of commands.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

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

impl Usage {
    /// Records a command on a collection. `connection` selects the table.
    pub fn record(
        &self,
        connection: i32,
        namespace: &str,
        kind: Kind,
        class: LatencyClass,
        took: Duration,
    ) {
        let table = connection.unsigned_abs() as usize % TABLES;
        let Some(table) = self.tables.get(table).filter(|_| namespace.contains('.')) else {
            return;
        };
        let mut table = lock(table);
        let usage = match table.get_mut(namespace) {
            Some(usage) => usage,
            None => table.entry(namespace.to_owned()).or_default(),
        };
        if let Some(spent) = usage.spent.get_mut(place(kind)) {
            spent.add(took);
        }
        if let Some(latency) = usage.latencies.get_mut(class as usize) {
            latency.add(took);
        }
    }

    /// Removes the counts of dropped collections.
    pub fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        for table in &self.tables {
            lock(table).retain(|name, _| !is_gone(name));
        }
    }

    /// The durations of commands on a collection or view, by command class.
    pub fn latencies(&self, namespace: &str) -> Latencies {
        let mut all = CollectionUsage::default();
        for table in &self.tables {
            if let Some(usage) = lock(table).get(namespace) {
                all.merge(usage);
            }
        }
        all.latencies
    }

    /// The durations of commands on each collection, by command class, sorted by name.
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

    /// The use of each collection, sorted by name.
    pub fn describe(&self) -> DocumentBuf {
        let mut described = DocumentBuf::new();
        for (name, usage) in &self.by_collection() {
            described.push(name, describe(usage));
        }
        described
    }
}

/// The counts of locks are derived from the kinds of commands: queries read; inserts, updates and
/// removes write.
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
    use super::*;

    #[test]
    fn time_is_summed_by_collection_and_kind() {
        let usage = Usage::default();
        let micros = Duration::from_micros;
        usage.record(1, "d.c", Kind::Query, LatencyClass::Read, micros(5));
        usage.record(2, "d.c", Kind::Query, LatencyClass::Read, micros(6));
        usage.record(1, "d.c", Kind::Insert, LatencyClass::Write, micros(7));
        usage.record(1, "admin", Kind::Command, LatencyClass::Command, micros(9));
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
        assert_eq!(described.iter().count(), 1);
        check("total", 18, 3);
        check("queries", 11, 2);
        check("writeLock", 7, 1);
        check("remove", 0, 0);
        usage.forget(|name| name == "d.c");
        assert!(usage.describe().as_document().is_empty());
    }
}
