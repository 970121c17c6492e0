//! Connections with and without TLS on one port: the first byte tells them apart.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::services::PageTls;

/// A connection of a browser.
pub enum BrowserStream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// How long a handshake can take.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// The first byte of a handshake (RFC 8446, 5.1). No method of HTTP begins with it.
const HANDSHAKE: u8 = 22;

/// Looks at the first byte of a connection, and makes the handshake.
///
/// # Errors
/// Fails if the browser has gone, is too slow, or if the handshake fails.
pub async fn accept_stream(stream: TcpStream, tls: Option<&PageTls>) -> io::Result<BrowserStream> {
    let Some(config) = tls.and_then(|tls| (tls.config)()) else {
        return Ok(BrowserStream::Plain(stream));
    };
    let mut first = [0];
    // A browser opens connections before it needs them, and they may stay silent.
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
