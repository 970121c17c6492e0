//! Authentication restrictions: the addresses from and to which a user may connect.

use std::net::IpAddr;

use windrow_document::{Array, ArrayBuf, DocumentBuf, Value, ValueRef};

use crate::error::Error;
use crate::fields::Fields;

/// The addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The address of the client.
    pub client: IpAddr,
    /// The address of the server.
    pub server: IpAddr,
}

/// A range of addresses, as written and parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Network {
    text: String,
    address: IpAddr,
    prefix: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(bits);
        (prefix <= bits).then(|| Network {
            text: text.to_owned(),
            address,
            prefix,
        })
    }

    fn includes(&self, address: IpAddr) -> bool {
        // A socket of both families shows IPv4 addresses within IPv6.
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= self.prefix
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= self.prefix
            }
            _ => false,
        }
    }
}

/// A restriction: all lists that it has must include the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    client_source: Option<Vec<Network>>,
    server_address: Option<Vec<Network>>,
}

impl Restriction {
    fn parse(value: ValueRef<'_>) -> Result<Restriction, Error> {
        let Some(document) = value.as_document() else {
            let message = "an authentication restriction must be an object";
            return Err(Error::Invalid(message.to_owned()));
        };
        let fields = Fields::new(document, "authenticationRestrictions");
        fields.only(&["clientSource", "serverAddress"])?;
        let networks = |name: &str| match document.get(name) {
            None => Ok(None),
            Some(_) => parse_networks(fields.array(name)?, name).map(Some),
        };
        let restriction = Restriction {
            client_source: networks("clientSource")?,
            server_address: networks("serverAddress")?,
        };
        if restriction == Restriction::default() {
            let message = "an authentication restriction needs clientSource or serverAddress";
            return Err(Error::Invalid(message.to_owned()));
        }
        Ok(restriction)
    }

    fn allows(&self, endpoints: Endpoints) -> bool {
        let includes = |networks: &Option<Vec<Network>>, address| {
            let includes = |networks: &Vec<Network>| networks.iter().any(|it| it.includes(address));
            networks.as_ref().is_none_or(includes)
        };
        includes(&self.client_source, endpoints.client)
            && includes(&self.server_address, endpoints.server)
    }

    fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        let lists = [
            ("clientSource", &self.client_source),
            ("serverAddress", &self.server_address),
        ];
        for (name, list) in lists {
            if let Some(networks) = list {
                let texts: Vec<&str> = networks.iter().map(|it| it.text.as_str()).collect();
                document.push(name, texts);
            }
        }
        document
    }
}

/// Parses an array of networks, or a single network. Each is a string. Fails if one is malformed.
fn parse_networks(values: Array<'_>, name: &str) -> Result<Vec<Network>, Error> {
    let parse = |value: ValueRef<'_>| {
        let network = value.as_str().and_then(Network::parse);
        network.ok_or_else(|| {
            Error::Invalid(format!(
                "{name} must list IP addresses or CIDR ranges, not {value:?}"
            ))
        })
    };
    values.iter().map(parse).collect()
}

/// The restrictions of a user or a role: at least one must allow a connection, if there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions(Vec<Restriction>);

impl Restrictions {
    /// Parses an array of restrictions.
    pub fn parse(values: Array<'_>) -> Result<Restrictions, Error> {
        let parsed: Result<_, _> = values.iter().map(Restriction::parse).collect();
        parsed.map(Restrictions)
    }

    /// Returns `true` if a connection is allowed.
    pub fn allow(&self, endpoints: Endpoints) -> bool {
        self.0.is_empty() || self.0.iter().any(|one| one.allows(endpoints))
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the array of the restrictions, which documents of users and roles contain.
    pub fn to_array(&self) -> ArrayBuf {
        let documents = self.0.iter().map(|one| Value::from(one.to_document()));
        documents.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::array;

    #[test]
    fn addresses_are_restricted() {
        let check = |restrictions: ArrayBuf, client: &str, expected: bool| {
            let parsed = Restrictions::parse(restrictions.as_array()).unwrap();
            let endpoints = Endpoints {
                client: client.parse().unwrap(),
                server: "10.0.0.1".parse().unwrap(),
            };
            assert_eq!(
                parsed.allow(endpoints),
                expected,
                "{restrictions:?} {client}"
            );
            assert_eq!(parsed.to_array(), restrictions);
        };
        let from = |range: &str| array![{ "clientSource": [range] }];
        check(array![], "1.2.3.4", true);
        check(from("1.2.3.4"), "1.2.3.4", true);
        check(from("1.2.3.4"), "1.2.3.5", false);
        check(from("1.2.0.0/16"), "1.2.3.5", true);
        check(from("1.2.0.0/16"), "1.3.3.5", false);
        check(from("0.0.0.0/0"), "9.9.9.9", true);
        check(from("0.0.0.0/0"), "::1", false);
        check(from("::/0"), "::1", true);
        check(from("fe80::/10"), "fe80::5", true);
        check(from("1.2.3.4"), "::ffff:1.2.3.4", true);
        check(array![{ "serverAddress": ["10.0.0.0/8"] }], "1.1.1.1", true);
        check(
            array![{ "serverAddress": ["11.0.0.0/8"] }],
            "1.1.1.1",
            false,
        );
        let both = array![{ "clientSource": ["1.1.1.1"], "serverAddress": ["11.0.0.0/8"] }];
        check(both, "1.1.1.1", false);
        let either = array![{ "clientSource": ["1.1.1.1"] }, { "clientSource": ["2.2.2.2"] }];
        check(either, "2.2.2.2", true);
    }

    #[test]
    fn invalid_restrictions_are_refused() {
        for list in [
            array![{}],
            array![1],
            array![{ "clientSource": "1.1.1.1" }],
            array![{ "clientSource": ["1.1.1.1/33"] }],
            array![{ "clientSource": ["x"] }],
            array![{ "source": ["1.1.1.1"] }],
        ] {
            assert!(Restrictions::parse(list.as_array()).is_err(), "{list:?}");
        }
    }
}
