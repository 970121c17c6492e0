//! The options of `windrow serve`: from the command line and the configuration file to one struct.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;
use windrow_collection::BuildPriority;
use windrow_document::{DocumentBuf, Value};
use windrow_server::{AccessControl, TlsSettings, TlsVersion, UnixSocket};

use super::option_table::{Draft, Kind, ServerOption, find, switch_value};
use crate::command_line::Failure;
use crate::memory;

/// The default of `--change-history-bytes-max`.
const HISTORY_BYTES_DEFAULT: u64 = 256 << 20;

const PORT_DEFAULT: u16 = 27017;

/// The parsed options.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub data_folder: PathBuf,
    pub listen: Vec<SocketAddr>,
    pub access_control: AccessControl,
    pub unix_socket: Option<UnixSocket>,
    pub tls: Option<TlsSettings>,
    pub handshake_time_max: Duration,
    pub connections_max: usize,
    pub idle_time_max: Option<Duration>,
    pub memory_bytes: u64,
    pub build_priority: BuildPriority,
    pub snapshot_age_max: Duration,
    pub parameters: Vec<(String, Value)>,
    pub replica_set: Option<String>,
    pub history_bytes: u64,
    pub logpath: Option<PathBuf>,
    pub encryption_key_file: Option<PathBuf>,
    /// The given options in the form of MongoDB's configuration file, for `getCmdLineOpts`.
    pub shown: DocumentBuf,
}

/// An option that was given, and its value.
pub struct GivenOption {
    pub option: &'static ServerOption,
    pub value: OsString,
    /// How messages name it: `--port`, or `net.port` with the line of the file.
    pub origin: String,
}

/// Returns `None` if help was requested.
pub fn parse(arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let Some(given) = parse_command_line(arguments)? else {
        return Ok(None);
    };
    let mut draft = Draft::default();
    for GivenOption {
        option,
        value,
        origin,
    } in &given
    {
        (option.set)(&mut draft, value)
            .map_err(|reason| Failure::Usage(format!("{origin} {value:?} {reason}")))?;
    }
    finish(draft, &given).map(Some)
}

fn parse_command_line(mut arguments: lexopt::Parser) -> Result<Option<Vec<GivenOption>>, Failure> {
    let mut given = Vec::new();
    while let Some(argument) = arguments.next()? {
        let (option, origin) = match argument {
            Short('h') | Long("help") => return Ok(None),
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
    Ok(Some(given))
}

/// Fills in the defaults, and checks options that depend on each other.
fn finish(draft: Draft, given: &[GivenOption]) -> Result<Options, Failure> {
    let listen = addresses(&draft)?;
    if draft.encryption && draft.encryption_key_file.is_none() {
        return Err(Failure::missing_argument(
            "--encryption-key-file FILE",
            "serve",
        ));
    }
    Ok(Options {
        access_control: draft.access_control.unwrap_or_default(),
        unix_socket: unix_socket(&draft, &listen)?,
        tls: tls_settings(&draft)?,
        shown: show(given, &listen, &draft.parameters),
        listen,
        data_folder: draft
            .data_folder
            .ok_or_else(|| Failure::missing_argument("--data DIR", "serve"))?,
        handshake_time_max: draft.handshake_time_max.unwrap_or(Duration::from_secs(10)),
        connections_max: draft.connections_max.unwrap_or(10_000),
        idle_time_max: draft.idle_time_max,
        memory_bytes: draft
            .memory_bytes
            .unwrap_or_else(memory::default_memory_bytes),
        build_priority: draft.build_priority,
        snapshot_age_max: draft.snapshot_age_max.unwrap_or(Duration::from_secs(600)),
        parameters: draft.parameters,
        replica_set: draft.replica_set,
        history_bytes: draft.history_bytes.unwrap_or(HISTORY_BYTES_DEFAULT),
        logpath: draft.logpath,
        encryption_key_file: draft.encryption_key_file,
    })
}

/// The addresses of `--listen`, or of `--bind-ip` and `--port`.
fn addresses(draft: &Draft) -> Result<Vec<SocketAddr>, Failure> {
    let is_mongods = draft.bind_ip.is_some() || draft.bind_all || draft.port.is_some();
    if !draft.listen.is_empty() {
        if is_mongods {
            let message = "--listen cannot be combined with --bind-ip, --bind-ip-all and --port";
            return Err(Failure::Usage(message.to_owned()));
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
    // Two names of one address.
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

/// The addresses of a name, without those of IPv6 unless they are wanted.
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

/// The Unix domain socket. As mongod, the server has one if it listens on the loopback address,
/// unless the options say otherwise.
fn unix_socket(draft: &Draft, listen: &[SocketAddr]) -> Result<Option<UnixSocket>, Failure> {
    let is_given = draft.unix_socket_folder.is_some() || draft.unix_socket_permissions.is_some();
    if draft.unix_socket == Some(false) {
        if is_given {
            let message = "--no-unix-socket excludes other options of the Unix domain socket";
            return Err(Failure::Usage(message.to_owned()));
        }
        return Ok(None);
    }
    let is_local = listen
        .iter()
        .any(|address| address.ip().is_loopback() || address.ip().is_unspecified());
    if !is_local && !is_given && draft.unix_socket.is_none() {
        return Ok(None);
    }
    Ok(Some(UnixSocket {
        is_required: draft.unix_socket_folder.is_some() || draft.unix_socket == Some(true),
        folder: draft
            .unix_socket_folder
            .clone()
            .unwrap_or_else(|| "/tmp".into()),
        permissions: draft.unix_socket_permissions.unwrap_or(0o700),
    }))
}

fn tls_settings(draft: &Draft) -> Result<Option<TlsSettings>, Failure> {
    let fail = |message: &str| Err(Failure::Usage(message.to_owned()));
    let Some(mode) = draft.tls_mode else {
        let is_given = [
            &draft.tls_certificate_key_file,
            &draft.tls_ca_file,
            &draft.tls_crl_file,
        ];
        if is_given.iter().any(|file| file.is_some()) || draft.tls_allow_without_certificates {
            return fail("--tls-mode is missing; other options of TLS need it");
        }
        return Ok(None);
    };
    let Some(mode) = mode else {
        return Ok(None);
    };
    let Some(certificate_key_file) = draft.tls_certificate_key_file.clone() else {
        return fail("--tls-certificate-key-file is missing; --tls-mode needs it");
    };
    if draft.tls_ca_file.is_none() && draft.tls_crl_file.is_some() {
        return fail("--tls-ca-file is missing; --tls-crl-file needs it");
    }
    if draft.tls_ca_file.is_none() && draft.tls_allow_without_certificates {
        return fail(
            "--tls-ca-file is missing; --tls-allow-connections-without-certificates needs it",
        );
    }
    let all = || vec![TlsVersion::V12, TlsVersion::V13];
    Ok(Some(TlsSettings {
        mode,
        certificate_key_file,
        ca_file: draft.tls_ca_file.clone(),
        crl_file: draft.tls_crl_file.clone(),
        allow_without_certificates: draft.tls_allow_without_certificates,
        versions: draft.tls_versions.clone().unwrap_or_else(all),
    }))
}

/// The options in the form of the configuration file. If one is given several times, the last value
/// counts.
fn show(
    given: &[GivenOption],
    listen: &[SocketAddr],
    parameters: &[(String, Value)],
) -> DocumentBuf {
    let hosts: Vec<String> = listen.iter().map(|it| it.ip().to_string()).collect();
    let port = listen.first().map_or(PORT_DEFAULT, SocketAddr::port);
    let mut shown = ShownOptions::default();
    shown.set(&["net", "bindIp"], hosts.join(",").into());
    shown.set(&["net", "port"], i32::from(port).into());
    for GivenOption { option, value, .. } in given {
        let text = value.to_string_lossy();
        let value = match option.kind {
            Kind::Map => continue,
            Kind::Text => Value::from(text.as_ref()),
            Kind::Switch => Value::from(text == "true"),
            Kind::Integer => match (text.parse::<i32>(), text.parse::<i64>()) {
                (Ok(number), _) => Value::from(number),
                (_, Ok(number)) => Value::from(number),
                _ => Value::from(text.as_ref()),
            },
        };
        let control = match (option.name, text.as_ref()) {
            ("auth", "true") => Some("enabled"),
            ("no-auth", "true") => Some("disabled"),
            _ => None,
        };
        if let Some(control) = control {
            shown.set(&["security", "authorization"], control.into());
            continue;
        }
        let is_address = ["listen", "bind-ip", "bind-ip-all", "port"].contains(&option.name);
        if !is_address {
            shown.set(&Vec::from_iter(option.key.split('.')), value);
        }
    }
    for (name, value) in parameters {
        shown.set(&["setParameter", name], value.clone());
    }
    shown.to_document()
}

/// A tree of options.
#[derive(Default)]
struct ShownOptions(Vec<(String, ShownOption)>);

enum ShownOption {
    Value(Value),
    Section(ShownOptions),
}

impl ShownOptions {
    fn set(&mut self, path: &[&str], value: Value) {
        let [name, rest @ ..] = path else {
            return;
        };
        let at = self.0.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            let section = ShownOption::Section(ShownOptions::default());
            self.0.push(((*name).to_owned(), section));
            self.0.len() - 1
        });
        let (_, option) = &mut self.0[at];
        match option {
            ShownOption::Section(section) if !rest.is_empty() => section.set(rest, value),
            _ => *option = ShownOption::Value(value),
        }
    }

    fn to_document(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        for (name, option) in &self.0 {
            match option {
                ShownOption::Value(value) => document.push(name, value.clone()),
                ShownOption::Section(section) => document.push(name, section.to_document()),
            }
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;
    use windrow_document::{ValueRef, doc};
    use windrow_server::TlsMode;

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
            unix_socket: Some(UnixSocket {
                folder: "/tmp".into(),
                permissions: 0o700,
                is_required: false,
            }),
            tls: None,
            handshake_time_max: Duration::from_secs(10),
            connections_max: 10_000,
            idle_time_max: None,
            memory_bytes: 1 << 30,
            build_priority: BuildPriority::Normal,
            snapshot_age_max: Duration::from_secs(600),
            parameters: Vec::new(),
            replica_set: None,
            history_bytes: HISTORY_BYTES_DEFAULT,
            logpath: None,
            encryption_key_file: None,
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
                "windrow": { "idleSecondsMax": 9 },
            },
            "storage": {
                "dbPath": "d",
                "windrow": {
                    "memory": "20MB", "buildPriority": "low", "snapshotSecondsMax": 5,
                    "changeHistoryBytesMax": "1GB",
                },
            },
            "replication": { "replSetName": "rs0" },
            "systemLog": { "path": "l" },
            "setParameter": { "quiet": true, "logLevel": 1i64 },
        };
        let options = Options {
            listen: vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()],
            memory_bytes: 20_000_000,
            build_priority: BuildPriority::Low,
            snapshot_age_max: Duration::from_secs(5),
            parameters: vec![
                ("quiet".into(), true.into()),
                ("logLevel".into(), 1i64.into()),
            ],
            replica_set: Some("rs0".into()),
            history_bytes: 1_000_000_000,
            logpath: Some("l".into()),
            encryption_key_file: None,
            connections_max: 7,
            idle_time_max: Some(Duration::from_secs(9)),
            shown,
            ..defaults()
        };
        let arguments = "--dbpath d --listen 127.0.0.1:1 --listen [::1]:2 --memory 20MB \
            --build-priority low --snapshot-seconds-max=5 --setParameter quiet=true \
            --set-parameter=logLevel=1 --replica-set rs0 --change-history-bytes-max=1GB \
            --logpath l --maxConns 7 --idle-seconds-max 9";
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
