//! Connection strings of MongoDB
//! (<https://www.mongodb.com/docs/manual/reference/connection-string/>), restricted to a single
//! server.

use std::path::PathBuf;

use super::{Endpoint, TlsFiles};
use crate::address_file::Password;

const PORT_DEFAULT: u16 = 27017;

/// A parsed connection string.
#[derive(Debug, PartialEq)]
pub struct ParsedUri {
    pub endpoint: Endpoint,
    pub user: Option<String>,
    pub password: Option<Password>,
    /// The authentication database.
    pub database: Option<String>,
    pub mechanism: Option<String>,
    pub tls: bool,
    pub files: TlsFiles,
}

/// Parses a connection string or `HOST[:PORT]`. Fails with a message, which does not contain the
/// password.
pub fn parse_uri(text: &str) -> Result<ParsedUri, String> {
    if text.starts_with("mongodb+srv://") {
        return Err("mongodb+srv:// is not supported; name the server".to_owned());
    }
    let rest = text.strip_prefix("mongodb://").unwrap_or(text);
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = match rest.split_once('/') {
        Some((authority, database)) => (authority, Some(database)),
        None => (rest, None),
    };
    let (user_info, host) = match authority.rsplit_once('@') {
        Some((user_info, host)) => (Some(user_info), host),
        None => (None, authority),
    };
    let (user, password) = match user_info.map(|it| it.split_once(':').unwrap_or((it, ""))) {
        None => (None, None),
        Some((user, "")) => (Some(decode(user)?), None),
        Some((user, password)) => (Some(decode(user)?), Some(Password(decode(password)?))),
    };
    let database = database.filter(|name| !name.is_empty());
    let mut parsed = ParsedUri {
        endpoint: endpoint(host)?,
        user,
        password,
        database: database.map(decode).transpose()?,
        mechanism: None,
        tls: false,
        files: TlsFiles::default(),
    };
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        parsed.set(name, decode(value)?)?;
    }
    Ok(parsed)
}

impl ParsedUri {
    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "authSource" => self.database = Some(value),
            "authMechanism" => self.mechanism = Some(value),
            "tls" | "ssl" => {
                let parsed = value.parse();
                self.tls = parsed.map_err(|_| format!("{name} is neither true nor false"))?;
            }
            "tlsCAFile" => self.files.ca_file = Some(PathBuf::from(value)),
            "tlsCertificateKeyFile" => {
                self.files.certificate_key_file = Some(PathBuf::from(value));
            }
            // Options about writes, pools and server selection have no effect.
            "directConnection" | "appName" | "retryWrites" | "retryReads" | "w" | "journal"
            | "readPreference" | "maxPoolSize" | "minPoolSize" | "compressors" => {}
            _ => {
                return Err(format!(
                    "the option {name} of the connection string is not supported"
                ));
            }
        }
        Ok(())
    }
}

fn endpoint(host: &str) -> Result<Endpoint, String> {
    if host.contains(',') {
        return Err("the connection string names several servers; name one".to_owned());
    }
    let host = decode(host)?;
    if host.starts_with('/') {
        return Ok(Endpoint::Unix(PathBuf::from(host)));
    }
    let invalid =
        || format!("{host:?} is not an address; write HOST:PORT, for example 127.0.0.1:27017");
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or_else(invalid)?;
            (name, port.strip_prefix(':'))
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host.as_str(), None),
        },
    };
    let port = match port {
        None => PORT_DEFAULT,
        Some(port) => port.parse().map_err(|_| invalid())?,
    };
    if name.is_empty() {
        return Err(invalid());
    }
    Ok(Endpoint::Tcp {
        host: name.to_owned(),
        port,
    })
}

/// Decodes percent escapes.
fn decode(text: &str) -> Result<String, String> {
    let invalid = || "a part of the connection string has an invalid % escape".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = digit().zip(digit()).ok_or_else(invalid)?;
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_parsed() {
        let check = |text: &str, expected: Result<&str, &str>| match (parse_uri(text), expected) {
            (Ok(found), Ok(expected)) => {
                let password = found.password.map(|Password(text)| text);
                let found = format!(
                    "{} {:?} {:?} {:?} {}",
                    found.endpoint, found.user, password, found.database, found.tls
                );
                assert_eq!(found, expected, "{text}");
            }
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        check("h", Ok("h:27017 None None None false"));
        check("h:1", Ok("h:1 None None None false"));
        check("[::1]:1", Ok("[::1]:1 None None None false"));
        check("mongodb://h/", Ok("h:27017 None None None false"));
        check(
            "mongodb://%2Ftmp%2Fa.sock",
            Ok("/tmp/a.sock None None None false"),
        );
        check(
            "mongodb://a%40b:c%3A@h:1/d?authSource=e&tls=true&directConnection=true",
            Ok(r#"h:1 Some("a@b") Some("c:") Some("e") true"#),
        );
        check(
            "mongodb://a@h/d",
            Ok(r#"h:27017 Some("a") None Some("d") false"#),
        );
        check("mongodb+srv://h", Err("not supported"));
        check("mongodb://a,b", Err("several"));
        check("mongodb://h/?tlsInsecure=true", Err("tlsInsecure"));
        check("mongodb://h/?tls=x", Err("neither"));
        check("mongodb://h:x", Err("not an address"));
        check("mongodb://%4", Err("escape"));
        check("", Err("not an address"));
    }
}
