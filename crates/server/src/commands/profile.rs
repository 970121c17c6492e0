//! `profile`: sets which operations of a database are stored in `system.profile`, and the threshold
//! of slow operations.

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::profiling::{DatabaseProfiling, ProfilingLevel, SlowThreshold, parse_filter};
use crate::recorder;

pub const PROFILE: Command = Command {
    name: "profile",
    help: "returns and sets the profiling level of a database: 0 none, 1 slow operations, 2 all",
    needs: Needs::Computed(requirement),
    arguments: AcceptedArguments::Only(&["filter", "sampleRate", "slowms"]),
    run,
    ..Command::EMPTY
};

/// Returns the requirement: a user that may read the profile may also read the settings.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let change = request.on_database(&[Action::enableProfiler]);
    let level = request.first().and_then(ValueRef::as_f64);
    let sets = ["filter", "sampleRate", "slowms"];
    if level == Some(-1.0) && !sets.iter().any(|name| request.body.contains(name)) {
        return change.or(request.on_named(recorder::PROFILE, &[Action::find]));
    }
    change
}

/// Changes the settings of the profiler, and returns the old ones. An unknown level changes
/// nothing.
fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let level = arguments.whole_number("profile")?;
    let level = ProfilingLevel::from_number(level.ok_or_else(|| arguments.missing("profile"))?);
    let (state, name) = (context.state, request.database());
    let profiling = &state.profiling;
    let (was, slow_was) = (profiling.database(name), profiling.slow());
    let slow = read_slow(&arguments, slow_was)?;
    let now = DatabaseProfiling {
        level: level.unwrap_or(was.level),
        filter: match arguments.get("filter") {
            None => was.filter.clone(),
            Some(ValueRef::String("unset")) => None,
            Some(ValueRef::Document(filter)) => Some(parse_filter(filter).or_command_error()?),
            Some(other) => {
                let found = other.type_of().name();
                let message = format!(
                    "Expected an object, or the string 'unset' for filter, but found {found}"
                );
                return Err(CommandError::new(ErrorCode::BadValue, message));
            }
        },
    };
    if level.is_some_and(|level| level != ProfilingLevel::Off) {
        recorder::collection(state, name).or_command_error()?;
    }
    profiling.set_slow(slow);
    profiling.set_database(name, now);
    Ok(Reply::ok(describe(&was, slow_was)))
}

fn read_slow(arguments: &Arguments<'_>, was: SlowThreshold) -> Result<SlowThreshold, CommandError> {
    let rate = match arguments.present("sampleRate") {
        None => was.sample_rate,
        Some(value) => {
            arguments.whole_number("sampleRate")?;
            let rate = value.as_f64().filter(|rate| (0.0..=1.0).contains(rate));
            rate.ok_or_else(|| {
                let message = "'sampleRate' must be between 0.0 and 1.0 inclusive";
                CommandError::new(ErrorCode::BadValue, message)
            })?
        }
    };
    Ok(SlowThreshold {
        millis: arguments.whole_number("slowms")?.unwrap_or(was.millis),
        sample_rate: rate,
    })
}

fn describe(database: &DatabaseProfiling, slow: SlowThreshold) -> DocumentBuf {
    let mut reply = doc! { "was": (database.level.number()) };
    match i32::try_from(slow.millis) {
        Ok(millis) => reply.push("slowms", millis),
        Err(_) => reply.push("slowms", slow.millis),
    }
    reply.push("sampleRate", slow.sample_rate);
    if let Some(filter) = &database.filter {
        reply.push("filter", filter.to_document());
        let note = "When a filter expression is set, slowms and sampleRate are not used for \
                    profiling and slow-query log lines.";
        reply.push("note", note);
    }
    reply
}
