//! The servers of a database: `servers/{server id}`. Each server announces itself in each interval:
//! where clients connect to it, what it has applied, and which runs it can still need. The layout
//! is drawn in docs/format.md.
//!
//! A follower also offers to build shares of indexes. A process that starts again offers under
//! another id, so it never takes a share that was given to the process before.
//!
//! Announcements keep what other servers need, and nothing depends on them: a server that the
//! others do not wait for finds that an object was deleted, and begins again.

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
/// The interval of announcements, in heartbeats.
pub(crate) const LOOK_HEARTBEATS: u32 = 5;
const TITLE: &str = "windrow server 1";

/// A server as the others know it.
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

/// What a server announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub state: MemberState,
    /// The server does not need what the log has removed at or before this position.
    pub needs_after: Position,
    /// Grows with each announcement: the server lives.
    pub beat: u64,
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

/// Returns what all servers have announced.
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

/// Returns the states of servers, one an address, ordered by address.
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
    /// Replaces what is known by what all servers have announced.
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

    /// Returns how often a server was added or removed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

/// What a primary has seen of the others, by its own clock.
#[derive(Default)]
pub(crate) struct Liveness {
    beats: HashMap<Id, Heartbeat>,
}

struct Heartbeat {
    number: u64,
    /// When this beat was first seen.
    seen: Instant,
    /// How often the primary has looked since without finding a newer one.
    looks: u32,
}

/// A server that has announced nothing while the primary looked more often than this gets no
/// shares.
const LOOKS_MAX: u32 = 3;

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
                number: it.beat,
                seen: Instant::now(),
                looks: 0,
            };
            let beat = self.beats.entry(*id).or_insert_with(first);
            beat.looks += 1;
            if beat.number != it.beat {
                *beat = first();
            }
            let is_alive = beat.seen.elapsed() < lifetime;
            if !is_alive {
                silent.push(*id);
            }
            is_alive
        });
        self.beats
            .retain(|id, _| all.iter().any(|(known, _)| known == id) || silent.contains(id));
        silent
    }

    /// Returns the builders among the servers that have announced themselves recently.
    pub fn builders(&self, all: &[(Id, Announcement)]) -> Vec<Builder> {
        let is_recent = |id: &Id| self.beats.get(id).is_some_and(|it| it.looks <= LOOKS_MAX);
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
        beat,
        builder,
    } = announcement;
    let mut text = format!(
        "{TITLE}\naddress {}\napplied {}\nneeds {needs_after}\nbeat {beat}\n",
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
        beat: field("beat")?.parse().ok()?,
        builder: field("builds").and_then(|text| decode_builder(text, address)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBucket;

    fn announcement(address: &str, beat: u64) -> Announcement {
        Announcement {
            state: MemberState {
                address: address.to_owned(),
                applied: ClusterTime(beat << 32),
            },
            needs_after: Position(7),
            beat,
            builder: beat.is_multiple_of(2).then(|| Builder {
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
        for _ in 0..LOOKS_MAX {
            liveness.remove_silent(&mut all, Duration::MAX);
            assert_eq!(liveness.builders(&all).len(), 1);
        }
        liveness.remove_silent(&mut all, Duration::MAX);
        assert!(liveness.builders(&all).is_empty());
        all[0].1.beat += 2;
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
