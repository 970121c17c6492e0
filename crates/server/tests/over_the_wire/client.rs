//! A server for one test, and a client that sends the given bytes unchanged.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use windrow_document::{DocumentBuf, ValueRef};
use windrow_server::{Config, Log, Server, Services, State, Stop};

pub struct Running {
    pub address: SocketAddr,
    pub log: Arc<Log>,
    pub state: Arc<State>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a server on a free port.
pub fn start(config: Config) -> Running {
    let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
    start_with(config, services)
}

/// Starts a server with an engine on a free port.
pub fn start_with(config: Config, services: Services) -> Running {
    let log = Arc::clone(&services.log);
    let config = Config {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        ..config
    };
    let server = Server::bind(config, services).unwrap();
    let (address, stop, state) = (server.addresses()[0], server.stop(), server.state());
    let thread = Some(std::thread::spawn(move || server.run().unwrap()));
    Running {
        address,
        log,
        state,
        stop,
        thread,
    }
}

impl Running {
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Waits until the server has stopped.
    pub fn wait(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }

    pub fn has_logged(&self, words: &str) -> bool {
        self.log.recent().0.iter().any(|line| line.contains(words))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub struct Client(pub TcpStream);

/// A reply as received.
pub struct Received {
    pub request_id: i32,
    pub response_to: i32,
    pub op_code: i32,
    pub flags: u32,
    pub document: DocumentBuf,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Client(stream)
    }

    pub fn command(&mut self, body: &DocumentBuf) -> DocumentBuf {
        self.send_message(0, body);
        self.receive().unwrap().document
    }

    pub fn send_message(&mut self, flags: u32, body: &DocumentBuf) {
        let content = [&flags.to_le_bytes()[..], &[0], body.as_bytes()].concat();
        self.send(2013, &content);
    }

    pub fn send(&mut self, op_code: i32, content: &[u8]) {
        let words = [16 + content.len() as i32, 77, 0, op_code];
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.0.write_all(&[&header, content].concat()).unwrap();
    }

    /// Returns the next reply, or `None` if the server has closed the connection.
    pub fn receive(&mut self) -> Option<Received> {
        let mut header = [0; 16];
        self.0.read_exact(&mut header).ok()?;
        let word = |place: usize| i32::from_le_bytes(header[place..place + 4].try_into().unwrap());
        let mut content = vec![0; word(0) as usize - 16];
        self.0.read_exact(&mut content).ok()?;
        let (flags, start) = match word(12) {
            1 => (0, 20),
            _ => (u32::from_le_bytes(content[..4].try_into().unwrap()), 5),
        };
        Some(Received {
            request_id: word(4),
            response_to: word(8),
            op_code: word(12),
            flags,
            document: DocumentBuf::from_bytes(content[start..].to_vec()).unwrap(),
        })
    }
}

pub fn is_ok(reply: &DocumentBuf) -> bool {
    reply.get("ok") == Some(ValueRef::Double(1.0))
}

pub fn code(reply: &DocumentBuf) -> i64 {
    reply.get("code").and_then(ValueRef::as_whole).unwrap_or(0)
}
