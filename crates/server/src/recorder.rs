//! What is left of an operation that has ended: a line in the log where it was slow, and a document
//! in `system.profile` where its database keeps such.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use windrow_collection::{Collection, Namespace};
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply};

use crate::client::Client;
use crate::clock;
use crate::operations::Operation;
use crate::state::State;
use crate::storable::with_id_in_front;

/// The collection of a database that keeps its operations.
pub const PROFILE: &str = "system.profile";

/// The size of that collection where it is made by itself, as in MongoDB.
const PROFILE_BYTES: i64 = 1 << 20;

/// An operation that has ended.
pub struct Ended<'a> {
    pub client: &'a Client,
    pub operation: &'a Operation,
    pub took: Duration,
    pub outcome: &'a Result<Reply, CommandError>,
}

/// Logs and keeps the operation where the settings say so.
pub fn record(state: &State, ended: &Ended<'_>) {
    let millis = ended.took.as_millis() as i64;
    if state.profiling.passes_over(millis) || ended.operation.waits_on_purpose() {
        return;
    }
    let namespace = ended.operation.namespace();
    let (database, collection) = namespace.split_once('.').unwrap_or((&namespace, ""));
    let describe = || profile(ended, millis);
    let verdict = state.profiling.judge(database, millis, describe);
    if verdict.log {
        log(state, ended, millis);
    }
    if verdict.keep && !collection.is_empty() && collection != PROFILE {
        keep(state, database, profile(ended, millis));
    }
}

fn log(state: &State, ended: &Ended<'_>, millis: i64) {
    let mut attr = ended.operation.slow_attributes();
    match ended.outcome {
        Ok(reply) => attr.push("reslen", reply.bytes() as i64),
        Err(error) => {
            attr.push("ok", 0);
            add_error(error, &mut attr);
        }
    }
    attr.push("protocol", "op_msg");
    attr.push("durationMillis", millis);
    let (log, client) = (&state.services.log, ended.client.name());
    log.info("COMMAND", 51_803, &client, "Slow query", attr);
}

fn add_error(error: &CommandError, described: &mut DocumentBuf) {
    described.push("errMsg", &error.message);
    described.push("errName", error.code.name().as_ref());
    described.push("errCode", error.code.number());
}

/// The document of `system.profile`.
fn profile(ended: &Ended<'_>, millis: i64) -> DocumentBuf {
    let mut profile = DocumentBuf::new();
    for (name, value) in ended.operation.slow_attributes().iter() {
        let name = if name == "type" { "op" } else { name };
        profile.push(name, value);
    }
    match ended.outcome {
        Ok(reply) => profile.push("responseLength", reply.bytes() as i32),
        Err(error) => add_error(error, &mut profile),
    }
    profile.push("protocol", "op_msg");
    profile.push("millis", millis as i32);
    profile.push("ts", clock::date(SystemTime::now()));
    profile.push("client", ended.client.address.ip().to_string());
    profile.push("allUsers", windrow_document::array![]);
    profile.push("user", "");
    profile
}

/// What cannot be kept is not: the operation itself has ended already.
fn keep(state: &State, database: &str, profile: DocumentBuf) {
    let profile = with_id_in_front(profile.as_document(), &state.object_ids, false);
    if let Ok(collection) = collection(state, database) {
        drop(collection.insert(Bytes::from(profile.into_bytes()), false));
    }
}

/// The collection that keeps a database's operations, made where there is none.
pub fn collection(
    state: &State,
    database: &str,
) -> Result<Arc<Collection>, windrow_collection::Error> {
    let engine = &state.services.engine;
    let namespace = Namespace {
        database: database.to_owned(),
        collection: PROFILE.to_owned(),
    };
    let options = doc! { "capped": true, "size": PROFILE_BYTES };
    match engine.collection(&namespace) {
        Some(collection) => Ok(collection),
        None => engine.create(&namespace, options.as_document()),
    }
}
