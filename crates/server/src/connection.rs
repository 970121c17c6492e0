//! A connection of a client: reads messages and writes replies, in order, until either side closes
//! it.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windrow_document::doc;
use windrow_wire::{
    CommandError, ErrorCode, Header, OpCode, Reply, ReplyTarget, Request, RequestError, WireError,
    read_header, read_message, write_reply,
};
use zeroize::Zeroize;

use crate::auditing;
use crate::client::Client;
use crate::commands::{next_of_exhaust, secret_arguments};
use crate::dispatch;
use crate::parameters::QUIET;
use crate::shown_command::has_secrets;
use crate::socket::{DeadlineReader, Socket};
use crate::state::State;
use crate::transport::{RefusedTransport, Transport};

/// The size of the read buffer. Larger messages bypass it.
const READ_BYTES: usize = 16 << 10;

/// Serves a connection until it ends.
pub(crate) fn serve(state: &State, socket: &Socket, client: &Arc<Client>) {
    let transport = Transport::open(state, socket, client);
    let outcome = transport.map(|transport| {
        let connection = Connection {
            state,
            transport: &transport,
            client,
        };
        connection.run()
    });
    auditing::record_disconnect(state, client);
    state.connections.remove(client.id);
    let remote = client.address.to_string();
    let (log, name) = (&state.services.log, client.name());
    let warn = |message: &str, error: &str| {
        let attr = doc! { "remote": (remote.clone()), "error": error };
        log.warn("NETWORK", 22_988, &name, message, attr);
    };
    match outcome {
        // A closed connection is not logged. A violation of the protocol is.
        Err(RefusedTransport::Closed) | Ok(Ok(())) => {}
        Ok(Err(WireError::Io(error))) => log_timeout(state, client, &error),
        Ok(Err(error)) => warn("Closing connection: malformed message", &error.to_string()),
        Err(RefusedTransport::Handshake(reason)) => warn(
            "Error receiving request from client. Ending connection from remote",
            &reason,
        ),
    }
    let attr = doc! {
        "remote": remote, "connectionId": (client.id), "connectionCount": (state.connections.count() as i32),
    };
    if !state.parameters.flag(QUIET) {
        log.info("NETWORK", 22_944, &name, "Connection ended", attr);
    }
}

/// Logs that a connection is closed because its client sent nothing for too long.
fn log_timeout(state: &State, client: &Client, error: &io::Error) {
    let is_timeout = matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    );
    let Some(limit) = state.config.idle_time_max.filter(|_| is_timeout) else {
        return;
    };
    let attr = doc! {
        "remote": (client.address.to_string()), "idleTimeMaxSecs": (limit.as_secs() as i64),
    };
    let log = &state.services.log;
    let message = "Closing connection: it was idle for too long";
    log.info("NETWORK", IDLE_CONNECTION, &client.name(), message, attr);
}

/// The id of the log line about an idle connection. MongoDB has no such event.
const IDLE_CONNECTION: i32 = 9_000_007;

/// The largest message of a client that has to log in, in bytes. Messages of logins are much
/// smaller.
const LOGIN_BYTES_MAX: usize = 64 << 10;

/// Returns the length of a compressed message without compression, as the message declares it. A
/// wrong length is an error when the message is decompressed.
fn declared_length(message: &[u8]) -> usize {
    let declared = message.get(20..24).and_then(|bytes| bytes.try_into().ok());
    let declared = declared.map_or(0, i32::from_le_bytes);
    usize::try_from(declared).unwrap_or(usize::MAX)
}

struct Connection<'a> {
    state: &'a State,
    transport: &'a Transport<'a>,
    client: &'a Arc<Client>,
}

impl Connection<'_> {
    fn run(&self) -> Result<(), WireError> {
        let incoming = self.transport.reader(&self.state.busy_connections);
        let mut reader = BufReader::with_capacity(READ_BYTES, incoming);
        while let Some(header) = read_header(&mut reader)? {
            self.check_length(header.length)?;
            let mut buffer = self.state.buffers.take();
            read_message(&mut reader, &header, &mut buffer)?;
            if header.op_code == OpCode::COMPRESSED {
                self.check_length(declared_length(&buffer))?;
            }
            self.state
                .metrics
                .bytes_in
                .fetch_add(header.length as u64, Relaxed);
            self.state.metrics.requests.fetch_add(1, Relaxed);
            self.client.record_activity();
            if !self.handle(&header, buffer)? {
                break;
            }
        }
        Ok(())
    }

    /// Fails if a message is larger than a client may send before it logs in.
    fn check_length(&self, length: usize) -> Result<(), WireError> {
        let is_small = length <= LOGIN_BYTES_MAX || self.client.login.is_logged_in();
        let state = self.state;
        if is_small || !state.requires_login() {
            return Ok(());
        }
        Err(WireError::TooLargeBeforeLogin {
            length,
            max: LOGIN_BYTES_MAX,
        })
    }

    /// Answers one message. Returns `false` if the connection must be closed.
    fn handle(&self, header: &Header, buffer: Vec<u8>) -> Result<bool, WireError> {
        let is_packed = header.op_code == OpCode::COMPRESSED;
        let mut spare = if is_packed {
            self.state.buffers.take()
        } else {
            Vec::new()
        };
        match Request::parse(header, buffer, &mut spare) {
            Ok(mut request) => {
                self.answer(&mut request)?;
                let has_secrets = has_secrets(request.body(), secret_arguments);
                let mut buffer = request.into_buffer();
                if has_secrets {
                    buffer.zeroize();
                    spare.zeroize();
                }
                self.state.buffers.give(buffer);
                self.state.buffers.give(spare);
                Ok(!self.state.stop.is_requested())
            }
            Err(RequestError::Reply { to, error, close }) => {
                self.log_rejection(&error);
                self.send(&to, &Reply::from(&error))?;
                Ok(!close)
            }
            Err(RequestError::Close(error)) => Err(error),
        }
    }

    /// Runs a command and sends its reply, repeatedly if the reply says that more follows.
    fn answer(&self, first: &mut Request) -> Result<(), WireError> {
        let mut to = first.reply_to();
        let mut next: Option<Request> = None;
        loop {
            let request = next.as_mut().unwrap_or(first);
            let reply = match &self.state.router {
                Some(router) => router.run(self.state, self.client, request),
                None => dispatch::run(self.state, self.client, request),
            };
            if !to.expects_reply() {
                return Ok(());
            }
            let id = self.send(&to, &reply)?;
            if !reply.more_to_come() {
                self.state.buffers.give(reply.into_buffer());
                return Ok(());
            }
            to = to.after_exhaust_reply(id);
            // Without the version that was just sent, a client that is not logged in could make the
            // server send replies without a pause.
            if request.get("topologyVersion").is_some() {
                let following = next_of_exhaust(request, &reply);
                next = Some(following.map_err(|error| WireError::Io(io::Error::other(error)))?);
            }
            self.state.buffers.give(reply.into_buffer());
        }
    }

    /// Sends a reply if the client expects one. Returns the id of its message.
    fn send(&self, to: &ReplyTarget, reply: &Reply) -> Result<i32, WireError> {
        let id = self.state.replies.fetch_add(1, Relaxed);
        if to.expects_reply() {
            let mut scratch = Vec::new();
            let sent = write_reply(&mut &*self.transport, to, reply, id, &mut scratch)?;
            self.client.record_activity();
            self.state.metrics.bytes_out.fetch_add(sent as u64, Relaxed);
        }
        Ok(id)
    }

    fn log_rejection(&self, error: &CommandError) {
        let remote = self.client.address.to_string();
        let attr = doc! { "remote": remote, "error": (error.to_string()) };
        let message = "Assertion while parsing command";
        let log = &self.state.services.log;
        log.warn("COMMAND", 21_964, &self.client.name(), message, attr);
    }
}

/// The longest time for the message of a refused client and the reply to it, together.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

/// Reads one message of a client that exceeds the maximum number of connections, and replies with
/// an error.
pub(crate) fn refuse(socket: &Socket, limit: usize) -> Result<(), WireError> {
    let deadline = Instant::now() + REFUSAL_TIME_MAX;
    let mut reader = BufReader::with_capacity(1024, DeadlineReader { socket, deadline });
    let Some(header) = read_header(&mut reader)? else {
        return Ok(());
    };
    if header.length > LOGIN_BYTES_MAX {
        // A client that may not even log in must not fill the memory.
        return Ok(());
    }
    let mut buffer = Vec::new();
    read_message(&mut reader, &header, &mut buffer)?;
    let message = format!("connection refused because {limit} connections are open, the limit");
    let error = CommandError::new(ErrorCode::ResourceExhausted, message);
    // There is no reply to a message that is no request. The connection is closed.
    if let Ok(request) = Request::parse(&header, buffer, &mut Vec::new()) {
        socket.limit_time(deadline)?;
        write_reply(
            &mut &*socket,
            &request.reply_to(),
            &Reply::from(&error),
            1,
            &mut Vec::new(),
        )?;
    }
    Ok(())
}

/// Returns a request with this body, as from a connection.
#[cfg(test)]
pub(crate) fn request_for_tests(body: &windrow_document::DocumentBuf) -> Request {
    let length = 16 + 5 + body.as_bytes().len();
    let op_code = OpCode::MSG;
    let header = Header {
        length,
        request_id: 1,
        response_to: 0,
        op_code,
    };
    let message = [&header.to_bytes(), &[0; 5][..], body.as_bytes()].concat();
    Request::parse(&header, message, &mut Vec::new()).unwrap()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    use windrow_document::DocumentBuf;

    use super::*;

    /// Sends bytes to a refused client's connection, slowly. Returns the length of the reply.
    fn refused(parts: &[&[u8]], pause: Duration) -> usize {
        let (mut client, server) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || drop(refuse(&Socket::Unix(server), 7)));
            for part in parts {
                // The server may have closed the connection.
                if client.write_all(part).is_err() {
                    break;
                }
                thread::sleep(pause);
            }
            let mut reply = Vec::new();
            // A reset is an empty reply, too.
            let _ = client.read_to_end(&mut reply);
            reply.len()
        })
    }

    fn ping(comment: usize) -> Vec<u8> {
        let body: DocumentBuf = doc! { "ping": 1, "comment": ("x".repeat(comment)), "$db": "d" };
        let length = 21 + body.as_bytes().len();
        let header = Header {
            length,
            request_id: 1,
            response_to: 0,
            op_code: OpCode::MSG,
        };
        [&header.to_bytes(), &[0; 5][..], body.as_bytes()].concat()
    }

    #[test]
    fn refused_clients_learn_why() {
        assert!(refused(&[&ping(10)], Duration::ZERO) > 100);
    }

    /// The whole message had been read, of any length, and a byte now and then had kept a thread.
    #[test]
    fn refused_clients_take_little_memory_and_time() {
        assert_eq!(refused(&[&ping(100_000)[..50]], Duration::ZERO), 0);
        let message = ping(10);
        let bytes: Vec<&[u8]> = message.chunks(1).collect();
        let began = Instant::now();
        assert_eq!(refused(&bytes, Duration::from_millis(100)), 0);
        // All bytes would take as many tenths of a second.
        let all = Duration::from_millis(100) * bytes.len() as u32;
        assert!(began.elapsed() < all, "{:?}", began.elapsed());
    }
}
