//! The file KEYS of a data folder: its data keys, each wrapped by the master key.
//!
//! ```text
//! windrow data keys 1
//! 1 <base64: nonce (12 bytes), wrapped key (32), tag (16)>
//! 2 …
//! ```
//!
//! The number is the generation of the key. It is bound to the wrapped key.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::data_keys::{DataKey, DataKeys};
use super::{KEY_BYTES, MasterKey, NONCE_BYTES, TAG_BYTES, fill_random};
use crate::disk::{Disk, at, read_all, replace};
use crate::error::StorageError;

pub(crate) const KEYS_PATH: &str = "KEYS";
pub(crate) const KEYS_TEMPORARY: &str = "KEYS.new";
const FIRST_LINE: &str = "windrow data keys 1";

/// Creates the file with a first data key.
pub(crate) fn create_keys(
    disk: &Arc<dyn Disk>,
    master: &MasterKey,
) -> Result<DataKeys, StorageError> {
    let keys = vec![new_key(1).map_err(at(disk, KEYS_PATH))?];
    save(disk, master, &keys)?;
    DataKeys::new(keys).map_err(at(disk, KEYS_PATH))
}

/// Returns the text of a file with a first data key.
pub(crate) fn first_keys_text(master: &MasterKey) -> io::Result<String> {
    encode(master, &[new_key(1)?])
}

/// Reads the text of a file. `place` names it in errors. Fails with `WrongKey` if the master key is
/// not the one that wrapped the data keys.
pub(crate) fn read_keys_text(
    text: &[u8],
    master: &MasterKey,
    place: &str,
) -> Result<DataKeys, StorageError> {
    let keys = DataKeys::new(decode(text, master, place)?);
    keys.map_err(|error| StorageError::from_io(place, error))
}

/// Reads the data keys. Fails with `WrongKey` if the master key is not the one that wrapped them.
pub(crate) fn load_keys(
    disk: &Arc<dyn Disk>,
    master: &MasterKey,
) -> Result<DataKeys, StorageError> {
    DataKeys::new(load(disk, master)?).map_err(at(disk, KEYS_PATH))
}

/// Adds a data key for new files, and wraps all data keys with the master key `new`. Returns the
/// generation of the new data key. The caller has the lock of the folder.
pub(crate) fn add_key(
    disk: &Arc<dyn Disk>,
    old: &MasterKey,
    new: &MasterKey,
) -> Result<u16, StorageError> {
    let mut keys = load(disk, old)?;
    let newest = keys.last().map_or(0, |key| key.generation);
    let generation = newest
        .checked_add(1)
        .ok_or_else(|| StorageError::TooLarge {
            what: "the generation of a data key".to_owned(),
            bytes: u64::from(newest) + 1,
            bytes_max: u64::from(u16::MAX),
        })?;
    keys.push(new_key(generation).map_err(at(disk, KEYS_PATH))?);
    save(disk, new, &keys)?;
    Ok(generation)
}

fn new_key(generation: u16) -> io::Result<DataKey> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    fill_random(key.as_mut())?;
    Ok(DataKey { generation, key })
}

fn context(generation: u16) -> Vec<u8> {
    [b"windrow data key ".as_slice(), &generation.to_le_bytes()].concat()
}

/// Writes the file. A crash leaves the old keys or the new ones.
fn save(disk: &Arc<dyn Disk>, master: &MasterKey, keys: &[DataKey]) -> Result<(), StorageError> {
    let text = encode(master, keys).map_err(at(disk, KEYS_PATH))?;
    replace(disk, KEYS_TEMPORARY, KEYS_PATH, text.as_bytes())
}

fn encode(master: &MasterKey, keys: &[DataKey]) -> io::Result<String> {
    let mut text = format!("{FIRST_LINE}\n");
    for key in keys {
        let wrapped = STANDARD.encode(wrap(master, key)?);
        text.push_str(&format!("{} {wrapped}\n", key.generation));
    }
    Ok(text)
}

fn wrap(master: &MasterKey, key: &DataKey) -> io::Result<Vec<u8>> {
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    let mut bytes = key.key.clone();
    let context = context(key.generation);
    let tag = master.cipher().encrypt(nonce, &context, bytes.as_mut());
    let tag = tag.ok_or_else(|| io::Error::other("a data key cannot be encrypted"))?;
    Ok([nonce.as_slice(), bytes.as_slice(), tag.as_slice()].concat())
}

fn load(disk: &Arc<dyn Disk>, master: &MasterKey) -> Result<Vec<DataKey>, StorageError> {
    let file = disk.open(KEYS_PATH).map_err(at(disk, KEYS_PATH))?;
    let bytes = read_all(file.as_ref()).map_err(at(disk, KEYS_PATH))?;
    decode(&bytes, master, &disk.place(KEYS_PATH))
}

fn decode(bytes: &[u8], master: &MasterKey, place: &str) -> Result<Vec<DataKey>, StorageError> {
    let damaged = |what: &str| StorageError::damaged(place, what);
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
    let mut lines = text.lines();
    if lines.next() != Some(FIRST_LINE) {
        return Err(damaged("it does not begin as a file of data keys does"));
    }
    let mut keys: Vec<DataKey> = Vec::new();
    for line in lines {
        let (generation, wrapped) = parse_line(line).ok_or_else(|| damaged("a line is cut"))?;
        if keys
            .last()
            .is_some_and(|last| last.generation >= generation)
        {
            return Err(damaged("its keys are not in order"));
        }
        let wrong = || StorageError::WrongKey {
            place: place.to_owned(),
        };
        let key = unwrap_key(master, generation, &wrapped).ok_or_else(wrong)?;
        keys.push(DataKey { generation, key });
    }
    if keys.is_empty() {
        return Err(damaged("it has no keys"));
    }
    Ok(keys)
}

fn parse_line(line: &str) -> Option<(u16, Vec<u8>)> {
    let (generation, wrapped) = line.split_once(' ')?;
    let wrapped = STANDARD.decode(wrapped).ok()?;
    let is_whole = wrapped.len() == NONCE_BYTES + KEY_BYTES + TAG_BYTES;
    let generation = generation.parse().ok().filter(|it| *it > 0)?;
    is_whole.then_some((generation, wrapped))
}

fn unwrap_key(
    master: &MasterKey,
    generation: u16,
    wrapped: &[u8],
) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let (nonce, rest) = wrapped.split_first_chunk()?;
    let (key, tag) = rest.split_last_chunk()?;
    let mut key = Zeroizing::new(<[u8; KEY_BYTES]>::try_from(key).ok()?);
    let context = context(generation);
    master
        .cipher()
        .decrypt(*nonce, &context, key.as_mut(), *tag)?;
    Some(key)
}
