//! The servers of a database: `servers/{server id}`. Each server regularly announces the address
//! that clients connect to, the newest record that it has applied, and which runs it can still
//! need. docs/format.md describes the layout.
//!
//! A follower also offers to build shares of indexes. A process that starts again offers under
//! another id, so it never takes a share that was given to the process before.
//!
//! The primary deletes no objects that an announced server can need. Correctness does not depend on
//! announcements: a server that misses a deleted object starts again from a checkpoint.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::bucket::Bucket;
use crate::error::StorageError;
use crate::local_state::{Id, hex, parse_hex};
use crate::log::ClusterTime;
use crate::position::Position;

const FOLDER: &str = "servers";
/// The interval of announcements, in heartbeat intervals of the log.
pub(crate) const ANNOUNCEMENT_HEARTBEATS: u32 = 5;
const TITLE: &str = "windrow server 1";

/// The state of a server that the other servers know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// The address that clients connect to.
    pub address: String,
    /// The time of the newest record that the server has applied.
    pub applied: ClusterTime,
}

/// The offer of a follower to build shares of indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builder {
    /// A random id of the process.
    pub id: [u8; 16],
    /// The address of the server.
    pub address: String,
    /// The number of shares that it builds at a time.
    pub threads: usize,
    /// The version of the program. Another version can create other entries.
    pub version: String,
}

/// The announcement of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub state: MemberState,
    /// The server does not need what the log has removed at or before this position.
    pub needs_after: Position,
    /// The number of the announcement. If it grows, the server is alive.
    pub heartbeat_number: u64,
    /// `None` if the server builds no shares.
    pub builder: Option<Builder>,
}

fn name(server: Id) -> String {
    format!("{FOLDER}/{}", hex(server))
}

/// Makes a server known to the others.
///
/// # Errors
/// Fails if the object store does.
pub(crate) fn announce(
    bucket: &dyn Bucket,
    server: Id,
    announcement: &Announcement,
) -> Result<(), StorageError> {
    bucket.put(&name(server), encode(announcement))
}

/// Removes the servers that had the address of `server` before. A server with a new data folder
/// replaces the one that had its address.
///
/// # Errors
/// Fails if the object store does.
pub(crate) fn replace_others(
    bucket: &dyn Bucket,
    server: Id,
    address: &str,
) -> Result<(), StorageError> {
    let has_address =
        |(other, it): &(Id, Announcement)| *other != server && it.state.address == address;
    let replaced = all(bucket)?.into_iter().filter(has_address);
    for (other, _) in replaced {
        bucket.delete(&name(other))?;
    }
    Ok(())
}

/// Returns the newest announcements of all servers.
///
/// # Errors
/// Fails if the object store does.
pub(crate) fn all(bucket: &dyn Bucket) -> Result<Vec<(Id, Announcement)>, StorageError> {
    let mut found = Vec::new();
    for name in bucket.list(FOLDER, "")? {
        let bytes = bucket.get(&format!("{FOLDER}/{name}"))?;
        // Nothing depends on an object that cannot be read.
        let announcement = bytes.as_deref().and_then(decode);
        found.extend(parse_hex(&name).zip(announcement));
    }
    Ok(found)
}

/// Returns the newest state for each address, ordered by address.
pub(crate) fn states(all: &[(Id, Announcement)]) -> Vec<MemberState> {
    let mut states: Vec<MemberState> = all.iter().map(|(_, it)| it.state.clone()).collect();
    states.sort_by(|one, other| {
        let newest_first = other.applied.cmp(&one.applied);
        one.address.cmp(&other.address).then(newest_first)
    });
    states.dedup_by(|one, other| one.address == other.address);
    states
}

/// The servers of the database that this server knows, as a follower and later as the primary.
#[derive(Default)]
pub(crate) struct KnownMembers {
    states: Mutex<Vec<MemberState>>,
    changes: AtomicU64,
}

impl KnownMembers {
    /// Replaces the known states by those in the announcements of all servers.
    pub fn update(&self, all: &[(Id, Announcement)]) {
        let new = states(all);
        let mut states = self.states.lock();
        let has_changed = !states
            .iter()
            .map(|it| &it.address)
            .eq(new.iter().map(|it| &it.address));
        *states = new;
        if has_changed {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the servers, ordered by address.
    pub fn states(&self) -> Vec<MemberState> {
        self.states.lock().clone()
    }

    /// Returns the number of times that a server was added or removed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

/// The newest heartbeats of all servers, by the clock of the primary.
#[derive(Default)]
pub(crate) struct Liveness {
    heartbeats: HashMap<Id, Heartbeat>,
}

/// The newest heartbeat of a server.
struct Heartbeat {
    number: u64,
    /// The time at which the primary first read this heartbeat.
    first_read: Instant,
    /// The number of times that the primary has read this heartbeat again.
    repeated_reads: u32,
}

/// A server gets no shares of index builds if the primary has read the same heartbeat more often
/// than this.
const REPEATED_READS_MAX: u32 = 3;

impl Liveness {
    /// Removes the servers from `all` that have announced nothing for `lifetime`, and returns them.
    pub fn remove_silent(
        &mut self,
        all: &mut Vec<(Id, Announcement)>,
        lifetime: Duration,
    ) -> Vec<Id> {
        let mut silent = Vec::new();
        all.retain(|(id, it)| {
            let first = || Heartbeat {
                number: it.heartbeat_number,
                first_read: Instant::now(),
                repeated_reads: 0,
            };
            let heartbeat = self.heartbeats.entry(*id).or_insert_with(first);
            heartbeat.repeated_reads += 1;
            if heartbeat.number != it.heartbeat_number {
                *heartbeat = first();
            }
            let is_alive = heartbeat.first_read.elapsed() < lifetime;
            if !is_alive {
                silent.push(*id);
            }
            is_alive
        });
        self.heartbeats
            .retain(|id, _| all.iter().any(|(known, _)| known == id) || silent.contains(id));
        silent
    }

    /// Returns the builders among the servers that have announced themselves recently.
    pub fn builders(&self, all: &[(Id, Announcement)]) -> Vec<Builder> {
        let is_recent = |id: &Id| {
            let heartbeat = self.heartbeats.get(id);
            heartbeat.is_some_and(|it| it.repeated_reads <= REPEATED_READS_MAX)
        };
        all.iter()
            .filter(|(id, _)| is_recent(id))
            .filter_map(|(_, it)| it.builder.clone())
            .collect()
    }
}

/// Removes a server.
///
/// # Errors
/// Fails if the object store does.
pub(crate) fn remove(bucket: &dyn Bucket, server: Id) -> Result<(), StorageError> {
    bucket.delete(&name(server))
}

fn encode(announcement: &Announcement) -> Bytes {
    let Announcement {
        state,
        needs_after,
        heartbeat_number,
        builder,
    } = announcement;
    let mut text = format!(
        "{TITLE}\naddress {}\napplied {}\nneeds {needs_after}\nbeat {heartbeat_number}\n",
        state.address, state.applied.0
    );
    if let Some(builder) = builder {
        let Builder {
            id,
            threads,
            version,
            address: _,
        } = builder;
        text.push_str(&format!("builds {} {threads} {version}\n", hex(*id)));
    }
    Bytes::from(text)
}

fn decode_builder(text: &str, address: &str) -> Option<Builder> {
    let mut parts = text.splitn(3, ' ');
    Some(Builder {
        id: parse_hex(parts.next()?)?,
        address: address.to_owned(),
        threads: parts.next()?.parse().ok()?,
        version: parts.next()?.to_owned(),
    })
}

fn decode(bytes: &[u8]) -> Option<Announcement> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let address = field("address")?;
    Some(Announcement {
        state: MemberState {
            address: address.to_owned(),
            applied: ClusterTime(field("applied")?.parse().ok()?),
        },
        needs_after: Position(field("needs")?.parse().ok()?),
        heartbeat_number: field("beat")?.parse().ok()?,
        builder: field("builds").and_then(|text| decode_builder(text, address)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBucket;

    fn announcement(address: &str, heartbeat_number: u64) -> Announcement {
        Announcement {
            state: MemberState {
                address: address.to_owned(),
                applied: ClusterTime(heartbeat_number << 32),
            },
            needs_after: Position(7),
            heartbeat_number,
            builder: heartbeat_number.is_multiple_of(2).then(|| Builder {
                id: [9; 16],
                address: address.to_owned(),
                threads: 4,
                version: "1.2.3 test".to_owned(),
            }),
        }
    }

    #[test]
    fn announcements_are_read_back() {
        let bucket = MemoryBucket::new();
        for (id, address) in [(1, "b:1"), (2, "a:1"), (3, "b:1")] {
            announce(&bucket, [id; 16], &announcement(address, u64::from(id))).unwrap();
        }
        bucket
            .put("servers/unknown", Bytes::from_static(b"?"))
            .unwrap();
        let found = all(&bucket).unwrap();
        assert_eq!(found.len(), 3);
        assert!(found.contains(&([2; 16], announcement("a:1", 2))));
        let expected = [announcement("a:1", 2).state, announcement("b:1", 3).state];
        assert_eq!(states(&found), expected);
        replace_others(&bucket, [3; 16], "b:1").unwrap();
        assert_eq!(all(&bucket).unwrap().len(), 2);
    }

    #[test]
    fn only_servers_that_announce_themselves_build() {
        let mut liveness = Liveness::default();
        let mut all = vec![([1; 16], announcement("a:1", 2))];
        for _ in 0..REPEATED_READS_MAX {
            liveness.remove_silent(&mut all, Duration::MAX);
            assert_eq!(liveness.builders(&all).len(), 1);
        }
        liveness.remove_silent(&mut all, Duration::MAX);
        assert!(liveness.builders(&all).is_empty());
        all[0].1.heartbeat_number += 2;
        liveness.remove_silent(&mut all, Duration::MAX);
        assert_eq!(liveness.builders(&all)[0].threads, 4);
    }

    #[test]
    fn servers_are_silent_after_their_lifetime() {
        let mut liveness = Liveness::default();
        let hour = Duration::from_secs(3600);
        let mut all = vec![([1; 16], announcement("a:1", 1))];
        assert!(liveness.remove_silent(&mut all, hour).is_empty());
        assert_eq!(all.len(), 1);
        assert_eq!(liveness.remove_silent(&mut all, Duration::ZERO), [[1; 16]]);
        assert!(all.is_empty());
    }
}
