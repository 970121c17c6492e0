//! The options of the page.

use std::net::SocketAddr;

/// The options of a [`PageServer`](crate::PageServer).
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The host name in `listen`, if the operator gave a name. Browsers may use it in addition to
    /// loopback names and IP addresses.
    pub host_name: Option<String>,
    /// Refuses all requests that write.
    pub is_read_only: bool,
}
