//! The options of the audit log.

use std::path::PathBuf;

use windrow_server::{AuditFilter, AuditSettings, AuditTarget, LogRotation, SyslogFacility};

use crate::command_line::Failure;

/// The given options of the audit log.
#[derive(Debug, Default)]
pub struct AuditDraft {
    pub destination: Option<AuditDestination>,
    /// The format was given. There is only one format.
    pub has_format: bool,
    pub path: Option<PathBuf>,
    pub filter: Option<AuditFilter>,
}

/// The values of `auditLog.destination`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDestination {
    Console,
    File,
    Syslog,
}

impl AuditDraft {
    /// Returns the settings of the audit log. Files are rotated like the server log, and lines in
    /// the system log have the same facility. As in mongod, a file needs its path and its format.
    pub fn settings(
        &self,
        rotation: LogRotation,
        facility: Option<SyslogFacility>,
    ) -> Result<Option<AuditSettings>, Failure> {
        let Some(destination) = self.destination else {
            if self.has_format || self.path.is_some() || self.filter.is_some() {
                return Err(Failure::usage(
                    "--audit-destination is missing; other options of the audit log need it",
                ));
            }
            return Ok(None);
        };
        let target = match (destination, &self.path) {
            (AuditDestination::File, Some(_)) if !self.has_format => {
                return Err(Failure::usage(
                    "--audit-format is missing; an audit log in a file needs it",
                ));
            }
            (AuditDestination::File, Some(path)) => AuditTarget::File {
                path: path.clone(),
                rotation,
            },
            (AuditDestination::File, None) => {
                return Err(Failure::usage(
                    "--audit-path is missing; an audit log in a file needs it",
                ));
            }
            (_, Some(_)) => {
                return Err(Failure::usage(
                    "--audit-path is only for an audit log in a file",
                ));
            }
            (_, None) if self.has_format => {
                return Err(Failure::usage(
                    "--audit-format is only for an audit log in a file",
                ));
            }
            (AuditDestination::Console, None) => AuditTarget::Console,
            (AuditDestination::Syslog, None) => AuditTarget::Syslog {
                facility: facility.unwrap_or(SyslogFacility::USER),
            },
        };
        Ok(Some(AuditSettings {
            target,
            filter: self.filter.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_belong_together() {
        let check = |draft: AuditDraft, expected: Result<Option<AuditTarget>, &str>| {
            let settings = draft.settings(LogRotation::Rename, None);
            match (settings, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.map(|it| it.target), expected),
                (Err(found), Err(expected)) => {
                    assert!(found.to_string().contains(expected), "{found}");
                }
                (found, _) => panic!("{found:?}"),
            }
        };
        let to = |destination| AuditDraft {
            destination: Some(destination),
            ..AuditDraft::default()
        };
        let path = || Some(PathBuf::from("a"));
        check(AuditDraft::default(), Ok(None));
        check(
            to(AuditDestination::Console),
            Ok(Some(AuditTarget::Console)),
        );
        check(
            AuditDraft {
                path: path(),
                ..AuditDraft::default()
            },
            Err("--audit-destination is missing"),
        );
        check(to(AuditDestination::File), Err("--audit-path is missing"));
        check(
            AuditDraft {
                path: path(),
                ..to(AuditDestination::File)
            },
            Err("--audit-format is missing"),
        );
        check(
            AuditDraft {
                path: path(),
                has_format: true,
                ..to(AuditDestination::File)
            },
            Ok(Some(AuditTarget::File {
                path: "a".into(),
                rotation: LogRotation::Rename,
            })),
        );
        check(
            AuditDraft {
                path: path(),
                ..to(AuditDestination::Console)
            },
            Err("--audit-path is only for"),
        );
    }
}
