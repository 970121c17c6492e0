//! The section of recorded results, which a fold writes and a start reads.
//!
//! ```text
//! key       session id, 16 bytes | 0                                            the session
//!           session id, 16 bytes | 1 | statement i32 BE, sign bit flipped         one of its statements
//! payload   of a session: number i64 LE | newest position u64 LE | milliseconds u64 LE
//!                         | 0: committed, 1: wrote, 2: wrote, some results were removed
//!           of a statement: its result, as in `statement_result`
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_fold::sections::Sections;
use windrow_fold::{
    Direction, Entry, Position, RecordId, RunSink, Section, SectionDescriptor, SectionOptions,
    SectionWriter, View,
};
use windrow_storage::{Compression, StorageError};

use super::{Retries, Session, SessionOutcome};
use crate::error::Error;
use crate::ids::MapId;
use crate::record::transaction::SessionKey;
use crate::statement_result::StatementResult;

/// The id of the map. No collection or index has it.
pub(crate) const MAP: MapId = MapId(0);

const SESSION: u8 = 0;
const STATEMENT: u8 = 1;
const COMMITTED: u8 = 0;
const WROTE: u8 = 1;
const WROTE_MORE: u8 = 2;

/// Writes a section of all results. Returns `None` if there are none.
pub(crate) fn write(
    retries: &Retries,
    sink: &RunSink,
    position: Position,
) -> Result<Option<SectionDescriptor>, Error> {
    let options = SectionOptions {
        filter_bits: 0,
        mark_byte: None,
        packed: false,
        postings: None,
        with_digest: false,
        compression: Compression::Lz4,
        position,
    };
    let mut writer = SectionWriter::new(sink, options);
    for (id, session) in retries.sessions() {
        push(&mut writer, &key(id, SESSION, None), &encode(&session))?;
        let SessionOutcome::Wrote { results, .. } = &session.outcome else {
            continue;
        };
        for (statement, one) in results {
            let mut payload = Vec::new();
            one.push(&mut payload);
            push(&mut writer, &key(id, STATEMENT, Some(*statement)), &payload)?;
        }
    }
    Ok(writer.finish()?)
}

fn push(writer: &mut SectionWriter<'_>, key: &[u8], payload: &[u8]) -> Result<(), Error> {
    let entry = Entry {
        key,
        id: RecordId::MIN,
        position: Position::ZERO,
        deleted: false,
        payload,
    };
    Ok(writer.push(&entry, true)?)
}

fn key(id: SessionKey, kind: u8, statement: Option<i32>) -> Vec<u8> {
    let mut key = id.0.to_vec();
    key.push(kind);
    if let Some(statement) = statement {
        key.extend_from_slice(&(statement ^ i32::MIN).to_be_bytes());
    }
    key
}

fn encode(session: &Session) -> Vec<u8> {
    let mut bytes = session.number.to_le_bytes().to_vec();
    bytes.extend_from_slice(&session.position.0.to_le_bytes());
    bytes.extend_from_slice(&session.millis.to_le_bytes());
    bytes.push(match session.outcome {
        SessionOutcome::Committed => COMMITTED,
        SessionOutcome::Wrote {
            is_incomplete: false,
            ..
        } => WROTE,
        SessionOutcome::Wrote { .. } => WROTE_MORE,
    });
    bytes
}

/// Adds the results of a section.
pub(crate) fn read(retries: &Retries, section: &Arc<Section>) -> Result<(), Error> {
    let view = View {
        sections: Arc::new(Sections::new(vec![section.clone()])),
        parts: Vec::new(),
        snapshot: Position::MAX,
        own_parts: 0,
    };
    let mut cursor = view.cursor(Direction::Forward);
    let mut current: Option<(SessionKey, Session)> = None;
    while cursor.next()? {
        let taken = take(&mut current, retries, cursor.key(), cursor.payload());
        taken.ok_or_else(|| StorageError::Damaged {
            place: format!("run {}", section.descriptor().run),
            what: "the results of the sessions cannot be decoded".to_owned(),
        })?;
    }
    if let Some((id, session)) = current {
        retries.load(id, session);
    }
    retries.set_saved(retries.version(), Some(section.descriptor().clone()));
    Ok(())
}

/// Adds one entry. A session is complete when the next one begins.
fn take(
    current: &mut Option<(SessionKey, Session)>,
    retries: &Retries,
    key: &[u8],
    payload: &[u8],
) -> Option<()> {
    let (id, rest) = key.split_first_chunk::<16>()?;
    let id = SessionKey(*id);
    match rest.split_first()? {
        (&SESSION, []) => {
            let before = current.replace((id, decode(payload)?));
            if let Some((id, session)) = before {
                retries.load(id, session);
            }
        }
        (&STATEMENT, number) => {
            let (of, session) = current.as_mut()?;
            let SessionOutcome::Wrote { results, .. } = &mut session.outcome else {
                return None;
            };
            let statement = i32::from_be_bytes(number.try_into().ok()?) ^ i32::MIN;
            let (code, document) = payload.split_first()?;
            results.insert(statement, StatementResult::read(*code, document)?);
            (*of == id).then_some(())?;
        }
        _ => return None,
    }
    Some(())
}

fn decode(payload: &[u8]) -> Option<Session> {
    let (number, rest) = payload.split_first_chunk::<8>()?;
    let (position, rest) = rest.split_first_chunk::<8>()?;
    let (millis, rest) = rest.split_first_chunk::<8>()?;
    let outcome = match rest {
        [COMMITTED] => SessionOutcome::Committed,
        [kind @ (WROTE | WROTE_MORE)] => SessionOutcome::Wrote {
            results: BTreeMap::new(),
            is_incomplete: *kind == WROTE_MORE,
        },
        _ => return None,
    };
    Some(Session {
        number: i64::from_le_bytes(*number),
        position: Position(u64::from_le_bytes(*position)),
        millis: u64::from_le_bytes(*millis),
        outcome,
    })
}
