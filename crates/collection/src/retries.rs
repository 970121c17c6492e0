//! What sessions have done last, so that a write or a commit that is sent again is not made again: for
//! each session the newest transaction number that wrote anything, and what its statements did.
//!
//! The log has it with the write itself, see [`record::statements`](crate::record::statements). A fold,
//! after which the log may go, writes all of it into a section of its own, whose map has the number
//! [`MAP`]; a start reads that section, and then the log. Sessions are forgotten when they have not
//! written for half an hour, as long as a session lives. Where all of it would take too much memory the
//! oldest lose what they did, but not that they did something: whoever asks is told that it is not known.

mod section;

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use windrow_fold::{Position, SectionDescriptor};

use crate::record::statements::StatementRecord;
use crate::record::transaction::Origin;
use crate::statement_result::StatementResult;

pub(crate) use section::{MAP, read, write};

/// What is known of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedResult {
    /// It has done nothing.
    Nothing,
    Done(StatementResult),
    /// It may have been done, or not.
    Unknown,
}

/// What a session has done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastOperation {
    /// A transaction of this number was committed.
    Committed(i64),
    /// A retryable write of this number has changed something.
    Wrote(i64),
}

/// The number of a statement that is not to be remembered, and of one that says that some are not.
const UNNUMBERED: i32 = -1;
const INCOMPLETE: i32 = -2;
/// How long a session lives without being used.
const MILLIS_MAX: u64 = 30 * 60 * 1000;
/// About what a statement takes in memory besides its documents, and a session, in bytes.
const STATEMENT_BYTES: u64 = 100;
const SESSION_BYTES: u64 = 200;

/// See the module.
#[derive(Debug)]
pub(crate) struct Retries {
    all: Mutex<All>,
    /// The version that the catalog has, and its section.
    saved: Mutex<(u64, Option<SectionDescriptor>)>,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct All {
    sessions: HashMap<[u8; 16], Session>,
    /// The sessions by the position of the newest record of each.
    by_age: BTreeMap<Position, [u8; 16]>,
    bytes: u64,
    /// Grows with every change, so that a fold knows whether there is something new to write.
    version: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Session {
    number: i64,
    /// The newest record of the log that is the session's, and when it was written.
    position: Position,
    millis: u64,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Committed,
    Wrote {
        done: BTreeMap<i32, StatementResult>,
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

    /// Takes in what the record at a position says. Records of one session come in order, but perhaps
    /// again.
    pub fn record(&self, noted: StatementRecord, position: Position, millis: u64) {
        let StatementRecord { origin, done } = noted;
        let nothing = || Outcome::Wrote {
            done: BTreeMap::new(),
            is_incomplete: false,
        };
        let mut all = self.all.lock();
        let Some(session) = all.advance(origin, position, millis, nothing) else {
            return;
        };
        let mut added = 0;
        let mut replaced = 0;
        if let Outcome::Wrote {
            done: known,
            is_incomplete,
        } = &mut session.outcome
        {
            for (statement, one) in done {
                match statement {
                    UNNUMBERED => {}
                    INCOMPLETE => *is_incomplete = true,
                    _ => {
                        added += bytes_of(&one);
                        replaced += known.insert(statement, one).map_or(0, |it| bytes_of(&it));
                    }
                }
            }
        }
        all.bytes = all.bytes + added - replaced;
        all.keep_to(self.bytes_max);
    }

    /// Takes in that a transaction was committed.
    pub fn record_committed(&self, origin: Origin, position: Position, millis: u64) {
        let mut all = self.all.lock();
        let session = all.advance(origin, position, millis, || Outcome::Committed);
        if let Some(session) = session {
            let before = std::mem::replace(&mut session.outcome, Outcome::Committed).bytes();
            all.bytes -= before;
        }
    }

    /// The newest number of a session that wrote anything.
    pub fn last(&self, session: &[u8; 16]) -> Option<LastOperation> {
        let all = self.all.lock();
        let session = all.sessions.get(session)?;
        Some(match session.outcome {
            Outcome::Committed => LastOperation::Committed(session.number),
            Outcome::Wrote { .. } => LastOperation::Wrote(session.number),
        })
    }

    /// What a statement of a retryable write has done.
    pub fn done(&self, origin: Origin, statement: i32) -> RecordedResult {
        let all = self.all.lock();
        let session = all.sessions.get(&origin.session);
        let Some(session) = session.filter(|it| it.number == origin.number) else {
            return RecordedResult::Nothing;
        };
        match &session.outcome {
            Outcome::Committed => RecordedResult::Nothing,
            Outcome::Wrote {
                done,
                is_incomplete,
            } => match done.get(&statement) {
                Some(done) => RecordedResult::Done(done.clone()),
                None if *is_incomplete => RecordedResult::Unknown,
                None => RecordedResult::Nothing,
            },
        }
    }

    pub fn forget(&self, session: &[u8; 16]) {
        self.all.lock().take(session);
    }

    /// Forgets those that have not written for long.
    pub fn forget_old(&self, now_millis: u64) {
        let mut all = self.all.lock();
        while let Some((position, oldest)) = all.by_age.first_key_value() {
            let (position, oldest) = (*position, *oldest);
            let is_old = |it: &Session| it.millis.saturating_add(MILLIS_MAX) <= now_millis;
            if !all.sessions.get(&oldest).is_none_or(is_old) {
                return;
            }
            let was_there = all.take(&oldest).is_some();
            debug_assert!(was_there, "a session of record {position} is not there");
            // One that is not there would be met for ever.
            all.by_age.remove(&position);
        }
    }

    /// See [`All::version`].
    pub fn version(&self) -> u64 {
        self.all.lock().version
    }

    /// Whether the catalog has what this version is.
    pub fn is_saved(&self, version: u64) -> bool {
        self.saved.lock().0 == version
    }

    /// Says that the catalog has a version, in this section.
    pub fn saved(&self, version: u64, section: Option<SectionDescriptor>) {
        *self.saved.lock() = (version, section);
    }

    /// The section that the catalog has.
    pub fn section(&self) -> Option<SectionDescriptor> {
        self.saved.lock().1.clone()
    }

    /// All sessions in order.
    fn sessions(&self) -> BTreeMap<[u8; 16], Session> {
        let all = self.all.lock();
        let sessions = all.sessions.iter();
        sessions.map(|(id, it)| (*id, it.clone())).collect()
    }

    /// Takes a session in as a section has it.
    fn load(&self, id: [u8; 16], session: Session) {
        let mut all = self.all.lock();
        all.take(&id);
        all.put(id, session);
    }
}

impl All {
    /// What is known of a session, so that what a record says can be added to it: anew where the
    /// record's number is. None where the record is older than what is known.
    fn advance(
        &mut self,
        origin: Origin,
        position: Position,
        millis: u64,
        nothing: impl FnOnce() -> Outcome,
    ) -> Option<&mut Session> {
        let id = origin.session;
        let known = self.sessions.get(&id);
        if known.is_some_and(|it| it.number > origin.number || it.position > position) {
            return None;
        }
        if known.is_none_or(|it| it.number != origin.number) {
            self.take(&id);
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

    fn take(&mut self, id: &[u8; 16]) -> Option<Session> {
        let session = self.sessions.remove(id)?;
        let before = self.by_age.remove(&session.position);
        debug_assert_eq!(before, Some(*id), "record {}", session.position);
        debug_assert!(self.bytes >= session.bytes(), "{} bytes", self.bytes);
        // Counted too low, more is kept than is allowed; below 0, nothing would be.
        self.bytes = self.bytes.saturating_sub(session.bytes());
        self.version += 1;
        Some(session)
    }

    fn put(&mut self, id: [u8; 16], session: Session) {
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

    /// Lets go of what the oldest sessions did, until the rest is not too much.
    fn keep_to(&mut self, bytes_max: u64) {
        if self.bytes <= bytes_max {
            return;
        }
        let by_age: Vec<[u8; 16]> = self.by_age.values().copied().collect();
        for id in by_age {
            if self.bytes <= bytes_max {
                return;
            }
            if let Some(mut session) = self.take(&id) {
                if let Outcome::Wrote {
                    done,
                    is_incomplete,
                } = &mut session.outcome
                {
                    *is_incomplete |= !done.is_empty();
                    done.clear();
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

impl Outcome {
    fn bytes(&self) -> u64 {
        match self {
            Outcome::Committed => 0,
            Outcome::Wrote { done, .. } => done.values().map(bytes_of).sum(),
        }
    }
}

/// About what a statement takes in memory.
fn bytes_of(done: &StatementResult) -> u64 {
    let document = done.document().map_or(0, |it| it.as_bytes().len());
    STATEMENT_BYTES + document as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    const SESSION: [u8; 16] = [7; 16];

    fn origin(number: i64) -> Origin {
        Origin {
            session: SESSION,
            number,
        }
    }

    fn note(retries: &Retries, number: i64, position: u64, statements: &[i32]) {
        let done = statements
            .iter()
            .map(|it| (*it, StatementResult::Updated(None)));
        let noted = StatementRecord {
            origin: origin(number),
            done: done.collect(),
        };
        retries.record(noted, Position(position), position * 1000);
    }

    #[test]
    fn the_newest_number_counts() {
        let retries = Retries::new(1 << 20);
        let check = |number: i64, statement: i32, expected: RecordedResult| {
            let found = retries.done(origin(number), statement);
            assert_eq!(found, expected, "{number} {statement}");
        };
        let done = || RecordedResult::Done(StatementResult::Updated(None));
        note(&retries, 4, 1, &[0, 1]);
        note(&retries, 4, 2, &[2]);
        note(&retries, 3, 3, &[7]);
        check(4, 0, done());
        check(4, 2, done());
        check(4, 3, RecordedResult::Nothing);
        check(3, 7, RecordedResult::Nothing);
        assert_eq!(retries.last(&SESSION), Some(LastOperation::Wrote(4)));
        retries.record_committed(origin(5), Position(4), 4000);
        assert_eq!(retries.last(&SESSION), Some(LastOperation::Committed(5)));
        check(4, 0, RecordedResult::Nothing);
        note(&retries, 6, 5, &[-1, -2, 1]);
        check(6, -1, RecordedResult::Unknown);
        check(6, 1, done());
    }

    #[test]
    fn what_takes_too_much_is_not_known_any_more_and_what_is_old_forgotten() {
        let retries = Retries::new(1150);
        let other = Origin {
            session: [8; 16],
            number: 1,
        };
        note(&retries, 1, 1, &[0]);
        let document = doc! { "_id": 1, "a": ("x".repeat(600)) };
        let noted = StatementRecord {
            origin: other,
            done: vec![(0, StatementResult::Deleted(Some(document)))],
        };
        retries.record(noted, Position(2), 2000);
        assert_eq!(retries.done(origin(1), 0), RecordedResult::Unknown);
        assert!(matches!(retries.done(other, 0), RecordedResult::Done(_)));
        retries.forget_old(MILLIS_MAX + 1000);
        assert_eq!(retries.last(&SESSION), None);
        assert!(retries.last(&other.session).is_some());
        retries.forget(&other.session);
        assert_eq!(retries.done(other, 0), RecordedResult::Nothing);
        assert_eq!(retries.all.lock().bytes, 0);
    }
}
