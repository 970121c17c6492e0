//! TLS for clients.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::server_target::TlsFiles;
use windrow_client::Stream;

/// The trusted certificate authorities of the system, in the paths of common distributions.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Encrypts a connection. The certificate of the server must be valid for the host. Fails with the
/// reason.
pub fn encrypt(
    mut stream: impl Stream + 'static,
    host: &str,
    files: &TlsFiles,
) -> Result<Box<dyn Stream>, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let mut connection =
        ClientConnection::new(Arc::new(config(files)?), name).map_err(|error| error.to_string())?;
    while connection.is_handshaking() {
        let done = connection.complete_io(&mut stream);
        done.map_err(|error| format!("the TLS handshake failed: {error}"))?;
    }
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

fn config(files: &TlsFiles) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(authorities(files.ca_file.as_deref())?);
    let Some(path) = &files.certificate_key_file else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(path)?;
    let key = PrivateKeyDer::from_pem_file(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the authorities in a file. Without a file, returns those of the system.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = file {
        for certificate in certificates(path)? {
            let added = roots.add(certificate);
            added.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        return Ok(roots);
    }
    let mut paths = SYSTEM_AUTHORITIES.iter().map(Path::new);
    let Some(path) = paths.find(|path| path.exists()) else {
        return Err("--tls-ca-file is missing; the system has no list of authorities".to_owned());
    };
    roots.add_parsable_certificates(certificates(path)?);
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let parsed = CertificateDer::pem_file_iter(path).map_err(|error| fail(&error))?;
    let parsed: Result<Vec<_>, _> = parsed.collect();
    match parsed.map_err(|error| fail(&error))? {
        empty if empty.is_empty() => Err(fail(&"it has no certificate")),
        parsed => Ok(parsed),
    }
}
