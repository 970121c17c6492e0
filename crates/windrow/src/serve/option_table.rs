//! The options of `windrow serve`: the one table of their names, the names that mongod has for them,
//! their keys in the configuration file, and their parsers.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use windrow_collection::BuildPriority;
use windrow_document::Value;
use windrow_server::{AccessControl, TlsMode, TlsVersion, parse_parameter_value};

use crate::{byte_size, memory};

/// An option.
pub struct ServerOption {
    /// The name on the command line, after `--`.
    pub name: &'static str,
    /// The names of mongod's option.
    pub mongod: &'static [&'static str],
    /// The key in the configuration file. Those without a counterpart in mongod's file have a
    /// section `windrow`.
    pub key: &'static str,
    pub kind: Kind,
    /// Parses the value and stores it. The error continues a sentence that begins with the name and
    /// the value.
    pub set: fn(&mut Draft, &OsStr) -> Result<(), String>,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    /// Set by its presence on the command line, and with `true` in the file.
    Switch,
    /// `NAME=VALUE` on the command line, and a map in the file.
    Map,
}

/// The options that were given.
#[derive(Debug, Default)]
pub struct Draft {
    pub data_folder: Option<PathBuf>,
    pub listen: Vec<SocketAddr>,
    pub bind_ip: Option<Vec<String>>,
    pub bind_all: bool,
    pub port: Option<u16>,
    pub ipv6: bool,
    pub unix_socket_folder: Option<PathBuf>,
    pub unix_socket: Option<bool>,
    pub unix_socket_permissions: Option<u32>,
    pub tls_mode: Option<Option<TlsMode>>,
    pub tls_certificate_key_file: Option<PathBuf>,
    pub tls_ca_file: Option<PathBuf>,
    pub tls_crl_file: Option<PathBuf>,
    pub tls_allow_without_certificates: bool,
    pub tls_versions: Option<Vec<TlsVersion>>,
    pub handshake_time_max: Option<Duration>,
    pub connections_max: Option<usize>,
    pub idle_time_max: Option<Duration>,
    /// `None` if no option says when clients must log in.
    pub access_control: Option<AccessControl>,
    pub memory_bytes: Option<u64>,
    pub build_priority: BuildPriority,
    pub snapshot_age_max: Option<Duration>,
    pub replica_set: Option<String>,
    pub parameters: Vec<(String, Value)>,
    pub history_bytes: Option<u64>,
    pub logpath: Option<PathBuf>,
    pub encryption: bool,
    pub encryption_key_file: Option<PathBuf>,
}

impl Draft {
    /// Sets when clients must log in. Fails if another option says something else.
    fn control_access(&mut self, control: AccessControl) -> Result<(), String> {
        match self.access_control.replace(control) {
            Some(before) if before != control => Err(
                "contradicts another option: --auth and --no-auth exclude each other".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

const fn option(
    name: &'static str,
    mongod: &'static [&'static str],
    key: &'static str,
    kind: Kind,
    set: fn(&mut Draft, &OsStr) -> Result<(), String>,
) -> ServerOption {
    ServerOption {
        name,
        mongod,
        key,
        kind,
        set,
    }
}

/// All options, in the order of the help text.
pub const OPTIONS: &[ServerOption] = &[
    option(
        "data",
        &["dbpath"],
        "storage.dbPath",
        Kind::Text,
        |draft, value| {
            draft.data_folder = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    option(
        "listen",
        &[],
        "net.windrow.listen",
        Kind::Text,
        |draft, value| {
            draft.listen.extend(parse_listen(text(value)?)?);
            Ok(())
        },
    ),
    option(
        "bind-ip",
        &["bind_ip"],
        "net.bindIp",
        Kind::Text,
        |draft, value| {
            let names = text(value)?.split(',').map(str::trim);
            let names = names.filter(|name| !name.is_empty()).map(str::to_owned);
            draft.bind_ip = Some(names.collect());
            Ok(())
        },
    ),
    option(
        "bind-ip-all",
        &["bind_ip_all"],
        "net.bindIpAll",
        Kind::Switch,
        |draft, value| {
            draft.bind_all = parse_switch(value)?;
            Ok(())
        },
    ),
    option("port", &[], "net.port", Kind::Integer, |draft, value| {
        let port = text(value)?.parse().ok();
        draft.port = Some(port.ok_or("is not a port; write a number up to 65535")?);
        Ok(())
    }),
    option("ipv6", &[], "net.ipv6", Kind::Switch, |draft, value| {
        draft.ipv6 = parse_switch(value)?;
        Ok(())
    }),
    option(
        "unix-socket-prefix",
        &["unixSocketPrefix"],
        "net.unixDomainSocket.pathPrefix",
        Kind::Text,
        |draft, value| {
            draft.unix_socket_folder = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    option(
        "no-unix-socket",
        &["nounixsocket"],
        "net.unixDomainSocket.enabled",
        Kind::Switch,
        |draft, value| {
            draft.unix_socket = Some(parse_switch(value)?);
            Ok(())
        },
    ),
    option(
        "unix-socket-permissions",
        &["filePermissions"],
        "net.unixDomainSocket.filePermissions",
        Kind::Text,
        |draft, value| {
            let mode = u32::from_str_radix(text(value)?, 8).ok();
            let mode = mode.filter(|mode| *mode <= 0o777);
            let reason = "is not a set of permissions; write an octal number up to 0777";
            draft.unix_socket_permissions = Some(mode.ok_or(reason)?);
            Ok(())
        },
    ),
    option(
        "tls-mode",
        &["tlsMode"],
        "net.tls.mode",
        Kind::Text,
        |draft, value| {
            draft.tls_mode = Some(match text(value)? {
                "disabled" => None,
                "allow" | "allowTLS" => Some(TlsMode::Allow),
                "prefer" | "preferTLS" => Some(TlsMode::Prefer),
                "require" | "requireTLS" => Some(TlsMode::Require),
                _ => {
                    return Err(
                        "is not a mode; write disabled, allow, prefer or require".to_owned()
                    );
                }
            });
            Ok(())
        },
    ),
    option(
        "tls-certificate-key-file",
        &["tlsCertificateKeyFile"],
        "net.tls.certificateKeyFile",
        Kind::Text,
        |draft, value| {
            draft.tls_certificate_key_file = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    option(
        "tls-ca-file",
        &["tlsCAFile"],
        "net.tls.CAFile",
        Kind::Text,
        |draft, value| {
            draft.tls_ca_file = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    option(
        "tls-crl-file",
        &["tlsCRLFile"],
        "net.tls.CRLFile",
        Kind::Text,
        |draft, value| {
            draft.tls_crl_file = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    option(
        "tls-allow-connections-without-certificates",
        &["tlsAllowConnectionsWithoutCertificates"],
        "net.tls.allowConnectionsWithoutCertificates",
        Kind::Switch,
        |draft, value| {
            draft.tls_allow_without_certificates = parse_switch(value)?;
            Ok(())
        },
    ),
    option(
        "tls-disabled-protocols",
        &["tlsDisabledProtocols"],
        "net.tls.disabledProtocols",
        Kind::Text,
        |draft, value| {
            draft.tls_versions = Some(parse_versions_left(text(value)?)?);
            Ok(())
        },
    ),
    option(
        "handshake-seconds-max",
        &[],
        "net.windrow.handshakeSecondsMax",
        Kind::Integer,
        |draft, value| {
            draft.handshake_time_max = Some(parse_seconds(value)?);
            Ok(())
        },
    ),
    option(
        "connections-max",
        &["maxConns"],
        "net.maxIncomingConnections",
        Kind::Integer,
        |draft, value| {
            let count = text(value)?.parse().ok().filter(|count| *count > 0);
            draft.connections_max = Some(count.ok_or(NOT_POSITIVE)?);
            Ok(())
        },
    ),
    option(
        "idle-seconds-max",
        &[],
        "net.windrow.idleSecondsMax",
        Kind::Integer,
        |draft, value| {
            draft.idle_time_max = Some(parse_seconds(value)?);
            Ok(())
        },
    ),
    option(
        "auth",
        &[],
        "security.windrow.auth",
        Kind::Switch,
        |draft, value| {
            if parse_switch(value)? {
                draft.control_access(AccessControl::Always)?;
            }
            Ok(())
        },
    ),
    option(
        "no-auth",
        &["noauth"],
        "security.windrow.noAuth",
        Kind::Switch,
        |draft, value| {
            if parse_switch(value)? {
                draft.control_access(AccessControl::Never)?;
            }
            Ok(())
        },
    ),
    option(
        "authorization",
        &[],
        "security.authorization",
        Kind::Text,
        |draft, value| match text(value)? {
            "enabled" => draft.control_access(AccessControl::Always),
            "disabled" => draft.control_access(AccessControl::Never),
            _ => Err("is neither enabled nor disabled".to_owned()),
        },
    ),
    option(
        "memory",
        &[],
        "storage.windrow.memory",
        Kind::Text,
        |draft, value| {
            draft.memory_bytes = Some(byte_size::parse(text(value)?).and_then(memory::check)?);
            Ok(())
        },
    ),
    option(
        "build-priority",
        &[],
        "storage.windrow.buildPriority",
        Kind::Text,
        |draft, value| {
            draft.build_priority = match text(value)? {
                "low" => BuildPriority::Low,
                "normal" => BuildPriority::Normal,
                "high" => BuildPriority::High,
                _ => return Err("is not a priority; write low, normal or high".to_owned()),
            };
            Ok(())
        },
    ),
    option(
        "snapshot-seconds-max",
        &[],
        "storage.windrow.snapshotSecondsMax",
        Kind::Integer,
        |draft, value| {
            draft.snapshot_age_max = Some(parse_seconds(value)?);
            Ok(())
        },
    ),
    option(
        "replica-set",
        &["replSet"],
        "replication.replSetName",
        Kind::Text,
        |draft, value| {
            draft.replica_set = Some(parse_replica_set(text(value)?)?);
            Ok(())
        },
    ),
    option(
        "set-parameter",
        &["setParameter"],
        "setParameter",
        Kind::Map,
        |draft, value| {
            draft.parameters.push(parse_parameter(text(value)?)?);
            Ok(())
        },
    ),
    option(
        "change-history-bytes-max",
        &[],
        "storage.windrow.changeHistoryBytesMax",
        Kind::Text,
        |draft, value| {
            draft.history_bytes = Some(byte_size::parse(text(value)?)?);
            Ok(())
        },
    ),
    option(
        "logpath",
        &[],
        "systemLog.path",
        Kind::Text,
        |draft, value| {
            draft.logpath = Some(PathBuf::from(value));
            Ok(())
        },
    ),
    option(
        "enable-encryption",
        &["enableEncryption"],
        "security.enableEncryption",
        Kind::Switch,
        |draft, value| {
            draft.encryption = parse_switch(value)?;
            Ok(())
        },
    ),
    option(
        "encryption-key-file",
        &["encryptionKeyFile"],
        "security.encryptionKeyFile",
        Kind::Text,
        |draft, value| {
            draft.encryption_key_file = Some(PathBuf::from(value));
            Ok(())
        },
    ),
];

/// The option with this name on the command line.
pub fn find(name: &str) -> Option<&'static ServerOption> {
    OPTIONS
        .iter()
        .find(|option| option.name == name || option.mongod.contains(&name))
}

/// The value of a switch on the command line. `--no-unix-socket` is the opposite of its key in the
/// file.
pub fn switch_value(option: &ServerOption) -> OsString {
    let is_on = option.name != "no-unix-socket";
    is_on.to_string().into()
}

const NOT_POSITIVE: &str = "is not a positive integer";

fn text(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "is not UTF-8".to_owned())
}

fn parse_switch(value: &OsStr) -> Result<bool, String> {
    let parsed = text(value)?.parse();
    parsed.map_err(|_| "is not true or false".to_owned())
}

fn parse_seconds(value: &OsStr) -> Result<Duration, String> {
    let seconds = text(value)?.parse().ok().filter(|seconds| *seconds > 0);
    Ok(Duration::from_secs(seconds.ok_or(NOT_POSITIVE)?))
}

fn parse_listen(text: &str) -> Result<Vec<SocketAddr>, String> {
    let found = std::net::ToSocketAddrs::to_socket_addrs(text).map(Vec::from_iter);
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| "is not an address; write HOST:PORT, for example 127.0.0.1:27017".to_owned())
}

fn parse_parameter(text: &str) -> Result<(String, Value), String> {
    let parts = text.split_once('=');
    let parsed =
        parts.and_then(|(name, value)| Some((name.to_owned(), parse_parameter_value(value)?)));
    parsed.ok_or_else(|| {
        "is not a parameter; write NAME=VALUE with true, false or an integer".to_owned()
    })
}

/// Parses the name of a replica set. It must be usable in a connection string.
fn parse_replica_set(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '?', '&', ',', '=', ' ']) {
        let reason = "is not a valid name: it must not be empty or contain / ? & , = or a space";
        return Err(reason.to_owned());
    }
    Ok(text.to_owned())
}

/// The versions of TLS without the disabled ones.
fn parse_versions_left(text: &str) -> Result<Vec<TlsVersion>, String> {
    let mut versions = vec![TlsVersion::V12, TlsVersion::V13];
    for name in text.split(',').map(str::trim) {
        match name {
            // The server never has these.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::help::HELP;

    #[test]
    fn names_are_unique_and_explained() {
        let names = OPTIONS
            .iter()
            .flat_map(|option| option.mongod.iter().chain([&option.name]));
        let mut names: Vec<_> = names.collect();
        let mut keys: Vec<_> = OPTIONS.iter().map(|option| option.key).collect();
        let counts = (names.len(), keys.len());
        names.sort();
        names.dedup();
        keys.sort();
        keys.dedup();
        assert_eq!((names.len(), keys.len()), counts);
        for option in OPTIONS {
            let entry = format!("\n  --{}", option.name);
            let ends = |at: usize| HELP[at + entry.len()..].starts_with([' ', '\n']);
            let explained = HELP.match_indices(&entry).any(|(at, _)| ends(at));
            assert!(explained, "--{} is not in the help", option.name);
        }
    }

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
