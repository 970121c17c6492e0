//! A TLS session of a connection.
//!
//! One thread reads and writes. rustls decrypts and encrypts in memory:
//!
//! ```text
//! socket → AdaptiveWait → BufReader → read_tls → process_new_packets → reader() → messages
//! socket ← write_tls ← writer() ← replies
//! ```

use std::cell::RefCell;
use std::io::{self, BufReader, Read, Write};
use std::time::Instant;

use rustix::net::{SendFlags, send};
use rustls::{ProtocolVersion, ServerConnection};

use super::certificate::Certificate;
use super::{LoadedFiles, TlsVersion};
use crate::adaptive_wait::{AdaptiveWait, BusyConnections};
use crate::socket::Socket;

/// Encrypted bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// The TLS session of a connection, after its handshake.
pub(crate) struct TlsSession<'a> {
    socket: &'a Socket,
    session: RefCell<Box<ServerConnection>>,
    client_subject: Option<String>,
}

impl<'a> TlsSession<'a> {
    /// Performs the handshake. Fails at the deadline, and if the client is not accepted. rustls
    /// limits the memory: a message of the handshake has at most 64 KiB.
    pub fn accept(
        socket: &'a Socket,
        loaded: &LoadedFiles,
        deadline: Instant,
    ) -> io::Result<TlsSession<'a>> {
        let session = ServerConnection::new(loaded.config.clone()).map_err(io::Error::other)?;
        let mut session = Box::new(session);
        while session.is_handshaking() {
            socket.limit_time(deadline)?;
            if session.wants_write() {
                session.write_tls(&mut &*socket)?;
                continue;
            }
            if session.read_tls(&mut &*socket)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Err(error) = session.process_new_packets() {
                // The alert tells the client why. It may be gone already.
                let _ = session.write_tls(&mut &*socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
        let client_subject = read_client_subject(&session)?;
        // The tickets of TLS 1.3.
        flush(&mut session, socket)?;
        Ok(TlsSession {
            socket,
            client_subject,
            session: RefCell::new(session),
        })
    }

    /// Returns the version of the protocol.
    pub fn version(&self) -> Option<TlsVersion> {
        match self.session.borrow().protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => Some(TlsVersion::V12),
            Some(ProtocolVersion::TLSv1_3) => Some(TlsVersion::V13),
            _ => None,
        }
    }

    /// Returns the subject of the client's certificate, whose signature and time were checked.
    pub fn client_subject(&self) -> Option<&str> {
        self.client_subject.as_deref()
    }

    /// Returns a reader of decrypted bytes.
    pub fn reader<'s>(&'s self, busy: &'a BusyConnections) -> TlsReader<'s, 'a> {
        let wait = AdaptiveWait::new(self.socket, busy);
        TlsReader {
            session: self,
            incoming: BufReader::with_capacity(READ_BYTES, wait),
        }
    }
}

/// Returns the subject of the client's certificate, if it sent one. Fails if the certificate is
/// malformed: its subject could be read as that of another client.
fn read_client_subject(session: &ServerConnection) -> io::Result<Option<String>> {
    let certificates = session.peer_certificates();
    let Some(certificate) = certificates.and_then(|chain| chain.first()) else {
        return Ok(None);
    };
    let parsed = Certificate::parse(certificate).ok_or_else(|| {
        let message = "the certificate of the client is malformed";
        io::Error::new(io::ErrorKind::InvalidData, message)
    })?;
    Ok(Some(parsed.subject))
}

/// Tells the client that nothing follows, without waiting for it.
impl Drop for TlsSession<'_> {
    fn drop(&mut self) {
        let session = self.session.get_mut();
        session.send_close_notify();
        let mut alert = Vec::new();
        if session.write_tls(&mut alert).is_ok() {
            // The client may be gone.
            let _ = send(
                self.socket,
                &alert,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            );
        }
    }
}

fn flush(session: &mut ServerConnection, socket: &Socket) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(&mut &*socket)?;
    }
    Ok(())
}

impl Write for &TlsSession<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut session = self.session.borrow_mut();
        // The session buffers a limited number of bytes, and reports how many it took.
        let taken = session.writer().write(bytes)?;
        flush(&mut session, self.socket)?;
        Ok(taken)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut session = self.session.borrow_mut();
        let taken = session.writer().write_vectored(parts)?;
        flush(&mut session, self.socket)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads decrypted bytes. It waits for the socket only if no decrypted bytes are left.
pub(crate) struct TlsReader<'s, 'a> {
    session: &'s TlsSession<'a>,
    incoming: BufReader<AdaptiveWait<'a>>,
}

impl Read for TlsReader<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut session = self.session.session.borrow_mut();
        loop {
            match session.reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client closed the socket without saying so before. Within a message, the
                // reader of messages finds that bytes are missing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            session.read_tls(&mut self.incoming)?;
            let processed = session.process_new_packets();
            // Alerts, and replies to changes of keys.
            flush(&mut session, self.session.socket)?;
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}
