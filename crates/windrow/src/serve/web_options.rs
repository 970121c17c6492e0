//! The options of the page.

use std::net::{IpAddr, SocketAddr};

use super::option_values::parse_listen;
use crate::command_line::Failure;

/// The options of the page that were given.
#[derive(Debug, Default)]
pub struct WebDraft {
    pub address: Option<WebAddress>,
    pub is_read_only: bool,
}

/// Where the page is, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    pub listen: SocketAddr,
    /// The name in the address, which browsers may use.
    pub host_name: Option<String>,
}

/// The options of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOptions {
    pub address: WebAddress,
    pub is_read_only: bool,
}

impl WebDraft {
    /// Returns the options, if there is a page.
    pub fn options(&self) -> Result<Option<WebOptions>, Failure> {
        match &self.address {
            None if self.is_read_only => Err(Failure::Usage(
                "--web-read-only needs --web ADDRESS".to_owned(),
            )),
            None => Ok(None),
            Some(address) => Ok(Some(WebOptions {
                address: address.clone(),
                is_read_only: self.is_read_only,
            })),
        }
    }
}

impl WebAddress {
    /// Parses HOST:PORT. The error continues a sentence that begins with the text.
    pub fn parse(text: &str) -> Result<WebAddress, String> {
        let listen = parse_listen(text)?.first().copied();
        let listen = listen.ok_or("has no address")?;
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

    #[test]
    fn reading_alone_needs_a_page() {
        let draft = WebDraft {
            address: None,
            is_read_only: true,
        };
        assert!(draft.options().is_err());
    }
}
