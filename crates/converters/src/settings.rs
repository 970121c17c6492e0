//! The converters and their limits.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use windrow_extract::{DocumentKind, PictureFormat};

use crate::command::{FileNaming, check_command, find_program};

/// The converters and their limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramSettings {
    /// The arguments with which the current program calls [`crate::launch`].
    pub launcher: Vec<String>,
    /// The action if the kernel does not support the sandbox.
    pub sandbox: SandboxMode,
    /// The time limit for all programs of a file together, in milliseconds.
    pub file_ms_max: u64,
    /// The converters. The first one that reads a file is used.
    pub converters: Vec<Converter>,
    /// The text recognition. `None` disables it.
    pub recognition: Option<Recognition>,
}

/// The action if the kernel does not support the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Use the parts that the kernel supports.
    #[default]
    BestEffort,
    /// Run no programs.
    Required,
}

/// A program that converts files of a media type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Converter {
    /// The media type that it reads.
    pub media_type: String,
    /// The program and its arguments. `%f` is the file, `%m` the media type, `%d` a folder for
    /// temporary files, and `%%` a percent sign.
    pub command: Vec<String>,
    /// The extensions of the files that it reads, in lower case without the dot. If empty, it reads
    /// the files of the format that is detected by this media type.
    pub extensions: Vec<String>,
    /// The format of its output. `None` is the default of its kind of converter.
    pub output: Option<OutputFormat>,
    /// The character encoding of its output, if it is not UTF-8.
    pub charset: Option<String>,
    /// The kind of its documents.
    pub kind: Option<String>,
    /// The time limit for a file, in milliseconds.
    pub ms_max: u64,
    /// It is persistent: one process reads several files, see `persistent`.
    pub persistent: bool,
    /// It reads only files in which no text was found.
    pub fallback: bool,
    /// Additional files and folders that it may read.
    pub read: Vec<PathBuf>,
    /// Its maximum address space in bytes. `None` is that of a worker.
    pub memory_bytes_max: Option<u64>,
}

/// An output format of converters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputFormat {
    /// Plain text.
    #[serde(rename = "text/plain")]
    Text,
    /// HTML.
    #[serde(rename = "text/html")]
    Html,
}

/// The settings of text recognition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recognition {
    /// The languages by their Tesseract names (`eng`, `deu`), the most frequent first.
    pub languages: Vec<String>,
    /// The time limit for a picture or page, in milliseconds.
    pub ms_max: u64,
    /// The maximum number of pages of a PDF that are read.
    pub pages_max: u32,
}

/// A program that is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProgram {
    /// The name of the program.
    pub program: String,
    /// A media type that needs it.
    pub media_type: String,
}

/// A setting that determines how files are read. If it differs from that of the last run, the
/// affected files are read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsEntry {
    /// The name: the media type of a converter, `ocr`, or `languages`.
    pub name: String,
    /// The extensions of the affected files.
    pub extensions: Vec<String>,
    /// The names of the affected formats.
    pub formats: Vec<String>,
    /// The path of the folder whose files are affected.
    pub folder: Option<String>,
    /// The value as text. It changes if the program is installed or removed.
    pub text: String,
}

/// The default time limit of a converter for a file.
const MS_MAX: u64 = 30_000;
/// The default time limit of all programs of a file.
const FILE_MS_MAX: u64 = 600_000;

impl Default for ProgramSettings {
    fn default() -> Self {
        ProgramSettings {
            launcher: Vec::new(),
            sandbox: SandboxMode::default(),
            file_ms_max: FILE_MS_MAX,
            converters: Vec::new(),
            recognition: None,
        }
    }
}

impl ProgramSettings {
    /// Returns the settings as text for [`ProgramSettings::from_text`].
    pub fn to_text(&self) -> String {
        // Fails only for paths that are not Unicode, which a configuration cannot contain.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses settings. Returns `None` if the text is invalid.
    pub fn from_text(text: &str) -> Option<ProgramSettings> {
        serde_json::from_str(text).ok()
    }

    /// Returns `true` if no programs are configured.
    pub fn is_empty(&self) -> bool {
        self.converters.is_empty() && self.recognition.is_none()
    }

    /// Returns the programs that are not installed.
    pub fn missing_programs(&self) -> Vec<MissingProgram> {
        let converters = self
            .converters
            .iter()
            .map(|it| (it.program(), it.media_type.as_str()));
        let recognition = self.recognition.iter().flat_map(|_| Recognition::PROGRAMS);
        let missing = converters
            .chain(recognition)
            .filter(|(program, _)| find_program(program).is_none());
        missing
            .map(|(program, media_type)| MissingProgram {
                program: program.to_owned(),
                media_type: media_type.to_owned(),
            })
            .collect()
    }

    /// Returns the largest address space of a converter in bytes, or 0 if none has its own limit.
    pub fn memory_bytes_max(&self) -> u64 {
        let bytes = self.converters.iter().filter_map(|it| it.memory_bytes_max);
        bytes.max().unwrap_or(0)
    }

    /// Returns the settings that determine how files are read.
    pub fn entries(&self) -> Vec<SettingsEntry> {
        let converters = self.converters.iter().map(Converter::entry);
        converters
            .chain(self.recognition.as_ref().map(Recognition::entry))
            .collect()
    }
}

impl Converter {
    /// Creates a converter with the default limits.
    ///
    /// # Errors
    /// Fails with a message if the command line is invalid.
    pub fn new(media_type: &str, command: &[&str]) -> Result<Converter, String> {
        let converter = Converter {
            media_type: media_type.to_owned(),
            command: command.iter().map(|&word| word.to_owned()).collect(),
            extensions: Vec::new(),
            output: None,
            charset: None,
            kind: None,
            ms_max: MS_MAX,
            persistent: false,
            fallback: false,
            read: Vec::new(),
            memory_bytes_max: None,
        };
        converter.check()?;
        Ok(converter)
    }

    /// Checks the command line.
    ///
    /// # Errors
    /// Fails with a message.
    pub fn check(&self) -> Result<(), String> {
        let naming = if self.persistent {
            FileNaming::Input
        } else {
            FileNaming::CommandLine
        };
        check_command(&self.command, naming)
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    pub(crate) fn reads(&self, extension: &str, media_types: &[&str]) -> bool {
        let has_extension = self.extensions.iter().any(|own| own == extension);
        has_extension || media_types.contains(&self.media_type.as_str())
    }

    /// Returns the kind of its documents.
    pub(crate) fn document_kind(&self) -> DocumentKind {
        let named = self.kind.as_deref().and_then(DocumentKind::from_name);
        named.unwrap_or_else(|| match self.media_type.as_str() {
            "application/pdf" => DocumentKind::Pdf,
            "image/vnd.djvu" | "image/x-djvu" | "image/x.djvu" => DocumentKind::Djvu,
            other => match other.split_once('/').map(|(class, _)| class) {
                Some("image") => DocumentKind::Image,
                Some("audio") => DocumentKind::Audio,
                Some("video") => DocumentKind::Video,
                Some("text") => DocumentKind::Text,
                Some("message") => DocumentKind::Mail,
                _ => DocumentKind::Document,
            },
        })
    }

    fn entry(&self) -> SettingsEntry {
        let known = formats_with_type(&self.media_type);
        let mut extensions = self.extensions.clone();
        let others = known.extensions.into_iter();
        extensions.extend(others.filter(|it| !self.extensions.contains(it)));
        let text = serde_json::to_string(self).unwrap_or_default();
        SettingsEntry {
            name: self.media_type.clone(),
            extensions,
            formats: known.names,
            folder: None,
            text: describe_availability(text, &[self.program()]),
        }
    }
}

impl Recognition {
    /// The program that recognizes text.
    pub const PROGRAM: &str = "tesseract";
    /// The program that renders the pages of a PDF as pictures.
    pub const RENDERER: &str = "pdftoppm";
    const PROGRAMS: [(&str, &str); 2] = [
        (Self::PROGRAM, "image/*"),
        (Self::RENDERER, "application/pdf"),
    ];

    /// Creates recognition of these languages with the default limits.
    pub fn new(languages: Vec<String>) -> Recognition {
        Recognition {
            languages,
            ms_max: 60_000,
            pages_max: 200,
        }
    }

    fn entry(&self) -> SettingsEntry {
        let text = serde_json::to_string(self).unwrap_or_default();
        let types = PictureFormat::MEDIA_TYPES;
        let extensions = types.map(|it| formats_with_type(it).extensions);
        SettingsEntry {
            name: "ocr".to_owned(),
            extensions: extensions.into_iter().flatten().collect(),
            formats: Vec::new(),
            folder: None,
            text: describe_availability(text, &[Self::PROGRAM, Self::RENDERER]),
        }
    }
}

struct KnownFormats {
    names: Vec<String>,
    extensions: Vec<String>,
}

/// Returns the formats with a media type.
fn formats_with_type(media_type: &str) -> KnownFormats {
    let found =
        || windrow_extract::all_formats().filter(|it| it.mime_types().contains(&media_type));
    let extensions = found().flat_map(|it| it.extensions());
    KnownFormats {
        names: found().map(|it| it.name().to_owned()).collect(),
        extensions: extensions.map(|&it| it.to_owned()).collect(),
    }
}

/// Appends whether each program is installed.
fn describe_availability(mut text: String, programs: &[&str]) -> String {
    for program in programs {
        let installed = find_program(program).is_some();
        text.push_str(if installed { " installed" } else { " missing" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn djvu() -> Converter {
        Converter {
            extensions: vec!["djvu".into(), "djv".into()],
            ..Converter::new("image/vnd.djvu", &["no-such-program", "%f"]).unwrap()
        }
    }

    #[test]
    fn settings_survive_as_text() {
        let settings = ProgramSettings {
            launcher: vec!["sandbox".into()],
            sandbox: SandboxMode::Required,
            converters: vec![djvu()],
            recognition: Some(Recognition::new(vec!["eng".into()])),
            ..ProgramSettings::default()
        };
        let text = settings.to_text();
        assert_eq!(ProgramSettings::from_text(&text), Some(settings));
        assert_eq!(ProgramSettings::from_text("{"), None);
    }

    #[test]
    fn converters_are_found_by_extension_and_media_type() {
        let converter = djvu();
        assert!(converter.reads("djv", &[]));
        assert!(converter.reads("", &["image/x", "image/vnd.djvu"]));
        assert!(!converter.reads("", &["image/x"]));
        assert_eq!(converter.document_kind(), DocumentKind::Djvu);
        let pdf = Converter::new("application/pdf", &["x", "%f"]).unwrap();
        assert_eq!(pdf.document_kind(), DocumentKind::Pdf);
    }

    #[test]
    fn entries_name_what_they_affect() {
        let settings = ProgramSettings {
            converters: vec![
                djvu(),
                Converter::new("application/pdf", &["sh", "%f"]).unwrap(),
            ],
            ..ProgramSettings::default()
        };
        let [djvu, pdf] = &settings.entries()[..] else {
            panic!("two entries");
        };
        assert_eq!(djvu.extensions, ["djvu", "djv"]);
        assert!(djvu.text.ends_with(" missing") && pdf.text.ends_with(" installed"));
        assert_eq!(
            (&pdf.extensions[..], &pdf.formats[..]),
            (&["pdf".to_owned()][..], &["PDF".to_owned()][..])
        );
        let missing = settings.missing_programs();
        assert_eq!(missing[0].program, "no-such-program");
        assert_eq!(missing.len(), 1);
    }
}
