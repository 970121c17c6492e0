//! One client: its messages in, their replies out, in order, until either side ends it.

use std::collections::HashMap;
use std::io::BufReader;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};

use windrow_document::{Document, DocumentBuf, doc};
use windrow_wire::{
    CommandError, ErrorCode, Header, OpCode, Rejected, Reply, ReplyTo, Request, WireError,
    read_header, read_message, write_reply,
};

use crate::dispatch;
use crate::log::Severity;
use crate::state::State;
use crate::sync::lock;

/// Who is at the other end.
#[derive(Debug)]
pub struct Client {
    pub id: i32,
    pub address: SocketAddr,
    metadata: OnceLock<DocumentBuf>,
}

/// The limits of the `client` document of `hello`, in bytes.
const METADATA_BYTES_MAX: usize = 512;
const APPLICATION_NAME_BYTES_MAX: usize = 128;

impl Client {
    pub fn new(id: i32, address: SocketAddr) -> Client {
        Client {
            id,
            address,
            metadata: OnceLock::new(),
        }
    }

    /// The thread's name, which is also the context of its log lines.
    pub fn name(&self) -> String {
        format!("conn{}", self.id)
    }

    /// What the driver said about itself.
    pub fn metadata(&self) -> Option<&DocumentBuf> {
        self.metadata.get()
    }

    /// Takes the `client` document of the first `hello`; a second one is refused.
    pub fn set_metadata(&self, metadata: Document<'_>) -> Result<(), CommandError> {
        check_metadata(metadata)?;
        self.metadata.set(metadata.to_buf()).map_err(|_| {
            CommandError::new(
                ErrorCode::ClientMetadataCannotBeMutated,
                "The client metadata document may only be sent in the first hello",
            )
        })
    }

    #[cfg(test)]
    pub fn for_tests() -> Arc<Client> {
        Arc::new(Client::new(1, SocketAddr::from(([127, 0, 0, 1], 1))))
    }
}

fn check_metadata(metadata: Document<'_>) -> Result<(), CommandError> {
    let bytes = metadata.as_bytes().len();
    if bytes > METADATA_BYTES_MAX {
        return Err(CommandError::new(
            ErrorCode::ClientMetadataDocumentTooLarge,
            format!(
                "The client metadata document must be less then or equal to {METADATA_BYTES_MAX} bytes"
            ),
        ));
    }
    let field = |outer: &str, inner: &str| {
        metadata
            .get(outer)
            .and_then(|value| value.as_document()?.get(inner)?.as_str())
    };
    if field("application", "name").is_some_and(|name| name.len() > APPLICATION_NAME_BYTES_MAX) {
        return Err(CommandError::new(
            ErrorCode::ClientMetadataAppNameTooLarge,
            format!(
                "The 'client.application.name' field must be less then or equal to {APPLICATION_NAME_BYTES_MAX} bytes in the client metadata document"
            ),
        ));
    }
    for (outer, inner) in [("driver", "name"), ("driver", "version"), ("os", "type")] {
        if field(outer, inner).is_none() {
            return Err(CommandError::new(
                ErrorCode::ClientMetadataMissingField,
                format!("Missing required field '{outer}.{inner}' in the client metadata document"),
            ));
        }
    }
    Ok(())
}

/// The connections that are open, so that they can be counted and, at the end, closed.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<HashMap<i32, Arc<TcpStream>>>,
}

impl Connections {
    pub fn count(&self) -> usize {
        lock(&self.open).len()
    }

    pub(crate) fn add(&self, id: i32, stream: Arc<TcpStream>) {
        lock(&self.open).insert(id, stream);
    }

    pub(crate) fn remove(&self, id: i32) {
        lock(&self.open).remove(&id);
    }

    /// Ends reading, so that each connection finishes its command and goes; or both ways at once.
    pub(crate) fn close_all(&self, how: Shutdown) {
        lock(&self.open)
            .values()
            .for_each(|stream| drop(stream.shutdown(how)));
    }
}

/// Read at once where it comes together; larger messages pass it by.
const READ_BYTES: usize = 16 << 10;

/// Serves a connection until it ends.
pub(crate) fn serve(state: &State, stream: &TcpStream, client: &Arc<Client>) {
    let outcome = Connection {
        state,
        stream,
        client,
    }
    .run();
    state.connections.remove(client.id);
    let remote = client.address.to_string();
    let (log, name) = (&state.services.log, client.name());
    match outcome {
        // A client that goes away is no event; one that sends what it should not is.
        Ok(()) | Err(WireError::Io(_)) => {}
        Err(error) => {
            let attr = doc! { "remote": (remote.clone()), "error": (error.to_string()) };
            let message = "Closing connection: malformed message";
            log.write(Severity::Warning, "NETWORK", 22_988, &name, message, attr);
        }
    }
    let attr = doc! {
        "remote": remote, "connectionId": (client.id), "connectionCount": (state.connections.count() as i32),
    };
    log.info("NETWORK", 22_944, &name, "Connection ended", attr);
}

struct Connection<'a> {
    state: &'a State,
    stream: &'a TcpStream,
    client: &'a Arc<Client>,
}

impl Connection<'_> {
    fn run(&self) -> Result<(), WireError> {
        let mut reader = BufReader::with_capacity(READ_BYTES, self.stream);
        while let Some(header) = read_header(&mut reader)? {
            let mut buffer = self.state.buffers.take();
            read_message(&mut reader, &header, &mut buffer)?;
            self.state
                .metrics
                .bytes_in
                .fetch_add(header.length as u64, Relaxed);
            self.state.metrics.requests.fetch_add(1, Relaxed);
            if !self.handle(&header, buffer)? {
                break;
            }
        }
        Ok(())
    }

    /// Answers one message; false where the connection should end after it.
    fn handle(&self, header: &Header, buffer: Vec<u8>) -> Result<bool, WireError> {
        let is_packed = header.op_code == OpCode::COMPRESSED;
        let mut spare = if is_packed {
            self.state.buffers.take()
        } else {
            Vec::new()
        };
        match Request::parse(header, buffer, &mut spare) {
            Ok(request) => {
                self.answer(&request)?;
                self.state.buffers.give(request.into_buffer());
                self.state.buffers.give(spare);
                Ok(!self.state.stop.is_requested())
            }
            Err(Rejected::Answer { to, error, close }) => {
                self.log_rejection(&error);
                self.send(&to, &Reply::from(&error))?;
                Ok(!close)
            }
            Err(Rejected::Close(error)) => Err(error),
        }
    }

    /// Runs a command and sends its reply; again and again where the reply says that more follows.
    fn answer(&self, request: &Request) -> Result<(), WireError> {
        let mut to = request.reply_to();
        loop {
            let reply = dispatch::run(self.state, self.client, request);
            if !to.is_wanted() {
                return Ok(());
            }
            let id = self.send(&to, &reply)?;
            let more = reply.more_to_come();
            self.state.buffers.give(reply.into_buffer());
            if !more {
                return Ok(());
            }
            to = to.following(id);
        }
    }

    /// Sends a reply where one is wanted; returns the number of its message.
    fn send(&self, to: &ReplyTo, reply: &Reply) -> Result<i32, WireError> {
        let id = self.state.replies.fetch_add(1, Relaxed);
        if to.is_wanted() {
            let mut scratch = Vec::new();
            let sent = write_reply(&mut &*self.stream, to, reply, id, &mut scratch)?;
            self.state.metrics.bytes_out.fetch_add(sent as u64, Relaxed);
        }
        Ok(id)
    }

    fn log_rejection(&self, error: &CommandError) {
        let remote = self.client.address.to_string();
        let attr = doc! { "remote": remote, "error": (error.to_string()) };
        let message = "Assertion while parsing command";
        let log = &self.state.services.log;
        log.write(
            Severity::Warning,
            "COMMAND",
            21_964,
            &self.client.name(),
            message,
            attr,
        );
    }
}

/// Reads one message of a client for whom there is no room, and tells it so.
pub(crate) fn refuse(stream: &TcpStream, limit: usize) -> Result<(), WireError> {
    let mut reader = BufReader::with_capacity(1024, stream);
    let Some(header) = read_header(&mut reader)? else {
        return Ok(());
    };
    let mut buffer = Vec::new();
    read_message(&mut reader, &header, &mut buffer)?;
    let message = format!("connection refused because {limit} connections are open, the limit");
    let error = CommandError::new(ErrorCode::ResourceExhausted, message);
    if let Ok(request) = Request::parse(&header, buffer, &mut Vec::new()) {
        write_reply(
            &mut &*stream,
            &request.reply_to(),
            &Reply::from(&error),
            1,
            &mut Vec::new(),
        )?;
    }
    Ok(())
}

/// A request with this body, as if it had come over a connection.
#[cfg(test)]
pub(crate) fn request_for_tests(body: &DocumentBuf) -> Request {
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
