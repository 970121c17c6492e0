//! `saslStart` and `saslContinue`: logins with SCRAM. `authenticate`: logins of other mechanisms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_document::{DocumentBuf, Type, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::access::sasl::{self, SaslStart};
use crate::access::x509::{self, CertificateLogin, MONGODB_X509};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
use crate::context::Context;
use crate::errors::refuse;
use crate::tls::Tls;

pub const SASL_START: Command = Command {
    name: "saslStart",
    help: "starts a login",
    routing: Routing::Here,
    needs: Needs::Nothing,
    in_api_version_1: true,
    secrets: &["payload"],
    arguments: AcceptedArguments::Only(&["autoAuthorize", "mechanism", "options", "payload"]),
    in_transactions: InTransactions::Following,
    run: start,
    ..Command::EMPTY
};

pub const SASL_CONTINUE: Command = Command {
    name: "saslContinue",
    help: "continues a login",
    routing: Routing::Here,
    needs: Needs::Nothing,
    in_api_version_1: true,
    secrets: &["payload"],
    arguments: AcceptedArguments::Only(&["conversationId", "payload"]),
    in_transactions: InTransactions::Following,
    run: proceed,
    ..Command::EMPTY
};

pub const AUTHENTICATE: Command = Command {
    name: "authenticate",
    help: "logs a client in with the certificate of its connection",
    routing: Routing::Here,
    needs: Needs::Nothing,
    in_api_version_1: true,
    secrets: &["key", "nonce"],
    arguments: AcceptedArguments::Only(&["key", "mechanism", "nonce", "user"]),
    run: authenticate,
    ..Command::EMPTY
};

/// The arguments of a start, in the command or within `hello`.
pub struct StartArguments<'a> {
    pub mechanism: &'a str,
    pub payload: Vec<u8>,
    pub skips_empty_exchange: bool,
}

impl<'a> StartArguments<'a> {
    pub fn parse(arguments: &Arguments<'a>) -> Result<StartArguments<'a>, CommandError> {
        let mechanism = arguments.string("mechanism")?;
        let options = arguments.document("options")?;
        let skips = options.and_then(|options| options.get("skipEmptyExchange"));
        Ok(StartArguments {
            mechanism: mechanism.ok_or_else(|| arguments.missing("mechanism"))?,
            payload: parse_payload(arguments)?,
            skips_empty_exchange: skips.is_some_and(ValueRef::is_truthy),
        })
    }
}

/// Parses the payload: bytes, or a string in base64.
fn parse_payload(arguments: &Arguments<'_>) -> Result<Vec<u8>, CommandError> {
    match arguments.get("payload") {
        Some(ValueRef::Binary { bytes, .. }) => Ok(bytes.to_vec()),
        Some(ValueRef::String(text)) => STANDARD.decode(text).map_err(|_| {
            let message = "the payload is not base64";
            CommandError::new(ErrorCode::FailedToParse, message)
        }),
        Some(other) => {
            let expected = [Type::Binary, Type::String];
            Err(arguments.wrong_type("payload", other.type_of(), &expected))
        }
        None => Err(arguments.missing("payload")),
    }
}

fn start(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let parsed = StartArguments::parse(&arguments)?;
    let message = SaslStart {
        database: request.database(),
        mechanism: parsed.mechanism,
        payload: &parsed.payload,
        skips_empty_exchange: parsed.skips_empty_exchange,
        is_speculative: false,
    };
    let reply = sasl::start(context.state, context.client, &message)?;
    Ok(Reply::ok(reply.to_document()))
}

fn proceed(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let id = arguments.whole_number("conversationId")?;
    let id = id.ok_or_else(|| arguments.missing("conversationId"))?;
    let payload = parse_payload(&arguments)?;
    let reply = sasl::proceed(context.state, context.client, id, &payload)?;
    Ok(Reply::ok(reply.to_document()))
}

fn authenticate(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let database = request.database();
    let reply = log_in_by_certificate(&arguments, database, context, false)?;
    Ok(Reply::ok(reply))
}

/// Runs the arguments of `authenticate`, in the command or within `hello`. Returns the reply.
pub fn log_in_by_certificate(
    arguments: &Arguments<'_>,
    database: &str,
    context: &Context<'_>,
    is_speculative: bool,
) -> Result<DocumentBuf, CommandError> {
    let mechanism = arguments.string("mechanism")?.unwrap_or("MONGODB-CR");
    let Context { state, client, .. } = context;
    // Without certificates of clients the mechanism is not enabled.
    let is_enabled = state.tls.as_ref().is_some_and(Tls::has_authority);
    if mechanism != MONGODB_X509 || !is_enabled {
        let message =
            format!("Received authentication for mechanism {mechanism} which is not enabled");
        return refuse(ErrorCode::MechanismUnavailable, message);
    }
    let login = CertificateLogin {
        database,
        user: arguments.string("user")?,
        is_speculative,
    };
    let user = x509::log_in(state, client, &login)?;
    Ok(doc! { "dbname": (user.database), "user": (user.user) })
}
