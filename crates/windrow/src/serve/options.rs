//! The options of `windrow serve`, combined from the command line and the configuration file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;
use windrow_collection::BuildPriority;
use windrow_document::DocumentBuf;
use windrow_server::{
    AccessControl, AuditSettings, LogRotation, LogTarget, ProfilingLevel, RuntimeSettings,
    SyslogFacility, TlsSettings, UnixSocket,
};

use super::config_file;
use super::given_option::GivenOption;
use super::option_table::{Draft, Kind, LogDestination, find, switch_value};
use super::shown_options::show;
use super::store_options::{StoreOptions, store_options};
use super::trace_options::TraceOptions;
use crate::command_line::Failure;
use crate::memory;
use crate::page::WebOptions;

/// The default of `--change-history-bytes-max`.
const HISTORY_BYTES_DEFAULT: u64 = 256 << 20;

const PORT_DEFAULT: u16 = 27017;

/// The parsed options.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub data_folder: PathBuf,
    pub listen: Vec<SocketAddr>,
    pub access_control: AccessControl,
    pub unix_socket: Option<UnixSocket>,
    pub tls: Option<TlsSettings>,
    pub handshake_time_max: Duration,
    pub connections_max: usize,
    pub operations_max: Option<usize>,
    pub idle_time_max: Option<Duration>,
    pub memory_bytes: u64,
    pub build_priority: BuildPriority,
    pub snapshot_age_max: Duration,
    /// Settings that a reload of the configuration file can change.
    pub runtime: RuntimeSettings,
    pub profiling_level: ProfilingLevel,
    pub replica_set: Option<String>,
    pub history_bytes: u64,
    pub log: LogTarget,
    pub audit: Option<AuditSettings>,
    pub pid_file: Option<PathBuf>,
    pub encryption_key_file: Option<PathBuf>,
    pub store: Option<StoreOptions>,
    pub metrics_listen: Option<SocketAddr>,
    pub metrics_token_file: Option<PathBuf>,
    pub web: Option<WebOptions>,
    pub traces: TraceOptions,
    pub config_file: Option<PathBuf>,
    /// The given options in the form of MongoDB's configuration file, for `getCmdLineOpts`.
    pub shown: DocumentBuf,
}

/// Parses the command line, and the configuration file that it names. Options of the command line
/// take precedence over those of the file. Returns `None` if help was requested.
pub fn parse(arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let Some(line) = parse_command_line(arguments)? else {
        return Ok(None);
    };
    let mut given = match &line.config_file {
        Some(path) => config_file::read(path)?,
        None => Vec::new(),
    };
    given.retain(|given| !line.given.iter().any(|newer| replaces(newer, given)));
    given.extend(line.given);
    let mut draft = Draft::default();
    for GivenOption {
        option,
        value,
        origin,
    } in &given
    {
        (option.set)(&mut draft, value).map_err(|reason| match option.kind {
            Kind::Secret => Failure::Usage(format!("the value of {origin} {reason}")),
            _ => Failure::Usage(format!("{origin} {value:?} {reason}")),
        })?;
    }
    finish(draft, &given, line.config_file).map(Some)
}

/// Returns `true` if an option of the command line replaces one of the file.
fn replaces(newer: &GivenOption, older: &GivenOption) -> bool {
    let addresses = ["listen", "bind-ip", "bind-ip-all", "port"];
    let (newer, older) = (newer.option, older.option);
    let is_address = addresses.contains(&newer.name) && addresses.contains(&older.name);
    let has_listen = newer.name == "listen" || older.name == "listen";
    let is_one = |group: &&[&str]| group.contains(&newer.name) && group.contains(&older.name);
    // Parameters are repeatable. The last value of a name is used.
    newer.name == older.name && newer.kind != Kind::Map
        || is_address && has_listen
        || ONE_SETTING.iter().any(is_one)
}

/// Options with the same effect.
const ONE_SETTING: &[&[&str]] = &[
    &["auth", "no-auth", "authorization"],
    &["log-destination", "syslog"],
];

/// The command line.
struct CommandLine {
    config_file: Option<PathBuf>,
    given: Vec<GivenOption>,
}

fn parse_command_line(mut arguments: lexopt::Parser) -> Result<Option<CommandLine>, Failure> {
    let (mut config_file, mut given) = (None, Vec::new());
    while let Some(argument) = arguments.next()? {
        let (option, origin) = match argument {
            Short('h') | Long("help") => return Ok(None),
            Short('f') | Long("config") => {
                config_file = Some(PathBuf::from(arguments.value()?));
                continue;
            }
            Long(name) => match find(name) {
                Some(option) => (option, format!("--{name}")),
                None => return Err(argument.unexpected().into()),
            },
            _ => return Err(argument.unexpected().into()),
        };
        let value = if option.kind == Kind::Switch {
            switch_value(option)
        } else {
            arguments.value()?
        };
        given.push(GivenOption {
            option,
            value,
            origin,
        });
    }
    Ok(Some(CommandLine { config_file, given }))
}

/// Sets defaults, and checks options that depend on each other.
fn finish(
    draft: Draft,
    given: &[GivenOption],
    config_file: Option<PathBuf>,
) -> Result<Options, Failure> {
    let listen = addresses(&draft)?;
    if draft.encryption && draft.encryption_key_file.is_none() {
        return Err(Failure::missing_argument(
            "--encryption-key-file FILE",
            "serve",
        ));
    }
    let store = store_options(&draft, &listen)?;
    Ok(Options {
        store,
        access_control: draft.access_control.unwrap_or_default(),
        unix_socket: unix_socket(&draft, &listen)?,
        tls: draft.tls.settings()?,
        log: log_target(&draft)?,
        audit: draft.audit.settings(
            draft.log_rotation.unwrap_or_default(),
            draft.syslog_facility,
        )?,
        shown: show(given, &listen, &draft.parameters),
        config_file,
        listen,
        data_folder: draft
            .data_folder
            .ok_or_else(|| Failure::missing_argument("--data DIR", "serve"))?,
        handshake_time_max: draft.handshake_time_max.unwrap_or(Duration::from_secs(10)),
        connections_max: draft.connections_max.unwrap_or(10_000),
        operations_max: draft.operations_max,
        idle_time_max: draft.idle_time_max,
        memory_bytes: draft
            .memory_bytes
            .unwrap_or_else(memory::default_memory_bytes),
        build_priority: draft.build_priority,
        snapshot_age_max: draft.snapshot_age_max.unwrap_or(Duration::from_secs(600)),
        runtime: RuntimeSettings {
            parameters: draft.parameters,
            slow_ms: draft.slow_ms.unwrap_or(100),
            slow_sample_rate: draft.slow_sample_rate.unwrap_or(1.0),
        },
        profiling_level: draft.profiling_level.unwrap_or_default(),
        pid_file: draft.pid_file,
        encryption_key_file: draft.encryption_key_file,
        metrics_listen: draft.metrics_listen,
        metrics_token_file: draft.metrics_token_file,
        web: draft.web.options()?,
        traces: TraceOptions {
            endpoint: draft.otlp_endpoint,
            sample_rate: draft.otlp_sample_rate.unwrap_or(1.0),
        },
        replica_set: draft.replica_set,
        history_bytes: draft.history_bytes.unwrap_or(HISTORY_BYTES_DEFAULT),
    })
}

/// Returns the addresses of `--listen`, or of `--bind-ip` and `--port`.
fn addresses(draft: &Draft) -> Result<Vec<SocketAddr>, Failure> {
    let is_mongods = draft.bind_ip.is_some() || draft.bind_all || draft.port.is_some();
    if !draft.listen.is_empty() {
        if is_mongods {
            let message = "--listen cannot be combined with --bind-ip, --bind-ip-all and --port";
            return Err(Failure::usage(message));
        }
        return Ok(draft.listen.clone());
    }
    let port = draft.port.unwrap_or(PORT_DEFAULT);
    let named = draft.bind_ip.as_deref().unwrap_or_default();
    if draft.bind_all || named.iter().any(|name| name == "*") {
        let any = if draft.ipv6 {
            IpAddr::from(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::from(Ipv4Addr::UNSPECIFIED)
        };
        return Ok(vec![SocketAddr::new(any, port)]);
    }
    let mut found = Vec::new();
    for name in named {
        found.extend(resolve(name, port, draft.ipv6)?);
    }
    if draft.bind_ip.is_none() {
        found.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    // Several names can resolve to the same address.
    let mut unique = Vec::new();
    for address in found {
        if !unique.contains(&address) {
            unique.push(address);
        }
    }
    if unique.is_empty() {
        let message = "--bind-ip names no address".to_owned();
        return Err(Failure::Usage(message));
    }
    Ok(unique)
}

/// Resolves a host name. Returns IPv6 addresses only if `ipv6` is `true`.
fn resolve(name: &str, port: u16, ipv6: bool) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = (name, port).to_socket_addrs().map(Vec::from_iter);
    let mut found = found.unwrap_or_default();
    found.retain(|address| ipv6 || address.is_ipv4());
    if found.is_empty() {
        let message = format!("--bind-ip: {name:?} is not an address or a known name");
        return Err(Failure::Usage(message));
    }
    Ok(found)
}

/// Returns the settings of the Unix domain socket. As in mongod, it is created if the server
/// listens on a loopback address, unless the options say otherwise.
fn unix_socket(draft: &Draft, listen: &[SocketAddr]) -> Result<Option<UnixSocket>, Failure> {
    let is_given = draft.unix_socket_folder.is_some() || draft.unix_socket_permissions.is_some();
    if draft.unix_socket == Some(false) {
        if is_given {
            let message = "--no-unix-socket excludes other options of the Unix domain socket";
            return Err(Failure::usage(message));
        }
        return Ok(None);
    }
    let is_local = listen
        .iter()
        .any(|address| address.ip().is_loopback() || address.ip().is_unspecified());
    if !is_local && !is_given && draft.unix_socket.is_none() {
        return Ok(None);
    }
    let folder = draft.unix_socket_folder.clone();
    let default = UnixSocket::default();
    Ok(Some(UnixSocket {
        is_required: folder.is_some() || draft.unix_socket == Some(true),
        folder: folder.unwrap_or(default.folder),
        permissions: draft.unix_socket_permissions.unwrap_or(default.permissions),
    }))
}

fn log_target(draft: &Draft) -> Result<LogTarget, Failure> {
    if draft.log_destination == Some(LogDestination::Syslog) {
        if draft.log_path.is_some() {
            return Err(Failure::usage(
                "--log-path and a log of the system exclude each other",
            ));
        }
        let facility = draft.syslog_facility.unwrap_or(SyslogFacility::USER);
        return Ok(LogTarget::Syslog { facility });
    }
    let Some(path) = draft.log_path.clone() else {
        if draft.log_destination.is_some() {
            return Err(Failure::usage(
                "--log-path is missing; the log destination file needs it",
            ));
        }
        return Ok(LogTarget::Stderr);
    };
    let append = draft.log_append.unwrap_or(true);
    let rotation = draft.log_rotation.unwrap_or_default();
    if !append && rotation == LogRotation::Reopen {
        return Err(Failure::usage(
            "a log that is reopened must be appended to: set systemLog.logAppend to true",
        ));
    }
    Ok(LogTarget::File {
        path,
        append,
        rotation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;
    use windrow_document::{Value, ValueRef, doc};
    use windrow_server::{TlsMode, TlsVersion};

    fn defaults() -> Options {
        let mut shown = doc! { "net": { "bindIp": "127.0.0.1", "port": 27017 } };
        shown.push(
            "storage",
            doc! { "dbPath": "d", "windrow": { "memory": "1GiB" } },
        );
        Options {
            data_folder: "d".into(),
            listen: vec!["127.0.0.1:27017".parse().unwrap()],
            access_control: AccessControl::WithUsers,
            unix_socket: Some(UnixSocket::default()),
            tls: None,
            handshake_time_max: Duration::from_secs(10),
            connections_max: 10_000,
            operations_max: None,
            idle_time_max: None,
            memory_bytes: 1 << 30,
            build_priority: BuildPriority::Normal,
            snapshot_age_max: Duration::from_secs(600),
            runtime: RuntimeSettings {
                parameters: Vec::new(),
                slow_ms: 100,
                slow_sample_rate: 1.0,
            },
            profiling_level: ProfilingLevel::Off,
            replica_set: None,
            history_bytes: HISTORY_BYTES_DEFAULT,
            log: LogTarget::Stderr,
            audit: None,
            pid_file: None,
            encryption_key_file: None,
            store: None,
            metrics_listen: None,
            metrics_token_file: None,
            web: None,
            traces: TraceOptions {
                endpoint: None,
                sample_rate: 1.0,
            },
            config_file: None,
            shown,
        }
    }

    /// Checks the arguments after `--data d --memory=1GiB`.
    fn check(arguments: &[&str], expected: Result<Options, &str>) {
        let arguments = [&["--data", "d", "--memory=1GiB"], arguments].concat();
        check_parsed(parse, &arguments, expected);
    }

    #[test]
    fn arguments_are_parsed() {
        check(&[], Ok(defaults()));
        let shown = doc! {
            "net": {
                "bindIp": "127.0.0.1,::1", "port": 1, "maxIncomingConnections": 7,
                "windrow": { "operationsMax": 8, "idleSecondsMax": 9 },
            },
            "storage": {
                "dbPath": "d",
                "windrow": {
                    "memory": "20MB", "buildPriority": "low", "snapshotSecondsMax": 5,
                    "changeHistoryBytesMax": "1GB",
                },
            },
            "replication": { "replSetName": "rs0" },
            "systemLog": { "path": "l", "logRotate": "reopen" },
            "operationProfiling": {
                "slowOpThresholdMs": 7, "slowOpSampleRate": 0.5, "mode": "1",
            },
            "processManagement": { "pidFilePath": "p" },
            "setParameter": { "quiet": true, "logLevel": 1i64 },
        };
        let options = Options {
            listen: vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()],
            memory_bytes: 20_000_000,
            build_priority: BuildPriority::Low,
            snapshot_age_max: Duration::from_secs(5),
            runtime: RuntimeSettings {
                parameters: vec![
                    ("quiet".into(), true.into()),
                    ("logLevel".into(), 1i64.into()),
                ],
                slow_ms: 7,
                slow_sample_rate: 0.5,
            },
            profiling_level: ProfilingLevel::Slow,
            replica_set: Some("rs0".into()),
            history_bytes: 1_000_000_000,
            log: LogTarget::File {
                path: "l".into(),
                append: true,
                rotation: LogRotation::Reopen,
            },
            pid_file: Some("p".into()),
            connections_max: 7,
            operations_max: Some(8),
            idle_time_max: Some(Duration::from_secs(9)),
            shown,
            ..defaults()
        };
        let arguments = "--dbpath d --listen 127.0.0.1:1 --listen [::1]:2 --memory 20MB \
            --build-priority low --snapshot-seconds-max=5 --setParameter quiet=true \
            --set-parameter=logLevel=1 --replica-set rs0 --change-history-bytes-max=1GB \
            --logpath l --maxConns 7 --operations-max 8 --idle-seconds-max 9 --slowms 7 --slowOpSampleRate 0.5 \
            --profile 1 --log-rotate reopen --pidfilepath p";
        check(&Vec::from_iter(arguments.split_whitespace()), Ok(options));
    }

    #[test]
    fn wrong_arguments_are_named() {
        check_parsed(parse, &[], Err::<Options, _>("--data"));
        check(&["--listen", "nowhere"], Err("nowhere"));
        check(&["--memory", "much"], Err("much"));
        check(&["--memory", "1MB"], Err("16MiB"));
        check(&["--build-priority", "0"], Err("high"));
        check(&["--snapshot-seconds-max=-1"], Err("-1"));
        check(&["--replica-set", "a/b"], Err("a/b"));
        check(&["--set-parameter", "quiet"], Err("quiet"));
        check(&["--set-parameter", "quiet=x"], Err("quiet"));
        check(&["--sharded"], Err("--sharded"));
        check(&["more"], Err("more"));
        check(&["--logpath"], Err("--logpath"));
        check(&["--port", "70000"], Err("--port \"70000\""));
        check(&["--port", "1", "--listen", "127.0.0.1:1"], Err("--listen"));
        check(&["--connections-max", "0"], Err("--connections-max"));
        check(&["--auth", "--no-auth"], Err("--no-auth"));
        check(&["--authorization", "x"], Err("enabled"));
    }

    #[test]
    fn access_control_has_switches_and_the_words_of_mongod() {
        let check = |arguments: &[&str], control: AccessControl, shown: Option<&str>| {
            let arguments = [&["--data", "d"], arguments].concat();
            let options = parse(lexopt::Parser::from_args(arguments));
            let options = options.unwrap().unwrap();
            assert_eq!(options.access_control, control);
            let security = options.shown.get("security").map(ValueRef::to_value);
            let expected = shown.map(|word| Value::from(doc! { "authorization": word }));
            assert_eq!(security, expected);
        };
        check(&[], AccessControl::WithUsers, None);
        check(&["--auth"], AccessControl::Always, Some("enabled"));
        check(&["--noauth"], AccessControl::Never, Some("disabled"));
        check(
            &["--authorization", "disabled"],
            AccessControl::Never,
            Some("disabled"),
        );
        check(
            &["--auth", "--authorization", "enabled"],
            AccessControl::Always,
            Some("enabled"),
        );
    }

    #[test]
    fn addresses_can_be_given_as_for_mongod() {
        let check = |arguments: &[&str], expected: &[&str]| {
            let arguments = [&["--data", "d"], arguments].concat();
            let options = parse(lexopt::Parser::from_args(arguments))
                .unwrap()
                .unwrap();
            let found: Vec<String> = options.listen.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        };
        check(&["--port", "1"], &["127.0.0.1:1"]);
        check(
            &["--bind_ip", "127.0.0.1,::1,127.0.0.1"],
            &["127.0.0.1:27017", "[::1]:27017"],
        );
        check(&["--bind_ip_all", "--port", "2"], &["0.0.0.0:2"]);
        check(&["--bind-ip", "*", "--ipv6"], &["[::]:27017"]);
    }

    #[test]
    fn unix_sockets_belong_to_the_loopback_address() {
        let check = |arguments: &[&str], expected: Option<(&str, u32, bool)>| {
            let arguments = [&["--data", "d"], arguments].concat();
            let options = parse(lexopt::Parser::from_args(arguments))
                .unwrap()
                .unwrap();
            let expected = expected.map(|(folder, permissions, is_required)| UnixSocket {
                folder: folder.into(),
                permissions,
                is_required,
            });
            assert_eq!(options.unix_socket, expected);
        };
        check(&[], Some(("/tmp", 0o700, false)));
        check(&["--bind-ip-all"], Some(("/tmp", 0o700, false)));
        check(&["--bind-ip", "192.0.2.1"], None);
        check(&["--nounixsocket"], None);
        check(&["--unixSocketPrefix", "/run"], Some(("/run", 0o700, true)));
        check(&["--filePermissions", "0770"], Some(("/tmp", 0o770, false)));
    }

    #[test]
    fn tls_needs_a_certificate() {
        let key_file = ["--tlsCertificateKeyFile", "k"];
        let settings = TlsSettings {
            mode: TlsMode::Require,
            certificate_key_file: "k".into(),
            certificate_key_password: None,
            ca_file: None,
            crl_file: None,
            allow_without_certificates: false,
            versions: vec![TlsVersion::V12, TlsVersion::V13],
        };
        let parsed = |arguments: &[&str]| {
            let arguments = [&["--data", "d"], arguments].concat();
            parse(lexopt::Parser::from_args(arguments)).map(|options| options.unwrap().tls)
        };
        let required = [&["--tlsMode", "requireTLS"][..], &key_file].concat();
        assert_eq!(parsed(&required), Ok(Some(settings)));
        assert_eq!(parsed(&["--tls-mode", "disabled"]), Ok(None));
        check(&key_file, Err("--tls-mode"));
        check(&["--tlsCertificateKeyFilePassword", "p"], Err("--tls-mode"));
        check(
            &["--tls-mode", "require"],
            Err("--tls-certificate-key-file"),
        );
        check(&["--tls-mode", "on"], Err("\"on\" is not a mode"));
        let without_authority = [&required[..], &["--tlsCRLFile", "c"]].concat();
        check(&without_authority, Err("--tls-ca-file"));
        check(&["--tls-disabled-protocols", "TLS1_2,TLS1_3"], Err("every"));
    }

    #[test]
    fn help_is_not_an_error() {
        assert_eq!(parse(lexopt::Parser::from_args(["--help"])), Ok(None));
    }
}
