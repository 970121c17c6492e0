//! New connections: each gets a thread, or is refused if there are too many.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use windrow_document::doc;

use crate::client::Client;
use crate::connection;
use crate::network_address::NetworkAddress;
use crate::parameters::QUIET;
use crate::socket::Socket;
use crate::state::State;
use crate::tls::TlsMode;

/// Nested documents are walked recursively: 200 levels must fit in every build.
pub(crate) const STACK_BYTES: usize = 4 << 20;

/// The number of connections above the limit that only Unix domain sockets can have, so that an
/// administrator of the machine is not locked out by clients of a network.
const RESERVED_UNIX: usize = 8;

/// The addresses of both ends of a connection.
pub(crate) struct EndAddresses {
    pub client: NetworkAddress,
    pub server: NetworkAddress,
}

/// Starts the thread of a connection, or refuses it if there are too many.
///
/// # Errors
/// Fails if the system has no threads left.
pub(crate) fn accept(state: &Arc<State>, socket: Socket, ends: EndAddresses) -> io::Result<()> {
    let EndAddresses {
        client: address,
        server: own_address,
    } = ends;
    let count = state.connections.count();
    let reserved = if address.is_ip() { 0 } else { RESERVED_UNIX };
    if count >= state.config.connections_max.saturating_add(reserved) {
        state.metrics.connections_rejected.fetch_add(1, Relaxed);
        let attr = doc! { "remote": (address.to_string()), "connectionCount": (count as i32) };
        let message = "Connection refused because there are too many open connections";
        state
            .services
            .log
            .warn("NETWORK", 22_942, "listener", message, attr);
        return refuse(state, socket);
    }
    let id = state.connections.next_id();
    let client = Arc::new(Client::new(id, address.clone(), own_address));
    let socket = Arc::new(socket);
    state
        .connections
        .add(Arc::clone(&client), Arc::clone(&socket));
    state.metrics.connections_created.fetch_add(1, Relaxed);
    let attr = doc! {
        "remote": (address.to_string()), "connectionId": (client.id),
        "connectionCount": (state.connections.count() as i32),
    };
    if !state.parameters.flag(QUIET) {
        let log = &state.services.log;
        log.info("NETWORK", 22_943, "listener", "Connection accepted", attr);
    }
    let (shared, id) = (Arc::clone(state), client.id);
    let thread = thread::Builder::new()
        .name(client.name())
        .stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || connection::serve(&shared, &socket, &client));
    spawned
        .map(drop)
        .inspect_err(|_| state.connections.remove(id))
}

/// Maximum number of refused clients whose first message is awaited. Others are closed immediately.
const REFUSALS_MAX: usize = 16;

fn refuse(state: &Arc<State>, socket: Socket) -> io::Result<()> {
    let requires_tls = state
        .tls
        .as_ref()
        .is_some_and(|tls| tls.mode() == TlsMode::Require);
    if requires_tls && matches!(socket, Socket::Tcp(_)) {
        // A handshake only to say no would cost more than the connection.
        return Ok(());
    }
    if state.refusals.fetch_add(1, Relaxed) >= REFUSALS_MAX {
        state.refusals.fetch_sub(1, Relaxed);
        return Ok(());
    }
    let shared = Arc::clone(state);
    thread::Builder::new()
        .name("refusal".into())
        .spawn(move || {
            // The client may have disconnected, which is not an error here.
            drop(connection::refuse(&socket, shared.config.connections_max));
            shared.refusals.fetch_sub(1, Relaxed);
        })?;
    Ok(())
}
