//! How connections reach the server: with TLS or without, with a login or without.
//!
//! A login is that of SCRAM-SHA-256:
//!
//! ```text
//! saslStart:    n,,n=USER,r=NONCE         → r=NONCE…,s=SALT,i=COUNT
//! saslContinue: c=biws,r=NONCE…,p=PROOF   → v=SIGNATURE
//! ```

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use windrow_access::Mechanism;
use windrow_access::scram::ClientConversation;

use crate::bson::{Document, Value, Writer};
use crate::client::{Connection, Stream};
use crate::error::{At, BenchError};
use crate::options::Options;

const MECHANISM: Mechanism = Mechanism::ScramSha256;
const REPLY_TIMEOUT: Duration = Duration::from_secs(3600);

/// How a connection is opened.
#[derive(Clone, Default)]
pub struct Access {
    tls: Option<Arc<ClientConfig>>,
    login: Option<Login>,
}

/// A user and its password.
#[derive(Clone, Debug, PartialEq)]
pub struct Login {
    /// The name of a user of the database `admin`.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl Access {
    /// Reads the certificates that the options name. Connections do not log in.
    pub fn without_login(options: &Options) -> Result<Self, BenchError> {
        let tls = options.tls_folder.as_deref().map(tls_config).transpose()?;
        Ok(Self { tls, login: None })
    }

    /// The same with a login, if the options have one.
    pub fn with_login(self, options: &Options) -> Self {
        Self {
            login: Login::from_options(options),
            ..self
        }
    }

    /// Connects to a server on this machine, and logs in if connections do.
    pub fn connect(&self, port: u16) -> Result<Connection, BenchError> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).at(format!("port {port}"))?;
        socket.set_nodelay(true).at("the socket")?;
        socket
            .set_read_timeout(Some(REPLY_TIMEOUT))
            .at("the socket")?;
        let mut connection = Connection::new(self.encrypted(socket)?);
        if let Some(login) = &self.login {
            login.perform(&mut connection)?;
        }
        Ok(connection)
    }

    /// Encrypts a socket if connections use TLS. The handshake happens with the first message.
    fn encrypted(&self, socket: TcpStream) -> Result<Box<dyn Stream>, BenchError> {
        let Some(config) = &self.tls else {
            return Ok(Box::new(socket));
        };
        let name = ServerName::try_from("localhost").map_err(tls_error)?;
        let session = ClientConnection::new(Arc::clone(config), name).map_err(tls_error)?;
        Ok(Box::new(StreamOwned::new(session, socket)))
    }
}

impl Login {
    /// The login of `--user` and `--password`.
    pub fn from_options(options: &Options) -> Option<Self> {
        let user = options.user.clone()?;
        let password = options.password.clone().unwrap_or_else(|| user.clone());
        Some(Self { user, password })
    }

    /// Creates the user, with all privileges. On a new server with `--auth` this needs no login.
    pub fn create(&self, connection: &mut Connection) -> Result<(), BenchError> {
        let created = connection.run("admin", |writer| {
            writer.string("createUser", &self.user);
            writer.string("pwd", &self.password);
            writer.array("roles", |roles| roles.string("0", "root"));
        });
        created.map(drop)
    }

    fn perform(&self, connection: &mut Connection) -> Result<(), BenchError> {
        let conversation = ClientConversation::start(MECHANISM, &self.user, &nonce());
        let (id, reply) = sasl(connection, |writer| {
            writer.int32("saslStart", 1);
            writer.string("mechanism", MECHANISM.name());
            writer.binary("payload", conversation.first().as_bytes());
            writer.document("options", |out| out.boolean("skipEmptyExchange", true));
        })?;
        let proof = conversation
            .prove(&self.password, &reply)
            .map_err(login_error)?;
        let (_, reply) = sasl(connection, |writer| {
            writer.int32("saslContinue", 1);
            writer.int32("conversationId", id);
            writer.binary("payload", proof.message().as_bytes());
        })?;
        proof.check(&reply).map_err(login_error)
    }
}

/// Sends a message of a login. Returns the number of the conversation and the server's message.
fn sasl(
    connection: &mut Connection,
    fill: impl FnOnce(&mut Writer),
) -> Result<(i32, Vec<u8>), BenchError> {
    let parsed = parse_sasl(connection.run("admin", fill)?);
    parsed.ok_or_else(|| BenchError::Server("an invalid reply to a login".into()))
}

fn parse_sasl(reply: Document<'_>) -> Option<(i32, Vec<u8>)> {
    let id = reply.number("conversationId")? as i32;
    match reply.get("payload")? {
        Value::Binary(payload) => Some((id, payload.to_vec())),
        _ => None,
    }
}

/// Text that no other login of this run has. The logins of a benchmark protect nothing.
fn nonce() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("windrow-bench-{}-{number}", std::process::id())
}

/// A client that trusts the authority of `windrow certificate`. It never resumes a session, so each
/// connection has a whole handshake.
fn tls_config(folder: &Path) -> Result<Arc<ClientConfig>, BenchError> {
    let path = folder.join("ca.pem");
    let unusable = |error: &dyn std::fmt::Display| {
        BenchError::Usage(format!("--tls-folder: {}: {error}", path.display()))
    };
    let authority = CertificateDer::from_pem_file(&path).map_err(|error| unusable(&error))?;
    let mut authorities = RootCertStore::empty();
    authorities
        .add(authority)
        .map_err(|error| unusable(&error))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls_error)?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn tls_error(error: impl std::fmt::Display) -> BenchError {
    BenchError::Server(format!("TLS: {error}"))
}

fn login_error(error: windrow_access::Error) -> BenchError {
    BenchError::Server(format!("the login failed: {error}"))
}
