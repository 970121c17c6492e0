//! The table of the options of `windrow serve`: their names, the names of the equivalent mongod
//! options, their keys in the configuration file, and their parsers.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use windrow_collection::BuildPriority;
use windrow_document::Value;
use windrow_server::{AccessControl, KeyPassword, LogRotation, ProfilingLevel, SyslogFacility};

use windrow_web::CollectorAddress;

use super::audit_options::AuditDraft;
use super::option_values::{
    NOT_POSITIVE, accept_only, parse_audit_destination, parse_audit_filter, parse_cache_bytes,
    parse_listen, parse_number, parse_parameter, parse_permissions, parse_priority,
    parse_profiling_level, parse_rate, parse_replica_set, parse_rotation, parse_seconds,
    parse_switch, parse_tls_mode, parse_versions_left, text,
};
use super::tls_options::TlsDraft;
use super::web_options::WebDraft;
use crate::page::WebAddress;
use crate::{byte_size, memory, store};

/// An option.
pub struct ServerOption {
    /// The name on the command line, after `--`.
    pub name: &'static str,
    /// The names of the equivalent mongod option.
    pub mongod: &'static [&'static str],
    /// The key in the configuration file. Empty for options of the command line only. Options
    /// without an equivalent in mongod's file are in the section `windrow`.
    pub key: &'static str,
    pub kind: Kind,
    /// Parses and stores the value. The error message continues a sentence that begins with the
    /// name and the value.
    pub set: fn(&mut Draft, &OsStr) -> Result<(), String>,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    /// A secret text.
    Secret,
    /// A decimal number.
    Number,
    /// Set by its presence on the command line, and with `true` in the file.
    Switch,
    /// `NAME=VALUE` on the command line, and a map in the file.
    Map,
}

/// The given options.
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
    pub tls: TlsDraft,
    pub handshake_time_max: Option<Duration>,
    pub connections_max: Option<usize>,
    pub operations_max: Option<usize>,
    pub idle_time_max: Option<Duration>,
    /// `None` if no option determines access control.
    pub access_control: Option<AccessControl>,
    pub memory_bytes: Option<u64>,
    pub build_priority: BuildPriority,
    pub snapshot_age_max: Option<Duration>,
    pub replica_set: Option<String>,
    pub parameters: Vec<(String, Value)>,
    pub history_bytes: Option<u64>,
    pub slow_ms: Option<u64>,
    pub slow_sample_rate: Option<f64>,
    pub profiling_level: Option<ProfilingLevel>,
    pub log_destination: Option<LogDestination>,
    pub log_path: Option<PathBuf>,
    pub log_append: Option<bool>,
    pub log_rotation: Option<LogRotation>,
    pub syslog_facility: Option<SyslogFacility>,
    pub audit: AuditDraft,
    pub pid_file: Option<PathBuf>,
    pub metrics_listen: Option<SocketAddr>,
    pub metrics_token_file: Option<PathBuf>,
    pub web: WebDraft,
    pub otlp_endpoint: Option<CollectorAddress>,
    pub otlp_sample_rate: Option<f64>,
    pub encryption: bool,
    pub encryption_key_file: Option<PathBuf>,
    pub store: Option<String>,
    pub store_options: Vec<(String, String)>,
    pub cache_bytes: Option<u64>,
    pub advertise: Option<String>,
    pub election_timeout: Option<Duration>,
    pub data_sets: Vec<String>,
    pub key_file: Option<PathBuf>,
}

impl Draft {
    /// Sets access control. Fails if another option contradicts.
    fn control_access(&mut self, control: AccessControl) -> Result<(), String> {
        match self.access_control.replace(control) {
            Some(before) if before != control => Err(
                "contradicts another option: --auth and --no-auth exclude each other".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

/// The values of `systemLog.destination`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDestination {
    File,
    Syslog,
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
#[rustfmt::skip]
pub const OPTIONS: &[ServerOption] = &[
    option("data", &["dbpath"], "storage.dbPath", Kind::Text, |draft, value| {
        draft.data_folder = Some(PathBuf::from(value));
        Ok(())
    }),
    option("listen", &[], "net.windrow.listen", Kind::Text, |draft, value| {
        draft.listen.extend(parse_listen(text(value)?)?);
        Ok(())
    }),
    option("bind-ip", &["bind_ip"], "net.bindIp", Kind::Text, |draft, value| {
        draft.bind_ip = Some(split_list(text(value)?));
        Ok(())
    }),
    option("bind-ip-all", &["bind_ip_all"], "net.bindIpAll", Kind::Switch, |draft, value| {
        draft.bind_all = parse_switch(value)?;
        Ok(())
    }),
    option("port", &[], "net.port", Kind::Integer, |draft, value| {
        draft.port = Some(parse_port(value)?);
        Ok(())
    }),
    option("ipv6", &[], "net.ipv6", Kind::Switch, |draft, value| {
        draft.ipv6 = parse_switch(value)?;
        Ok(())
    }),
    option(
        "unix-socket-prefix", &["unixSocketPrefix"],
        "net.unixDomainSocket.pathPrefix", Kind::Text, |draft, value| {
        draft.unix_socket_folder = Some(PathBuf::from(value));
        Ok(())
    }),
    option(
        "no-unix-socket", &["nounixsocket"],
        "net.unixDomainSocket.enabled", Kind::Switch, |draft, value| {
        draft.unix_socket = Some(parse_switch(value)?);
        Ok(())
    }),
    option(
        "unix-socket-permissions", &["filePermissions"],
        "net.unixDomainSocket.filePermissions", Kind::Text, |draft, value| {
        draft.unix_socket_permissions = Some(parse_permissions(value)?);
        Ok(())
    }),
    option("tls-mode", &["tlsMode"], "net.tls.mode", Kind::Text, |draft, value| {
        draft.tls.mode = Some(parse_tls_mode(value)?);
        Ok(())
    }),
    option(
        "tls-certificate-key-file", &["tlsCertificateKeyFile"],
        "net.tls.certificateKeyFile", Kind::Text, |draft, value| {
        draft.tls.certificate_key_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option(
        "tls-certificate-key-file-password", &["tlsCertificateKeyFilePassword"],
        "net.tls.certificateKeyFilePassword", Kind::Secret, |draft, value| {
        draft.tls.certificate_key_password = Some(KeyPassword::new(text(value)?));
        Ok(())
    }),
    option("tls-ca-file", &["tlsCAFile"], "net.tls.CAFile", Kind::Text, |draft, value| {
        draft.tls.ca_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option("tls-crl-file", &["tlsCRLFile"], "net.tls.CRLFile", Kind::Text, |draft, value| {
        draft.tls.crl_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option(
        "tls-allow-connections-without-certificates", &["tlsAllowConnectionsWithoutCertificates"],
        "net.tls.allowConnectionsWithoutCertificates", Kind::Switch, |draft, value| {
        draft.tls.allow_without_certificates = parse_switch(value)?;
        Ok(())
    }),
    option(
        "tls-disabled-protocols", &["tlsDisabledProtocols"],
        "net.tls.disabledProtocols", Kind::Text, |draft, value| {
        draft.tls.versions = Some(parse_versions_left(text(value)?)?);
        Ok(())
    }),
    option(
        "handshake-seconds-max", &[],
        "net.windrow.handshakeSecondsMax", Kind::Integer, |draft, value| {
        draft.handshake_time_max = Some(parse_seconds(value)?);
        Ok(())
    }),
    option(
        "connections-max", &["maxConns"],
        "net.maxIncomingConnections", Kind::Integer, |draft, value| {
        draft.connections_max = Some(parse_count(value)?);
        Ok(())
    }),
    option("operations-max", &[], "net.windrow.operationsMax", Kind::Integer, |draft, value| {
        draft.operations_max = Some(parse_count(value)?);
        Ok(())
    }),
    option("idle-seconds-max", &[], "net.windrow.idleSecondsMax", Kind::Integer, |draft, value| {
        draft.idle_time_max = Some(parse_seconds(value)?);
        Ok(())
    }),
    option("auth", &[], "security.windrow.auth", Kind::Switch, |draft, value| {
        if parse_switch(value)? {
            draft.control_access(AccessControl::Always)?;
        }
        Ok(())
    }),
    option("no-auth", &["noauth"], "security.windrow.noAuth", Kind::Switch, |draft, value| {
        if parse_switch(value)? {
            draft.control_access(AccessControl::Never)?;
        }
        Ok(())
    }),
    option("authorization", &[], "security.authorization", Kind::Text, |draft, value| {
        match text(value)? {
            "enabled" => draft.control_access(AccessControl::Always),
            "disabled" => draft.control_access(AccessControl::Never),
            _ => Err("is neither enabled nor disabled".to_owned()),
        }
    }),
    option("memory", &[], "storage.windrow.memory", Kind::Text, |draft, value| {
        draft.memory_bytes = Some(byte_size::parse(text(value)?).and_then(memory::check)?);
        Ok(())
    }),
    option("build-priority", &[], "storage.windrow.buildPriority", Kind::Text, |draft, value| {
        draft.build_priority = parse_priority(value)?;
        Ok(())
    }),
    option(
        "snapshot-seconds-max", &[],
        "storage.windrow.snapshotSecondsMax", Kind::Integer, |draft, value| {
        draft.snapshot_age_max = Some(parse_seconds(value)?);
        Ok(())
    }),
    option("replica-set", &["replSet"], "replication.replSetName", Kind::Text, |draft, value| {
        draft.replica_set = Some(parse_replica_set(text(value)?)?);
        Ok(())
    }),
    option("store", &[], "storage.windrow.store.url", Kind::Text, |draft, value| {
        draft.store = Some(text(value)?.to_owned());
        Ok(())
    }),
    option("store-option", &[], "storage.windrow.store.options", Kind::Map, |draft, value| {
        draft.store_options.push(store::parse_option(text(value)?)?);
        Ok(())
    }),
    option("cache-bytes", &[], "storage.windrow.store.cacheBytes", Kind::Text, |draft, value| {
        draft.cache_bytes = Some(parse_cache_bytes(text(value)?)?);
        Ok(())
    }),
    option("advertise", &[], "replication.windrow.advertise", Kind::Text, |draft, value| {
        draft.advertise = Some(parse_advertised(value)?);
        Ok(())
    }),
    option(
        "election-timeout", &[],
        "replication.windrow.electionTimeoutSeconds", Kind::Integer, |draft, value| {
        draft.election_timeout = Some(parse_seconds(value)?);
        Ok(())
    }),
    option("data-set", &[], "storage.windrow.store.dataSets", Kind::Map, |draft, value| {
        draft.data_sets.push(text(value)?.to_owned());
        Ok(())
    }),
    option("key-file", &["keyFile"], "security.keyFile", Kind::Text, |draft, value| {
        draft.key_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option("set-parameter", &["setParameter"], "setParameter", Kind::Map, |draft, value| {
        draft.parameters.push(parse_parameter(text(value)?)?);
        Ok(())
    }),
    option(
        "change-history-bytes-max", &[],
        "storage.windrow.changeHistoryBytesMax", Kind::Text, |draft, value| {
        draft.history_bytes = Some(byte_size::parse(text(value)?)?);
        Ok(())
    }),
    option(
        "enable-encryption", &["enableEncryption"],
        "security.enableEncryption", Kind::Switch, |draft, value| {
        draft.encryption = parse_switch(value)?;
        Ok(())
    }),
    option(
        "encryption-key-file", &["encryptionKeyFile"],
        "security.encryptionKeyFile", Kind::Text, |draft, value| {
        draft.encryption_key_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option(
        "metrics-listen", &[],
        "net.windrow.metricsListen", Kind::Text, |draft, value| {
        draft.metrics_listen = parse_listen(text(value)?)?.first().copied();
        Ok(())
    }),
    option(
        "metrics-token-file", &[],
        "net.windrow.metricsTokenFile", Kind::Text, |draft, value| {
        draft.metrics_token_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option("web", &[], "net.windrow.web", Kind::Text, |draft, value| {
        draft.web.address = Some(WebAddress::parse(text(value)?)?);
        Ok(())
    }),
    option("web-read-only", &[], "net.windrow.webReadOnly", Kind::Switch, |draft, value| {
        draft.web.is_read_only = parse_switch(value)?;
        Ok(())
    }),
    option("otlp-endpoint", &[], "net.windrow.otlpEndpoint", Kind::Text, |draft, value| {
        draft.otlp_endpoint = Some(CollectorAddress::parse(text(value)?)?);
        Ok(())
    }),
    option("otlp-sample-rate", &[], "net.windrow.otlpSampleRate", Kind::Number, |draft, value| {
        draft.otlp_sample_rate = Some(parse_rate(value)?);
        Ok(())
    }),
    option(
        "slow-ms", &["slowms"],
        "operationProfiling.slowOpThresholdMs", Kind::Integer, |draft, value| {
        draft.slow_ms = Some(parse_number(value)?);
        Ok(())
    }),
    option(
        "slow-sample-rate", &["slowOpSampleRate"],
        "operationProfiling.slowOpSampleRate", Kind::Number, |draft, value| {
        draft.slow_sample_rate = Some(parse_rate(value)?);
        Ok(())
    }),
    option("profile", &[], "operationProfiling.mode", Kind::Text, |draft, value| {
        draft.profiling_level = Some(parse_profiling_level(value)?);
        Ok(())
    }),
    option("log-path", &["logpath"], "systemLog.path", Kind::Text, |draft, value| {
        draft.log_path = Some(PathBuf::from(value));
        Ok(())
    }),
    option("log-append", &["logappend"], "systemLog.logAppend", Kind::Switch, |draft, value| {
        draft.log_append = Some(parse_switch(value)?);
        Ok(())
    }),
    option("log-rotate", &["logRotate"], "systemLog.logRotate", Kind::Text, |draft, value| {
        draft.log_rotation = Some(parse_rotation(value)?);
        Ok(())
    }),
    option("log-destination", &[], "systemLog.destination", Kind::Text, |draft, value| {
        draft.log_destination = Some(parse_destination(value)?);
        Ok(())
    }),
    option("syslog", &[], "", Kind::Switch, |draft, _| {
        draft.log_destination = Some(LogDestination::Syslog);
        Ok(())
    }),
    option(
        "syslog-facility", &["syslogFacility"],
        "systemLog.syslogFacility", Kind::Text, |draft, value| {
        draft.syslog_facility = Some(parse_facility(value)?);
        Ok(())
    }),
    option(
        "audit-destination", &["auditDestination"],
        "auditLog.destination", Kind::Text, |draft, value| {
        draft.audit.destination = Some(parse_audit_destination(value)?);
        Ok(())
    }),
    option("audit-format", &["auditFormat"], "auditLog.format", Kind::Text, |draft, value| {
        draft.audit.has_format = true;
        accept_only(value, "JSON")
    }),
    option("audit-path", &["auditPath"], "auditLog.path", Kind::Text, |draft, value| {
        draft.audit.path = Some(PathBuf::from(value));
        Ok(())
    }),
    option("audit-filter", &["auditFilter"], "auditLog.filter", Kind::Text, |draft, value| {
        draft.audit.filter = Some(parse_audit_filter(value)?);
        Ok(())
    }),
    option("verbosity", &[], "systemLog.verbosity", Kind::Integer, |draft, value| {
        let level = i64::try_from(parse_number(value)?).unwrap_or(i64::MAX);
        draft.parameters.push(("logLevel".to_owned(), level.into()));
        Ok(())
    }),
    option("quiet", &[], "systemLog.quiet", Kind::Switch, |draft, value| {
        draft.parameters.push(("quiet".to_owned(), parse_switch(value)?.into()));
        Ok(())
    }),
    option("time-stamp-format", &["timeStampFormat"], "systemLog.timeStampFormat", Kind::Text, |_, value| {
        accept_only(value, "iso8601-utc")
    }),
    option(
        "pid-file", &["pidfilepath"],
        "processManagement.pidFilePath", Kind::Text, |draft, value| {
        draft.pid_file = Some(PathBuf::from(value));
        Ok(())
    }),
    option("time-zone-info", &["timeZoneInfo"], "processManagement.timeZoneInfo", Kind::Text, |_, value| {
        accept_only(value, "/usr/share/zoneinfo")
    }),
];

/// Returns the option with this name on the command line.
pub fn find(name: &str) -> Option<&'static ServerOption> {
    OPTIONS
        .iter()
        .find(|option| option.name == name || option.mongod.contains(&name))
}

/// Returns the value of a switch on the command line. `--no-unix-socket` negates its key in the
/// file.
pub fn switch_value(option: &ServerOption) -> OsString {
    let is_on = option.name != "no-unix-socket";
    is_on.to_string().into()
}

fn split_list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn parse_port(value: &OsStr) -> Result<u16, String> {
    let port = text(value)?.parse().ok();
    port.ok_or_else(|| "is not a port; write a number up to 65535".to_owned())
}

/// An address for clients: HOST:PORT.
fn parse_advertised(value: &OsStr) -> Result<String, String> {
    let address = text(value)?;
    let parts = address.rsplit_once(':');
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match parts.filter(|(host, port)| !host.is_empty() && is_port(port)) {
        Some(_) => Ok(address.to_owned()),
        None => Err("is not an address; write HOST:PORT".to_owned()),
    }
}

fn parse_count(value: &OsStr) -> Result<usize, String> {
    let count = text(value)?.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| NOT_POSITIVE.to_owned())
}

fn parse_destination(value: &OsStr) -> Result<LogDestination, String> {
    match text(value)? {
        "file" => Ok(LogDestination::File),
        "syslog" => Ok(LogDestination::Syslog),
        _ => Err("is not a destination; write file or syslog".to_owned()),
    }
}

fn parse_facility(value: &OsStr) -> Result<SyslogFacility, String> {
    let facility = SyslogFacility::from_name(text(value)?);
    facility.ok_or_else(|| "is not a facility; write user, daemon or local0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::help::HELP;

    const PAGE: &str = include_str!("../../../../docs/configuration.md");

    #[test]
    fn names_are_unique_and_explained() {
        let names = OPTIONS
            .iter()
            .flat_map(|option| option.mongod.iter().chain([&option.name]));
        let mut names: Vec<_> = names.collect();
        let keys = OPTIONS.iter().map(|option| option.key);
        let mut keys: Vec<_> = keys.filter(|key| !key.is_empty()).collect();
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
            let names = option.mongod.iter().map(|name| format!("`--{name}`"));
            let key = Some(format!("`{}`", option.key)).filter(|_| !option.key.is_empty());
            for cell in names.chain([format!("| `--{}` |", option.name)]).chain(key) {
                assert!(
                    PAGE.contains(&cell),
                    "{cell} is not in docs/configuration.md"
                );
            }
        }
    }
}
