//! `profile`: sets which operations of a database are stored in `system.profile`, and the threshold
//! of slow operations.

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::profiling::{DatabaseProfiling, ProfilingLevel, SlowThreshold};
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

/// A parsed `profile`. Settings that are `None` stay as they are.
struct ProfileRequest {
    /// `None` for an unknown level.
    level: Option<ProfilingLevel>,
    slow_ms: Option<i64>,
    sample_rate: Option<f64>,
    filter: FilterChange,
}

/// The change of the filter of the operations that are profiled.
enum FilterChange {
    Keep,
    Unset,
    Set(Filter),
}

impl ProfileRequest {
    fn parse(request: &Request) -> Result<ProfileRequest, CommandError> {
        let arguments = Arguments::new(request);
        let level = arguments.whole_number("profile")?;
        let level = level.ok_or_else(|| arguments.missing("profile"))?;
        Ok(ProfileRequest {
            level: ProfilingLevel::from_number(level),
            sample_rate: parse_sample_rate(&arguments)?,
            slow_ms: arguments.whole_number("slowms")?,
            filter: FilterChange::parse(arguments.get("filter"))?,
        })
    }
}

impl FilterChange {
    fn parse(value: Option<ValueRef<'_>>) -> Result<FilterChange, CommandError> {
        match value {
            None => Ok(FilterChange::Keep),
            Some(ValueRef::String("unset")) => Ok(FilterChange::Unset),
            Some(ValueRef::Document(filter)) => Filter::parse(filter)
                .map(FilterChange::Set)
                .or_command_error(),
            Some(other) => {
                let found = other.type_of().name();
                let message = format!(
                    "Expected an object, or the string 'unset' for filter, but found {found}"
                );
                Err(CommandError::new(ErrorCode::BadValue, message))
            }
        }
    }
}

/// Parses the share of slow operations that are profiled, between 0 and 1.
fn parse_sample_rate(arguments: &Arguments<'_>) -> Result<Option<f64>, CommandError> {
    let Some(value) = arguments.present("sampleRate") else {
        return Ok(None);
    };
    arguments.whole_number("sampleRate")?;
    match value.as_f64().filter(|rate| (0.0..=1.0).contains(rate)) {
        Some(rate) => Ok(Some(rate)),
        None => {
            let message = "'sampleRate' must be between 0.0 and 1.0 inclusive";
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
    }
}

/// Changes the settings of the profiler, and returns the old ones. An unknown level changes
/// nothing.
fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (state, name) = (context.state, request.database());
    let request = ProfileRequest::parse(request)?;
    let profiling = &state.profiling;
    let (database_before, slow_before) = (profiling.database(name), profiling.slow());
    if request
        .level
        .is_some_and(|level| level != ProfilingLevel::Off)
    {
        recorder::collection(state, name).or_command_error()?;
    }
    profiling.set_slow(SlowThreshold {
        millis: request.slow_ms.unwrap_or(slow_before.millis),
        sample_rate: request.sample_rate.unwrap_or(slow_before.sample_rate),
    });
    let database = DatabaseProfiling {
        level: request.level.unwrap_or(database_before.level),
        filter: match request.filter {
            FilterChange::Keep => database_before.filter.clone(),
            FilterChange::Unset => None,
            FilterChange::Set(filter) => Some(filter),
        },
    };
    profiling.set_database(name, database);
    Ok(Reply::ok(describe(&database_before, slow_before)))
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
