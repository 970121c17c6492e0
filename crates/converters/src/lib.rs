//! Runs converters: programs that turn a file of a format that `windrow-extract` does not read into
//! text or HTML, or that recognize the text of pictures.
//!
//! Formats with an extractor are read by `windrow-extract`, and `windrow-ingest` selects the files.
//! Converters read untrusted files and are not hardened, so each one runs in a sandbox, see
//! [`sandbox`].
//!
//! - [`ProgramSettings`] contains the converters and their limits.
//! - [`Converters`] implements [`windrow_extract::Programs`] with them.
//! - [`launch`] is the program that enters the sandbox and then executes the converter. A binary
//!   that uses the crate needs a hidden command that calls it, named by
//!   [`ProgramSettings::launcher`].
//!
//! ```
//! use windrow_converters::{Converter, ProgramSettings};
//!
//! let djvu = Converter::new("image/vnd.djvu", &["djvutxt", "%f"])?;
//! let settings = ProgramSettings {
//!     converters: vec![djvu],
//!     ..ProgramSettings::default()
//! };
//! for missing in settings.missing_programs() {
//!     eprintln!("{} is needed for {}", missing.program, missing.media_type);
//! }
//! # Ok::<(), String>(())
//! ```
//!
//! Modules in reading order:
//!
//! - `settings`: the converters; `command`: their command lines
//! - `system_calls`, `sandbox`: the restrictions of a converter
//! - `folder_usage`: the disk space of a converter
//! - `process`: a converter that ends with its file
//! - `answers`, `persistent`: a converter that reads several files
//! - `private_folder`: the temporary files of a converter
//! - `recognition`: text recognition in pictures
//! - `converters`: all converters, for the extraction
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod answers;
mod command;
mod converters;
mod folder_usage;
mod persistent;
mod private_folder;
mod process;
mod recognition;
pub mod sandbox;
mod settings;
mod system_calls;

pub use command::find_program;
pub use converters::{Converters, ProgramMonitor};
pub use sandbox::{LaunchFailure, SandboxStatus, launch, probe};
pub use settings::{
    Converter, MissingProgram, OutputFormat, ProgramSettings, Recognition, SandboxMode,
    SettingsEntry,
};
