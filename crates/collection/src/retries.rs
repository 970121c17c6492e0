//! The results of the latest writes of sessions. A write or commit that a client retries is
//! answered from them, and does not run again. For each session, they contain the newest
//! transaction number that wrote anything, and the results of its statements.
//!
//! The log contains a result in the record of the write itself, see
//! [`record::statements`](crate::record::statements). A fold may let the log be truncated, so each
//! fold writes all results into a section whose map is [`MAP`]. Opening the engine reads that
//! section, then the log.
//!
//! A session's results are removed half an hour after its last write, which is the lifetime of a
//! session. If the results exceed their memory limit, the oldest sessions keep only their
//! transaction number, and their statements are reported as [`RecordedResult::Unknown`].

mod section;

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use windrow_fold::{Position, SectionDescriptor};

use crate::record::statements::{NumberedResult, StatementRecord};
use crate::record::transaction::{Origin, SessionKey};
use crate::statement_result::StatementResult;

pub(crate) use section::{MAP, read, write};

/// The recorded result of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedResult {
    /// The statement did nothing.
    Nothing,
    /// The statement did this.
    Done(StatementResult),
    /// The statement may or may not have run.
    Unknown,
}

/// The last operation of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastOperation {
    /// It committed the transaction of this number.
    Committed(i64),
    /// It wrote with the retryable write of this number.
    Wrote(i64),
}

/// The number of a statement without a recorded result, and the marker that some results were
/// removed.
const UNNUMBERED: i32 = -1;
const INCOMPLETE: i32 = -2;
/// The lifetime of an idle session, in milliseconds.
const MILLIS_MAX: u64 = 30 * 60 * 1000;
/// The estimated memory per statement or session, besides documents, in bytes.
const STATEMENT_BYTES: u64 = 100;
const SESSION_BYTES: u64 = 200;

/// The recorded results of all sessions.
#[derive(Debug)]
pub(crate) struct Retries {
    all: Mutex<SessionTable>,
    saved: Mutex<SavedResults>,
    bytes_max: u64,
}

/// The results that the catalog contains.
#[derive(Debug, Default)]
struct SavedResults {
    version: u64,
    /// `None` if there are no results.
    section: Option<SectionDescriptor>,
}

#[derive(Debug, Default)]
struct SessionTable {
    sessions: HashMap<SessionKey, Session>,
    /// The sessions, by the position of the newest record of each.
    by_age: BTreeMap<Position, SessionKey>,
    bytes: u64,
    /// Increases with each change, so a fold knows whether there is something to write.
    version: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Session {
    number: i64,
    /// The position of the session's newest log record, and its time.
    position: Position,
    millis: u64,
    outcome: SessionOutcome,
}

#[derive(Clone, Debug, PartialEq)]
enum SessionOutcome {
    Committed,
    Wrote {
        results: BTreeMap<i32, StatementResult>,
        is_incomplete: bool,
    },
}

impl Retries {
    pub fn new(bytes_max: u64) -> Retries {
        Retries {
            all: Mutex::default(),
            saved: Mutex::default(),
            bytes_max,
        }
    }

    /// Adds the results in the log record at a position. Records of one session arrive in order,
    /// but may arrive twice.
    pub fn record(&self, statements: StatementRecord, position: Position, millis: u64) {
        let StatementRecord { origin, results } = statements;
        let nothing = || SessionOutcome::Wrote {
            results: BTreeMap::new(),
            is_incomplete: false,
        };
        let mut all = self.all.lock();
        let Some(session) = all.advance(origin, position, millis, nothing) else {
            return;
        };
        let mut added = 0;
        let mut replaced = 0;
        if let SessionOutcome::Wrote {
            results: known,
            is_incomplete,
        } = &mut session.outcome
        {
            for NumberedResult { statement, result } in results {
                match statement {
                    UNNUMBERED => {}
                    INCOMPLETE => *is_incomplete = true,
                    _ => {
                        added += bytes_of(&result);
                        let old = known.insert(statement, result);
                        replaced += old.map_or(0, |old| bytes_of(&old));
                    }
                }
            }
        }
        all.bytes = all.bytes + added - replaced;
        all.shrink_to(self.bytes_max);
    }

    /// Records that a transaction was committed.
    pub fn record_committed(&self, origin: Origin, position: Position, millis: u64) {
        let mut all = self.all.lock();
        let session = all.advance(origin, position, millis, || SessionOutcome::Committed);
        if let Some(session) = session {
            let before = std::mem::replace(&mut session.outcome, SessionOutcome::Committed).bytes();
            all.bytes -= before;
        }
    }

    /// Returns the last operation of a session that wrote anything.
    pub fn last(&self, session: SessionKey) -> Option<LastOperation> {
        let all = self.all.lock();
        let session = all.sessions.get(&session)?;
        Some(match session.outcome {
            SessionOutcome::Committed => LastOperation::Committed(session.number),
            SessionOutcome::Wrote { .. } => LastOperation::Wrote(session.number),
        })
    }

    /// Returns the recorded result of a statement.
    pub fn result(&self, origin: Origin, statement: i32) -> RecordedResult {
        let all = self.all.lock();
        let session = all.sessions.get(&origin.session);
        let Some(session) = session.filter(|it| it.number == origin.number) else {
            return RecordedResult::Nothing;
        };
        match &session.outcome {
            SessionOutcome::Committed => RecordedResult::Nothing,
            SessionOutcome::Wrote {
                results,
                is_incomplete,
            } => match results.get(&statement) {
                Some(result) => RecordedResult::Done(result.clone()),
                None if *is_incomplete => RecordedResult::Unknown,
                None => RecordedResult::Nothing,
            },
        }
    }

    pub fn forget(&self, session: SessionKey) {
        self.all.lock().take(session);
    }

    /// Removes sessions that have not written for [`MILLIS_MAX`].
    pub fn forget_old(&self, now_millis: u64) {
        let mut all = self.all.lock();
        while let Some((position, oldest)) = all.by_age.first_key_value() {
            let (position, oldest) = (*position, *oldest);
            let is_old = |it: &Session| it.millis.saturating_add(MILLIS_MAX) <= now_millis;
            if !all.sessions.get(&oldest).is_none_or(is_old) {
                return;
            }
            let was_there = all.take(oldest).is_some();
            debug_assert!(was_there, "a session of record {position} is not there");
            // Otherwise the loop would find the missing session for ever.
            all.by_age.remove(&position);
        }
    }

    /// Returns the current version, which increases with each change.
    pub fn version(&self) -> u64 {
        self.all.lock().version
    }

    /// Returns `true` if the catalog contains this version.
    pub fn is_saved(&self, version: u64) -> bool {
        self.saved.lock().version == version
    }

    /// Records that the catalog contains a version, in this section.
    pub fn set_saved(&self, version: u64, section: Option<SectionDescriptor>) {
        *self.saved.lock() = SavedResults { version, section };
    }

    /// Returns the section that the catalog contains.
    pub fn section(&self) -> Option<SectionDescriptor> {
        self.saved.lock().section.clone()
    }

    /// Returns all sessions, sorted by id.
    fn sessions(&self) -> BTreeMap<SessionKey, Session> {
        let all = self.all.lock();
        let sessions = all.sessions.iter();
        sessions.map(|(id, it)| (*id, it.clone())).collect()
    }

    /// Adds a session as a section contains it.
    fn load(&self, id: SessionKey, session: Session) {
        let mut all = self.all.lock();
        all.take(id);
        all.put(id, session);
    }
}

impl SessionTable {
    /// Returns the session for an update with a record's results; it is empty if the record's
    /// number is new. Returns `None` if the record is older than the session's newest.
    fn advance(
        &mut self,
        origin: Origin,
        position: Position,
        millis: u64,
        nothing: impl FnOnce() -> SessionOutcome,
    ) -> Option<&mut Session> {
        let id = origin.session;
        let known = self.sessions.get(&id);
        if known.is_some_and(|it| it.number > origin.number || it.position > position) {
            return None;
        }
        if known.is_none_or(|it| it.number != origin.number) {
            self.take(id);
            let session = Session {
                number: origin.number,
                position,
                millis,
                outcome: nothing(),
            };
            self.put(id, session);
        }
        self.version += 1;
        let session = self.sessions.get_mut(&id)?;
        let before = self.by_age.remove(&session.position);
        debug_assert_eq!(before, Some(id), "record {}", session.position);
        let other = self.by_age.insert(position, id);
        debug_assert_eq!(other, None, "record {position} is of two sessions");
        session.position = position;
        session.millis = millis;
        Some(session)
    }

    fn take(&mut self, id: SessionKey) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        let before = self.by_age.remove(&session.position);
        debug_assert_eq!(before, Some(id), "record {}", session.position);
        debug_assert!(self.bytes >= session.bytes(), "{} bytes", self.bytes);
        // Too low a count keeps more than the limit; a wrapped one would keep nothing.
        self.bytes = self.bytes.saturating_sub(session.bytes());
        self.version += 1;
        Some(session)
    }

    fn put(&mut self, id: SessionKey, session: Session) {
        let other = self.by_age.insert(session.position, id);
        debug_assert_eq!(
            other, None,
            "record {} is of two sessions",
            session.position
        );
        self.bytes += session.bytes();
        self.version += 1;
        self.sessions.insert(id, session);
    }

    /// Removes the results of the oldest sessions until the rest fits.
    fn shrink_to(&mut self, bytes_max: u64) {
        if self.bytes <= bytes_max {
            return;
        }
        let by_age: Vec<SessionKey> = self.by_age.values().copied().collect();
        for id in by_age {
            if self.bytes <= bytes_max {
                return;
            }
            if let Some(mut session) = self.take(id) {
                if let SessionOutcome::Wrote {
                    results,
                    is_incomplete,
                } = &mut session.outcome
                {
                    *is_incomplete |= !results.is_empty();
                    results.clear();
                }
                self.put(id, session);
            }
        }
    }
}

impl Session {
    fn bytes(&self) -> u64 {
        SESSION_BYTES + self.outcome.bytes()
    }
}

impl SessionOutcome {
    fn bytes(&self) -> u64 {
        match self {
            SessionOutcome::Committed => 0,
            SessionOutcome::Wrote { results, .. } => results.values().map(bytes_of).sum(),
        }
    }
}

/// Returns the estimated memory of a statement.
fn bytes_of(result: &StatementResult) -> u64 {
    let document = result.document().map_or(0, |it| it.as_bytes().len());
    STATEMENT_BYTES + document as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    const SESSION: SessionKey = SessionKey([7; 16]);

    fn origin(number: i64) -> Origin {
        Origin {
            session: SESSION,
            number,
        }
    }

    fn record(retries: &Retries, number: i64, position: u64, statements: &[i32]) {
        let results = statements.iter().map(|statement| NumberedResult {
            statement: *statement,
            result: StatementResult::Updated(None),
        });
        let statements = StatementRecord {
            origin: origin(number),
            results: results.collect(),
        };
        retries.record(statements, Position(position), position * 1000);
    }

    #[test]
    fn the_newest_transaction_number_counts() {
        let retries = Retries::new(1 << 20);
        let check = |number: i64, statement: i32, expected: RecordedResult| {
            let found = retries.result(origin(number), statement);
            assert_eq!(found, expected, "{number} {statement}");
        };
        let updated = || RecordedResult::Done(StatementResult::Updated(None));
        record(&retries, 4, 1, &[0, 1]);
        record(&retries, 4, 2, &[2]);
        record(&retries, 3, 3, &[7]);
        check(4, 0, updated());
        check(4, 2, updated());
        check(4, 3, RecordedResult::Nothing);
        check(3, 7, RecordedResult::Nothing);
        assert_eq!(retries.last(SESSION), Some(LastOperation::Wrote(4)));
        retries.record_committed(origin(5), Position(4), 4000);
        assert_eq!(retries.last(SESSION), Some(LastOperation::Committed(5)));
        check(4, 0, RecordedResult::Nothing);
        record(&retries, 6, 5, &[-1, -2, 1]);
        check(6, -1, RecordedResult::Unknown);
        check(6, 1, updated());
    }

    #[test]
    fn results_are_limited_by_memory_and_age() {
        let retries = Retries::new(1150);
        let other = Origin {
            session: SessionKey([8; 16]),
            number: 1,
        };
        record(&retries, 1, 1, &[0]);
        let document = doc! { "_id": 1, "a": ("x".repeat(600)) };
        let statements = StatementRecord {
            origin: other,
            results: vec![NumberedResult {
                statement: 0,
                result: StatementResult::Deleted(Some(document)),
            }],
        };
        retries.record(statements, Position(2), 2000);
        assert_eq!(retries.result(origin(1), 0), RecordedResult::Unknown);
        assert!(matches!(retries.result(other, 0), RecordedResult::Done(_)));
        retries.forget_old(MILLIS_MAX + 1000);
        assert_eq!(retries.last(SESSION), None);
        assert!(retries.last(other.session).is_some());
        retries.forget(other.session);
        assert_eq!(retries.result(other, 0), RecordedResult::Nothing);
        assert_eq!(retries.all.lock().bytes, 0);
    }
}
