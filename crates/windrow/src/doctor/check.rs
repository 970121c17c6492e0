//! The result of a check.

use std::fmt;

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Good,
    /// The check could not be performed, or was not needed.
    Skipped,
    /// Something is slow, unsafe or nearly full.
    Warning,
    /// Something does not work.
    Problem,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Good => "ok",
            Level::Skipped => "skipped",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub level: Level,
    /// The finding.
    pub message: String,
    /// The advice.
    pub advice: Option<&'static str>,
}

impl Check {
    pub fn ok(name: &'static str, message: impl fmt::Display) -> Check {
        Check::new(name, Level::Good, message)
    }

    pub fn skipped(name: &'static str, message: impl fmt::Display) -> Check {
        Check::new(name, Level::Skipped, message)
    }

    pub fn warning(name: &'static str, message: impl fmt::Display, advice: &'static str) -> Check {
        Check {
            advice: Some(advice),
            ..Check::new(name, Level::Warning, message)
        }
    }

    pub fn problem(name: &'static str, message: impl fmt::Display, advice: &'static str) -> Check {
        Check {
            advice: Some(advice),
            ..Check::new(name, Level::Problem, message)
        }
    }

    fn new(name: &'static str, level: Level, message: impl fmt::Display) -> Check {
        Check {
            name,
            level,
            message: message.to_string(),
            advice: None,
        }
    }
}

/// Formats the checks: a line for each, and another one for its advice.
pub fn format(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let level = check.level.as_str();
        text.push_str(&format!(
            "{level:<8} {:<16} {}\n",
            check.name,
            check.message.trim_end()
        ));
        if let Some(advice) = check.advice {
            text.push_str(&format!("{:<25} {advice}\n", ""));
        }
    }
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    text.push_str(&match (problems, warnings) {
        (0, 0) => "Nothing is wrong.\n".to_owned(),
        _ => format!("{problems} problems, {warnings} warnings.\n"),
    });
    text
}

/// Returns the checks as a document: `ok`, and `checks` with name, level, message and advice.
pub fn to_document(checks: &[Check]) -> DocumentBuf {
    let encode = |check: &Check| {
        let mut document = doc! {
            "name": (check.name), "level": (check.level.as_str()), "message": (check.message.as_str()),
        };
        if let Some(advice) = check.advice {
            document.push("advice", advice);
        }
        Value::Document(document)
    };
    let is_good = checks.iter().all(|check| check.level != Level::Problem);
    doc! { "ok": is_good, "checks": (checks.iter().map(encode).collect::<ArrayBuf>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_shown_with_their_advice() {
        let checks = [
            Check::ok("disk", "1 GB"),
            Check::problem("clock", "1970", "set it"),
        ];
        let expected = "\
ok       disk             1 GB
problem  clock            1970
                          set it
1 problems, 0 warnings.
";
        assert_eq!(format(&checks), expected);
        assert_eq!(format(&[]), "Nothing is wrong.\n");
        let document = to_document(&checks).to_string();
        assert_eq!(
            document,
            r#"{"ok":false,"checks":[{"name":"disk","level":"ok","message":"1 GB"},{"name":"clock","level":"problem","message":"1970","advice":"set it"}]}"#
        );
    }
}
