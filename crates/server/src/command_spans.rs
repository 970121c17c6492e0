//! The span of a command that has ended, with the names of OpenTelemetry's semantic conventions for
//! databases (<https://opentelemetry.io/docs/specs/semconv/database/mongodb/>). It has no values of
//! the statement.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::client::Client;
use crate::network_address::NetworkAddress;
use crate::recorder::EndedCommand;
use crate::state::State;
use crate::traces::{Span, SpanValue, TraceParent, Traces};

/// Passes the span of a command to the exporter, if commands are traced.
pub fn record_span(state: &State, command: &'static str, ended: &EndedCommand<'_>) {
    let Some(traces) = &state.services.traces else {
        return;
    };
    let comment = ended.operation.comment();
    let parent = comment.and_then(TraceParent::from_comment);
    // A driver that watches the server sends one after the other.
    let only_waits = parent.is_none() && ended.operation.is_requested_wait();
    if !only_waits && traces.samples(parent.as_ref()) {
        traces.push(span(traces, command, parent, ended));
    }
}

fn span(
    traces: &Traces,
    command: &'static str,
    parent: Option<TraceParent>,
    ended: &EndedCommand<'_>,
) -> Span {
    let operation = ended.operation;
    let namespace = operation.namespace();
    let (database, collection) = namespace.split_once('.').unwrap_or((&namespace, ""));
    let collection = Some(collection).filter(|name| !name.is_empty() && *name != "$cmd");
    let text = |text: &str| SpanValue::Text(text.to_owned());
    let mut attributes = vec![
        ("db.system.name", text("mongodb")),
        ("db.namespace", text(database)),
        ("db.operation.name", text(command)),
    ];
    if let Some(collection) = collection {
        attributes.push(("db.collection.name", text(collection)));
    }
    push_address(&mut attributes, ended.client);
    if let Some(application) = ended.client.application() {
        attributes.push(("windrow.client.application", text(application)));
    }
    if let Some(plan) = operation.plan_summary() {
        attributes.push(("windrow.plan_summary", SpanValue::Text(plan)));
    }
    if let Err(error) = ended.outcome {
        attributes.push(("error.type", text(&error.code.name())));
        let code = error.code.number().to_string();
        attributes.push(("db.response.status_code", SpanValue::Text(code)));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let took = operation.started.elapsed().as_nanos();
    let new_trace = || u128::from(traces.next_random()) << 64 | u128::from(traces.next_random());
    Span {
        trace_id: parent.map_or_else(new_trace, |parent| parent.trace_id),
        span_id: traces.next_random(),
        parent_id: parent.map(|parent| parent.span_id),
        name: match collection {
            Some(collection) => format!("{command} {collection}"),
            None => format!("{command} {database}"),
        },
        started_nanos: now.saturating_sub(took),
        ended_nanos: now,
        attributes,
        is_failed: ended.outcome.is_err(),
    }
}

fn push_address(attributes: &mut Vec<(&'static str, SpanValue)>, client: &Client) {
    let ends = [
        ("server.address", "server.port", &client.server_address),
        ("client.address", "client.port", &client.address),
    ];
    for (name, port_name, address) in ends {
        let host = match address {
            NetworkAddress::Ip(address) => address.ip().to_string(),
            NetworkAddress::Unix(path) => path.display().to_string(),
        };
        attributes.push((name, SpanValue::Text(host)));
        if let Some(port) = address.port() {
            attributes.push((port_name, SpanValue::Number(i64::from(port))));
        }
    }
}
