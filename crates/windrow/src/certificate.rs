//! `windrow certificate`: creates certificates for tests of TLS.

use std::path::PathBuf;
use std::process::ExitCode;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use lexopt::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

use crate::command_line::{Failure, Subcommand};
use crate::secret_file;

pub const CERTIFICATE: Subcommand = Subcommand {
    name: "certificate",
    summary: Some("make certificates to try TLS with"),
    run,
};

const HELP: &str = "\
Makes certificates to try TLS with: an authority, and what it signs.

Usage: windrow certificate --folder DIR [OPTION…]

It writes into the folder:
  ca.pem        the certificate of the authority, for clients and for --tls-ca-file
  server.pem    the certificate and the private key of the server
  NAME.pem      for each --client, its certificate and private key

The authority signs nothing else later: its key is not stored. Existing files are not replaced.

Options:
  --folder DIR   the folder of the files; it is created if it does not exist
  --host NAME    a name or an address of the server; can be repeated
                 [default: localhost, 127.0.0.1 and ::1]
  --client NAME  make a certificate for a client with the subject CN=NAME; can be repeated
  --days N       how long the certificates are valid [default: 365]
  -h, --help     show this help

Examples:
  windrow certificate --folder ./tls --client alice
  windrow serve --data ./data --tls-mode require --tls-certificate-key-file ./tls/server.pem
  mongosh 'mongodb://localhost/?tls=true&tlsCAFile=./tls/ca.pem'
";

#[derive(Debug, PartialEq)]
struct Options {
    folder: PathBuf,
    hosts: Vec<String>,
    clients: Vec<String>,
    days: i64,
}

/// The maximum validity in days.
const DAYS_MAX: i64 = 36_500;

/// The permissions of a file that everybody can read.
const PUBLIC: u32 = 0o644;

/// File names that are not available for client certificates.
const RESERVED: &[&str] = &["ca", "server"];

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    for path in create(&options)? {
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut folder, mut hosts, mut clients, mut days) = (None, Vec::new(), Vec::new(), 365);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("folder") => folder = Some(PathBuf::from(arguments.value()?)),
            Long("host") => hosts.push(arguments.value()?.string()?),
            Long("client") => clients.push(parse_client(arguments.value()?.string()?)?),
            Long("days") => days = parse_days(&arguments.value()?.string()?)?,
            other => return Err(other.unexpected().into()),
        }
    }
    if hosts.is_empty() {
        hosts = ["localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
    }
    Ok(Some(Options {
        folder: folder.ok_or_else(|| Failure::missing_argument("--folder DIR", "certificate"))?,
        hosts,
        clients,
        days,
    }))
}

fn parse_days(text: &str) -> Result<i64, Failure> {
    let days = text
        .parse()
        .ok()
        .filter(|days| (1..=DAYS_MAX).contains(days));
    days.ok_or_else(|| {
        Failure::Usage(format!(
            "--days {text:?} is not a number from 1 to {DAYS_MAX}"
        ))
    })
}

/// Checks the name of a client, which is also the name of its file.
fn parse_client(name: String) -> Result<String, Failure> {
    let is_plain = name
        .chars()
        .all(|letter| letter.is_alphanumeric() || "-_@ .".contains(letter));
    if name.is_empty() || name.starts_with('.') || !is_plain || RESERVED.contains(&&*name) {
        return Err(Failure::Usage(format!(
            "--client {name:?} is not a name; write letters, digits, spaces or - _ @ ."
        )));
    }
    Ok(name)
}

/// Creates the certificates. Returns the paths of the files.
fn create(options: &Options) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(&options.folder)
        .map_err(|error| Failure::runtime(format!("{}: {error}", options.folder.display())))?;
    let authority = authority(options)?;
    let mut files = vec![("ca".to_owned(), authority.pem())];
    let mut server = parameters(options, "Windrow server")?;
    server.subject_alt_names = CertificateParams::new(options.hosts.clone())
        .map_err(|error| Failure::Usage(format!("--host: {error}")))?
        .subject_alt_names;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    files.push(("server".to_owned(), sign(server, &authority)?));
    for name in &options.clients {
        let mut client = parameters(options, name)?;
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        files.push((name.clone(), sign(client, &authority)?));
    }
    let mut written = Vec::new();
    for (name, content) in files {
        let path = options.folder.join(format!("{name}.pem"));
        let permissions = if name == "ca" {
            PUBLIC
        } else {
            secret_file::PRIVATE
        };
        secret_file::create(&path, &content, permissions)
            .map_err(|error| Failure::runtime(format!("{}: {error}", path.display())))?;
        written.push(path);
    }
    Ok(written)
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(options: &Options) -> Result<Authority, Failure> {
    let mut parameters = parameters(options, "Windrow test authority")?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(Failure::runtime)?;
    CertifiedIssuer::self_signed(parameters, key).map_err(Failure::runtime)
}

/// Returns the common parameters of all certificates. They are valid from the day before, because
/// clocks differ.
fn parameters(options: &Options, name: &str) -> Result<CertificateParams, Failure> {
    let mut parameters = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    parameters.distinguished_name = subject;
    let day = |days: i64| -> Result<_, Failure> {
        let span = Span::new().try_hours(24 * days);
        let date = span.and_then(|span| Timestamp::now().checked_add(span));
        let date = date.map(|time| time.to_zoned(TimeZone::UTC).date());
        let date = date.map_err(Failure::runtime)?;
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        Ok(date_time_ymd(date.year().into(), month, day))
    };
    parameters.not_before = day(-1)?;
    parameters.not_after = day(options.days)?;
    parameters.use_authority_key_identifier_extension = true;
    Ok(parameters)
}

/// Creates a key and its certificate, as a single PEM text.
fn sign(mut parameters: CertificateParams, authority: &Authority) -> Result<String, Failure> {
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().map_err(Failure::runtime)?;
    let certificate = parameters.signed_by(&key, authority);
    let certificate = certificate.map_err(Failure::runtime)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn arguments_are_parsed() {
        let check = |arguments: &[&str], expected: Result<Options, &str>| {
            check_parsed(parse, arguments, expected);
        };
        let options = Options {
            folder: "f".into(),
            hosts: vec!["localhost".into(), "127.0.0.1".into(), "::1".into()],
            clients: Vec::new(),
            days: 365,
        };
        check(&["--folder", "f"], Ok(options));
        let options = Options {
            folder: "f".into(),
            hosts: vec!["db.example".into()],
            clients: vec!["alice".into(), "bob@example".into()],
            days: 7,
        };
        let arguments = "--folder f --host db.example --client alice --client bob@example --days 7";
        check(&Vec::from_iter(arguments.split(' ')), Ok(options));
        check(&[], Err("--folder"));
        check(&["--folder", "f", "--days", "0"], Err("--days"));
        check(&["--folder", "f", "--client", "../a"], Err("../a"));
        check(&["--folder", "f", "--client", "ca"], Err("ca"));
        check(&["f"], Err("f"));
    }

    #[test]
    fn keys_are_private_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            folder: folder.path().join("tls"),
            hosts: vec!["localhost".into()],
            clients: vec!["alice".into()],
            days: 1,
        };
        let files = create(&options).unwrap();
        let names = files
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap());
        assert_eq!(Vec::from_iter(names), ["ca.pem", "server.pem", "alice.pem"]);
        for path in &files {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            let is_public = path.ends_with("ca.pem");
            assert_eq!(mode & 0o077, if is_public { 0o044 } else { 0 });
        }
        let text = std::fs::read_to_string(&files[0]).unwrap();
        assert!(
            !text.contains("PRIVATE"),
            "the key of the authority is not stored"
        );
        let before = std::fs::read(&files[1]).unwrap();
        assert!(create(&options).unwrap_err().to_string().contains("exists"));
        assert_eq!(std::fs::read(&files[1]).unwrap(), before);
    }
}
