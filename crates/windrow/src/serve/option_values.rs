//! Parsers of option values. An error message continues a sentence that begins with the name of the
//! option and the value.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::time::Duration;

use windrow_collection::BuildPriority;
use windrow_document::Value;
use windrow_server::{
    AuditFilter, LogRotation, ProfilingLevel, TlsMode, TlsVersion, parse_parameter_value,
};

use super::audit_options::AuditDestination;
use super::tls_options::TlsChoice;
use crate::byte_size;

pub const NOT_POSITIVE: &str = "is not a positive integer";

pub fn text(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "is not UTF-8".to_owned())
}

pub fn parse_switch(value: &OsStr) -> Result<bool, String> {
    let parsed = text(value)?.parse();
    parsed.map_err(|_| "is not true or false".to_owned())
}

pub fn parse_seconds(value: &OsStr) -> Result<Duration, String> {
    let seconds = text(value)?.parse().ok().filter(|seconds| *seconds > 0);
    Ok(Duration::from_secs(seconds.ok_or(NOT_POSITIVE)?))
}

/// The minimum of `--cache-bytes`: the cache is divided into parts of 1 MB.
const CACHE_BYTES_MIN: u64 = 16_000_000;

pub fn parse_cache_bytes(text: &str) -> Result<u64, String> {
    let bytes = byte_size::parse(text)?;
    if bytes < CACHE_BYTES_MIN {
        return Err("is too small; the least is 16MB".to_owned());
    }
    Ok(bytes)
}

pub fn parse_listen(text: &str) -> Result<Vec<SocketAddr>, String> {
    let found = std::net::ToSocketAddrs::to_socket_addrs(text).map(Vec::from_iter);
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| "is not an address; write HOST:PORT, for example 127.0.0.1:27017".to_owned())
}

pub fn parse_parameter(text: &str) -> Result<(String, Value), String> {
    let parts = text.split_once('=');
    let parsed =
        parts.and_then(|(name, value)| Some((name.to_owned(), parse_parameter_value(value)?)));
    parsed.ok_or_else(|| {
        "is not a parameter; write NAME=VALUE with true, false or an integer".to_owned()
    })
}

/// Parses the name of a replica set. It must be usable in a connection string.
pub fn parse_replica_set(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '?', '&', ',', '=', ' ']) {
        let reason = "is not a valid name: it must not be empty or contain / ? & , = or a space";
        return Err(reason.to_owned());
    }
    Ok(text.to_owned())
}

/// Returns the versions of TLS that are not disabled.
pub fn parse_versions_left(text: &str) -> Result<Vec<TlsVersion>, String> {
    let mut versions = vec![TlsVersion::V12, TlsVersion::V13];
    for name in text.split(',').map(str::trim) {
        match name {
            // Versions that the server never supports.
            "TLS1_0" | "TLS1_1" | "none" => {}
            "TLS1_2" => versions.retain(|version| *version != TlsVersion::V12),
            "TLS1_3" => versions.retain(|version| *version != TlsVersion::V13),
            _ => {
                let reason = "is not a list of versions; write TLS1_0, TLS1_1, TLS1_2 or TLS1_3";
                return Err(reason.to_owned());
            }
        }
    }
    if versions.is_empty() {
        return Err("disables every version".to_owned());
    }
    Ok(versions)
}

pub fn parse_number(value: &OsStr) -> Result<u64, String> {
    let number = text(value)?.parse().ok();
    number.ok_or_else(|| "is not a whole number".to_owned())
}

pub fn parse_tls_mode(value: &OsStr) -> Result<TlsChoice, String> {
    match text(value)? {
        "disabled" => Ok(TlsChoice::Disabled),
        "allow" | "allowTLS" => Ok(TlsChoice::Enabled(TlsMode::Allow)),
        "prefer" | "preferTLS" => Ok(TlsChoice::Enabled(TlsMode::Prefer)),
        "require" | "requireTLS" => Ok(TlsChoice::Enabled(TlsMode::Require)),
        _ => Err("is not a mode; write disabled, allow, prefer or require".to_owned()),
    }
}

pub fn parse_priority(value: &OsStr) -> Result<BuildPriority, String> {
    match text(value)? {
        "low" => Ok(BuildPriority::Low),
        "normal" => Ok(BuildPriority::Normal),
        "high" => Ok(BuildPriority::High),
        _ => Err("is not a priority; write low, normal or high".to_owned()),
    }
}

/// Parses the number of the command line or the name of the configuration file.
pub fn parse_profiling_level(value: &OsStr) -> Result<ProfilingLevel, String> {
    match text(value)? {
        "0" | "off" => Ok(ProfilingLevel::Off),
        "1" | "slowOp" => Ok(ProfilingLevel::Slow),
        "2" | "all" => Ok(ProfilingLevel::All),
        _ => Err("is not a level; write off, slowOp or all".to_owned()),
    }
}

pub fn parse_rate(value: &OsStr) -> Result<f64, String> {
    let rate = text(value)?.parse().ok();
    let rate = rate.filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "is not a number from 0 to 1".to_owned())
}

pub fn parse_rotation(value: &OsStr) -> Result<LogRotation, String> {
    match text(value)? {
        "rename" => Ok(LogRotation::Rename),
        "reopen" => Ok(LogRotation::Reopen),
        _ => Err("is not a rotation; write rename or reopen".to_owned()),
    }
}

/// Accepts only the value that describes the behaviour of the server.
pub fn accept_only(value: &OsStr, only: &str) -> Result<(), String> {
    if text(value)? == only {
        return Ok(());
    }
    Err(format!("is not supported; the only value is {only}"))
}

pub fn parse_audit_destination(value: &OsStr) -> Result<AuditDestination, String> {
    match text(value)? {
        "console" => Ok(AuditDestination::Console),
        "file" => Ok(AuditDestination::File),
        "syslog" => Ok(AuditDestination::Syslog),
        _ => Err("is not a destination; write file, syslog or console".to_owned()),
    }
}

pub fn parse_audit_filter(value: &OsStr) -> Result<AuditFilter, String> {
    let parsed = AuditFilter::parse(text(value)?);
    parsed.map_err(|reason| format!("is not a filter of events: {reason}"))
}

pub fn parse_permissions(value: &OsStr) -> Result<u32, String> {
    let mode = u32::from_str_radix(text(value)?, 8).ok();
    let mode = mode.filter(|mode| *mode <= 0o777);
    let reason = "is not a set of permissions; write an octal number up to 0777";
    mode.ok_or_else(|| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_versions_are_left_out() {
        let check = |text: &str, expected: Result<&[TlsVersion], &str>| {
            let expected = expected.map(<[_]>::to_vec).map_err(str::to_owned);
            match (parse_versions_left(text), expected) {
                (Err(found), Err(expected)) => assert!(found.contains(&expected), "{found}"),
                (found, expected) => assert_eq!(found, expected, "{text}"),
            }
        };
        check("none", Ok(&[TlsVersion::V12, TlsVersion::V13]));
        check("TLS1_0,TLS1_1", Ok(&[TlsVersion::V12, TlsVersion::V13]));
        check("TLS1_0, TLS1_2", Ok(&[TlsVersion::V13]));
        check("TLS1_3", Ok(&[TlsVersion::V12]));
        check("TLS1_2,TLS1_3", Err("every version"));
        check("SSL3", Err("not a list"));
    }
}
