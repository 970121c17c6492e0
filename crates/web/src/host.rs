//! The `Host` of requests.
//!
//! A web site whose name leads to an address of this machine could read a page by a browser of its
//! user, under its own name. A page therefore answers only requests that name a known host.

use std::net::IpAddr;

use hyper::header::{HOST, HeaderMap};
use hyper::http::uri::Authority;

/// Returns the host that a request names, with its port. `None` if it names none or several.
pub fn named_host(headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok()?.parse().ok(),
        _ => None,
    }
}

/// Returns the address that a host in digits is.
pub fn address_of(host: &str) -> Option<IpAddr> {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address.parse().ok()
}

/// Returns `true` for the names of the loopback address, which no other host can own.
pub fn is_loopback_name(host: &str) -> bool {
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || address_of(host).is_some_and(is_loopback)
}
