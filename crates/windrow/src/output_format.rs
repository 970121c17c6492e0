//! The form in which commands print a report.

/// The form in which a command prints a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text for people.
    #[default]
    Text,
    /// JSON: the option `--json`.
    Json,
}
