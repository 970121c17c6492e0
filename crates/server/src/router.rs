//! Several data sets over one set of servers. Every server has a replica of each set, and is the
//! primary of some. It accepts every command, and runs it on a server that has the data set of its
//! database.
//!
//! Clients see each server as a router of MongoDB (`mongos`). The state that they connect to has no
//! data: it has the connections, logins, operations and settings. A data set has a [`State`] of its
//! own, with an engine, cursors, sessions and transactions.
//!
//! 1. [`route`] finds the data set of a request by the databases that it names.
//! 2. [`forwarding`] runs it by `dispatch` on the state of this server, or sends it to another one.
//!    [`joined_replies`] runs it in all sets.
//! 3. The other server finds the client in the [`message`]. It checks what the client's user may
//!    do. The server that passes the command on has no rights.
//!
//! [`members`] are the states of the data sets, [`peers`] the connections to other servers.
//! [`cursors`] and [`transactions`] remember where those of clients are, for as long as they are
//! used ([`recent_table`]). [`handover`] spreads the primaries.

mod cursors;
mod forwarding;
/// Returns the data from which the servers decide on the primary of a data set.
mod handover;
mod joined_replies;
mod members;
mod message;
mod peers;
mod recent_table;
mod route;
mod transactions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_collection::Position;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Authority;
use crate::access::directory::AccessControl;
use crate::access::identification::authority_of;
use crate::client::Client;
use crate::command::{Command, Routing};
use crate::commands::find;
use crate::dispatch;
use crate::placement::{DataSetId, Placement};
use crate::state::{Route, State};
use crate::stop::Stop;
use crate::users_engine::FirstEngine;
use cursors::RemoteCursors;
pub use handover::Handover;
use handover::{Answers, answer, run_questions};
use members::Members;
use message::{FORWARDED, ForwardedHeader};
pub use peers::EncryptStream;
use peers::Peers;
use route::{RECOVERY_SET, Target};
use transactions::TransactionSets;

/// The settings of a [`Router`].
pub struct RouterSettings {
    /// The data sets.
    pub placement: Placement,
    /// The address of this server for the others.
    pub address: String,
    /// The key with which the servers log in at each other. `None` without logins.
    pub key: Option<String>,
    /// Begins TLS to another server. `None` without TLS.
    pub encrypt: Option<EncryptStream>,
    /// The engine of the first data set.
    pub first: Arc<FirstEngine>,
}

/// Finds the data set of each request.
pub struct Router {
    placement: Arc<Placement>,
    address: String,
    members: Members,
    peers: Peers,
    answers: Arc<Answers>,
    cursors: RemoteCursors,
    transactions: TransactionSets,
    first: Arc<FirstEngine>,
}

/// A request of a client, on its way to a data set.
struct Call<'a> {
    /// The state that the client is connected to.
    front: &'a State,
    client: &'a Arc<Client>,
    request: &'a Request,
    command: &'static Command,
    authority: &'a Authority,
}

impl Router {
    /// Creates a router without open data sets.
    pub fn new(settings: RouterSettings) -> Router {
        let RouterSettings {
            placement,
            address,
            key,
            encrypt,
            first,
        } = settings;
        Router {
            members: Members::new(placement.count()),
            placement: Arc::new(placement),
            address,
            peers: Peers::new(key, encrypt),
            answers: Arc::default(),
            cursors: RemoteCursors::default(),
            transactions: TransactionSets::default(),
            first,
        }
    }

    /// Returns the placement: the data set of each database.
    pub fn placement(&self) -> &Arc<Placement> {
        &self.placement
    }

    /// What decides on the primary of a data set.
    pub fn handover(&self, set: DataSetId) -> Handover {
        Handover {
            address: self.address.clone(),
            set,
            placement: self.placement.clone(),
            answers: self.answers.clone(),
        }
    }

    /// Opens a data set for requests, or closes it.
    pub(crate) fn set_member(&self, set: DataSetId, state: Option<Arc<State>>) {
        if set == DataSetId::FIRST {
            let engine = state.as_ref().map(|state| state.services.engine.clone());
            self.first.set(engine);
        }
        self.members.set(set, state);
    }

    fn member(&self, set: DataSetId) -> Option<Arc<State>> {
        self.members.get(set)
    }

    /// Returns a server that follows the primary of a data set.
    fn follower(&self, set: DataSetId) -> Option<String> {
        self.answers.follower(self.placement.name(set))
    }

    /// Asks the other servers for their state until the server stops.
    pub(crate) fn run_questions(&self, stop: &Stop) {
        run_questions(
            &self.address,
            &self.members,
            &self.peers,
            &self.answers,
            stop,
        );
    }

    fn run_request(
        &self,
        front: &State,
        client: &Arc<Client>,
        request: &Request,
    ) -> Result<Reply, CommandError> {
        let local = || dispatch::run(front, client, request);
        let Some(command) = find(request.command()) else {
            return Ok(local());
        };
        if command.routing == Routing::Here {
            return Ok(local());
        }
        let authority = authority_of(front, client)?;
        if matches!(authority, Authority::Nobody) || front.stop.is_requested() {
            // It is refused.
            return Ok(local());
        }
        let call = Call {
            front,
            client,
            request,
            command,
            authority: &authority,
        };
        let target = route::target(&call, &self.placement, &self.transactions);
        Ok(match target {
            Ok(Target::Here) => local(),
            Ok(Target::Each(join)) => self.run_in_each(&call, join),
            Ok(Target::Set(set, servers)) => {
                let reply = self.forward(&call, set, servers);
                if request.get("autocommit").is_some() {
                    let token = doc! { RECOVERY_SET: (self.placement.name(set)) };
                    let token = doc! { "recoveryToken": token };
                    reply.with_fields(token.as_document())
                } else {
                    reply
                }
            }
            Err(error) => self.error(&call, error),
        })
    }

    /// Runs a command that another server has passed on.
    fn serve(
        &self,
        front: &State,
        client: &Arc<Client>,
        request: &Request,
        forwarded: &DocumentBuf,
    ) -> Result<Reply, CommandError> {
        let Some(forwarded) = ForwardedHeader::parse(forwarded.as_document())? else {
            return Ok(Reply::ok(answer(&self.members)));
        };
        let recovering = |message: &str| {
            let code = ErrorCode::NotPrimaryOrSecondary;
            Err(CommandError::new(code, message))
        };
        let Some(set) = self.placement.find(&forwarded.set) else {
            let set = &forwarded.set;
            let message = format!("this server has no data set {set}");
            return Err(CommandError::new(ErrorCode::IllegalOperation, message));
        };
        if front.stop.is_requested() {
            return recovering("the server is shutting down");
        }
        if !self.wait_for_users(front, forwarded.after)? {
            return recovering("the server has not followed the changes of users yet");
        }
        let Some(member) = self.member(set) else {
            return recovering("the data set is opened again");
        };
        client.set_principal(Some(forwarded.principal));
        let reply = dispatch::run(&member, client, request);
        client.set_principal(None);
        Ok(reply)
    }

    /// Waits until this server knows the changes of users that another one knows. Returns `false`
    /// if it does not in time.
    fn wait_for_users(&self, front: &State, after: Position) -> Result<bool, CommandError> {
        let deadline = Instant::now() + FOLLOW_MAX;
        while front.users_engine()?.written() < after {
            if Instant::now() >= deadline || front.stop.wait(Duration::from_millis(5)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The longest wait of a command for changes of users that another server has.
const FOLLOW_MAX: Duration = Duration::from_secs(5);

impl Route for Router {
    fn run(&self, front: &State, client: &Arc<Client>, request: &mut Request) -> Reply {
        let is_trusted = client.is_peer() || front.config.access_control == AccessControl::Never;
        let forwarded = is_trusted.then(|| request.take_last(FORWARDED)).flatten();
        let outcome = match forwarded {
            Some(forwarded) => self.serve(front, client, request, &forwarded),
            None => self.run_request(front, client, request),
        };
        outcome.unwrap_or_else(|error| Reply::from(&error))
    }

    fn members(&self) -> Vec<Arc<State>> {
        self.members.open()
    }

    fn describe(&self) -> Vec<(DocumentBuf, Option<Arc<State>>)> {
        let sets = self.placement.ids().map(|set| {
            let mut described = doc! { "name": (self.placement.name(set)) };
            let Some(member) = self.member(set) else {
                described.push("state", "opening");
                return (described, None);
            };
            let is_writable = member.is_writable();
            let state = if is_writable { "primary" } else { "secondary" };
            described.push("state", state);
            let shared = member.shared_state().unwrap_or_default();
            let primary = if is_writable {
                self.address.clone()
            } else {
                shared.primary
            };
            described.push("primary", primary);
            described.push("takeovers", shared.epoch as i64);
            (described, Some(member))
        });
        sets.collect()
    }
}
