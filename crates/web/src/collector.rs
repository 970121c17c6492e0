//! A client of HTTP that sends traces to a collector of OpenTelemetry.

use std::fmt;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::runtime::Runtime;

/// How long a request can take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The path of traces below the endpoint.
const PATH: &str = "/v1/traces";
/// The port of the protocol over HTTP.
const PORT_DEFAULT: u16 = 4318;

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorAddress {
    host: String,
    port: u16,
    path: String,
}

impl CollectorAddress {
    /// Parses an endpoint such as `http://127.0.0.1:4318`. Traces are sent to `/v1/traces` below it.
    ///
    /// # Errors
    /// Fails with a phrase if it is not such an endpoint. Encrypted connections are not supported.
    pub fn parse(endpoint: &str) -> Result<CollectorAddress, String> {
        let uri: Uri = endpoint
            .parse()
            .map_err(|_| "is not an endpoint; write http://HOST:4318".to_owned())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                let reason = "is encrypted, which is not supported; send traces to a collector on \
                              this machine";
                return Err(reason.to_owned());
            }
            _ => return Err("is not an endpoint; write http://HOST:4318".to_owned()),
        }
        let authority = uri.authority().ok_or("has no host")?;
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err("can only have a host, a port and a path".to_owned());
        }
        Ok(CollectorAddress {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(PORT_DEFAULT),
            path: format!("{}{PATH}", uri.path().trim_end_matches('/')),
        })
    }

    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Why a collector did not take traces.
#[derive(Debug, PartialEq, Eq)]
pub struct CollectorError {
    /// `true` if it may take the same traces later.
    pub can_retry: bool,
    reason: String,
}

impl fmt::Display for CollectorError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

/// Sends traces to a collector, one request at a time.
#[derive(Debug)]
pub struct Collector {
    address: CollectorAddress,
    runtime: Runtime,
}

impl Collector {
    /// Prepares to send. Does not connect yet.
    ///
    /// # Errors
    /// Fails if the system has no resources for it.
    pub fn new(address: CollectorAddress) -> io::Result<Collector> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        Ok(Collector { address, runtime })
    }

    /// Sends a request of the OpenTelemetry protocol in JSON.
    ///
    /// # Errors
    /// Fails if the collector cannot be reached or does not take it.
    pub fn send(&self, request: String) -> Result<(), CollectorError> {
        let sent = self.post(request);
        let timed = async { tokio::time::timeout(REQUEST_TIME_MAX, sent).await };
        let status = self.runtime.block_on(timed);
        let later = |reason: String| CollectorError {
            can_retry: true,
            reason,
        };
        let status = status
            .map_err(|_| later("it did not answer in time".to_owned()))?
            .map_err(|error| later(error.to_string()))?;
        if status.is_success() {
            return Ok(());
        }
        // The protocol names these as temporary.
        let temporary = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        Err(CollectorError {
            can_retry: temporary.contains(&status),
            reason: format!("it answered {status}"),
        })
    }

    async fn post(&self, body: String) -> Result<StatusCode, Box<dyn std::error::Error>> {
        let address = &self.address;
        let stream = tokio::net::TcpStream::connect((address.host.as_str(), address.port)).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(&address.path)
            .header(HOST, address.authority())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))?;
        // The connection ends when the exchange has dropped the sender, or when the collector ends it.
        let exchange = async move {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            // What does not fit is not needed.
            let _ = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
                .collect()
                .await;
            Ok(status)
        };
        let (status, _) = tokio::join!(exchange, connection);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_parsed() {
        let check = |endpoint: &str, expected: Result<&str, &str>| {
            let parsed = CollectorAddress::parse(endpoint);
            let found = parsed.map(|it| format!("{}{}", it.authority(), it.path));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{endpoint}: {found:?}"),
            }
        };
        check("http://127.0.0.1:4318", Ok("127.0.0.1:4318/v1/traces"));
        check("http://h", Ok("h:4318/v1/traces"));
        check("http://[::1]:1/a/", Ok("[::1]:1/a/v1/traces"));
        check("https://h", Err("encrypted"));
        check("h:4318", Err("not an endpoint"));
        check("http://a:b@h/", Err("can only"));
        check("http://h/?a=1", Err("can only"));
        check("", Err("not an endpoint"));
    }

    #[test]
    fn nobody_at_the_address_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let address = CollectorAddress::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        let collector = Collector::new(address).unwrap();
        assert!(collector.send("{}".to_owned()).unwrap_err().can_retry);
    }
}
