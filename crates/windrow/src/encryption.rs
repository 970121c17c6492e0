//! `windrow encryption`: creates and replaces keys of encrypted data folders. Reads key files for
//! the other commands.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lexopt::prelude::*;
use windrow_storage::{MasterKey, RealDisk, rotate_keys};

use crate::command_line::{Failure, Subcommand};
use crate::secret_file;

pub const ENCRYPTION: Subcommand = Subcommand {
    name: "encryption",
    summary: Some("make and replace the keys of encrypted data folders"),
    run,
};

/// The environment variable that names the key file.
pub const KEY_FILE_VARIABLE: &str = "WINDROW_ENCRYPTION_KEY_FILE";

const HELP: &str = "Makes and replaces the keys of encrypted data folders.

Usage: windrow encryption new-key FILE
       windrow encryption rotate --data DIR --encryption-key-file FILE --new-key-file FILE

Commands:
  new-key FILE  write a random key to a new file that only its owner can read
  rotate        add a data key to a folder that is not open, and protect all its data keys with
                another key. New files use the new data key; merges replace older files.

Options:
  --data DIR                  the data folder to rotate
  --encryption-key-file FILE  the key that protects it now
  --new-key-file FILE         the key that protects it from now on
  -h, --help                  show this help

A data folder is encrypted if it was created with a key:
  windrow serve --data DIR --encryption-key-file FILE
The environment variable WINDROW_ENCRYPTION_KEY_FILE names the file for all commands. Without the
key, the data is lost: keep a copy of the file apart from the data.

Examples:
  windrow encryption new-key /etc/windrow/key
  windrow encryption rotate --data ./data --encryption-key-file old --new-key-file new
";

/// The parsed command line.
#[derive(Debug, PartialEq)]
enum Options {
    NewKey(PathBuf),
    Rotate {
        data_folder: PathBuf,
        old: PathBuf,
        new: PathBuf,
    },
}

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    match parse(arguments)? {
        None => print!("{HELP}"),
        Some(Options::NewKey(path)) => {
            write_new_key(&path)?;
            println!(
                "{} has a new key. Keep a copy elsewhere: without the key the data is lost.",
                path.display()
            );
        }
        Some(Options::Rotate {
            data_folder,
            old,
            new,
        }) => {
            let (old, new) = (read_key(&old)?, read_key(&new)?);
            let disk = RealDisk::new(&data_folder).map_err(Failure::runtime)?;
            let generation = rotate_keys(Arc::new(disk), &old, &new).map_err(Failure::runtime)?;
            println!("new files use data key {generation}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns `None` if help was requested.
fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut values, mut data_folder, mut old, mut new) = (Vec::new(), None, None, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("data" | "dbpath") => data_folder = Some(arguments.value()?.into()),
            Long("encryption-key-file" | "encryptionKeyFile") => {
                old = Some(arguments.value()?.into());
            }
            Long("new-key-file") => new = Some(arguments.value()?.into()),
            Value(value) => values.push(value),
            other => return Err(other.unexpected().into()),
        }
    }
    let missing = |option| Failure::missing_argument(option, "encryption");
    let words: Vec<&str> = values.iter().filter_map(|value| value.to_str()).collect();
    match (words.as_slice(), values.get(1)) {
        (["new-key", ..], Some(path)) if values.len() == 2 => {
            Ok(Some(Options::NewKey(PathBuf::from(path))))
        }
        (["rotate"], _) => Ok(Some(Options::Rotate {
            data_folder: data_folder.ok_or_else(|| missing("--data DIR"))?,
            old: old.ok_or_else(|| missing("--encryption-key-file FILE"))?,
            new: new.ok_or_else(|| missing("--new-key-file FILE"))?,
        })),
        _ => Err(Failure::usage(
            "write `windrow encryption new-key FILE` or `windrow encryption rotate`; see `windrow encryption --help`",
        )),
    }
}

fn write_new_key(path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| secret_file::failure(path, error.to_string());
    let key = MasterKey::generate().map_err(failed)?;
    // An existing key is never overwritten, because its data would be lost.
    let file = secret_file::create(path, &key.to_text(), secret_file::PRIVATE);
    file.and_then(|file| file.sync_all()).map_err(failed)
}

/// Reads a key file. Fails if other users can read it.
pub fn read_key(path: &Path) -> Result<Arc<MasterKey>, Failure> {
    let key = MasterKey::parse(&secret_file::read(path)?);
    let wrong = || secret_file::failure(path, "it does not contain 32 bytes in base64".to_owned());
    key.map(Arc::new).ok_or_else(wrong)
}

/// Reads the key file that the command line names, or else the one in the environment. `None`
/// without both.
pub fn find_key(named: Option<&Path>) -> Result<Option<Arc<MasterKey>>, Failure> {
    match named {
        Some(path) => read_key(path).map(Some),
        None => key_from_environment(),
    }
}

/// Reads the key file that the environment names, if any.
pub fn key_from_environment() -> Result<Option<Arc<MasterKey>>, Failure> {
    let path = std::env::var_os(KEY_FILE_VARIABLE).filter(|path| !path.is_empty());
    path.map(|path| read_key(Path::new(&path))).transpose()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::command_line::check_parsed;

    #[test]
    fn arguments_are_parsed() {
        let check = |arguments: &[&str], expected: Result<Options, &str>| {
            check_parsed(parse, arguments, expected);
        };
        check(&["new-key", "f"], Ok(Options::NewKey("f".into())));
        let rotate = Options::Rotate {
            data_folder: "d".into(),
            old: "a".into(),
            new: "b".into(),
        };
        let files = ["--encryption-key-file=a", "--new-key-file=b"];
        check(&["rotate", "--data", "d", files[0], files[1]], Ok(rotate));
        check(&["rotate", "--data", "d", files[0]], Err("--new-key-file"));
        check(&["rotate", files[0], files[1]], Err("--data"));
        check(&["new-key"], Err("new-key FILE"));
        check(&["new-key", "a", "b"], Err("new-key FILE"));
        check(&[], Err("new-key FILE"));
        check(&["turn"], Err("new-key FILE"));
    }

    #[test]
    fn keys_are_written_once_and_read_by_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_new_key(&path).unwrap();
        let key = read_key(&path).unwrap();
        assert_eq!(key.to_text().len(), 45);
        assert!(write_new_key(&path).is_err());
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o640);
        let failure = read_key(&path).unwrap_err().to_string();
        assert!(failure.contains("its mode is 640"), "{failure}");
        set_mode(0o600);
        fs::write(&path, "c2hvcnQ=").unwrap();
        let failure = read_key(&path).unwrap_err().to_string();
        assert!(failure.contains("32 bytes in base64"), "{failure}");
    }
}
