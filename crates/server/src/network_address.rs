//! Addresses of both ends of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The address of a listener or of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkAddress {
    /// An IP address and a port.
    Ip(SocketAddr),
    /// The path of a Unix domain socket. Clients have the path of their listener, because their own
    /// ends have no names.
    Unix(PathBuf),
}

impl NetworkAddress {
    /// Returns the IP address. That of the loopback for Unix domain sockets, which only processes
    /// of this machine can use.
    pub fn ip(&self) -> IpAddr {
        match self {
            NetworkAddress::Ip(address) => address.ip(),
            NetworkAddress::Unix(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Returns `true` if it is not that of a Unix domain socket.
    pub fn is_ip(&self) -> bool {
        matches!(self, NetworkAddress::Ip(_))
    }

    /// Returns the port. Unix domain sockets have none.
    pub fn port(&self) -> Option<u16> {
        match self {
            NetworkAddress::Ip(address) => Some(address.port()),
            NetworkAddress::Unix(_) => None,
        }
    }
}

impl fmt::Display for NetworkAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkAddress::Ip(address) => address.fmt(formatter),
            NetworkAddress::Unix(path) => path.display().fmt(formatter),
        }
    }
}
