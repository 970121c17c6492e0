//! Opens a data folder: takes the LOCK that one process holds, and checks the FORMAT file that
//! names the layout of all other files.

use std::sync::Arc;

use crate::disk::{Disk, DiskLock, LockOutcome, at, read_all, replace};
use crate::encryption::{DataKeys, KEYS_PATH, KEYS_TEMPORARY, MasterKey, create_keys, load_keys};
use crate::error::StorageError;
use crate::local_state::{STATE_PATH, STATE_TEMPORARY};

/// The content of the FORMAT file of this version. It is text for readers of the folder.
const FORMAT: &str = "windrow data format 1, draft 3\n";
/// The content of the FORMAT file of an encrypted folder.
const FORMAT_ENCRYPTED: &str = "windrow data format 1, draft 4, encrypted\n";
const FORMAT_PATH: &str = "FORMAT";
const FORMAT_TEMPORARY: &str = "FORMAT.new";
const LOCK_PATH: &str = "LOCK";
const FOLDERS: [&str; 3] = ["log", "runs", "catalog"];

/// A locked data folder.
pub(crate) struct OpenFolder {
    pub lock: DiskLock,
    /// The keys of an encrypted folder.
    pub keys: Option<Arc<DataKeys>>,
}

/// Locks the folder, checks or writes its FORMAT file, and creates its sub-folders. A new folder is
/// encrypted if there is a master key.
///
/// Fails with `InUse` if another process has the lock, with `UnknownFormat` or `Damaged` if the
/// FORMAT file is not that of this version, with `NotADataFolder` if the folder has no FORMAT file
/// but other files, and with `Encrypted`, `NotEncrypted` or `WrongKey` if the master key does not
/// suit the folder.
pub(crate) fn open_folder(
    disk: &Arc<dyn Disk>,
    master: Option<&MasterKey>,
) -> Result<OpenFolder, StorageError> {
    refuse_foreign_folder(disk)?;
    let lock = take_lock(disk.as_ref())?;
    let keys = if check_format(disk, master.is_some())? {
        master.map(|master| load_keys(disk, master)).transpose()?
    } else {
        check_new_folder(disk)?;
        let keys = master.map(|master| create_keys(disk, master)).transpose()?;
        start_folder(disk, keys.is_some())?;
        keys
    };
    finish_opening(disk, lock, keys.map(Arc::new))
}

/// Locks the copy of a database in an object store, as [`open_folder`] does. The data keys of an
/// encrypted one are in the object store.
pub(crate) fn open_copy(
    disk: &Arc<dyn Disk>,
    keys: Option<Arc<DataKeys>>,
) -> Result<OpenFolder, StorageError> {
    refuse_foreign_folder(disk)?;
    let lock = take_lock(disk.as_ref())?;
    if !check_format(disk, keys.is_some())? {
        check_new_folder(disk)?;
        start_folder(disk, keys.is_some())?;
    }
    finish_opening(disk, lock, keys)
}

/// Fails with `NotADataFolder` if the folder has no FORMAT file but other files. Does not take the
/// lock, whose file must not be created among the files of others.
fn refuse_foreign_folder(disk: &Arc<dyn Disk>) -> Result<(), StorageError> {
    let is_there = || disk.open(FORMAT_PATH).is_ok();
    if is_there() {
        return Ok(());
    }
    match check_new_folder(disk) {
        // Another process may be starting the folder.
        Err(foreign @ StorageError::NotADataFolder { .. }) if !is_there() => Err(foreign),
        _ => Ok(()),
    }
}

/// Returns `false` if there is no FORMAT file. Fails if the folder is encrypted and must not be,
/// or the reverse.
fn check_format(disk: &Arc<dyn Disk>, is_encrypted: bool) -> Result<bool, StorageError> {
    match (read_format(disk)?, is_encrypted) {
        (None, _) => Ok(false),
        (Some(Format::Plain), false) | (Some(Format::Encrypted), true) => Ok(true),
        (Some(Format::Plain), true) => Err(not_encrypted(disk)),
        (Some(Format::Encrypted), false) => {
            let folder = disk.place("");
            Err(StorageError::Encrypted { folder })
        }
    }
}

fn finish_opening(
    disk: &Arc<dyn Disk>,
    lock: DiskLock,
    keys: Option<Arc<DataKeys>>,
) -> Result<OpenFolder, StorageError> {
    for folder in FOLDERS {
        disk.create_dir_all(folder).map_err(at(disk, folder))?;
    }
    disk.sync_dir("").map_err(at(disk, ""))?;
    Ok(OpenFolder { lock, keys })
}

/// Locks an encrypted data folder without opening it. Fails with `NotEncrypted` if it is not one,
/// and with `Unsuitable` if it is the copy of a database in an object store, which has the keys.
pub(crate) fn lock_encrypted(disk: &Arc<dyn Disk>) -> Result<DiskLock, StorageError> {
    let lock = take_lock(disk.as_ref())?;
    if disk.open(STATE_PATH).is_ok() {
        let what = "it is the copy of a database in an object store, which has the keys";
        return Err(StorageError::Unsuitable {
            place: disk.place(""),
            what: what.to_owned(),
        });
    }
    match read_format(disk)? {
        Some(Format::Encrypted) => Ok(lock),
        Some(Format::Plain) | None => Err(not_encrypted(disk)),
    }
}

fn not_encrypted(disk: &Arc<dyn Disk>) -> StorageError {
    StorageError::NotEncrypted {
        folder: disk.place(""),
    }
}

/// The content of a FORMAT file.
#[derive(Clone, Copy)]
enum Format {
    Plain,
    Encrypted,
}

/// Returns the format of the folder, or `None` if there is no FORMAT file.
fn read_format(disk: &Arc<dyn Disk>) -> Result<Option<Format>, StorageError> {
    match disk.open(FORMAT_PATH) {
        Ok(file) => {
            let found = read_all(file.as_ref()).map_err(at(disk, FORMAT_PATH))?;
            parse_format(disk.as_ref(), &found).map(Some)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::from_io(disk.place(FORMAT_PATH), error)),
    }
}

fn take_lock(disk: &dyn Disk) -> Result<DiskLock, StorageError> {
    match disk.lock(LOCK_PATH) {
        Ok(LockOutcome::Ours(lock)) => Ok(lock),
        Ok(LockOutcome::Theirs(owner)) => Err(StorageError::InUse {
            folder: disk.place(""),
            owner,
        }),
        Err(error) => Err(StorageError::from_io(disk.place(LOCK_PATH), error)),
    }
}

fn parse_format(disk: &dyn Disk, found: &[u8]) -> Result<Format, StorageError> {
    if found == FORMAT.as_bytes() {
        return Ok(Format::Plain);
    }
    if found == FORMAT_ENCRYPTED.as_bytes() {
        return Ok(Format::Encrypted);
    }
    let place = disk.place(FORMAT_PATH);
    let text = String::from_utf8_lossy(found);
    if text.starts_with("windrow data format ") {
        return Err(StorageError::UnknownFormat {
            place,
            found: text.trim().to_owned(),
        });
    }
    let start: String = text.chars().take(40).collect();
    Err(StorageError::damaged(
        place,
        format!("it should say which format it is, and says {start:?}"),
    ))
}

/// Fails if a folder without FORMAT has files of a database, or files that are not of a database:
/// the files of another program must not be mixed with ours.
fn check_new_folder(disk: &Arc<dyn Disk>) -> Result<(), StorageError> {
    let mut names = disk.list("").map_err(at(disk, ""))?;
    names.sort();
    let own = [
        LOCK_PATH,
        FORMAT_TEMPORARY,
        KEYS_PATH,
        KEYS_TEMPORARY,
        STATE_PATH,
        STATE_TEMPORARY,
    ];
    let is_allowed = |name: &str| own.contains(&name) || name == "lost+found";
    if let Some(name) = names.iter().find(|name| FOLDERS.contains(&name.as_str())) {
        let what = format!("it is missing, though {name:?} stands beside it");
        return Err(StorageError::damaged(disk.place(FORMAT_PATH), what));
    }
    if let Some(name) = names
        .iter()
        .find(|name| !is_allowed(name) && !name.starts_with('.'))
    {
        return Err(StorageError::NotADataFolder {
            folder: disk.place(""),
            found: name.clone(),
        });
    }
    Ok(())
}

/// Writes FORMAT into a folder that has none. The data keys of an encrypted folder are written
/// before.
///
/// 1. Write and sync the text under a temporary name.
/// 2. Rename it and sync the folder. A crash therefore never leaves an incomplete FORMAT file.
fn start_folder(disk: &Arc<dyn Disk>, is_encrypted: bool) -> Result<(), StorageError> {
    let format = if is_encrypted {
        FORMAT_ENCRYPTED
    } else {
        FORMAT
    };
    replace(disk, FORMAT_TEMPORARY, FORMAT_PATH, format.as_bytes())
}
