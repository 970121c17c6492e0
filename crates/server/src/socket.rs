//! The socket of a connection: TCP, or a Unix domain socket.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::network_address::NetworkAddress;

/// The socket of a connection. Several threads share it: one reads and writes, others look if the
/// client is still there, or close it.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        }
    }

    /// Returns the IP address and the port of the server's end. `None` for a Unix domain socket.
    pub fn local_address(&self) -> Option<NetworkAddress> {
        match self {
            Socket::Tcp(stream) => stream.local_addr().ok().map(NetworkAddress::Ip),
            Socket::Unix(_) => None,
        }
    }

    /// Limits the time of each read and each write. `None` is no limit.
    pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                stream.set_read_timeout(read)?;
                stream.set_write_timeout(write)
            }
            Socket::Unix(stream) => {
                stream.set_read_timeout(read)?;
                stream.set_write_timeout(write)
            }
        }
    }

    /// Limits the next read and the next write to the time until a deadline. Fails if it has
    /// passed.
    pub fn limit_time(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Shorter timeouts may be rounded to none.
        let left = left.max(Duration::from_millis(1));
        self.set_timeouts(Some(left), Some(left))
    }

    /// Returns `true` if the client closed the connection and everything that it sent was read, or
    /// if the connection broke.
    pub fn is_at_end(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let looked = recv(self, &mut [0u8; 1][..], flags);
        !matches!(looked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
    }

    /// Returns `true` if the client closed its side of the connection, or if the connection broke,
    /// even if bytes that the client sent before are still to be read.
    pub fn is_closed_by_peer(&self) -> bool {
        let mut polled = [PollFd::new(self, PollFlags::RDHUP)];
        let at_once = Timespec::default();
        if poll(&mut polled, Some(&at_once)).is_err() {
            return false;
        }
        let closed = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        polled.iter().any(|one| one.revents().intersects(closed))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).read(bytes),
            Socket::Unix(stream) => (&mut &*stream).read(bytes),
        }
    }
}

/// Reads from a socket until a deadline. A client that sends single bytes does not extend it.
pub(crate) struct DeadlineReader<'a> {
    pub socket: &'a Socket,
    pub deadline: Instant,
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.limit_time(self.deadline)?;
        (&mut &*self.socket).read(bytes)
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write_vectored(parts),
            Socket::Unix(stream) => (&mut &*stream).write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
