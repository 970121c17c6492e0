//! Chooses the server that should be the primary of a data set, so that the primaries are spread.
//!
//! The addresses of the servers that answer are sorted. The primary of the first set should be the
//! first of them, that of the second set the second, and so on, in a circle. A follower takes over
//! the later, the farther it is from that server. A primary hands its set over to that server once
//! the server has answered for a while and has followed the log to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windrow_client::ClientError;
use windrow_collection::ClusterTime;
use windrow_document::{DocumentBuf, Value, ValueRef, doc};

use super::members::Members;
use super::message::FORWARDED;
use super::peers::{CheckWait, Peers};
use crate::placement::{DataSetId, Placement};
use crate::state::State;
use crate::stop::Stop;
use crate::sync::lock;

/// The interval at which the other servers are asked for their state.
const INTERVAL: Duration = Duration::from_millis(500);

/// A server that has not answered for this time is not counted.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// A server that should be the primary gets a data set after it has answered for this time.
const TRIAL: Duration = Duration::from_secs(5);

/// The greatest lag, in seconds, of a server that gets a data set.
const LAG_MAX: u32 = 2;

/// The replies of the other servers.
#[derive(Default)]
pub struct Answers {
    servers: Mutex<BTreeMap<String, PeerReply>>,
}

/// The replies of a server.
#[derive(Clone, Debug)]
struct PeerReply {
    /// The time since which it has replied to every request.
    since: Instant,
    last: Instant,
    /// For each data set that it follows, the time of the newest change that it has.
    follows: BTreeMap<String, ClusterTime>,
}

/// The data from which the servers decide on the primary of a data set.
#[derive(Clone)]
pub struct Handover {
    pub(super) address: String,
    pub(super) set: DataSetId,
    pub(super) placement: Arc<Placement>,
    pub(super) answers: Arc<Answers>,
}

impl Handover {
    /// Returns the number of other servers that take precedence over this one as the primary.
    pub fn rank(&self) -> u32 {
        let own = |it: &String| *it == self.address;
        let rank = self.order().iter().position(own).unwrap_or(0);
        u32::try_from(rank).unwrap_or(u32::MAX)
    }

    /// Returns `true` if this server is the primary, and another one should be, and can.
    pub fn is_due(&self, own: ClusterTime) -> bool {
        let order = self.order();
        let Some(preferred) = order.first().filter(|it| **it != self.address) else {
            return false;
        };
        let servers = lock(&self.answers.servers);
        let Some(answer) = servers.get(preferred) else {
            return false;
        };
        let applied = answer.follows.get(self.placement.name(self.set));
        let is_close =
            |applied: &ClusterTime| own.seconds().saturating_sub(applied.seconds()) <= LAG_MAX;
        answer.since.elapsed() >= TRIAL && applied.is_some_and(is_close)
    }

    /// Returns the addresses of the servers, the one that should be the primary first.
    fn order(&self) -> Vec<String> {
        let servers = lock(&self.answers.servers);
        let alive = servers
            .iter()
            .filter(|(_, it)| it.last.elapsed() < SILENCE_MAX);
        let mut order: BTreeSet<String> = alive.map(|(address, _)| address.clone()).collect();
        drop(servers);
        order.insert(self.address.clone());
        let mut order = Vec::from_iter(order);
        let first = self.set.0 % order.len().max(1);
        order.rotate_left(first);
        order
    }
}

impl Answers {
    /// Returns a server that follows the primary of a data set.
    pub fn follower(&self, set: &str) -> Option<String> {
        let servers = lock(&self.servers);
        let mut following = servers.iter().filter(|(_, answer)| {
            answer.last.elapsed() < SILENCE_MAX && answer.follows.contains_key(set)
        });
        following.next().map(|(address, _)| address.clone())
    }

    fn record(&self, address: &str, answer: Option<BTreeMap<String, ClusterTime>>) {
        let mut servers = lock(&self.servers);
        let Some(follows) = answer else {
            servers.remove(address);
            return;
        };
        let last = Instant::now();
        let since = servers.get(address).map_or(last, |before| before.since);
        let answer = PeerReply {
            since,
            last,
            follows,
        };
        servers.insert(address.to_owned(), answer);
    }
}

/// Asks the other servers for their state until the server stops.
pub fn run_questions(
    address: &str,
    members: &Members,
    peers: &Peers,
    answers: &Answers,
    stop: &Stop,
) {
    let mut before = BTreeSet::new();
    while !stop.wait(INTERVAL) {
        let shared = members.open().into_iter();
        let shared = shared.filter_map(|member| member.shared_state());
        let addresses = shared.flat_map(|shared| shared.members);
        let mut addresses: BTreeSet<String> = addresses.map(|member| member.address).collect();
        addresses.remove(address);
        for gone in before.difference(&addresses) {
            answers.record(gone, None);
        }
        for other in &addresses {
            answers.record(other, ask(peers, other).ok());
        }
        before = addresses;
    }
}

fn ask(peers: &Peers, address: &str) -> Result<BTreeMap<String, ClusterTime>, ClientError> {
    let deadline = Instant::now() + ANSWER_MAX;
    let check: CheckWait = Box::new(move || {
        if Instant::now() < deadline {
            Ok(())
        } else {
            Err("it does not answer".to_owned())
        }
    });
    let mut peer = peers.take(address, check)?;
    let mut question = doc! { "ping": 1, "$db": "admin" };
    question.push(FORWARDED, DocumentBuf::new());
    let reply = peer.client.run(question.as_document(), None)?;
    let follows = reply.get("follows").and_then(ValueRef::as_document);
    let follows = follows.into_iter().flat_map(|follows| follows.iter());
    let follows = follows.filter_map(|(set, time)| match time {
        ValueRef::Timestamp(time) => Some((set.to_owned(), ClusterTime(time.bits()))),
        _ => None,
    });
    let follows = follows.collect();
    peers.give(peer);
    Ok(follows)
}

/// Returns the answer to another server: for each data set that this one follows, the time of the
/// newest change.
pub fn answer(members: &Members) -> DocumentBuf {
    let mut follows = DocumentBuf::new();
    for member in members.open() {
        let engine = &member.services.engine;
        if let Some(set) = &member.data_set
            && engine.is_following()
        {
            let newest = time_of(&member);
            follows.push(set.name(), Value::Timestamp(newest));
        }
    }
    doc! { "follows": follows }
}

fn time_of(member: &State) -> windrow_document::Timestamp {
    windrow_document::Timestamp::from_bits(member.services.engine.newest_time().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handover(address: &str, set: usize, answers: &Arc<Answers>) -> Handover {
        Handover {
            address: address.to_owned(),
            set: DataSetId(set),
            placement: Arc::new(Placement::parse(&["x", "y", "z"]).unwrap()),
            answers: answers.clone(),
        }
    }

    #[test]
    fn sets_are_spread_in_a_circle() {
        let answers = Arc::new(Answers::default());
        let ranks = |address: &str| [0, 1, 2].map(|set| handover(address, set, &answers).rank());
        assert_eq!(ranks("b"), [0, 0, 0]);
        answers.record("a", Some(BTreeMap::new()));
        answers.record("c", Some(BTreeMap::new()));
        assert_eq!(ranks("b"), [1, 0, 2]);
        answers.record("a", None);
        assert_eq!(ranks("b"), [0, 1, 0]);
    }

    #[test]
    fn a_set_is_handed_over_to_a_server_that_is_close() {
        let answers = Arc::new(Answers::default());
        let time = |seconds| ClusterTime::new(seconds, 1);
        let of_b = handover("b", 0, &answers);
        let record = |follows: &[(&str, u32)], since: Duration| {
            let follows = follows
                .iter()
                .map(|(set, at)| ((*set).to_owned(), time(*at)));
            answers.record("a", Some(follows.collect()));
            let mut servers = lock(&answers.servers);
            servers.get_mut("a").unwrap().since = Instant::now() - since;
        };
        assert!(!of_b.is_due(time(100)));
        record(&[("x", 99)], TRIAL);
        assert!(of_b.is_due(time(100)));
        assert!(!handover("a", 0, &answers).is_due(time(100)));
        record(&[("x", 90)], TRIAL);
        assert!(!of_b.is_due(time(100)));
        record(&[("x", 99)], TRIAL / 2);
        assert!(!of_b.is_due(time(100)));
        record(&[("y", 99)], TRIAL);
        assert!(!of_b.is_due(time(100)));
    }
}
