//! Given options, before their values are parsed.

use std::ffi::OsString;

use super::option_table::ServerOption;

/// A given option with its value.
pub struct GivenOption {
    pub option: &'static ServerOption,
    pub value: OsString,
    /// Its name in messages: `--port`, or `net.port` with the line of the file.
    pub origin: String,
}
