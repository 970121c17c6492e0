//! `hello`, formerly `isMaster`: the properties of a server that a client needs.
//!
//! A client that monitors the server sends the `topologyVersion` that it knows, and waits up to
//! `maxAwaitTimeMS` for a newer one. The version changes only when the server restarts, so the wait
//! ends early only when the server stops. The client then learns this immediately.

use std::time::{Duration, Instant, SystemTime};

use windrow_access::{EXTERNAL, UserName};
use windrow_document::{Array, Document, DocumentBuf, ObjectId, Type, ValueRef, doc};
use windrow_wire::limits::{DOCUMENT_BYTES_MAX, MESSAGE_BYTES_MAX, WRITE_BATCH_COUNT_MAX};
use windrow_wire::{CommandError, Compressor, ErrorCode, Reply, Request};

use super::sasl::{StartArguments, log_in_by_certificate};
use crate::access::Needs;
use crate::access::sasl::{self, SaslStart};
use crate::arguments::Arguments;
use crate::audit::address;
use crate::client::FORWARDED_BYTES_MAX;
use crate::clock;
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
use crate::context::Context;
use crate::parameters::QUIET;
use crate::sessions::TIMEOUT_MINUTES;
use crate::version::windrow;

pub const HELLO: Command = Command {
    name: "hello",
    help: "returns the properties of the server that clients need",
    routing: Routing::Here,
    needs: Needs::Nothing,
    secrets: &["speculativeAuthenticate"],
    in_api_version_1: true,
    arguments: AcceptedArguments::Any,
    in_transactions: InTransactions::Following,
    run: |request, context| run(request, context, "isWritablePrimary"),
    ..Command::EMPTY
};

pub const IS_MASTER: Command = Command {
    name: "isMaster",
    aliases: &["ismaster"],
    help: "the older form of hello",
    routing: Routing::Here,
    needs: Needs::Nothing,
    secrets: &["speculativeAuthenticate"],
    arguments: AcceptedArguments::Any,
    run: |request, context| run(request, context, "ismaster"),
    ..Command::EMPTY
};

/// The maximum wire version, that of MongoDB 8.0.
const WIRE_VERSION_MAX: i32 = 25;

/// A parsed `hello`.
struct HelloRequest<'a> {
    /// The metadata of the client.
    client: Option<Document<'a>>,
    hello_ok: bool,
    /// The compressors that the client offers.
    compression: Option<Array<'a>>,
    /// The user whose mechanisms the client requests.
    mechanisms_of: Option<UserName>,
    /// The first message of a login.
    login: Option<Document<'a>>,
    wait: Option<Wait>,
}

/// The wait of a client that monitors the server.
struct Wait {
    /// The process id in the topology version that the client knows.
    known: ObjectId,
    /// The counter in it.
    counter: i64,
    limit: Duration,
}

impl<'a> HelloRequest<'a> {
    fn parse(request: &'a Request) -> Result<HelloRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let client = arguments.document("client")?;
        Ok(HelloRequest {
            client,
            wait: Wait::parse(request, &arguments)?,
            hello_ok: arguments.flag("helloOk")?,
            compression: arguments.array("compression")?,
            mechanisms_of: parse_user(&arguments)?,
            login: arguments.document("speculativeAuthenticate")?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>, primary: &str) -> Result<Reply, CommandError> {
    let hello = HelloRequest::parse(request)?;
    if let Some(metadata) = hello.client {
        take_metadata(metadata, context)?;
    }
    if let Some(wait) = &hello.wait {
        wait_for_change(wait, context)?;
    }
    let mut reply = describe(context, primary);
    if hello.hello_ok {
        reply.push("helloOk", true);
    }
    if let Some(offered) = hello.compression {
        let agreed = offered
            .iter()
            .filter_map(|name| Compressor::from_name(name.as_str()?));
        let agreed: Vec<&str> = agreed.map(Compressor::name).collect();
        reply.push("compression", agreed);
    }
    if let Some(user) = &hello.mechanisms_of
        && let Some(mechanisms) = sasl::supported_mechanisms(context.state, user)
    {
        reply.push("saslSupportedMechs", mechanisms);
    }
    if let Some(started) = hello.login.and_then(|login| start_login(login, context)) {
        reply.push("speculativeAuthenticate", started);
    }
    reply.push("windrow", windrow());
    let reply = Reply::ok(reply);
    Ok(if hello.wait.is_some() && request.exhaust_allowed() {
        reply.with_more_to_come()
    } else {
        reply
    })
}

/// Parses the user whose authentication mechanisms the client requests, "database.user" or {user,
/// db}.
fn parse_user(arguments: &Arguments<'_>) -> Result<Option<UserName>, CommandError> {
    let name = "saslSupportedMechs";
    let user = match arguments.get(name) {
        None => return Ok(None),
        Some(ValueRef::String(text)) => {
            let parts = text.split_once('.');
            parts.map(|(database, user)| UserName::new(user, database))
        }
        Some(ValueRef::Document(user)) => {
            let part = |name: &str| user.get(name).and_then(ValueRef::as_str);
            let parts = part("user").zip(part("db"));
            parts.map(|(user, database)| UserName::new(user, database))
        }
        Some(other) => {
            return Err(arguments.wrong_type(name, other.type_of(), &[Type::String]));
        }
    };
    let message = "UserName must contain a '.' separated database.user pair";
    user.map(Some)
        .ok_or_else(|| CommandError::new(ErrorCode::BadValue, message))
}

/// Starts a login. If that fails there is no reply to it, and the client starts it again with
/// `saslStart`, which then fails with the reason.
fn start_login(login: Document<'_>, context: &Context<'_>) -> Option<DocumentBuf> {
    let arguments = Arguments::within("speculativeAuthenticate", login);
    if login.contains("authenticate") {
        let database = arguments.string("db").ok()?.unwrap_or(EXTERNAL);
        return log_in_by_certificate(&arguments, database, context, true).ok();
    }
    if !login.contains("saslStart") {
        return None;
    }
    let parsed = StartArguments::parse(&arguments).ok()?;
    let message = SaslStart {
        database: arguments.string("db").ok()?.unwrap_or("admin"),
        mechanism: parsed.mechanism,
        payload: &parsed.payload,
        skips_empty_exchange: parsed.skips_empty_exchange,
        is_speculative: true,
    };
    let reply = sasl::start(context.state, context.client, &message).ok()?;
    Some(reply.to_document())
}

fn describe(context: &Context<'_>, primary: &str) -> DocumentBuf {
    // Before the rest: a client that knows this version is told of all changes since.
    let version = context.state.topology_version();
    let mut reply = DocumentBuf::new();
    reply.push(primary, context.state.is_writable());
    if context.state.router.is_some() {
        // Drivers take a server with this text for a router of MongoDB.
        reply.push("msg", "isdbgrid");
    }
    reply.push("topologyVersion", version);
    reply.push("maxBsonObjectSize", DOCUMENT_BYTES_MAX as i32);
    let message_bytes_max = match context.state.router {
        Some(_) => MESSAGE_BYTES_MAX - FORWARDED_BYTES_MAX,
        None => MESSAGE_BYTES_MAX,
    };
    reply.push("maxMessageSizeBytes", message_bytes_max as i32);
    reply.push("maxWriteBatchSize", WRITE_BATCH_COUNT_MAX as i32);
    reply.push("localTime", clock::date(SystemTime::now()));
    reply.push("logicalSessionTimeoutMinutes", TIMEOUT_MINUTES);
    reply.push("connectionId", context.client.id);
    reply.push("minWireVersion", 0);
    reply.push("maxWireVersion", WIRE_VERSION_MAX);
    reply.push("readOnly", false);
    if let Some(member) = &context.state.replica_set {
        let engine = &context.state.services.engine;
        let shared = context.state.shared_state();
        member.describe(engine.newest_time(), shared, &mut reply);
    }
    reply
}

fn take_metadata(metadata: Document<'_>, context: &Context<'_>) -> Result<(), CommandError> {
    context.client.set_metadata(metadata)?;
    context.audit("clientMetadata", || {
        doc! {
            "localEndpoint": (address(&context.client.server_address)),
            "clientMetadata": metadata,
        }
    });
    let (client, log) = (context.client, &context.state.services.log);
    let attr = doc! {
        "remote": (client.address.to_string()), "client": (client.name()), "doc": metadata,
    };
    if !context.state.parameters.flag(QUIET) {
        log.info("NETWORK", 51_800, &client.name(), "client metadata", attr);
    }
    Ok(())
}

impl Wait {
    /// Parses `topologyVersion` and `maxAwaitTimeMS`. `None` if the client does not wait.
    fn parse(request: &Request, arguments: &Arguments<'_>) -> Result<Option<Wait>, CommandError> {
        let known = arguments.document("topologyVersion")?;
        let limit = arguments.count("maxAwaitTimeMS")?;
        match (known, limit) {
            (Some(known), Some(limit)) => Ok(Some(Wait {
                known: parse_process_id(known)?,
                counter: known
                    .get("counter")
                    .and_then(ValueRef::as_whole)
                    .unwrap_or(0),
                limit: Duration::from_millis(limit),
            })),
            (None, None) if request.exhaust_allowed() => {
                let message =
                    "An isMaster or hello request with exhaust must specify 'maxAwaitTimeMS'";
                Err(CommandError::new(ErrorCode(51_756), message))
            }
            (None, None) => Ok(None),
            _ => {
                let message = "A request must include both of 'topologyVersion' and \
                               'maxAwaitTimeMS', or neither";
                Err(CommandError::new(ErrorCode(31_368), message))
            }
        }
    }
}

/// The least time that a client waits for a reply after the first of several, in milliseconds.
const NEXT_WAIT_MS_MIN: i64 = 10;

/// Returns the request that the next reply answers, if a client has asked for several: it knows the
/// topology version of the reply before.
pub fn next_of_exhaust(request: &Request, reply: &Reply) -> Result<Request, CommandError> {
    let reply = reply.to_document();
    let mut body = DocumentBuf::new();
    for (name, value) in request.body() {
        match (name, reply.get("topologyVersion"), value.as_whole()) {
            ("topologyVersion", Some(known), _) => body.push(name, known),
            ("maxAwaitTimeMS", _, Some(limit)) => body.push(name, limit.max(NEXT_WAIT_MS_MIN)),
            _ => body.push(name, value),
        }
    }
    request.with_body(body)
}

/// Waits if the client knows the current topology version. Fails if the server stops.
fn wait_for_change(wait: &Wait, context: &Context<'_>) -> Result<(), CommandError> {
    if wait.known != context.state.process_id {
        return Ok(());
    }
    context.operation.mark_as_requested_wait();
    let began = Instant::now();
    let deadline = began + wait.limit.min(AWAIT_MAX);
    let is_shared = context.state.services.engine.is_shared();
    let stops = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let step = if is_shared {
            left.min(ROLE_INTERVAL)
        } else {
            left
        };
        if context.state.stop.wait(step) {
            break true;
        }
        if left.is_zero() || context.state.topology_counter() != wait.counter {
            break false;
        }
    };
    context.operation.record_wait(began.elapsed());
    if stops {
        let message = "The server is in quiesce mode and will shut down";
        return Err(CommandError::new(ErrorCode::ShutdownInProgress, message));
    }
    Ok(())
}

/// How often a waiting command looks if the server has become the primary.
const ROLE_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time to wait. To wait longer, a client sends another request.
const AWAIT_MAX: Duration = Duration::from_secs(3600);

fn parse_process_id(known: Document<'_>) -> Result<ObjectId, CommandError> {
    let arguments = Arguments::within("topologyVersion", known);
    match arguments.get("processId") {
        Some(ValueRef::ObjectId(id)) => Ok(id),
        Some(other) => {
            let expected = [windrow_document::Type::ObjectId];
            Err(arguments.wrong_type("processId", other.type_of(), &expected))
        }
        None => Err(arguments.missing("processId")),
    }
}
