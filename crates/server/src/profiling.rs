//! The settings of `profile`: the threshold of slow operations, and the operations that are stored
//! in `system.profile`. The threshold is that of the whole server, the level is that of a database.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use windrow_mql::filter::Filter;

use crate::random;
use crate::sync::lock;

/// The operations of a database that are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfilingLevel {
    /// None.
    #[default]
    Off,
    /// Slow ones.
    Slow,
    /// All.
    All,
}

impl ProfilingLevel {
    /// Returns the level with this number, if there is one.
    pub fn from_number(number: i64) -> Option<ProfilingLevel> {
        match number {
            0 => Some(ProfilingLevel::Off),
            1 => Some(ProfilingLevel::Slow),
            2 => Some(ProfilingLevel::All),
            _ => None,
        }
    }

    /// Returns the number of the level.
    pub fn number(self) -> i32 {
        match self {
            ProfilingLevel::Off => 0,
            ProfilingLevel::Slow => 1,
            ProfilingLevel::All => 2,
        }
    }
}

/// The settings of one database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseProfiling {
    pub level: ProfilingLevel,
    /// A filter that replaces the threshold and the sample rate.
    pub filter: Option<Filter>,
}

/// The threshold of slow operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowThreshold {
    pub millis: i64,
    /// The fraction of slow operations that are logged and stored.
    pub sample_rate: f64,
}

/// All settings of a server.
pub struct Profiling {
    slow_ms: AtomicI64,
    /// The bits of the sample rate.
    sample_rate: AtomicU64,
    /// The level of databases without settings.
    level: ProfilingLevel,
    databases: Mutex<HashMap<String, DatabaseProfiling>>,
    /// `true` if any database has settings. Every operation reads it.
    has_databases: AtomicBool,
}

/// The records to make of an operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub log: bool,
    pub keep: bool,
}

impl Profiling {
    /// Creates the settings. `level` applies to databases whose settings were never changed.
    pub fn new(slow: SlowThreshold, level: ProfilingLevel) -> Profiling {
        Profiling {
            slow_ms: AtomicI64::new(slow.millis),
            sample_rate: AtomicU64::new(slow.sample_rate.to_bits()),
            level,
            databases: Mutex::default(),
            has_databases: AtomicBool::new(level != ProfilingLevel::Off),
        }
    }

    /// Returns the threshold of slow operations.
    pub fn slow(&self) -> SlowThreshold {
        SlowThreshold {
            millis: self.slow_ms.load(Relaxed),
            sample_rate: f64::from_bits(self.sample_rate.load(Relaxed)),
        }
    }

    /// Sets the threshold of slow operations.
    pub fn set_slow(&self, slow: SlowThreshold) {
        self.slow_ms.store(slow.millis, Relaxed);
        self.sample_rate.store(slow.sample_rate.to_bits(), Relaxed);
    }

    /// Returns the settings of a database.
    pub fn database(&self, name: &str) -> DatabaseProfiling {
        let known = lock(&self.databases).get(name).cloned();
        known.unwrap_or(DatabaseProfiling {
            level: self.level,
            filter: None,
        })
    }

    /// Sets the settings of a database.
    pub fn set_database(&self, name: &str, settings: DatabaseProfiling) {
        lock(&self.databases).insert(name.to_owned(), settings);
        self.has_databases.store(true, Relaxed);
    }

    /// Removes the settings of a dropped database.
    pub fn forget(&self, name: &str) {
        lock(&self.databases).remove(name);
    }

    /// Returns `true` if an operation with this duration is not recorded, whatever it is.
    pub fn is_ignored(&self, millis: i64) -> bool {
        !self.has_databases.load(Relaxed) && millis < self.slow_ms.load(Relaxed)
    }

    /// Decides if an operation is logged and if it is stored. `describe` returns the document for a
    /// filter, if there is one.
    pub fn judge(
        &self,
        database: &str,
        millis: i64,
        describe: impl FnOnce() -> windrow_document::DocumentBuf,
    ) -> Verdict {
        let DatabaseProfiling { level, filter } = self.database(database);
        let counts = match filter {
            // As in MongoDB, a filter does not match an operation on which it fails.
            Some(filter) => filter.matches(describe().as_document()).unwrap_or(false),
            None => self.is_sampled(millis),
        };
        Verdict {
            log: counts,
            keep: level == ProfilingLevel::All || level == ProfilingLevel::Slow && counts,
        }
    }

    /// Returns `true` for a slow operation in the sample.
    fn is_sampled(&self, millis: i64) -> bool {
        let slow = self.slow();
        let chance = || (random::bits() as f64 / u64::MAX as f64) < slow.sample_rate;
        millis >= slow.millis && (slow.sample_rate >= 1.0 || chance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    fn new(millis: i64, level: ProfilingLevel) -> Profiling {
        let slow = SlowThreshold {
            millis,
            sample_rate: 1.0,
        };
        Profiling::new(slow, level)
    }

    #[test]
    fn databases_have_the_level_of_the_server() {
        let profiling = new(100, ProfilingLevel::All);
        assert!(profiling.judge("d", 5, DocumentBuf::new).keep);
        profiling.set_database("d", DatabaseProfiling::default());
        assert!(!profiling.judge("d", 5, DocumentBuf::new).keep);
        profiling.forget("d");
        assert!(profiling.judge("d", 5, DocumentBuf::new).keep && !profiling.is_ignored(5));
    }

    #[test]
    fn operations_are_profiled_by_level_time_and_filter() {
        let check = |level: ProfilingLevel,
                     filter: Option<DocumentBuf>,
                     millis: i64,
                     expected: (bool, bool)| {
            let profiling = new(100, ProfilingLevel::Off);
            let filter = filter.map(|filter| Filter::parse(filter.as_document()).unwrap());
            profiling.set_database("d", DatabaseProfiling { level, filter });
            let verdict = profiling.judge("d", millis, || doc! { "op": "query", "millis": millis });
            assert_eq!((verdict.log, verdict.keep), expected, "{level:?} {millis}");
        };
        check(ProfilingLevel::Off, None, 5, (false, false));
        check(ProfilingLevel::Off, None, 100, (true, false));
        check(ProfilingLevel::Slow, None, 5, (false, false));
        check(ProfilingLevel::Slow, None, 100, (true, true));
        check(ProfilingLevel::All, None, 5, (false, true));
        let queries = || Some(doc! { "op": "query" });
        let updates = || Some(doc! { "op": "update" });
        check(ProfilingLevel::Slow, queries(), 5, (true, true));
        check(ProfilingLevel::Slow, updates(), 500, (false, false));
        check(ProfilingLevel::All, updates(), 500, (false, true));
    }

    #[test]
    fn no_sample_is_taken_at_a_rate_of_zero() {
        let profiling = new(0, ProfilingLevel::Off);
        profiling.set_slow(SlowThreshold {
            millis: 0,
            sample_rate: 0.0,
        });
        let verdict = profiling.judge("d", 1000, DocumentBuf::new);
        assert_eq!(
            verdict,
            Verdict {
                log: false,
                keep: false
            }
        );
    }
}
