//! The options of TLS.

use std::path::PathBuf;

use windrow_server::{KeyPassword, TlsMode, TlsSettings, TlsVersion};

use crate::command_line::Failure;

/// The given options of TLS.
#[derive(Debug, Default)]
pub struct TlsDraft {
    /// `None` if no option sets a mode.
    pub mode: Option<TlsChoice>,
    pub certificate_key_file: Option<PathBuf>,
    pub certificate_key_password: Option<KeyPassword>,
    pub ca_file: Option<PathBuf>,
    pub crl_file: Option<PathBuf>,
    pub allow_without_certificates: bool,
    /// `None` for all versions that the server supports.
    pub versions: Option<Vec<TlsVersion>>,
}

/// The values of `net.tls.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsChoice {
    Disabled,
    Enabled(TlsMode),
}

impl TlsDraft {
    /// Returns the settings of TLS. `None` if the server does not use it.
    pub fn settings(&self) -> Result<Option<TlsSettings>, Failure> {
        match self.mode {
            Some(TlsChoice::Enabled(mode)) => self.enabled_settings(mode).map(Some),
            // Options of a disabled TLS may stay in the configuration file.
            Some(TlsChoice::Disabled) => Ok(None),
            None if self.needs_mode() => Err(Failure::usage(
                "--tls-mode is missing; other options of TLS need it",
            )),
            None => Ok(None),
        }
    }

    /// Returns `true` if an option was given that has no effect without a mode.
    fn needs_mode(&self) -> bool {
        self.certificate_key_file.is_some()
            || self.certificate_key_password.is_some()
            || self.ca_file.is_some()
            || self.crl_file.is_some()
            || self.allow_without_certificates
    }

    fn enabled_settings(&self, mode: TlsMode) -> Result<TlsSettings, Failure> {
        let Some(certificate_key_file) = self.certificate_key_file.clone() else {
            return Err(Failure::usage(
                "--tls-certificate-key-file is missing; --tls-mode needs it",
            ));
        };
        if self.ca_file.is_none() && self.crl_file.is_some() {
            return Err(Failure::usage(
                "--tls-ca-file is missing; --tls-crl-file needs it",
            ));
        }
        if self.ca_file.is_none() && self.allow_without_certificates {
            return Err(Failure::usage(
                "--tls-ca-file is missing; --tls-allow-connections-without-certificates needs it",
            ));
        }
        let all_versions = || vec![TlsVersion::V12, TlsVersion::V13];
        Ok(TlsSettings {
            mode,
            certificate_key_file,
            certificate_key_password: self.certificate_key_password.clone(),
            ca_file: self.ca_file.clone(),
            crl_file: self.crl_file.clone(),
            allow_without_certificates: self.allow_without_certificates,
            versions: self.versions.clone().unwrap_or_else(all_versions),
        })
    }
}
