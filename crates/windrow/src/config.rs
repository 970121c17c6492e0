//! The configuration of `windrow index`: a TOML file with the folders and how they are read.
//!
//! Unknown keys are errors, so that a misspelt key is not silently ignored.

mod limits;
mod programs;
mod show;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::civil::Time;
use lexopt::prelude::*;
use serde::{Deserialize, Serialize};
use windrow_converters::{ProgramSettings, SandboxMode, SettingsEntry};
use windrow_extract::Languages;
use windrow_ingest::{WalkOptions, WalkRoot, WorkerConfig};

use crate::byte_size;
use crate::command_line::{Failure, Subcommand};
use limits::Limits;
use programs::{Convert, Ocr};

pub const CONFIG: Subcommand = Subcommand {
    name: "config",
    summary: Some("check or show the configuration of `windrow index`"),
    run,
};

const HELP: &str = "\
Checks or shows the configuration of `windrow index`.

Usage: windrow config check [--config FILE]
       windrow config show [--config FILE]

`check` reads the file, its patterns and its folders, and reports what is wrong. `show` prints all
settings with their values, those that the file does not set included, as a valid file.

Options:
  --config FILE    the configuration [default: $XDG_CONFIG_HOME/windrow/index.toml, which is
                   usually ~/.config/windrow/index.toml]
  -h, --help       show this help

Examples:
  windrow config check --config index.toml
  windrow config show

A configuration:
  data = \"~/.local/share/windrow\"

  [defaults]
  skip = [\"node_modules\", \"*.o\"]

  [[folder]]
  path = \"~/Documents\"

  [[folder]]
  path = \"~/src\"
  gitignore = true

  # Further formats are read by programs, which run in a sandbox.
  [convert.\"image/vnd.djvu\"]
  command = [\"djvutxt\", \"%f\"]

  # The text of pictures and scanned pages, by Tesseract.
  [ocr]
  languages = [\"eng\"]
";

/// The configuration file, with defaults for missing values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The data folder.
    pub data: Option<PathBuf>,
    /// The number of files that are read in parallel.
    pub workers: Option<usize>,
    /// The memory of the database.
    pub memory: Option<Size>,
    /// The scheduling priority, from 0 to 19 as in the command `nice`.
    pub nice: Option<u8>,
    /// The priority of reading and writing disks.
    pub io_priority: Option<IoPriority>,
    /// The action if the kernel does not support the sandbox of converters.
    pub sandbox: Option<SandboxMode>,
    /// The settings of `windrow index --watch`.
    pub watch: Watch,
    /// The limits of files.
    pub limits: Limits,
    /// Text recognition in pictures.
    pub ocr: Ocr,
    /// Programs that read further formats.
    pub convert: Convert,
    /// The default rules of folders.
    pub defaults: Rules,
    /// The folders.
    #[serde(rename = "folder")]
    pub folders: Vec<Folder>,
    /// The programs that are configured by `convert`, `ocr` and `sandbox`.
    #[serde(skip)]
    pub programs: ProgramSettings,
}

/// The settings of `windrow index --watch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Watch {
    /// The interval of complete walks, in seconds.
    pub rescan: Option<u64>,
    /// The time of day in which changed files are read.
    pub schedule: Option<Schedule>,
    /// Changed files are also read while the machine runs on battery.
    pub on_battery: Option<bool>,
}

/// A range of the local time of day, which can span midnight: `22:00-06:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Schedule {
    pub from: Time,
    pub to: Time,
}

impl TryFrom<String> for Schedule {
    type Error = String;

    fn try_from(text: String) -> Result<Schedule, String> {
        let parse = |text: &str| Time::strptime("%H:%M", text.trim()).ok();
        let times = text
            .split_once('-')
            .map(|(from, to)| (parse(from), parse(to)));
        match times {
            Some((Some(from), Some(to))) if from != to => Ok(Schedule { from, to }),
            _ => Err(format!(
                "{text:?} is not a part of the day; write 22:00-06:00"
            )),
        }
    }
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> String {
        let Schedule { from, to } = schedule;
        format!("{}-{}", from.strftime("%H:%M"), to.strftime("%H:%M"))
    }
}

/// The rules for the files of a folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rules {
    pub include: Option<Vec<String>>,
    pub skip: Option<Vec<String>>,
    pub gitignore: Option<bool>,
    pub hidden: Option<bool>,
    pub follow_links: Option<bool>,
    /// The languages of the documents, as two-letter codes.
    pub languages: Option<Vec<String>>,
}

/// A folder and its rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Folder {
    pub path: PathBuf,
    // Not a flattened `Rules`: it would accept unknown keys.
    pub include: Option<Vec<String>>,
    pub skip: Option<Vec<String>>,
    pub gitignore: Option<bool>,
    pub hidden: Option<bool>,
    pub follow_links: Option<bool>,
    pub languages: Option<Vec<String>>,
}

/// The priority of reading and writing disks, as of the command `ionice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoPriority {
    /// Only when no other program uses the disk (class `idle`).
    Idle,
    /// At the lowest best-effort priority.
    Low,
}

/// A size in bytes. Written as a number or as text with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SizeText")]
pub struct Size(pub u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum SizeText {
    Bytes(u64),
    Text(String),
}

impl TryFrom<SizeText> for Size {
    type Error = String;

    fn try_from(text: SizeText) -> Result<Size, String> {
        match text {
            SizeText::Bytes(bytes) => Ok(Size(bytes)),
            SizeText::Text(text) => byte_size::parse(&text).map(Size),
        }
    }
}

impl IoPriority {
    /// Returns the arguments of the command `ionice`.
    pub fn ionice_arguments(self) -> &'static [&'static str] {
        match self {
            IoPriority::Idle => &["-c", "3"],
            IoPriority::Low => &["-c", "2", "-n", "7"],
        }
    }
}

impl Folder {
    fn rules(&self) -> Rules {
        Rules {
            include: self.include.clone(),
            skip: self.skip.clone(),
            gitignore: self.gitignore,
            hidden: self.hidden,
            follow_links: self.follow_links,
            languages: self.languages.clone(),
        }
    }
}

impl Rules {
    /// Returns the rules, with `defaults` for missing values.
    fn or(&self, defaults: &Rules) -> WalkOptions {
        let list = |own: &Option<Vec<String>>, default: &Option<Vec<String>>| {
            own.clone().or_else(|| default.clone()).unwrap_or_default()
        };
        let flag = |own: Option<bool>, default| own.or(default).unwrap_or_default();
        WalkOptions {
            include: list(&self.include, &defaults.include),
            skip: list(&self.skip, &defaults.skip),
            gitignore: flag(self.gitignore, defaults.gitignore),
            hidden: flag(self.hidden, defaults.hidden),
            follow_links: flag(self.follow_links, defaults.follow_links),
            exclude: Vec::new(),
            languages: list(&self.languages, &defaults.languages),
        }
    }
}

impl Config {
    /// Reads a file. Relative paths are resolved against the folder of the file.
    pub fn read(file: &Path) -> Result<Config, Failure> {
        let describe = |reason: &dyn std::fmt::Display| {
            Failure::Runtime(format!("{}: {reason}", file.display()))
        };
        let text = fs::read_to_string(file).map_err(|error| describe(&error))?;
        let absolute = std::path::absolute(file).map_err(|error| describe(&error))?;
        let base = absolute.parent().unwrap_or(Path::new("/"));
        Config::parse(&text, base).map_err(|reason| describe(&reason))
    }

    /// Parses the text of a file in the folder `base`.
    fn parse(text: &str, base: &Path) -> Result<Config, String> {
        let mut config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        let absolute = |path: &Path| absolute_path(path, base);
        config.data = config.data.as_deref().map(absolute);
        for folder in &mut config.folders {
            folder.path = absolute(&folder.path);
        }
        config.check()?;
        config.programs = config.find_programs(base)?;
        Ok(config)
    }

    /// Checks the constraints that the types do not express.
    fn check(&self) -> Result<(), String> {
        const NICE_MAX: u8 = 19;
        if self.workers == Some(0) {
            return Err("workers = 0: at least one is needed".to_owned());
        }
        if self.watch.rescan == Some(0) {
            return Err("watch.rescan = 0: write a number of seconds".to_owned());
        }
        if let Some(nice) = self.nice.filter(|nice| *nice > NICE_MAX) {
            return Err(format!("nice = {nice}: write 0 to {NICE_MAX}"));
        }
        for (number, folder) in self.folders.iter().enumerate() {
            let path = folder.path.display();
            let same = |other: &Folder| other.path == folder.path;
            if self.folders.iter().take(number).any(same) {
                return Err(format!("the folder {path} occurs twice"));
            }
            let options = folder.rules().or(&self.defaults);
            let checked = options.check_patterns();
            let checked = checked.and_then(|()| check_languages(&options.languages));
            checked.map_err(|reason| format!("the folder {path}: {reason}"))?;
        }
        Ok(())
    }

    /// Returns a worker configuration with the limits and programs of this configuration.
    pub fn apply(&self, worker: WorkerConfig) -> WorkerConfig {
        self.limits.apply(WorkerConfig {
            programs: self.programs.clone(),
            ..worker
        })
    }

    /// Returns the settings that determine how files are read.
    pub fn settings_entries(&self) -> Vec<SettingsEntry> {
        let languages = |root: WalkRoot| {
            let folder = root.path.canonicalize().unwrap_or(root.path);
            SettingsEntry {
                name: windrow_ingest::LANGUAGES.to_owned(),
                extensions: Vec::new(),
                formats: Vec::new(),
                folder: Some(windrow_ingest::path_to_text(&folder)),
                text: root.options.languages.join(" "),
            }
        };
        let roots = self.roots().into_iter();
        let roots = roots.filter(|root| !root.options.languages.is_empty());
        let mut entries = self.programs.entries();
        entries.extend(roots.map(languages));
        entries
    }

    /// Returns the folders with their rules.
    pub fn roots(&self) -> Vec<WalkRoot> {
        let root = |folder: &Folder| WalkRoot {
            path: folder.path.clone(),
            options: folder.rules().or(&self.defaults),
        };
        self.folders.iter().map(root).collect()
    }

    /// Returns the rules for a folder: those of the innermost configured folder that contains it.
    pub fn rules_for(&self, folder: &Path) -> WalkOptions {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let around = self
            .folders
            .iter()
            .filter(|it| folder.starts_with(&it.path));
        let nearest = around.max_by_key(|it| it.path.components().count());
        let rules = nearest.map(Folder::rules).unwrap_or_default();
        rules.or(&self.defaults)
    }
}

fn check_languages(codes: &[String]) -> Result<(), String> {
    let unknown = |code| {
        let known: Vec<&str> = Languages::known().collect();
        format!("languages: {code:?} is not one of {}", known.join(", "))
    };
    Languages::new(codes).map(drop).map_err(unknown)
}

/// Returns the default path of the file. `None` if the system has no configuration folder.
pub fn default_file() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
    let folder = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_absolute()).or_else(home)?;
    Some(folder.join("windrow/index.toml"))
}

/// Reads the given file, or else the default one if it exists.
pub fn read_configured(file: Option<&Path>) -> Result<Option<Config>, Failure> {
    match file {
        Some(file) => Config::read(file).map(Some),
        None => match default_file().filter(|file| file.exists()) {
            Some(file) => Config::read(&file).map(Some),
            None => Ok(None),
        },
    }
}

/// Returns the data folder of the command line, or else that of the default configuration.
pub fn data_folder(named: Option<PathBuf>, command: &str) -> Result<PathBuf, Failure> {
    if let Some(folder) = named {
        return Ok(folder);
    }
    let configured = read_configured(None)?.and_then(|config| config.data);
    configured.ok_or_else(|| Failure::missing_argument("--data DIR", command))
}

/// Expands `~` to the home folder, and resolves relative paths against `base`.
fn absolute_path(path: &Path, base: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => base.join(path),
    }
}

enum Action {
    Check,
    Show,
}

fn run(mut arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let (mut action, mut file) = (None, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            Long("config") => file = Some(PathBuf::from(arguments.value()?)),
            Value(word) if action.is_none() && word == "check" => action = Some(Action::Check),
            Value(word) if action.is_none() && word == "show" => action = Some(Action::Show),
            other => return Err(other.unexpected().into()),
        }
    }
    let action = action.ok_or_else(|| Failure::missing_argument("check or show", "config"))?;
    match action {
        Action::Check => {
            let file = file
                .or_else(default_file)
                .ok_or_else(|| Failure::missing_argument("--config FILE", "config"))?;
            check_folders(&Config::read(&file)?)?;
            println!("{}: no errors", file.display());
        }
        Action::Show => {
            let config = read_configured(file.as_deref())?.unwrap_or_default();
            print!("{}", show::format(&config)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks the text of a configuration for `file`. Returns warnings.
pub fn check_text(text: &str, file: Option<&Path>) -> Result<Vec<String>, String> {
    let base = file.and_then(Path::parent).unwrap_or(Path::new("/"));
    let config = Config::parse(text, base)?;
    let missing = check_folders(&config).err();
    Ok(missing
        .map(|failure| failure.to_string())
        .into_iter()
        .collect())
}

/// Warns about folders that do not exist. This is not an error, because their disk may not be
/// connected.
fn check_folders(config: &Config) -> Result<(), Failure> {
    let missing: Vec<String> = config
        .folders
        .iter()
        .filter(|folder| !folder.path.exists())
        .map(|folder| folder.path.display().to_string())
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::Runtime(format!(
            "these folders do not exist: {}",
            missing.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
        data = "data"
        workers = 3
        memory = "1GiB"
        nice = 10
        io-priority = "idle"

        [watch]
        schedule = "22:00-06:30"
        on-battery = false

        [limits]
        file-size = 1000
        seconds = 5

        [defaults]
        skip = ["*.o"]
        hidden = true

        [[folder]]
        path = "/home/ada"

        [[folder]]
        path = "/home/ada/src"
        skip = ["target"]
        gitignore = true
        languages = ["en", "de"]
    "#;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("/etc"))
    }

    #[test]
    fn folders_have_their_own_rules_and_the_defaults() {
        let config = parse(EXAMPLE).unwrap();
        assert_eq!(config.data, Some("/etc/data".into()));
        assert_eq!(config.memory, Some(Size(1 << 30)));
        assert_eq!(config.limits.file_size, Some(Size(1000)));
        assert_eq!(config.io_priority, Some(IoPriority::Idle));
        let home = WalkOptions {
            skip: vec!["*.o".into()],
            hidden: true,
            ..WalkOptions::default()
        };
        let source = WalkOptions {
            skip: vec!["target".into()],
            gitignore: true,
            languages: vec!["en".into(), "de".into()],
            ..home.clone()
        };
        let rules: Vec<WalkOptions> = config.roots().into_iter().map(|it| it.options).collect();
        assert_eq!(rules, [home.clone(), source.clone()]);
        assert_eq!(config.rules_for(Path::new("/home/ada/src/a")), source);
        assert_eq!(config.rules_for(Path::new("/home/ada/srcs")), home);
        assert!(config.rules_for(Path::new("/tmp")).hidden);
        let entries = config.settings_entries();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].folder.as_deref(), Some("/home/ada/src"));
        assert_eq!(entries[0].text, "en de");
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let cases = [
            ("worker = 1", "worker"),
            ("[[folder]]\npath = \"/a\"\nskipp = []", "skipp"),
            ("[[folder]]\nskip = []", "path"),
            ("[[folder]]\npath = \"/a\"\nskip = [\"[\"]", "\"[\""),
            (
                "[[folder]]\npath = \"/a\"\n[[folder]]\npath = \"/a\"",
                "twice",
            ),
            ("memory = \"much\"", "memory"),
            ("nice = 20", "nice"),
            ("workers = 0", "workers"),
            ("io-priority = \"high\"", "high"),
            ("[limits]\nfile-sice = 1", "file-sice"),
            ("[watch]\nschedule = \"22-6\"", "22:00-06:00"),
            ("[watch]\nrescan = 0", "rescan"),
            ("a b", "line 1"),
        ];
        for (text, expected) in cases {
            let reason = parse(text).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }

    #[test]
    fn the_shown_configuration_is_a_file_with_all_values() {
        for text in [EXAMPLE, ""] {
            let config = parse(text).unwrap();
            let shown = show::format(&config).unwrap();
            let read = parse(&shown).unwrap();
            assert_eq!(read.roots(), config.roots());
            assert_eq!(show::format(&read).unwrap(), shown);
            for key in [
                "workers",
                "memory",
                "file-size",
                "worker-memory",
                "gitignore",
            ] {
                assert!(shown.contains(&format!("{key} = ")), "{key} in {shown}");
            }
        }
    }
}
