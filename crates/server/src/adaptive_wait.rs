//! Reads from a client. The thread of a connection polls for a moment before it sleeps, because
//! waking it takes longer than a small command.
//!
//! No thread polls if more connections are busy than half of the cores, because their clients need
//! the cores too. After polling without a message, a thread sleeps for some messages before it
//! polls again, for twice as many each time.

use std::io::{self, Read};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::socket::Socket;

/// The approximate time to wake two threads: the client's by the reply, and this one by the next
/// request.
const SPIN_MAX: Duration = Duration::from_micros(60);
/// Maximum number of messages for which a thread sleeps before it polls again.
const SLEEP_MESSAGES_MAX: u32 = 256;
/// Spin pauses between two reads, each of which takes a lock that the sender needs.
const SPIN_PAUSES: u32 = 16;

/// The window must be long enough for each of hundreds of clients to run within it, even if others
/// use the cores for a scheduler time slice.
const WINDOW_MS: u128 = 100;

/// The number of recently busy connections: those with messages within the current or the previous
/// time window.
pub struct BusyConnections {
    started: Instant,
    /// The number of the window (upper half), and the number of connections with messages in it.
    window: AtomicU64,
    /// The number of connections with messages in the previous window.
    before: AtomicU64,
}

impl BusyConnections {
    pub fn new() -> BusyConnections {
        BusyConnections {
            started: Instant::now(),
            window: AtomicU64::new(0),
            before: AtomicU64::new(0),
        }
    }

    /// Records a message. `seen` is the last window in which the connection had one.
    fn record(&self, seen: &mut Option<u32>) {
        self.record_in(
            (self.started.elapsed().as_millis() / WINDOW_MS) as u32,
            seen,
        );
    }

    fn record_in(&self, number: u32, seen: &mut Option<u32>) {
        if seen.replace(number) == Some(number) {
            return;
        }
        let update = |window| match split_window(window) {
            (then, count) if number <= then => Some(window_of(then, count.saturating_add(1))),
            _ => Some(window_of(number, 1)),
        };
        let (Ok(window) | Err(window)) = self.window.fetch_update(Relaxed, Relaxed, update);
        let (then, count) = split_window(window);
        if then < number {
            // The previous window is empty if a whole window has passed without a message.
            let before = if then.wrapping_add(1) == number {
                count
            } else {
                0
            };
            self.before.store(before.into(), Relaxed);
        }
    }

    fn count(&self) -> u64 {
        let (_, count) = split_window(self.window.load(Relaxed));
        self.before.load(Relaxed).max(count.into())
    }
}

fn split_window(window: u64) -> (u32, u32) {
    ((window >> 32) as u32, window as u32)
}

fn window_of(number: u32, count: u32) -> u64 {
    u64::from(number) << 32 | u64::from(count)
}

/// A socket that polls before it sleeps.
pub struct AdaptiveWait<'a> {
    socket: &'a Socket,
    busy: &'a BusyConnections,
    /// The last window in which this connection had a message.
    seen: Option<u32>,
    /// The number of messages for which the thread still sleeps, and for how many after the next
    /// poll without a message.
    asleep: u32,
    asleep_next: u32,
}

impl AdaptiveWait<'_> {
    pub fn new<'a>(socket: &'a Socket, busy: &'a BusyConnections) -> AdaptiveWait<'a> {
        AdaptiveWait {
            socket,
            busy,
            seen: None,
            asleep: 0,
            asleep_next: 1,
        }
    }

    /// Reads within the polling time. Returns `None` if nothing arrives.
    fn read_awake(&mut self, bytes: &mut [u8]) -> Option<io::Result<usize>> {
        let begin = Instant::now();
        while self.busy.count() <= busy_max() {
            match recv(self.socket, &mut *bytes, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Some(Err(error.into())),
                Ok((read, _)) => {
                    self.asleep_next = 1;
                    return Some(Ok(read));
                }
            }
            if begin.elapsed() > SPIN_MAX {
                self.asleep = self.asleep_next;
                self.asleep_next = (self.asleep_next * 2).min(SLEEP_MESSAGES_MAX);
                break;
            }
            (0..SPIN_PAUSES).for_each(|_| std::hint::spin_loop());
        }
        None
    }
}

impl Read for AdaptiveWait<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = if self.asleep > 0 {
            self.asleep -= 1;
            None
        } else {
            self.read_awake(bytes)
        };
        let read = read.unwrap_or_else(|| (&mut &*self.socket).read(bytes));
        self.busy.record(&mut self.seen);
        read
    }
}

/// Returns the greatest number of busy connections while a thread polls.
fn busy_max() -> u64 {
    static BUSY_MAX: OnceLock<u64> = OnceLock::new();
    *BUSY_MAX.get_or_init(|| thread::available_parallelism().map_or(0, |it| it.get() as u64 / 2))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, Socket::Tcp(listener.accept().unwrap().0))
    }

    /// Data that was sent before, data that arrives while the thread sleeps, and the end of the
    /// stream are all read.
    #[test]
    fn bytes_are_read_once_and_in_order() {
        let (mut client, server) = pair();
        let busy = BusyConnections::new();
        let writer = thread::spawn(move || {
            for part in 0..20u8 {
                client.write_all(&[part; 3]).unwrap();
                thread::sleep(SPIN_MAX * u32::from(part));
            }
        });
        let mut incoming = AdaptiveWait::new(&server, &busy);
        let mut bytes = Vec::new();
        incoming.read_to_end(&mut bytes).unwrap();
        let expected: Vec<u8> = (0..20).flat_map(|part| [part; 3]).collect();
        assert_eq!(bytes, expected);
        writer.join().unwrap();
    }

    #[test]
    fn unsuccessful_polling_doubles_the_sleep() {
        let (_client, server) = pair();
        let busy = BusyConnections::new();
        let mut incoming = AdaptiveWait::new(&server, &busy);
        if busy_max() == 0 {
            return;
        }
        let asleep = [1, 2, 4, 8, 16, 32, 64, 128, 256, 256];
        let found = asleep.map(|_| {
            assert!(incoming.read_awake(&mut [0]).is_none());
            incoming.asleep
        });
        assert_eq!(found, asleep);
        for _ in 0..=busy_max() {
            busy.record_in(0, &mut None);
        }
        incoming.asleep = 0;
        assert!(incoming.read_awake(&mut [0]).is_none());
        assert_eq!(incoming.asleep, 0, "others are busy: no wait at all");
    }

    /// Each step is a window, the connection with a message, and the expected number of busy
    /// connections.
    #[test]
    fn a_connection_is_busy_for_two_windows() {
        let busy = BusyConnections::new();
        let mut seen = [None; 3];
        assert_eq!(busy.count(), 0);
        let steps = [
            (0, 0, 1),
            (0, 0, 1),
            (0, 1, 2),
            (0, 2, 3),
            (1, 0, 3),
            (2, 0, 1),
            (2, 1, 2),
            (9, 2, 1),
        ];
        for (step, (number, who, expected)) in steps.into_iter().enumerate() {
            busy.record_in(number, &mut seen[who]);
            assert_eq!(busy.count(), expected, "step {step}");
        }
    }
}
