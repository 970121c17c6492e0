//! The bytes of a client: the thread of a connection waits for them awake for a moment before it
//! sleeps, since to be woken takes longer than to run a small command.
//!
//! Nobody waits awake while more connections than half of the cores are busy: their clients, too, need
//! the cores. One that waited in vain lets messages pass before the next try, twice as many every time.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// About what it takes to wake two threads: the client's by the reply, and this one by what follows.
const PATIENCE: Duration = Duration::from_micros(60);
/// For how many messages a thread sleeps at most before it waits awake again.
const ASLEEP_MAX: u32 = 256;
/// Between two looks, which take a lock that whoever sends needs.
const PAUSES: u32 = 16;

/// How many messages an average goes back, about.
const WEIGHT: u64 = 8;
/// What is taken for the distance before anything is known.
const DISTANCE_FIRST: u64 = 1024 * WEIGHT;

/// See the module.
pub struct Incoming<'a> {
    stream: &'a TcpStream,
    /// Counts the messages of all connections.
    requests: &'a AtomicU64,
    /// What it was when the last of this one came.
    requests_then: u64,
    /// How many messages came from one of this connection to the next, on average, times [`WEIGHT`].
    distance: u64,
    /// For how many messages the thread still sleeps, and for how many after the next wait in vain.
    asleep: u32,
    asleep_next: u32,
}

impl Incoming<'_> {
    pub fn new<'a>(stream: &'a TcpStream, requests: &'a AtomicU64) -> Incoming<'a> {
        Incoming {
            stream,
            requests,
            requests_then: requests.load(Relaxed),
            distance: DISTANCE_FIRST,
            asleep: 0,
            asleep_next: 1,
        }
    }

    /// Whether many others are busy: before, and since this connection's last message.
    fn is_crowded(&self) -> bool {
        let since = self.requests.load(Relaxed).wrapping_sub(self.requests_then);
        self.distance >= (busy_max() + 1) * WEIGHT || since > busy_max()
    }

    /// Takes in that bytes came.
    fn note(&mut self) {
        let requests = self.requests.load(Relaxed);
        let since = requests.wrapping_sub(self.requests_then);
        self.distance = self.distance - self.distance / WEIGHT + since.min(DISTANCE_FIRST);
        self.requests_then = requests;
    }

    /// Reads what comes within the time that is waited awake; None where nothing does.
    fn read_awake(&mut self, bytes: &mut [u8]) -> Option<io::Result<usize>> {
        let begin = Instant::now();
        while !self.is_crowded() {
            match recv(self.stream, &mut *bytes, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Some(Err(error.into())),
                Ok((read, _)) => {
                    self.asleep_next = 1;
                    return Some(Ok(read));
                }
            }
            if begin.elapsed() > PATIENCE {
                self.asleep = self.asleep_next;
                self.asleep_next = (self.asleep_next * 2).min(ASLEEP_MAX);
                break;
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        None
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = if self.asleep > 0 {
            self.asleep -= 1;
            None
        } else {
            self.read_awake(bytes)
        };
        let read = read.unwrap_or_else(|| self.stream.read(bytes));
        self.note();
        read
    }
}

/// How many connections may be busy while one waits awake.
fn busy_max() -> u64 {
    static BUSY_MAX: OnceLock<u64> = OnceLock::new();
    *BUSY_MAX.get_or_init(|| thread::available_parallelism().map_or(0, |it| it.get() as u64 / 2))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    /// What was sent before, what is sent while the thread sleeps, and the end all arrive.
    #[test]
    fn every_byte_comes_once_and_in_order() {
        let (mut client, server) = pair();
        let requests = AtomicU64::new(0);
        let writer = thread::spawn(move || {
            for part in 0..20u8 {
                client.write_all(&[part; 3]).unwrap();
                thread::sleep(PATIENCE * u32::from(part));
            }
        });
        let mut incoming = Incoming::new(&server, &requests);
        incoming.distance = WEIGHT;
        let mut bytes = Vec::new();
        incoming.read_to_end(&mut bytes).unwrap();
        let expected: Vec<u8> = (0..20).flat_map(|part| [part; 3]).collect();
        assert_eq!(bytes, expected);
        writer.join().unwrap();
    }

    #[test]
    fn who_waited_in_vain_sleeps_for_twice_as_many_messages() {
        let (_client, server) = pair();
        let requests = AtomicU64::new(0);
        let mut incoming = Incoming::new(&server, &requests);
        if busy_max() == 0 {
            return;
        }
        incoming.distance = WEIGHT;
        let asleep = [1, 2, 4, 8, 16, 32, 64, 128, 256, 256];
        let found = asleep.map(|_| {
            assert!(incoming.read_awake(&mut [0]).is_none());
            incoming.asleep
        });
        assert_eq!(found, asleep);
        requests.store(busy_max() + 1, Relaxed);
        incoming.asleep = 0;
        assert!(incoming.read_awake(&mut [0]).is_none());
        assert_eq!(incoming.asleep, 0, "others are busy: no wait at all");
    }

    /// So many messages of others between each two: whether the next is waited for awake.
    #[test]
    fn only_who_is_nearly_alone_waits_awake() {
        let (_client, server) = pair();
        let check = |others: u64, expected: bool| {
            let requests = AtomicU64::new(0);
            let mut incoming = Incoming::new(&server, &requests);
            assert!(incoming.is_crowded(), "nothing is known yet");
            for _ in 0..100 {
                requests.fetch_add(1 + others, Relaxed);
                incoming.note();
            }
            requests.fetch_add(1, Relaxed);
            assert_eq!(!incoming.is_crowded(), expected, "{others}");
        };
        check(0, busy_max() > 0);
        check(busy_max(), false);
        check(63, busy_max() > 63);
    }
}
