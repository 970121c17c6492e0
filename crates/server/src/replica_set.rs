//! A replica set with one member, for clients that require a replica set.
//!
//! There is no replication. Features that need a replica set in MongoDB (transactions, retryable
//! writes) work on a standalone server too.

use std::net::SocketAddr;
use std::time::SystemTime;

use windrow_collection::ClusterTime;
use windrow_document::{DocumentBuf, ObjectId, Timestamp, Value, doc};

use crate::clock;
use crate::config::Config;
use crate::machine;

/// The replica set.
#[derive(Clone, Debug)]
pub struct ReplicaSet {
    /// The name of the set.
    pub set: String,
    /// "host:port", the address of the server for clients.
    pub me: String,
    elected: Timestamp,
    elected_at: SystemTime,
}

/// The term of the only election.
const TERM: i64 = 1;
const VERSION: i32 = 1;

impl ReplicaSet {
    /// `None` for a standalone server. `port` is the port on which it listens.
    pub fn from_config(config: &Config, port: u16) -> Option<ReplicaSet> {
        let set = config.replica_set.clone()?;
        let listens = config.listen.first().map(SocketAddr::ip);
        let me = match listens.filter(|ip| !ip.is_unspecified()) {
            Some(ip) => SocketAddr::from((ip, port)).to_string(),
            None => format!("{}:{port}", machine::hostname()),
        };
        Some(ReplicaSet {
            set,
            me,
            elected: clock::timestamp(),
            elected_at: SystemTime::now(),
        })
    }

    /// Adds the fields of `hello`.
    pub fn describe(&self, newest: ClusterTime, reply: &mut DocumentBuf) {
        reply.push("hosts", vec![self.me.as_str()]);
        reply.push("setName", self.set.as_str());
        reply.push("setVersion", VERSION);
        reply.push("secondary", false);
        reply.push("primary", self.me.as_str());
        reply.push("me", self.me.as_str());
        reply.push("electionId", Self::election_id());
        let newest = self.time(newest);
        let now = Value::DateTime(i64::from(newest.seconds) * 1000);
        let time = Self::op_time(newest);
        reply.push(
            "lastWrite",
            doc! {
                "opTime": (time.clone()), "lastWriteDate": (now.clone()),
                "majorityOpTime": time, "majorityWriteDate": now,
            },
        );
    }

    /// The time of the newest change. Before the first change it is that of the election.
    pub fn time(&self, newest: ClusterTime) -> Timestamp {
        let earliest = ClusterTime::new(self.elected.seconds, 1);
        Timestamp::from_bits(newest.max(earliest).0)
    }

    /// The fields of every reply of a member: the newest time, without a signature.
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

    /// The id in MongoDB's format, with the term in the last bytes.
    fn election_id() -> ObjectId {
        let mut bytes = [0; 12];
        let (head, tail) = bytes.split_at_mut(4);
        head.copy_from_slice(&i32::MAX.to_be_bytes());
        tail.copy_from_slice(&TERM.to_be_bytes());
        ObjectId(bytes)
    }

    fn op_time(time: Timestamp) -> DocumentBuf {
        doc! { "ts": (Value::Timestamp(time)), "t": TERM }
    }

    /// The reply of `replSetGetConfig`.
    pub fn configuration(&self) -> DocumentBuf {
        let member = doc! {
            "_id": 0, "host": (self.me.as_str()), "arbiterOnly": false, "buildIndexes": true,
            "hidden": false, "priority": 1, "tags": {}, "secondaryDelaySecs": 0i64, "votes": 1,
        };
        doc! {
            "_id": (self.set.as_str()), "version": VERSION, "term": TERM, "members": [member],
            "protocolVersion": 1i64, "writeConcernMajorityJournalDefault": true,
            "settings": {
                "chainingAllowed": true, "heartbeatIntervalMillis": 2000,
                "heartbeatTimeoutSecs": 10, "electionTimeoutMillis": 10000,
                "getLastErrorModes": {}, "getLastErrorDefaults": { "w": 1, "wtimeout": 0 },
            },
        }
    }

    /// The reply of `replSetGetStatus`.
    pub fn status(&self, newest: ClusterTime) -> DocumentBuf {
        let now = clock::date(SystemTime::now());
        let newest = self.time(newest);
        let time = || Self::op_time(newest);
        let uptime = self.elected_at.elapsed().unwrap_or_default().as_secs();
        let member = doc! {
            "_id": 0, "name": (self.me.as_str()), "health": 1.0, "state": 1,
            "stateStr": "PRIMARY", "uptime": (uptime as i32), "optime": (time()),
            "optimeDate": (Value::DateTime(i64::from(newest.seconds) * 1000)), "electionTime": (Value::Timestamp(self.elected)),
            "electionDate": (clock::date(self.elected_at)), "configVersion": VERSION,
            "configTerm": (TERM as i32), "self": true,
        };
        doc! {
            "set": (self.set.as_str()), "date": (now), "myState": 1, "term": TERM,
            "syncSourceHost": "", "syncSourceId": (-1), "heartbeatIntervalMillis": 2000i64,
            "majorityVoteCount": 1, "writeMajorityCount": 1, "votingMembersCount": 1,
            "writableVotingMembersCount": 1,
            "optimes": {
                "lastCommittedOpTime": (time()), "readConcernMajorityOpTime": (time()),
                "appliedOpTime": (time()), "durableOpTime": (time()),
            },
            "members": [member],
        }
    }
}
