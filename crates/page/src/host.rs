//! The hosts under which the page can be reached: names of the loopback address, IP addresses, and
//! the name that the operator configured. Requests with other `Host` headers are refused, which
//! prevents DNS rebinding, see [`windrow_web::host`].

use hyper::header::{HeaderMap, ORIGIN};
use hyper::http::uri::{Authority, Scheme};
use windrow_web::host::{address_of, is_loopback_name, named_host};

/// The accepted hosts.
#[derive(Debug)]
pub struct Hosts {
    /// The page listens on addresses other than the loopback addresses.
    pub is_reachable: bool,
    /// The name that the operator configured.
    pub name: Option<String>,
}

impl Hosts {
    /// Returns the host and port of a request. `None` unless the request has exactly one accepted
    /// `Host` header.
    pub fn accepted(&self, headers: &HeaderMap) -> Option<Authority> {
        let host = named_host(headers)?;
        let has_user = host.as_str().contains('@');
        (!has_user && self.accepts(host.host())).then_some(host)
    }

    fn accepts(&self, host: &str) -> bool {
        let own = self.name.as_deref();
        is_loopback_name(host)
            || own.is_some_and(|own| own.eq_ignore_ascii_case(host))
            || (self.is_reachable && address_of(host).is_some())
    }
}

/// Returns `true` if a POST request comes from a page of this host. Browsers send the `Origin` of
/// such requests. A request without it comes from another program, and is authenticated by its
/// token alone. An unencrypted page is not the same origin as an encrypted connection. The converse
/// is accepted, because a proxy may have terminated TLS.
pub fn is_own_origin(headers: &HeaderMap, host: &Authority, scheme: &Scheme) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().unwrap_or_default();
    let plain = origin
        .strip_prefix("http://")
        .filter(|_| *scheme == Scheme::HTTP);
    let named = plain.or(origin.strip_prefix("https://"));
    named.is_some_and(|named| named.eq_ignore_ascii_case(host.as_str()))
}

#[cfg(test)]
mod tests {
    use hyper::header::HOST;

    use super::*;

    fn headers(names: &[(hyper::header::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in names {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_own_names_are_accepted() {
        let local = Hosts {
            is_reachable: false,
            name: None,
        };
        let reachable = Hosts {
            is_reachable: true,
            name: Some("db.example".to_owned()),
        };
        let cases = [
            ("localhost:8080", true, true),
            ("LOCALHOST", true, true),
            ("127.0.0.1:8080", true, true),
            ("[::1]:8080", true, true),
            ("10.0.0.1:8080", false, true),
            ("db.example:8080", false, true),
            ("evil.example:8080", false, false),
            ("localhost.evil.example", false, false),
            ("a@localhost", false, false),
            ("", false, false),
        ];
        for (host, by_local, by_reachable) in cases {
            let headers = headers(&[(HOST, host)]);
            assert_eq!(local.accepted(&headers).is_some(), by_local, "{host}");
            assert_eq!(
                reachable.accepted(&headers).is_some(),
                by_reachable,
                "{host}"
            );
        }
        let twice = headers(&[(HOST, "localhost"), (HOST, "localhost")]);
        assert_eq!(local.accepted(&twice), None);
        assert_eq!(local.accepted(&HeaderMap::new()), None);
    }

    #[test]
    fn other_origins_are_refused() {
        let host: Authority = "localhost:8080".parse().unwrap();
        let cases = [
            ("http://localhost:8080", true),
            ("https://localhost:8080", true),
            ("http://localhost:8081", false),
            ("http://evil.example", false),
            ("null", false),
        ];
        for (origin, expected) in cases {
            let headers = headers(&[(ORIGIN, origin)]);
            assert_eq!(
                is_own_origin(&headers, &host, &Scheme::HTTP),
                expected,
                "{origin}"
            );
            let is_https = expected && origin.starts_with("https");
            assert_eq!(
                is_own_origin(&headers, &host, &Scheme::HTTPS),
                is_https,
                "{origin}"
            );
        }
        assert!(is_own_origin(&HeaderMap::new(), &host, &Scheme::HTTP));
    }
}
