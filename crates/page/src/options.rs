//! The options of the page.

use std::net::SocketAddr;

/// The options of a [`PageServer`](crate::PageServer).
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The name of this machine in the address, if the address was given with a name. Browsers may
    /// use it, beside names of the loopback address and addresses in digits.
    pub host_name: Option<String>,
    /// Nothing can be changed by the page.
    pub is_read_only: bool,
}
