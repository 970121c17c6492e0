//! TLS: the settings, the certificates that the server presents and accepts, and their replacement
//! while it runs.
//!
//! Only TLS 1.2 and 1.3 exist, with the cipher suites that crate rustls has: all of them have
//! forward secrecy and authenticated encryption.

pub(crate) mod certificate;
mod der;
mod private_key;
pub(crate) mod session;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use zeroize::Zeroizing;

use crate::clock;
use crate::sync::lock;
use certificate::Certificate;

pub use private_key::KeyPassword;

/// The clients that the server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Clients with TLS, and clients without.
    Allow,
    /// As [`Allow`](Self::Allow). They differ for servers that connect to other servers.
    Prefer,
    /// Clients with TLS only.
    Require,
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

impl TlsVersion {
    /// Returns the name in logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TlsVersion::V12 => "1.2",
            TlsVersion::V13 => "1.3",
        }
    }
}

/// The settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The accepted clients.
    pub mode: TlsMode,
    /// A PEM file with the certificate of the server, its chain and its private key.
    pub certificate_key_file: PathBuf,
    /// The password of the private key, if it is encrypted.
    pub certificate_key_password: Option<KeyPassword>,
    /// A PEM file with the certificates of the authorities that sign certificates of clients.
    /// Without it, clients are not asked for a certificate.
    pub ca_file: Option<PathBuf>,
    /// A PEM file with lists of revoked certificates.
    pub crl_file: Option<PathBuf>,
    /// Accepts clients that have no certificate, although there is a CA file.
    pub allow_without_certificates: bool,
    /// The accepted versions of the protocol.
    pub versions: Vec<TlsVersion>,
}

/// The error of files of TLS that cannot be used. The text is a sentence with the name of the file.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// TLS of a server.
pub(crate) struct Tls {
    settings: TlsSettings,
    loaded: Mutex<LoadedFiles>,
}

/// The content of the files.
#[derive(Clone)]
pub(crate) struct LoadedFiles {
    /// The configuration of handshakes.
    pub config: Arc<ServerConfig>,
    /// The certificate of the server.
    pub certificate: Certificate,
}

impl Tls {
    /// Reads the files. Fails if one cannot be used.
    pub fn new(settings: TlsSettings) -> Result<Tls, TlsError> {
        let loaded = Mutex::new(load(&settings)?);
        Ok(Tls { settings, loaded })
    }

    pub fn mode(&self) -> TlsMode {
        self.settings.mode
    }

    pub fn has_authority(&self) -> bool {
        self.settings.ca_file.is_some()
    }

    /// Returns the current content of the files.
    pub fn loaded(&self) -> LoadedFiles {
        lock(&self.loaded).clone()
    }

    /// Reads the files again. New connections use their content; existing ones continue. If a file
    /// cannot be used, nothing changes.
    pub fn rotate(&self) -> Result<(), TlsError> {
        let loaded = load(&self.settings)?;
        *lock(&self.loaded) = loaded;
        Ok(())
    }
}

impl TlsSettings {
    /// Reads the files, and returns until when the certificate of the server is valid.
    ///
    /// # Errors
    /// Fails if a file cannot be used, also if the certificate is not valid now.
    pub fn valid_until(&self) -> Result<SystemTime, TlsError> {
        Ok(load(self)?.certificate.not_after)
    }
}

/// The remaining time of a certificate from which on it is to be replaced: 30 days.
pub const CERTIFICATE_WARNING_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

fn load(settings: &TlsSettings) -> Result<LoadedFiles, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let versions: Vec<&SupportedProtocolVersion> = settings
        .versions
        .iter()
        .map(|version| match version {
            TlsVersion::V12 => &TLS12,
            TlsVersion::V13 => &TLS13,
        })
        .collect();
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| TlsError(format!("the versions of TLS: {error}")))?;
    let builder = match client_verifier(settings)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let path = &settings.certificate_key_file;
    let (chain, key) = load_certificate_key(path, settings.certificate_key_password.as_ref())?;
    let certificate = chain.first().and_then(|der| Certificate::parse(der));
    let certificate = certificate.ok_or_else(|| fail(path, &"it has no valid certificate"))?;
    check_time(&certificate, path)?;
    let config = builder
        .with_single_cert(chain, key)
        .map_err(|error| fail(path, &error))?;
    Ok(LoadedFiles {
        config: Arc::new(config),
        certificate,
    })
}

/// Reads a chain of certificates, that of the server first, and the private key.
fn load_certificate_key(
    path: &Path,
    password: Option<&KeyPassword>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let bytes = Zeroizing::new(read(path)?);
    private_key::refuse_traditional(&bytes).map_err(|reason| fail(path, &reason))?;
    let chain = parse_all(&bytes, path, "certificate")?;
    let key = private_key::parse(&bytes, password).map_err(|reason| fail(path, &reason))?;
    Ok((chain, key))
}

/// Returns the check of clients' certificates. `None` if there is no authority that could have
/// signed them.
fn client_verifier(
    settings: &TlsSettings,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let Some(path) = &settings.ca_file else {
        return Ok(None);
    };
    let mut roots = RootCertStore::empty();
    for certificate in parse_all(&read(path)?, path, "certificate")? {
        roots.add(certificate).map_err(|error| fail(path, &error))?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let mut files = path.display().to_string();
    if let Some(path) = &settings.crl_file {
        let lists = parse_all::<CertificateRevocationListDer<'_>>(
            &read(path)?,
            path,
            "list of revoked certificates",
        )?;
        builder = builder
            .with_crls(lists)
            .only_check_end_entity_revocation()
            .allow_unknown_revocation_status()
            .enforce_revocation_expiration();
        files = format!("{files}, {}", path.display());
    }
    if settings.allow_without_certificates {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build();
    verifier
        .map(Some)
        .map_err(|error| TlsError(format!("{files}: {error}")))
}

fn parse_all<T: PemObject>(bytes: &[u8], path: &Path, what: &str) -> Result<Vec<T>, TlsError> {
    let parsed: Result<Vec<T>, _> = T::pem_slice_iter(bytes).collect();
    let parsed = parsed.map_err(|error| fail(path, &error))?;
    if parsed.is_empty() {
        return Err(fail(path, &format!("it has no {what}")));
    }
    Ok(parsed)
}

/// Fails if the certificate is not valid at this time.
fn check_time(certificate: &Certificate, path: &Path) -> Result<(), TlsError> {
    let now = SystemTime::now();
    if now < certificate.not_before || certificate.not_after < now {
        let (from, until) = (certificate.not_before, certificate.not_after);
        let reason = format!(
            "the certificate is valid from {} to {} only",
            clock::iso(from),
            clock::iso(until)
        );
        return Err(fail(path, &reason));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| fail(path, &error))
}

fn fail(path: &Path, reason: &dyn fmt::Display) -> TlsError {
    TlsError(format!("{}: {reason}", path.display()))
}
