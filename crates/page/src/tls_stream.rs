//! Accepts connections with and without TLS on the same port. The first byte distinguishes them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::services::PageTls;

/// The connection of a browser.
pub enum BrowserStream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// The time limit of the handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// The type of a TLS handshake record (RFC 8446, section 5.1). No HTTP method begins with this
/// byte.
const HANDSHAKE: u8 = 22;

/// Detects TLS by the first byte of a connection, and performs the handshake.
///
/// # Errors
/// Fails if the browser disconnects or is too slow, or if the handshake fails.
pub async fn accept_stream(stream: TcpStream, tls: Option<&PageTls>) -> io::Result<BrowserStream> {
    let Some(config) = tls.and_then(|tls| (tls.config)()) else {
        return Ok(BrowserStream::Plain(stream));
    };
    let mut first = [0];
    // No timeout: browsers open connections in advance and may leave them idle.
    stream.peek(&mut first).await?;
    match first {
        [HANDSHAKE] => shake_hands(stream, config).await,
        _ => Ok(BrowserStream::Plain(stream)),
    }
}

async fn shake_hands(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<BrowserStream> {
    let handshake = TlsAcceptor::from(config).accept(stream);
    let stream = timeout(HANDSHAKE_TIME_MAX, handshake).await??;
    Ok(BrowserStream::Encrypted(Box::new(stream)))
}
