//! A client of HTTP that sends traces to a collector of OpenTelemetry.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use tokio::runtime::Runtime;

/// How long a request can take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The path of traces below the endpoint.
const PATH: &str = "/v1/traces";
const FORM: &str = "is not an endpoint; write http://HOST:4318 or https://HOST:4318";

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorAddress(Url);

impl CollectorAddress {
    /// Parses an endpoint such as `http://127.0.0.1:4318`. Traces are sent to `/v1/traces` below
    /// it.
    ///
    /// # Errors
    /// Fails with a phrase if it is not such an endpoint.
    pub fn parse(endpoint: &str) -> Result<CollectorAddress, String> {
        let mut url = Url::parse(endpoint).map_err(|_| FORM.to_owned())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FORM.to_owned());
        }
        let has_login = !url.username().is_empty() || url.password().is_some();
        if has_login || url.query().is_some() || url.fragment().is_some() {
            return Err("can only have a host, a port and a path".to_owned());
        }
        url.set_path(&format!("{}{PATH}", url.path().trim_end_matches('/')));
        Ok(CollectorAddress(url))
    }

    fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
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
    client: Client,
    runtime: Runtime,
}

impl Collector {
    /// Prepares to send. Does not connect yet. The certificate of an `https` endpoint must be
    /// signed by an authority that the system trusts, or that the environment variable
    /// `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// Fails if the system has no resources for it, or no authorities for an `https` endpoint.
    pub fn new(address: CollectorAddress) -> io::Result<Collector> {
        // Fails if it was done before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A redirection could lead traces to another machine.
        let mut client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .timeout(REQUEST_TIME_MAX);
        if !address.is_encrypted() {
            // The system may have no authorities, and none are needed.
            client = client.tls_certs_only([]);
        }
        let client = client
            .build()
            .map_err(|error| io::Error::other(causes(&error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        Ok(Collector {
            address,
            client,
            runtime,
        })
    }

    /// Sends a request of the OpenTelemetry protocol in JSON.
    ///
    /// # Errors
    /// Fails if the collector cannot be reached or does not take it.
    pub fn send(&self, request: String) -> Result<(), CollectorError> {
        let status = self.runtime.block_on(self.post(request));
        let status = status.map_err(|error| CollectorError {
            can_retry: true,
            reason: if error.is_timeout() {
                "it did not answer in time".to_owned()
            } else {
                causes(&error)
            },
        })?;
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

    async fn post(&self, body: String) -> Result<StatusCode, reqwest::Error> {
        let request = self.client.post(self.address.0.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let mut answer = request.send().await?;
        let status = answer.status();
        // The connection can be used again after the answer was read. A longer one is not read.
        let mut bytes = 0;
        while bytes < ANSWER_BYTES_MAX
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            bytes += chunk.len();
        }
        Ok(status)
    }
}

/// The text of an error with those of its causes, such as that of a certificate.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_parsed() {
        let check = |endpoint: &str, expected: Result<&str, &str>| {
            let parsed = CollectorAddress::parse(endpoint);
            let found = parsed.map(|it| it.0.to_string());
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{endpoint}: {found:?}"),
            }
        };
        check(
            "http://127.0.0.1:4318",
            Ok("http://127.0.0.1:4318/v1/traces"),
        );
        check("http://h", Ok("http://h/v1/traces"));
        check("http://[::1]:1/a/", Ok("http://[::1]:1/a/v1/traces"));
        check("https://h:4318", Ok("https://h:4318/v1/traces"));
        check("ftp://h", Err("not an endpoint"));
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
