//! The targets of log lines: stderr, a file, or the log of the operating system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Severity;
use crate::clock;

/// The target of the lines of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The standard error of the process.
    Stderr,
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// `true` if lines are appended to an existing file. Otherwise an existing file is renamed,
        /// as by a rotation.
        append: bool,
        /// The effect of a rotation.
        rotation: LogRotation,
    },
    /// The system's log.
    Syslog {
        /// The part of the system, by which the system's log sorts lines.
        facility: SyslogFacility,
    },
}

/// The effect of a rotation of the log file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogRotation {
    /// Renames the file, with the time, and continues in a new one.
    #[default]
    Rename,
    /// Closes the file and opens it again, after another program has renamed it.
    Reopen,
}

/// A part of the system in the system's log, RFC 5424.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyslogFacility(u8);

/// The names of facilities, in the order of their numbers. The numbers of 12 to 15 have no common
/// names.
const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "", "", "", "", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

impl SyslogFacility {
    /// The facility of programs of users, the default.
    pub const USER: SyslogFacility = SyslogFacility(1);

    /// Returns the facility with this name, such as `user`, `daemon` or `local0`.
    pub fn from_name(name: &str) -> Option<SyslogFacility> {
        let number = FACILITIES.iter().position(|known| *known == name)?;
        u8::try_from(number)
            .ok()
            .filter(|_| !name.is_empty())
            .map(SyslogFacility)
    }
}

/// The socket of the system's log.
const SYSLOG_SOCKET: &str = "/dev/log";

/// The longest wait for the system's log to accept a line that must not be lost.
const SYSLOG_WAIT_MAX: Duration = Duration::from_secs(10);

pub(crate) enum Sink {
    Stderr,
    Stdout,
    File {
        file: File,
        path: PathBuf,
        rotation: LogRotation,
    },
    Syslog {
        socket: UnixDatagram,
        path: PathBuf,
        facility: SyslogFacility,
        delivery: Delivery,
    },
    /// Only `getLog` has the lines, for tests.
    Nowhere,
}

/// The treatment of a line that the system's log does not accept at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The line is lost.
    BestEffort,
    /// The line is sent again for some seconds. Then the write fails.
    Required,
}

impl Sink {
    pub fn open(target: &LogTarget) -> io::Result<Sink> {
        match target {
            LogTarget::Stderr => Ok(Sink::Stderr),
            LogTarget::File {
                path,
                append,
                rotation,
            } => {
                if !append && fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) {
                    archive(path)?;
                }
                Sink::file(path, *rotation)
            }
            LogTarget::Syslog { facility } => Sink::syslog(*facility, Delivery::BestEffort),
        }
    }

    /// Opens a file, and appends lines to it.
    pub fn file(path: &Path, rotation: LogRotation) -> io::Result<Sink> {
        Ok(Sink::File {
            file: open_file(path)?,
            path: path.to_owned(),
            rotation,
        })
    }

    /// Opens the log of the operating system.
    pub fn syslog(facility: SyslogFacility, delivery: Delivery) -> io::Result<Sink> {
        Sink::syslog_at(Path::new(SYSLOG_SOCKET), facility, delivery)
    }

    fn syslog_at(path: &Path, facility: SyslogFacility, delivery: Delivery) -> io::Result<Sink> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        // If the system's log takes no more, the server continues without it.
        socket.set_nonblocking(true)?;
        Ok(Sink::Syslog {
            socket,
            path: path.to_owned(),
            facility,
            delivery,
        })
    }

    /// Writes a line.
    pub fn write(&mut self, severity: Severity, line: &str) -> io::Result<()> {
        // The line and its end are one write, because other processes can write to the same file.
        let with_end = || format!("{line}\n").into_bytes();
        match self {
            Sink::Stderr => io::stderr().write_all(&with_end()),
            Sink::Stdout => io::stdout().write_all(&with_end()),
            Sink::File { file, .. } => file.write_all(&with_end()),
            Sink::Syslog {
                socket,
                path,
                facility,
                delivery,
            } => {
                let priority = u32::from(facility.0) * 8 + severity.syslog_level();
                let message = format!("<{priority}>windrow[{}]: {line}", std::process::id());
                send(socket, path, message.as_bytes(), *delivery)
            }
            Sink::Nowhere => Ok(()),
        }
    }

    /// Continues in another file. Returns the new path of the renamed file. Has no effect on other
    /// sinks.
    pub fn rotate(&mut self) -> io::Result<Option<PathBuf>> {
        let Sink::File {
            file,
            path,
            rotation,
        } = self
        else {
            return Ok(None);
        };
        let archived = match rotation {
            LogRotation::Rename => Some(archive(path)?),
            LogRotation::Reopen => None,
        };
        *file = open_file(path)?;
        Ok(archived)
    }
}

/// Sends a line to the system's log.
fn send(socket: &UnixDatagram, path: &Path, message: &[u8], delivery: Delivery) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let mut sent = socket.send(message).map(drop);
        let is_full = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        // The system's log was started again: its socket is another one.
        if sent.as_ref().is_err_and(|error| !is_full(error)) && socket.connect(path).is_ok() {
            sent = socket.send(message).map(drop);
        }
        let is_last = delivery == Delivery::BestEffort || began.elapsed() >= SYSLOG_WAIT_MAX;
        if sent.is_ok() || is_last {
            return sent;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Opens a file of the log. Only its owner can use a new one: it has parts of slow commands.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)
}

/// Renames a file, with the current time. Returns its new path. Fails if a file with that path
/// exists.
fn archive(path: &Path) -> io::Result<PathBuf> {
    let time = clock::iso(SystemTime::now()).replace(':', "-");
    let seconds = time.split('.').next().unwrap_or_default();
    let mut archived = path.to_owned().into_os_string();
    archived.push(format!(".{seconds}"));
    if Path::new(&archived).exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(path, &archived)?;
    Ok(archived.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(path: &Path, append: bool, rotation: LogRotation) -> Sink {
        let path = path.to_owned();
        Sink::open(&LogTarget::File {
            path,
            append,
            rotation,
        })
        .unwrap()
    }

    /// Returns the content of all files of a folder, sorted by name.
    fn contents(folder: &Path) -> Vec<String> {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect()
    }

    /// The log had been readable for every user of the machine.
    #[test]
    fn only_the_owner_can_use_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        file(&path, true, LogRotation::Rename).rotate().unwrap();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let metadata = entry.unwrap().metadata().unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_rotation_renames_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = file(&folder.path().join("log"), true, LogRotation::Rename);
        sink.write(Severity::Info, "a").unwrap();
        sink.rotate().unwrap();
        sink.write(Severity::Info, "b").unwrap();
        assert_eq!(contents(folder.path()), ["b\n", "a\n"]);
    }

    #[test]
    fn a_rotation_can_open_the_file_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut sink = file(&path, true, LogRotation::Reopen);
        sink.write(Severity::Info, "a").unwrap();
        sink.rotate().unwrap();
        sink.write(Severity::Info, "b").unwrap();
        fs::rename(&path, folder.path().join("log.1")).unwrap();
        sink.rotate().unwrap();
        sink.write(Severity::Info, "c").unwrap();
        assert_eq!(contents(folder.path()), ["c\n", "a\nb\n"]);
    }

    #[test]
    fn an_existing_file_can_be_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        file(&path, false, LogRotation::Rename)
            .write(Severity::Info, "a")
            .unwrap();
        file(&path, true, LogRotation::Rename)
            .write(Severity::Info, "b")
            .unwrap();
        file(&path, false, LogRotation::Rename)
            .write(Severity::Info, "c")
            .unwrap();
        assert_eq!(contents(folder.path()), ["c\n", "a\nb\n"]);
    }

    #[test]
    fn the_systems_log_gets_priorities() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let facility = SyslogFacility::from_name("local0").unwrap();
        let mut sink = Sink::syslog_at(&path, facility, Delivery::BestEffort).unwrap();
        let mut received = |receiver: &UnixDatagram, severity| {
            sink.write(severity, "line").unwrap();
            let mut bytes = [0; 100];
            let count = receiver.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..count].to_vec()).unwrap()
        };
        let suffix = format!("windrow[{}]: line", std::process::id());
        assert_eq!(
            received(&receiver, Severity::Info),
            format!("<134>{suffix}")
        );
        assert_eq!(
            received(&receiver, Severity::Error),
            format!("<131>{suffix}")
        );
        // The system's log is started again.
        drop(receiver);
        fs::remove_file(&path).unwrap();
        let receiver = UnixDatagram::bind(&path).unwrap();
        assert_eq!(
            received(&receiver, Severity::Warning),
            format!("<132>{suffix}")
        );
        assert_eq!(
            SyslogFacility::from_name("user"),
            Some(SyslogFacility::USER)
        );
        assert_eq!(SyslogFacility::from_name(""), None);
    }
}
