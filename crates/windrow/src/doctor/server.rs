//! Checks of the configuration of a server: options, addresses, access, certificate and files.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{Access, access};
use windrow_server::{AccessControl, CERTIFICATE_WARNING_TIME, LogTarget, TlsMode, TlsSettings};

use super::check::Check;
use crate::data_folder::mode_for_others;
use crate::secret_file;
use crate::serve::{self, Options};

/// Checks the configuration file. Returns `None` if it is invalid.
pub fn check_configuration(file: &Path, checks: &mut Vec<Check>) -> Option<Options> {
    const NAME: &str = "server options";
    match serve::read_configuration(file) {
        Ok(options) => {
            checks.push(Check::ok(NAME, file.display()));
            Some(options)
        }
        Err(failure) => {
            let advice = "`windrow serve --help` lists the options";
            checks.push(Check::problem(NAME, failure, advice));
            None
        }
    }
}

/// Checks the resources that the options name. `is_running` is `true` if the server runs, so its
/// addresses are in use.
pub fn check(options: &Options, is_running: bool, checks: &mut Vec<Check>) {
    if !is_running {
        checks.extend(check_addresses(options));
    }
    checks.push(check_access(options));
    checks.extend(options.tls.as_ref().map(check_certificate));
    checks.extend(check_permissions(&options.data_folder));
    checks.extend(options.metrics_token_file.as_deref().and_then(check_token));
    let log = match &options.log {
        LogTarget::File { path, .. } => Some(path.as_path()),
        LogTarget::Stderr | LogTarget::Syslog { .. } => None,
    };
    let written = [("log", log), ("pid file", options.pid_file.as_deref())];
    for (name, path) in written {
        checks.extend(path.map(|path| check_written_file(name, path)));
    }
}

/// Checks that the addresses are available.
fn check_addresses(options: &Options) -> Vec<Check> {
    const NAME: &str = "address";
    let page = options.web.as_ref().map(|web| web.address.listen);
    let addresses = options.listen.iter().copied();
    let addresses = addresses.chain(options.metrics_listen).chain(page);
    let check = |address: SocketAddr| match TcpListener::bind(address) {
        Ok(_) => Check::ok(NAME, format!("{address} is free")),
        Err(error) => {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "another process listens there; `ss -ltnp` shows which",
                io::ErrorKind::AddrNotAvailable => "this machine does not have the address",
                _ => "ports below 1024 need a privilege; choose another one",
            };
            Check::problem(NAME, format!("{address}: {error}"), advice)
        }
    };
    addresses.map(check).collect()
}

fn check_access(options: &Options) -> Check {
    const NAME: &str = "access";
    let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    let is_local = options.listen.iter().all(is_local);
    let requires_tls = matches!(&options.tls, Some(tls) if tls.mode == TlsMode::Require);
    match options.access_control {
        AccessControl::Never if !is_local => {
            let message = "every client of the network can read and write all data";
            Check::warning(NAME, message, "require logins: authorization: enabled")
        }
        AccessControl::Never => Check::warning(
            NAME,
            "every process of this machine can read and write all data",
            "require logins: authorization: enabled",
        ),
        AccessControl::WithUsers if !is_local => {
            let message = "other machines can connect; the server starts only if there is a user";
            Check::warning(NAME, message, "require logins: authorization: enabled")
        }
        AccessControl::Always if !is_local && !requires_tls => {
            let message = "other machines can connect without TLS";
            Check::warning(NAME, message, "set net.tls.mode to requireTLS")
        }
        AccessControl::Always => Check::ok(NAME, "logins are required"),
        AccessControl::WithUsers => {
            Check::ok(NAME, "logins are required as soon as there is a user")
        }
    }
}

fn check_certificate(tls: &TlsSettings) -> Check {
    const NAME: &str = "certificate";
    let until = match tls.valid_until() {
        Ok(until) => until,
        Err(error) => {
            let advice = "`windrow certificate` makes one to try with";
            return Check::problem(NAME, error, advice);
        }
    };
    let left = until.duration_since(SystemTime::now()).unwrap_or_default();
    let days = left.as_secs() / (24 * 3600);
    let file = tls.certificate_key_file.display();
    let message = format!("{file} is valid for {days} more days");
    if left < CERTIFICATE_WARNING_TIME {
        let advice = "replace it; SIGHUP or rotateCertificates makes the server read the new one";
        return Check::warning(NAME, message, advice);
    }
    Check::ok(NAME, message)
}

/// Returns a warning if other users can reach the data folder.
fn check_permissions(folder: &Path) -> Option<Check> {
    let mode = mode_for_others(folder)?;
    let message = format!(
        "other users can reach {}, its mode is {mode:03o}",
        folder.display()
    );
    let advice = "chmod -R go= forbids it";
    Some(Check::warning("data folder", message, advice))
}

/// Returns a check if the token of metrics cannot be read.
fn check_token(path: &Path) -> Option<Check> {
    let failure = secret_file::read(path).err()?;
    let advice = "this user must be able to read it, and other users must not";
    Some(Check::problem("metrics token", failure, advice))
}

/// Checks that a file can be written, or created in its folder.
fn check_written_file(name: &'static str, path: &Path) -> Check {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let written = if path.exists() {
        access(path, Access::WRITE_OK)
    } else {
        access(folder, Access::WRITE_OK | Access::EXEC_OK)
    };
    match written {
        Ok(()) => Check::ok(name, format!("{} can be written", path.display())),
        Err(error) => {
            let advice = "this user must be able to write it, and its folder must exist";
            Check::problem(name, format!("{}: {error}", path.display()), advice)
        }
    }
}
