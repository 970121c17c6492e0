//! `connPoolStats`: the outgoing connections of the server. There are none.

use windrow_access::Action;
use windrow_document::{DocumentBuf, Type, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const CONN_POOL_STATS: Command = Command {
    name: "connPoolStats",
    help: "counts the outgoing connections of the server",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::connPoolStats]),
    run: stats,
    ..Command::EMPTY
};

pub const DROP_CONNECTIONS: Command = Command {
    name: "dropConnections",
    help: "closes the outgoing connections of the server",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::dropConnections]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&["hostAndPort"]),
    run: drop_connections,
    ..Command::EMPTY
};

fn stats(_: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    Ok(Reply::ok(doc! {
        "numClientConnections": 0,
        "numAScopedConnections": 0,
        "totalInUse": 0,
        "totalAvailable": 0,
        "totalLeased": 0,
        "totalCreated": 0,
        "totalRefreshing": 0,
        "totalRefreshed": 0,
        "totalWasNeverUsed": 0,
        "pools": {},
        "hosts": {},
        "replicaSets": {},
    }))
}

fn drop_connections(request: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let servers = arguments
        .array("hostAndPort")?
        .ok_or_else(|| arguments.missing("hostAndPort"))?;
    for (place, server) in servers.iter().enumerate() {
        let server = match server {
            ValueRef::Null => continue,
            ValueRef::String(server) => server,
            other => {
                let name = format!("hostAndPort.{place}");
                return Err(arguments.wrong_type(&name, other.type_of(), &[Type::String]));
            }
        };
        if !is_server(server) {
            let message = format!("'{server}' is not a host with an optional port");
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
    }
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Returns `true` if a text is the address of a server: "host", "host:port", "[address]:port".
fn is_server(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    !host.is_empty() && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_host_and_an_optional_port() {
        let check = |text: &str, expected: bool| assert_eq!(is_server(text), expected, "{text}");
        for text in ["a", "a.b:27017", "192.168.1.1:1", "[::1]:27017", "[::1]"] {
            check(text, true);
        }
        for text in ["", ":1", "a:", "a:0", "a:65536", "a:x", "a:1:2", "a:-1"] {
            check(text, false);
        }
    }
}
