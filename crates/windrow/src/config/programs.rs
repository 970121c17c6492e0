//! Converters and text recognition in the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windrow_converters::{Converter, OutputFormat, ProgramSettings, Recognition, SandboxMode};
use windrow_extract::{DocumentKind, is_charset};

use super::{Config, Size};
use crate::run_converter;

/// The converters by their media types.
pub type Convert = BTreeMap<String, ConverterRules>;

/// A section `[convert."TYPE"]`. See [`Converter`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConverterRules {
    pub command: CommandLine,
    #[serde(default)]
    pub extensions: Vec<String>,
    pub output: Option<OutputFormat>,
    pub charset: Option<String>,
    pub kind: Option<String>,
    /// In seconds.
    pub timeout: Option<u64>,
    #[serde(default)]
    pub persistent: bool,
    #[serde(default)]
    pub fallback: bool,
    #[serde(default)]
    pub read: Vec<PathBuf>,
    pub memory: Option<Size>,
}

/// A command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    Words(Vec<String>),
    /// A shell-like string, which is split into words.
    Text(String),
}

/// The section `[ocr]`. See [`Recognition`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ocr {
    pub languages: Vec<String>,
    /// In seconds.
    pub timeout: Option<u64>,
    pub pages: Option<u32>,
}

impl CommandLine {
    fn words(&self) -> Result<Vec<String>, String> {
        match self {
            CommandLine::Words(words) => Ok(words.clone()),
            CommandLine::Text(text) => {
                shlex::split(text).ok_or_else(|| format!("command: {text:?} has an open quote"))
            }
        }
    }
}

impl ConverterRules {
    /// Resolves relative paths against `base`.
    fn make_absolute(&mut self, base: &Path) -> Result<(), String> {
        let mut command = self.command.words()?;
        if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
            *program = path_text(&super::absolute_path(Path::new(program), base))?;
        }
        self.command = CommandLine::Words(command);
        for path in &mut self.read {
            *path = super::absolute_path(path, base);
        }
        Ok(())
    }

    fn converter(&self, media_type: &str) -> Result<Converter, String> {
        let extension = |text: &String| text.trim_start_matches('.').to_lowercase();
        let usual = Converter::new("", &["program", "%f"])?;
        let converter = Converter {
            media_type: media_type.to_owned(),
            command: self.command.words()?,
            extensions: self.extensions.iter().map(extension).collect(),
            output: self.output,
            charset: self.charset.clone(),
            kind: self.kind.clone(),
            ms_max: self
                .timeout
                .map_or(usual.ms_max, |seconds| seconds.saturating_mul(1000)),
            persistent: self.persistent,
            fallback: self.fallback,
            read: self.read.clone(),
            memory_bytes_max: self.memory.map(|Size(bytes)| bytes),
        };
        converter.check()?;
        self.check(&converter)?;
        Ok(converter)
    }

    fn check(&self, converter: &Converter) -> Result<(), String> {
        let is_type = |text: &str| {
            let parts = text.split_once('/');
            parts.is_some_and(|(class, name)| !class.is_empty() && !name.is_empty())
        };
        if !is_type(&converter.media_type) {
            return Err(
                "the name of the section is no media type, such as image/vnd.djvu".to_owned(),
            );
        }
        if converter.ms_max == 0 {
            return Err("timeout = 0: write a number of seconds".to_owned());
        }
        if let Some(charset) = self.charset.as_deref().filter(|label| !is_charset(label)) {
            return Err(format!("charset: {charset:?} is not known"));
        }
        let is_known = |name: &&str| DocumentKind::from_name(name).is_some();
        if let Some(kind) = self.kind.as_deref().filter(|name| !is_known(name)) {
            let kinds = DocumentKind::ALL.map(DocumentKind::as_str).join(", ");
            return Err(format!("kind: {kind:?} is not one of {kinds}"));
        }
        if let Some(extension) = converter
            .extensions
            .iter()
            .find(|it| it.is_empty() || it.contains('/'))
        {
            return Err(format!("extensions: {extension:?} is no extension"));
        }
        if let Some(path) = converter.read.iter().find(|path| path.to_str().is_none()) {
            return Err(format!("read: {} is not Unicode", path.display()));
        }
        Ok(())
    }
}

fn path_text(path: &Path) -> Result<String, String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| format!("command: {} is not Unicode", path.display()))
}

impl Ocr {
    fn recognition(&self) -> Result<Option<Recognition>, String> {
        let is_name = |name: &str| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/');
            !name.is_empty() && name.bytes().all(is_letter)
        };
        if let Some(name) = self.languages.iter().find(|name| !is_name(name)) {
            return Err(format!(
                "ocr.languages: {name:?} is no language of Tesseract, such as eng"
            ));
        }
        if self.timeout == Some(0) || self.pages == Some(0) {
            return Err("ocr: timeout and pages are at least 1".to_owned());
        }
        if self.languages.is_empty() {
            return Ok(None);
        }
        let usual = Recognition::new(self.languages.clone());
        Ok(Some(Recognition {
            ms_max: self
                .timeout
                .map_or(usual.ms_max, |seconds| seconds.saturating_mul(1000)),
            pages_max: self.pages.unwrap_or(usual.pages_max),
            ..usual
        }))
    }
}

impl Config {
    /// Returns the programs for further formats. Relative paths are resolved against `base`.
    pub(super) fn find_programs(&mut self, base: &Path) -> Result<ProgramSettings, String> {
        let mut programs = ProgramSettings {
            launcher: vec![run_converter::NAME.to_owned()],
            sandbox: self.sandbox.unwrap_or(SandboxMode::BestEffort),
            recognition: self.ocr.recognition()?,
            ..ProgramSettings::default()
        };
        for (media_type, rules) in &mut self.convert {
            let absolute = rules.make_absolute(base);
            let converter = absolute.and_then(|()| rules.converter(media_type));
            let converter =
                converter.map_err(|reason| format!("[convert.{media_type:?}]: {reason}"))?;
            programs.converters.push(converter);
        }
        Ok(programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(text: &str) -> Result<ProgramSettings, String> {
        Config::parse(text, Path::new("/etc")).map(|config| config.programs)
    }

    #[test]
    fn sections_are_converters() {
        let found = programs(
            r#"
            sandbox = "required"
            [convert."image/vnd.djvu"]
            command = ["djvutxt", "%f"]
            [convert."application/x-foo"]
            command = "bin/foo --title='a b' "
            extensions = [".Foo"]
            output = "text/html"
            charset = "latin1"
            kind = "book"
            timeout = 5
            persistent = true
            fallback = true
            read = ["data"]
            memory = "2GiB"
            [ocr]
            languages = ["eng", "deu"]
            pages = 3
            "#,
        )
        .unwrap();
        let expected = Converter {
            media_type: "application/x-foo".into(),
            command: vec!["/etc/bin/foo".into(), "--title=a b".into()],
            extensions: vec!["foo".into()],
            output: Some(OutputFormat::Html),
            charset: Some("latin1".into()),
            kind: Some("book".into()),
            ms_max: 5000,
            persistent: true,
            fallback: true,
            read: vec!["/etc/data".into()],
            memory_bytes_max: Some(2 << 30),
        };
        assert_eq!(found.converters[0], expected);
        assert_eq!(found.converters[1].command, ["djvutxt", "%f"]);
        assert_eq!(found.sandbox, SandboxMode::Required);
        let recognition = found.recognition.unwrap();
        assert_eq!(
            (recognition.languages.join("+"), recognition.pages_max),
            ("eng+deu".into(), 3)
        );
        assert_eq!(programs("").unwrap().recognition, None);
    }

    #[test]
    fn errors_name_the_section() {
        for (lines, expected) in [
            ("[convert.djvu]\ncommand = ['x', '%f']", "no media type"),
            ("[convert.'a/b']\ncommand = ['x']", "%f is missing"),
            ("[convert.'a/b']\ncommand = \"x '%f\"", "open quote"),
            (
                "[convert.'a/b']\ncommand = 'x %f'\ncharset = 'x'",
                "charset",
            ),
            (
                "[convert.'a/b']\ncommand = 'x %f'\nkind = 'thing'",
                "one of text",
            ),
            (
                "[convert.'a/b']\ncommand = 'x %f'\ntimeout = 0",
                "timeout = 0",
            ),
            (
                "[convert.'a/b']\ncommand = 'x %f'\noutput = 'text/rtf'",
                "text/rtf",
            ),
            (
                "[convert.'a/b']\ncommand = 'x %f'\nextensions = ['a/b']",
                "no extension",
            ),
            ("[convert.'a/b']\ncommand = 'x %f'\ncolour = 1", "colour"),
            ("[ocr]\nlanguages = ['en-US']", "en-US"),
            ("[ocr]\nlanguages = ['eng']\npages = 0", "at least 1"),
            ("sandbox = 'off'", "off"),
        ] {
            let found = programs(lines).unwrap_err();
            assert!(found.contains(expected), "{lines}: {found}");
        }
    }
}
