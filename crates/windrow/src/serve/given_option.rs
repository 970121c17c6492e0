//! Options as they were given, before their values are parsed.

use std::ffi::OsString;

use super::option_table::ServerOption;

/// An option that was given, and its value.
pub struct GivenOption {
    pub option: &'static ServerOption,
    pub value: OsString,
    /// How messages name it: `--port`, or `net.port` with the line of the file.
    pub origin: String,
}
