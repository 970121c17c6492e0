//! [`MemoryBucket`]: an object store in memory, for tests and the simulation.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Bucket, Creation};
use crate::disk::{DiskFile, read_all};
use crate::error::StorageError;

/// The outcome of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call has its effect, and the caller gets the result.
    Done,
    /// The call has its effect, and the caller gets an error.
    ReplyLost,
    /// The call has no effect, and the caller gets an error.
    RequestLost,
    /// The caller gets an error, and the call has its effect later.
    Late,
}

/// Decides what happens to each call. It may block the calling thread before it returns.
pub trait RequestFaults: Send + Sync {
    /// Returns the outcome of a call. `operation` is its name.
    fn outcome(&self, operation: &str, name: &str) -> Outcome;
}

type Objects = BTreeMap<String, Bytes>;

/// The objects, and the calls that have their effect later.
#[derive(Default)]
struct Content {
    objects: Objects,
    late: VecDeque<LateCall>,
}

/// A call that has its effect later.
struct LateCall {
    /// The number of calls before the effect.
    calls_before: u32,
    effect: Box<dyn FnOnce(&mut Objects) + Send>,
}

impl Content {
    /// Applies the late calls that are due after one more call.
    fn advance(&mut self) {
        for late in &mut self.late {
            late.calls_before = late.calls_before.saturating_sub(1);
        }
        while self.late.front().is_some_and(|late| late.calls_before == 0) {
            self.apply_first();
        }
    }

    fn apply_first(&mut self) {
        if let Some(late) = self.late.pop_front() {
            (late.effect)(&mut self.objects);
        }
    }
}

/// The number of further calls after which a late call has its effect.
const LATE_CALLS: u32 = 60;

/// An object store in memory. Clones share the objects.
#[derive(Clone, Default)]
pub struct MemoryBucket {
    content: Arc<Mutex<Content>>,
    faults: Option<Arc<dyn RequestFaults>>,
}

impl MemoryBucket {
    /// Returns an empty object store without failures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same objects for a caller whose calls fail as `faults` says.
    pub fn with_faults(&self, faults: Arc<dyn RequestFaults>) -> Self {
        Self {
            content: self.content.clone(),
            faults: Some(faults),
        }
    }

    /// Applies all late calls.
    pub fn apply_late(&self) {
        let mut content = self.content.lock();
        while !content.late.is_empty() {
            content.apply_first();
        }
    }

    fn call<T>(
        &self,
        operation: &str,
        name: &str,
        effect: impl FnOnce(&mut Objects) -> T + Send + 'static,
    ) -> Result<T, StorageError> {
        let outcome = match &self.faults {
            Some(faults) => faults.outcome(operation, name),
            None => Outcome::Done,
        };
        let lost = |what: &str| StorageError::Unavailable {
            place: self.place(name),
            what: what.to_owned(),
        };
        let mut content = self.content.lock();
        content.advance();
        match outcome {
            Outcome::Done => Ok(effect(&mut content.objects)),
            Outcome::ReplyLost => {
                effect(&mut content.objects);
                Err(lost("the reply was lost"))
            }
            Outcome::RequestLost => Err(lost("the request was lost")),
            Outcome::Late => {
                let effect = |objects: &mut Objects| drop(effect(objects));
                content.late.push_back(LateCall {
                    calls_before: LATE_CALLS,
                    effect: Box::new(effect),
                });
                Err(lost("there is no reply"))
            }
        }
    }
}

impl Bucket for MemoryBucket {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Creation, StorageError> {
        let key = name.to_owned();
        self.call("create", name, move |objects| {
            if objects.contains_key(&key) {
                return Creation::Exists;
            }
            objects.insert(key, bytes);
            Creation::Created
        })
    }

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let key = name.to_owned();
        self.call("put", name, move |objects| {
            objects.insert(key, bytes);
        })
    }

    fn put_file(&self, name: &str, file: &dyn DiskFile) -> Result<(), StorageError> {
        let bytes = read_all(file).map_err(|error| StorageError::from_io(name, error))?;
        self.put(name, bytes.into())
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        let key = name.to_owned();
        self.call("get", name, move |objects| objects.get(&key).cloned())
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>, StorageError> {
        let key = name.to_owned();
        self.call("get_range", name, move |objects| {
            objects.get(&key).map(|bytes| {
                let within = |offset: u64| {
                    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                    offset.min(bytes.len())
                };
                bytes.slice(within(range.start)..within(range.end))
            })
        })
    }

    fn size(&self, name: &str) -> Result<Option<u64>, StorageError> {
        let key = name.to_owned();
        self.call("size", name, move |objects| {
            objects.get(&key).map(|bytes| bytes.len() as u64)
        })
    }

    fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError> {
        let prefix = format!("{folder}/");
        let from = format!("{prefix}{after}");
        self.call("list", folder, move |objects| {
            let range = (Bound::Excluded(from.as_str()), Bound::Unbounded);
            let names = objects.range::<str, _>(range).map(|(name, _)| name);
            names
                .map_while(|name| name.strip_prefix(&prefix))
                .map(str::to_owned)
                .collect()
        })
    }

    fn delete(&self, name: &str) -> Result<(), StorageError> {
        let key = name.to_owned();
        self.call("delete", name, move |objects| {
            objects.remove(&key);
        })
    }

    fn place(&self, name: &str) -> String {
        format!("memory:{name}")
    }
}
