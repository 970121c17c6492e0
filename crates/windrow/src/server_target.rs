//! The options that name a server: an address or a connection string, a user and TLS files.
//!
//! A password is never accepted on the command line, where every user of the machine could read it.
//! It is read from the environment or from the terminal.

mod password;
mod uri;

use std::fmt;
use std::path::PathBuf;

use lexopt::prelude::*;
use windrow_access::Mechanism;

use crate::address_file::{self, Password, ServerAddress};
use crate::command_line::Failure;
use password::read_password;
use uri::{ParsedUri, parse_uri};

/// The help text of these options.
macro_rules! connection_help {
    () => {
        "  --username NAME  log in as this user. The password is that of WINDROW_PASSWORD, or is asked for
  --authentication-database NAME
                   the database of the user [default: that of the connection string, or admin]
  --authentication-mechanism M
                   SCRAM-SHA-256, SCRAM-SHA-1 or MONGODB-X509 [default: the best of the user]
  --tls            encrypt the connection
  --tls-ca-file FILE
                   a PEM file with the authorities that sign the certificate of the server
                   [default: those of the system]
  --tls-certificate-key-file FILE
                   a PEM file with the certificate and the private key of the client
"
    };
}
pub(crate) use connection_help;

/// A server, and how to connect to it.
#[derive(Debug, PartialEq)]
pub struct ServerTarget {
    pub endpoint: Endpoint,
    /// `None` without TLS.
    pub tls: Option<TlsFiles>,
    pub login: Option<Login>,
}

/// An address or a Unix domain socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp {
        host: String,
        port: u16,
    },
    /// The path of a Unix domain socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } if host.contains(':') => {
                write!(formatter, "[{host}]:{port}")
            }
            Endpoint::Tcp { host, port } => write!(formatter, "{host}:{port}"),
            Endpoint::Unix(path) => path.display().fmt(formatter),
        }
    }
}

/// The files of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// `None` uses the authorities of the system.
    pub ca_file: Option<PathBuf>,
    pub certificate_key_file: Option<PathBuf>,
}

/// The authentication of a user.
#[derive(Debug, PartialEq)]
pub enum Login {
    Password {
        user: String,
        database: String,
        /// `None` selects the strongest mechanism of the user.
        mechanism: Option<Mechanism>,
        password: Password,
    },
    /// By the client certificate (MONGODB-X509).
    Certificate,
}

/// A server to which a command connects, possibly several times.
pub enum ResolvedTarget {
    Named(ServerTarget),
    /// The server that has a data folder open.
    OfFolder(ServerAddress),
}

impl fmt::Display for ResolvedTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolvedTarget::Named(target) => target.endpoint.fmt(formatter),
            ResolvedTarget::OfFolder(address) => address.fmt(formatter),
        }
    }
}

/// The options of a command that name a server.
#[derive(Debug, Default, PartialEq)]
pub struct TargetOptions {
    /// An address or a connection string.
    pub server: Option<String>,
    /// The data folder of the server. The command then authenticates as the internal user.
    pub data_folder: Option<PathBuf>,
    user: Option<String>,
    database: Option<String>,
    mechanism: Option<String>,
    tls: bool,
    files: TlsFiles,
}

/// The environment variable with a connection string, which may contain a password.
const URI_VARIABLE: &str = "WINDROW_URI";

impl TargetOptions {
    /// Parses an option. Returns `false` if it is unknown. The option names of mongosh are
    /// accepted, too.
    pub fn accept(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        match name {
            "username" => self.user = Some(parser.value()?.string()?),
            "authentication-database" | "authenticationDatabase" => {
                self.database = Some(parser.value()?.string()?);
            }
            "authentication-mechanism" | "authenticationMechanism" => {
                self.mechanism = Some(parser.value()?.string()?);
            }
            "password" => {
                let message = "a password on the command line can be read by every user of the \
                               machine; set WINDROW_PASSWORD, or wait to be asked";
                return Err(Failure::usage(message));
            }
            "tls" => self.tls = true,
            "tls-ca-file" | "tlsCAFile" => {
                self.files.ca_file = Some(PathBuf::from(parser.value()?));
            }
            "tls-certificate-key-file" | "tlsCertificateKeyFile" => {
                self.files.certificate_key_file = Some(PathBuf::from(parser.value()?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Resolves the target. Asks for the password if it is not known.
    pub fn resolve(&self) -> Result<ResolvedTarget, Failure> {
        let Some(folder) = &self.data_folder else {
            let environment = std::env::var(URI_VARIABLE).ok();
            let target = self.target(environment, read_password)?;
            return Ok(ResolvedTarget::Named(target));
        };
        let only_folder = TargetOptions {
            data_folder: self.data_folder.clone(),
            ..TargetOptions::default()
        };
        if *self != only_folder {
            let message = "--data names a server of this machine, and excludes other options of \
                           the connection";
            return Err(Failure::usage(message));
        }
        let address = address_file::read_address(folder, None).ok_or_else(|| {
            let folder = folder.display();
            Failure::runtime(format!("no server has the data folder {folder} open"))
        })?;
        Ok(ResolvedTarget::OfFolder(address))
    }

    /// Returns the target. `environment` is the connection string in the environment, which is used
    /// if none is given.
    fn target(
        &self,
        environment: Option<String>,
        ask: impl FnOnce(&str) -> Result<Password, Failure>,
    ) -> Result<ServerTarget, Failure> {
        let given = self.server.as_deref();
        let parsed = match (given, &environment) {
            (Some(given), _) => parse_uri(given),
            (None, Some(uri)) => parse_uri(uri),
            (None, None) => parse_uri("127.0.0.1:27017"),
        };
        let uri = parsed.map_err(Failure::Usage)?;
        if given.is_some() && uri.password.is_some() {
            let message = format!(
                "a password on the command line can be read by every user of the machine; leave it \
                 out of the connection string, or put the string into {URI_VARIABLE}"
            );
            return Err(Failure::Usage(message));
        }
        let files = TlsFiles {
            ca_file: self.files.ca_file.clone().or(uri.files.ca_file.clone()),
            certificate_key_file: self
                .files
                .certificate_key_file
                .clone()
                .or(uri.files.certificate_key_file.clone()),
        };
        let has_tls = self.tls || uri.tls || files != TlsFiles::default();
        Ok(ServerTarget {
            endpoint: uri.endpoint.clone(),
            login: self.login(uri, ask)?,
            tls: has_tls.then_some(files),
        })
    }

    fn login(
        &self,
        uri: ParsedUri,
        ask: impl FnOnce(&str) -> Result<Password, Failure>,
    ) -> Result<Option<Login>, Failure> {
        let mechanism = match self.mechanism.as_deref().or(uri.mechanism.as_deref()) {
            None => None,
            Some("MONGODB-X509") => return Ok(Some(Login::Certificate)),
            Some(name) => Some(Mechanism::from_name(name).ok_or_else(|| {
                let message = format!(
                    "{name:?} is not a mechanism; write SCRAM-SHA-256, SCRAM-SHA-1 or MONGODB-X509"
                );
                Failure::Usage(message)
            })?),
        };
        let Some(user) = self.user.clone().or(uri.user) else {
            return Ok(None);
        };
        let password = match uri.password {
            Some(password) => password,
            None => ask(&user)?,
        };
        let database = self.database.clone().or(uri.database);
        Ok(Some(Login::Password {
            user,
            database: database.unwrap_or_else(|| "admin".to_owned()),
            mechanism,
            password,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(_: &str) -> Result<Password, Failure> {
        Ok(Password("asked".into()))
    }

    #[test]
    fn options_and_strings_name_a_server() {
        let options = TargetOptions {
            server: Some("db.example:1".into()),
            user: Some("ann".into()),
            ..TargetOptions::default()
        };
        let target = options.target(Some("mongodb://x".into()), ask).unwrap();
        assert_eq!(target.endpoint.to_string(), "db.example:1");
        let login = |user: &str, database: &str, password: &str| Login::Password {
            user: user.into(),
            database: database.into(),
            mechanism: None,
            password: Password(password.into()),
        };
        assert_eq!(target.login, Some(login("ann", "admin", "asked")));
        let uri = "mongodb://bob:p%40ss@h/d?tls=true".to_owned();
        let target = TargetOptions::default().target(Some(uri), ask).unwrap();
        assert_eq!(target.login, Some(login("bob", "d", "p@ss")));
        assert_eq!(target.tls, Some(TlsFiles::default()));
    }

    #[test]
    fn passwords_are_not_on_the_command_line() {
        let options = TargetOptions {
            server: Some("mongodb://bob:secret@h".into()),
            ..TargetOptions::default()
        };
        let failure = options.target(None, ask).unwrap_err().to_string();
        assert!(
            failure.contains("WINDROW_URI") && !failure.contains("secret"),
            "{failure}"
        );
    }
}
