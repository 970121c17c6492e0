//! The address of the web page.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The address of the page as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    pub listen: SocketAddr,
    /// The host name in the address, if one was given.
    pub host_name: Option<String>,
}

/// The options of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOptions {
    pub address: WebAddress,
    pub is_read_only: bool,
}

impl WebAddress {
    /// Parses HOST:PORT. The error message continues a sentence that begins with the text.
    pub fn parse(text: &str) -> Result<WebAddress, String> {
        let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
        let listen =
            found.ok_or("is not an address; write HOST:PORT, for example 127.0.0.1:8080")?;
        let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        Ok(WebAddress {
            listen,
            host_name: (!is_address).then(|| host.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_addresses_are_kept() {
        let cases = [
            ("127.0.0.1:8080", "127.0.0.1:8080", None),
            ("[::1]:80", "[::1]:80", None),
            ("localhost:8080", "", Some("localhost")),
        ];
        for (text, listen, name) in cases {
            let parsed = WebAddress::parse(text).unwrap();
            assert_eq!(parsed.host_name.as_deref(), name);
            if !listen.is_empty() {
                assert_eq!(parsed.listen.to_string(), listen);
            }
        }
        assert!(WebAddress::parse("8080").is_err());
    }
}
