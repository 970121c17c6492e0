//! `replSetStepDown`: the primary of a database in an object store lets another server take over.

use std::time::Duration;

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const REPL_SET_STEP_DOWN: Command = Command {
    name: "replSetStepDown",
    help: "makes the primary of a replica set step down",
    routing: Routing::Refused,
    needs: Needs::OnServer(&[Action::replSetStateChange]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&["force", "secondaryCatchUpPeriodSecs"]),
    run,
    ..Command::EMPTY
};

/// The default time for which the server does not become the primary again.
const PERIOD_SECONDS: u64 = 60;
const CATCH_UP_SECONDS: u64 = 10;

struct StepDownRequest {
    /// The server does not become the primary again for this time.
    period: Duration,
    /// Steps down even if no other server can take over.
    force: bool,
}

impl StepDownRequest {
    fn parse(request: &Request) -> Result<StepDownRequest, CommandError> {
        let arguments = Arguments::new(request);
        let force = arguments.flag("force")?;
        let catch_up = arguments.count("secondaryCatchUpPeriodSecs")?;
        let seconds = match request.get("replSetStepDown").and_then(ValueRef::as_whole) {
            Some(seconds) if seconds > 1 => seconds as u64,
            Some(seconds) if seconds < 0 => {
                let message = "stepdown period must be a non-negative integer";
                return Err(CommandError::new(ErrorCode::BadValue, message));
            }
            // The helpers of some shells send 1 or true.
            _ => PERIOD_SECONDS,
        };
        let catch_up = catch_up.unwrap_or(CATCH_UP_SECONDS.min(seconds));
        if !force && seconds < catch_up {
            let message = "stepdown period must be longer than secondaryCatchUpPeriodSecs";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Ok(StepDownRequest {
            period: Duration::from_secs(seconds),
            force,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let Some(member) = &context.state.replica_set else {
        let message = "not running with --replSet";
        return Err(CommandError::new(ErrorCode::NoReplicationEnabled, message));
    };
    let parsed = StepDownRequest::parse(request)?;
    let shared = context.state.shared_state();
    if shared.as_ref().is_some_and(|shared| shared.is_following) {
        let message = "not primary so can't step down";
        return Err(CommandError::new(ErrorCode::NotWritablePrimary, message));
    }
    let others = shared.iter().flat_map(|shared| &shared.members);
    let is_alone = others.filter(|it| it.address != member.me).count() == 0;
    // Without an object store, no server could take over, even with `force`.
    if shared.is_none() || (is_alone && !parsed.force) {
        let message = format!(
            "No electable secondaries caught up: {} is the only member of its set",
            member.me
        );
        return Err(CommandError::new(ErrorCode::ExceededTimeLimit, message));
    }
    let attr = doc! { "seconds": (parsed.period.as_secs() as i64) };
    let message = "Stepping down on request; another server can take over";
    let log = &context.state.services.log;
    log.info("REPL", 21_581, &context.client.name(), message, attr);
    context.state.stop.request_step_down(parsed.period);
    Ok(Reply::ok(DocumentBuf::new()))
}
