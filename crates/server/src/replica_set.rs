//! The replica set that clients see: this server as its primary.
//!
//! If the database is in an object store, the other servers of the database are members, too.
//! Otherwise this server is the only member. Features that need a replica set in MongoDB
//! (transactions, retryable writes) work on a standalone server too.

use std::net::SocketAddr;
use std::time::SystemTime;

use windrow_collection::{ClusterTime, Engine, MemberState, SharedState};
use windrow_document::{ArrayBuf, DocumentBuf, ObjectId, Timestamp, Value, doc};

use crate::clock;
use crate::config::Config;
use crate::machine;

/// The lag of another server behind this one when it last announced itself.
pub struct MemberLag {
    pub address: String,
    pub seconds: u32,
}

/// Returns the lag of each other server of the database. There are none without an object store.
pub fn member_lags(engine: &Engine) -> Vec<MemberLag> {
    let newest = engine.newest_time().seconds();
    let members = engine.shared_state().unwrap_or_default().members;
    let lag = |member: MemberState| MemberLag {
        address: member.address,
        seconds: newest.saturating_sub(member.applied.seconds()),
    };
    members.into_iter().map(lag).collect()
}

/// The replica set.
#[derive(Clone, Debug)]
pub struct ReplicaSet {
    /// The name of the set.
    pub set: String,
    /// "host:port", the address of the server for clients.
    pub me: String,
    elected: Timestamp,
    elected_at: SystemTime,
    /// The number of elections. Over an object store, the number of takeovers of the log.
    term: i64,
}

const VERSION: i32 = 1;

impl ReplicaSet {
    /// Creates the replica set; `None` for a standalone server. `port` is the port on which it
    /// listens. `shared` is the state in the object store.
    pub fn from_config(
        config: &Config,
        port: u16,
        shared: Option<&SharedState>,
    ) -> Option<ReplicaSet> {
        let set = config.replica_set.clone()?;
        let listens = config.listen.first().map(SocketAddr::ip);
        let own = || match listens.filter(|ip| !ip.is_unspecified()) {
            Some(ip) => SocketAddr::from((ip, port)).to_string(),
            None => format!("{}:{port}", machine::hostname()),
        };
        let me = config.advertised.clone().unwrap_or_else(own);
        Some(ReplicaSet {
            set,
            me,
            elected: clock::timestamp(),
            elected_at: SystemTime::now(),
            term: shared.map_or(1, |shared| shared.epoch as i64),
        })
    }

    /// Returns all members, this one first. `newest` is what this server has applied.
    fn members(&self, newest: ClusterTime, shared: Option<SharedState>) -> Vec<MemberState> {
        let others = shared.map(|shared| shared.members).unwrap_or_default();
        let own = MemberState {
            address: self.me.clone(),
            applied: newest,
        };
        let others = others.into_iter().filter(|it| it.address != self.me);
        std::iter::once(own).chain(others).collect()
    }

    /// Returns the address of the primary, or "" if it is unknown.
    fn primary(&self, shared: Option<&SharedState>) -> String {
        match shared {
            Some(shared) if shared.is_following => shared.primary.clone(),
            _ => self.me.clone(),
        }
    }

    /// Adds the fields of `hello`.
    pub fn describe(
        &self,
        newest: ClusterTime,
        shared: Option<SharedState>,
        reply: &mut DocumentBuf,
    ) {
        let epoch = shared.as_ref().map(|shared| shared.epoch as i64);
        let is_following = shared.as_ref().is_some_and(|shared| shared.is_following);
        let primary = self.primary(shared.as_ref());
        let members = self.members(newest, shared);
        let members: Vec<&str> = members.iter().map(|it| it.address.as_str()).collect();
        reply.push("hosts", members);
        reply.push("setName", self.set.as_str());
        reply.push("setVersion", VERSION);
        reply.push("secondary", is_following);
        if !primary.is_empty() {
            reply.push("primary", primary.as_str());
        }
        reply.push("me", self.me.as_str());
        if !is_following {
            let epoch = epoch.unwrap_or(self.term);
            reply.push("electionId", Self::election_id(epoch));
        }
        let newest = self.time(newest);
        let now = Value::DateTime(i64::from(newest.seconds) * 1000);
        let time = self.op_time(newest);
        reply.push(
            "lastWrite",
            doc! {
                "opTime": (time.clone()), "lastWriteDate": (now.clone()),
                "majorityOpTime": time, "majorityWriteDate": now,
            },
        );
    }

    /// Returns the time of the newest change. Before the first change it is that of the election.
    pub fn time(&self, newest: ClusterTime) -> Timestamp {
        let earliest = ClusterTime::new(self.elected.seconds, 1);
        Timestamp::from_bits(newest.max(earliest).0)
    }

    /// Returns the fields of every reply of a member: the newest time, without a signature.
    pub fn times(&self, newest: ClusterTime) -> DocumentBuf {
        let time = Value::Timestamp(self.time(newest));
        let hash = Value::Binary {
            subtype: 0,
            bytes: vec![0; 20],
        };
        doc! {
            "$clusterTime": {
                "clusterTime": (time.clone()),
                "signature": { "hash": hash, "keyId": 0i64 },
            },
            "operationTime": time,
        }
    }

    /// Returns the id in MongoDB's format, with the term in the last bytes.
    fn election_id(term: i64) -> ObjectId {
        let mut bytes = [0; 12];
        let (head, tail) = bytes.split_at_mut(4);
        head.copy_from_slice(&i32::MAX.to_be_bytes());
        tail.copy_from_slice(&term.to_be_bytes());
        ObjectId(bytes)
    }

    fn op_time(&self, time: Timestamp) -> DocumentBuf {
        doc! { "ts": (Value::Timestamp(time)), "t": (self.term) }
    }

    /// Returns the reply of `replSetGetConfig`.
    pub fn configuration(&self, shared: Option<SharedState>) -> DocumentBuf {
        let member = |(id, member): (usize, MemberState)| {
            Value::from(doc! {
                "_id": (id as i32), "host": (member.address), "arbiterOnly": false, "buildIndexes": true,
                "hidden": false, "priority": 1, "tags": {}, "secondaryDelaySecs": 0i64, "votes": 1,
            })
        };
        let members = self.members(ClusterTime(0), shared).into_iter().enumerate();
        let members = ArrayBuf::from_iter(members.map(member));
        doc! {
            "_id": (self.set.as_str()), "version": VERSION, "term": (self.term), "members": members,
            "protocolVersion": 1i64, "writeConcernMajorityJournalDefault": true,
            "settings": {
                "chainingAllowed": true, "heartbeatIntervalMillis": 2000,
                "heartbeatTimeoutSecs": 10, "electionTimeoutMillis": 10000,
                "getLastErrorModes": {}, "getLastErrorDefaults": { "w": 1, "wtimeout": 0 },
            },
        }
    }

    /// Returns the reply of `replSetGetStatus`.
    pub fn status(&self, newest: ClusterTime, shared: Option<SharedState>) -> DocumentBuf {
        let is_following = shared.as_ref().is_some_and(|shared| shared.is_following);
        let state = if is_following { 2 } else { 1 };
        let now = clock::date(SystemTime::now());
        let primary = self.primary(shared.as_ref());
        let all = self.members(newest, shared);
        let count = all.len() as i32;
        let members = all.into_iter().enumerate();
        let members = members.map(|(id, it)| Value::from(self.member_status(id, &it, &primary)));
        let members = ArrayBuf::from_iter(members);
        let newest = self.time(newest);
        let time = || self.op_time(newest);
        doc! {
            "set": (self.set.as_str()), "date": (now), "myState": state, "term": (self.term),
            "syncSourceHost": "", "syncSourceId": (-1), "heartbeatIntervalMillis": 2000i64,
            "majorityVoteCount": 1, "writeMajorityCount": 1, "votingMembersCount": count,
            "writableVotingMembersCount": count,
            "optimes": {
                "lastCommittedOpTime": (time()), "readConcernMajorityOpTime": (time()),
                "appliedOpTime": (time()), "durableOpTime": (time()),
            },
            "members": members,
        }
    }

    /// Returns what `replSetGetStatus` says of a member. Others have announced what they have
    /// applied a few seconds ago.
    fn member_status(&self, id: usize, member: &MemberState, primary: &str) -> DocumentBuf {
        let is_own = member.address == self.me;
        let (state, state_text) = if member.address == primary {
            (1, "PRIMARY")
        } else {
            (2, "SECONDARY")
        };
        let applied = self.time(member.applied);
        let mut status = doc! {
            "_id": (id as i32), "name": (member.address.as_str()), "health": 1.0, "state": state,
            "stateStr": state_text, "optime": (self.op_time(applied)),
            "optimeDate": (Value::DateTime(i64::from(applied.seconds) * 1000)),
            "configVersion": VERSION, "configTerm": (self.term as i32),
        };
        if is_own {
            let uptime = self.elected_at.elapsed().unwrap_or_default().as_secs();
            status.push("uptime", uptime as i32);
            status.push("electionTime", Value::Timestamp(self.elected));
            status.push("electionDate", clock::date(self.elected_at));
            status.push("self", true);
        }
        status
    }
}
