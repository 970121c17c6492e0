//! The bytes of a connection: with TLS, or without.
//!
//! The first byte of the client tells which it is. A record of TLS that begins a handshake has the
//! bytes `16 03`. A message can begin with these bytes, too, as they are the lower half of its
//! length. It has the code of an operation at bytes 12 to 15, where a TLS client sends random ones.

use std::io::{self, IoSlice, Read, Write};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use windrow_document::doc;
use windrow_wire::OpCode;
use windrow_wire::header::HEADER_BYTES;

use crate::adaptive_wait::{AdaptiveWait, BusyConnections};
use crate::client::Client;
use crate::parameters::QUIET;
use crate::socket::Socket;
use crate::state::State;
use crate::tls::session::{TlsReader, TlsSession};
use crate::tls::{TlsMode, TlsVersion};

/// The transport of a connection: with TLS or without.
pub(crate) enum Transport<'a> {
    Plain(&'a Socket),
    Tls(TlsSession<'a>),
}

/// The reason why a connection cannot begin.
pub(crate) enum RefusedTransport {
    /// The client closed the connection before it sent a byte, or sent none in time.
    Closed,
    /// The handshake failed, or the client uses TLS although the server does not, or vice versa.
    Handshake(String),
}

/// The first bytes of a client.
#[derive(Debug, PartialEq)]
enum FirstBytes {
    None,
    Message,
    Handshake,
}

impl<'a> Transport<'a> {
    /// Finds out if the client uses TLS, and performs the handshake if it does.
    pub fn open(
        state: &State,
        socket: &'a Socket,
        client: &Client,
    ) -> Result<Transport<'a>, RefusedTransport> {
        let opened = Transport::choose(state, socket, client)?;
        let idle_max = state.config.idle_time_max;
        let is_set = socket.set_timeouts(idle_max, None);
        is_set.map_err(|_| RefusedTransport::Closed)?;
        Ok(opened)
    }

    fn choose(
        state: &State,
        socket: &'a Socket,
        client: &Client,
    ) -> Result<Transport<'a>, RefusedTransport> {
        let (Socket::Tcp(_), mode) = (socket, state.tls.as_ref().map(|tls| tls.mode())) else {
            // The system restricts who can connect to a Unix domain socket.
            return Ok(Transport::Plain(socket));
        };
        let began = Instant::now();
        let deadline = began + state.config.handshake_time_max;
        let handshake_max = Some(state.config.handshake_time_max);
        let first_max = match mode {
            Some(TlsMode::Require) => handshake_max,
            _ => state.config.idle_time_max,
        };
        match (first_bytes(socket, first_max, handshake_max), &state.tls) {
            (Err(_) | Ok(FirstBytes::None), _) => Err(RefusedTransport::Closed),
            (Ok(FirstBytes::Message), _) if mode == Some(TlsMode::Require) => {
                let reason = "The server is configured to only allow SSL connections";
                Err(RefusedTransport::Handshake(reason.to_owned()))
            }
            (Ok(FirstBytes::Message), _) => Ok(Transport::Plain(socket)),
            (Ok(FirstBytes::Handshake), None) => {
                let reason = "SSL handshake received but server is started without SSL support";
                Err(RefusedTransport::Handshake(reason.to_owned()))
            }
            (Ok(FirstBytes::Handshake), Some(tls)) => {
                let session = TlsSession::accept(socket, &tls.loaded(), deadline);
                let session =
                    session.map_err(|error| RefusedTransport::Handshake(describe(&error)))?;
                client.set_encrypted(session.client_subject().map(str::to_owned));
                record_handshake(state, client, session.version(), began.elapsed());
                Ok(Transport::Tls(session))
            }
        }
    }

    /// Returns a reader that polls before it sleeps.
    pub fn reader<'s>(&'s self, busy: &'a BusyConnections) -> TransportReader<'s, 'a> {
        match self {
            Transport::Plain(socket) => TransportReader::Plain(AdaptiveWait::new(socket, busy)),
            Transport::Tls(session) => TransportReader::Tls(Box::new(session.reader(busy))),
        }
    }
}

fn record_handshake(
    state: &State,
    client: &Client,
    version: Option<TlsVersion>,
    duration: Duration,
) {
    state.metrics.count_tls(version);
    if state.parameters.flag(QUIET) {
        return;
    }
    let attr = doc! {
        "remote": (client.address.to_string()),
        "version": (version.map_or("unknown", TlsVersion::name)),
        "clientCertificate": (client.certificate_subject()),
        "durationMillis": (duration.as_millis() as i64),
    };
    let message = "Ingress TLS handshake complete";
    let log = &state.services.log;
    log.info("NETWORK", 6_723_804, &client.name(), message, attr);
}

/// Looks at the first bytes without reading them. Waits as long for the first one, and as long for
/// the others.
fn first_bytes(
    socket: &Socket,
    first_max: Option<Duration>,
    others_max: Option<Duration>,
) -> io::Result<FirstBytes> {
    let mut bytes = [0; HEADER_BYTES];
    socket.set_timeouts(first_max, None)?;
    if recv(socket, &mut bytes[..1], RecvFlags::PEEK)?.0 == 0 {
        return Ok(FirstBytes::None);
    }
    if bytes[0] != HANDSHAKE_RECORD {
        return Ok(FirstBytes::Message);
    }
    socket.set_timeouts(others_max, None)?;
    recv(socket, &mut bytes[..], RecvFlags::PEEK | RecvFlags::WAITALL)?;
    Ok(classify(&bytes))
}

/// The first byte of a record that begins a handshake.
const HANDSHAKE_RECORD: u8 = 22;

fn classify(bytes: &[u8; HEADER_BYTES]) -> FirstBytes {
    let [first, second, .., a, b, c, d] = *bytes;
    let is_record = first == HANDSHAKE_RECORD && second == 3;
    let is_message = OpCode(i32::from_le_bytes([a, b, c, d])).is_known();
    if is_record && !is_message {
        FirstBytes::Handshake
    } else {
        FirstBytes::Message
    }
}

/// Reads the bytes of messages. It polls before it sleeps.
pub(crate) enum TransportReader<'s, 'a> {
    Plain(AdaptiveWait<'a>),
    Tls(Box<TlsReader<'s, 'a>>),
}

impl Read for TransportReader<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            TransportReader::Plain(wait) => wait.read(bytes),
            TransportReader::Tls(reader) => reader.read(bytes),
        }
    }
}

impl Write for &Transport<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => (&mut &**socket).write(bytes),
            Transport::Tls(session) => (&mut &*session).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => (&mut &**socket).write_vectored(parts),
            Transport::Tls(session) => (&mut &*session).write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "SSL handshake failed: it took too long".to_owned()
        }
        io::ErrorKind::UnexpectedEof => {
            "SSL handshake failed: the client closed the connection".to_owned()
        }
        _ => format!("SSL handshake failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_messages_are_told_apart() {
        let check = |bytes: [u8; 16], expected: FirstBytes| {
            assert_eq!(classify(&bytes), expected, "{bytes:?}");
        };
        let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 9, 8, 7, 6, 5];
        check(hello, FirstBytes::Handshake);
        // Messages whose length begins as a record does.
        let message = [22, 3, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0];
        check(message, FirstBytes::Message);
        check(
            [22, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            FirstBytes::Message,
        );
    }
}
