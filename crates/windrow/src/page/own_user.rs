//! Detects whether a browser belongs to the user that runs this program.
//!
//! Other users of the machine can also connect to the loopback address. The system reports the
//! owner of the other end of a connection. Source: proc(5), `/proc/net/tcp`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use windrow_page::ConnectionEnds;

/// The tables of connections, for IPv4 and IPv6.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Returns `true` if the other end of a connection is a socket of the user of this process on this
/// machine. Always `false` on systems other than Linux.
pub fn is_own_user(ends: ConnectionEnds) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let mut tables = TABLES
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    tables.any(|table| owner(&table, ends) == Some(own))
}

/// Returns the owner of the browser's socket.
fn owner(table: &str, ends: ConnectionEnds) -> Option<u32> {
    let (browser, page) = (canonical(ends.browser), canonical(ends.page));
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (own, other) = (
            parse_address(fields.next()?)?,
            parse_address(fields.next()?)?,
        );
        let is_this = own == browser && other == page;
        is_this.then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Parses `0100007F:1F90`: words of four bytes in native byte order, and the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn own_connections_are_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let browser = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, from) = listener.accept().unwrap();
        let ends = ConnectionEnds {
            browser: from,
            page: stream.local_addr().unwrap(),
            is_encrypted: false,
        };
        assert!(is_own_user(ends));
        drop(browser);
        let other = ConnectionEnds {
            browser: "127.0.0.1:1".parse().unwrap(),
            is_encrypted: false,
            ..ends
        };
        assert!(!is_own_user(other));
    }

    #[test]
    fn the_owner_is_that_of_the_browser() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
            0: 0100007F:1F90 0100007F:A0B1 01 00000000:00000000 00:00000000 00000000     0        0 1\n   \
            1: 0100007F:A0B1 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2\n";
        let ends = ConnectionEnds {
            browser: "127.0.0.1:41137".parse().unwrap(),
            page: "127.0.0.1:8080".parse().unwrap(),
            is_encrypted: false,
        };
        assert_eq!(owner(table, ends), Some(1000));
        assert_eq!(owner("", ends), None);
        let mapped = "0000000000000000FFFF00000100007F:1F90";
        assert_eq!(parse_address(mapped), Some(ends.page));
        assert_eq!(parse_address("0100007F"), None);
        assert_eq!(parse_address("01:1"), None);
    }
}
