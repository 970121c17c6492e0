//! A checkpoint file: all rows of the catalog at one position of the log. The layout is drawn in
//! docs/format.md.

use std::io;
use std::sync::Arc;

use super::{Rows, change};
use crate::checksum::checksum;
use crate::disk::{Disk, at, read_all, replace};
use crate::encryption::{DataKeys, FileKind, TAG_BYTES, numbered_nonce};
use crate::error::StorageError;
use crate::fields::{put, u64_at};
use crate::position::Position;

const FOLDER: &str = "catalog";
const TEMPORARY: &str = "catalog/checkpoint.new";
const MAGIC: &[u8; 8] = b"WRcat-01";
const HEADER_BYTES: usize = 24;
/// The beginning of an encrypted checkpoint.
const MAGIC_ENCRYPTED: &[u8; 8] = b"WRcat-E1";
/// The length of its header, which has the field of its key.
const HEADER_ENCRYPTED_BYTES: usize = 32;
/// The number of the nonce. Each checkpoint has a key of its own, which encrypts it once.
const NONCE: u64 = 0;
const CHECKSUM_BYTES: usize = 8;

fn path(position: Position) -> String {
    format!("{FOLDER}/{:020}.checkpoint", position.0)
}

/// Writes a checkpoint:
///
/// 1. Write and sync the file under a temporary name.
/// 2. Rename it and sync the folder. A crash therefore never leaves an incomplete checkpoint.
/// 3. Remove the older checkpoints.
pub(crate) fn save(
    disk: &Arc<dyn Disk>,
    keys: Option<&DataKeys>,
    position: Position,
    rows: &Rows,
) -> Result<(), StorageError> {
    let to = path(position);
    let bytes = match keys {
        None => encode(position, rows),
        Some(keys) => encode_encrypted(keys, position, rows).map_err(at(disk, &to))?,
    };
    save_bytes(disk, position, &bytes)
}

/// Writes the checkpoint of another server. Fails with `Damaged` if its bytes, which are not
/// encrypted, are not a checkpoint of `position`.
pub(crate) fn save_encoded(
    disk: &Arc<dyn Disk>,
    keys: Option<&DataKeys>,
    position: Position,
    bytes: &[u8],
) -> Result<(), StorageError> {
    let damaged = |what| StorageError::damaged("the checkpoint in the object store", what);
    let rows = decode(bytes, None, position).map_err(damaged)?;
    save(disk, keys, position, &rows)
}

/// Removes all checkpoints of a catalog that is not open.
pub(crate) fn remove_checkpoints(disk: &Arc<dyn Disk>) -> Result<(), StorageError> {
    remove_before(disk, Position::MAX)
}

fn save_bytes(disk: &Arc<dyn Disk>, position: Position, bytes: &[u8]) -> Result<(), StorageError> {
    replace(disk, TEMPORARY, &path(position), bytes)?;
    remove_before(disk, position)
}

/// Returns the newest checkpoint. If there is none, returns position 0 and no rows.
pub(crate) fn load(
    disk: &Arc<dyn Disk>,
    keys: Option<&DataKeys>,
) -> Result<(Position, Rows), StorageError> {
    match list(disk)?.last() {
        Some(&position) => load_at(disk, keys, position),
        None => Ok((Position::ZERO, Rows::new())),
    }
}

fn load_at(
    disk: &Arc<dyn Disk>,
    keys: Option<&DataKeys>,
    position: Position,
) -> Result<(Position, Rows), StorageError> {
    let path = path(position);
    let file = disk.open(&path).map_err(at(disk, &path))?;
    let bytes = read_all(file.as_ref()).map_err(at(disk, &path))?;
    let rows = decode(&bytes, keys, position)
        .map_err(|what| StorageError::damaged(disk.place(&path), what))?;
    Ok((position, rows))
}

pub(crate) fn encode(position: Position, rows: &Rows) -> Vec<u8> {
    let mut bytes = header(MAGIC, position, rows);
    put_rows(&mut bytes, rows);
    with_checksum(bytes, position)
}

/// Encodes a checkpoint whose rows are encrypted. Its header is bound to them.
fn encode_encrypted(keys: &DataKeys, position: Position, rows: &Rows) -> io::Result<Vec<u8>> {
    let key = keys.create_file_key(FileKind::Checkpoint, position.0)?;
    let mut bytes = header(MAGIC_ENCRYPTED, position, rows);
    bytes.extend_from_slice(&key.header_field);
    put_rows(&mut bytes, rows);
    let (header, rows) = bytes.split_at_mut(HEADER_ENCRYPTED_BYTES);
    let tag = key.cipher.encrypt(numbered_nonce(NONCE), header, rows);
    let tag = tag.ok_or_else(|| io::Error::other("the rows of the catalog are too long"))?;
    bytes.extend_from_slice(&tag);
    Ok(with_checksum(bytes, position))
}

fn header(magic: &[u8; 8], position: Position, rows: &Rows) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    put(&mut bytes, 0, magic);
    put(&mut bytes, 8, &position.0.to_le_bytes());
    put(&mut bytes, 16, &(rows.len() as u64).to_le_bytes());
    bytes
}

fn put_rows(bytes: &mut Vec<u8>, rows: &Rows) {
    for (key, value) in rows {
        change::put_row(bytes, key, Some(value));
    }
}

fn with_checksum(mut bytes: Vec<u8>, position: Position) -> Vec<u8> {
    let sum = checksum(position.0, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

pub(crate) fn decode(
    bytes: &[u8],
    keys: Option<&DataKeys>,
    position: Position,
) -> Result<Rows, &'static str> {
    let short = "the file ends too early";
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(short)?;
    let covered = bytes.get(..end).ok_or(short)?;
    if u64_at(bytes, end) != Some(checksum(position.0, covered)) {
        return Err("its checksum does not match");
    }
    let magic = if keys.is_some() {
        MAGIC_ENCRYPTED
    } else {
        MAGIC
    };
    if covered.get(..8) != Some(magic.as_slice()) || u64_at(covered, 8) != Some(position.0) {
        return Err("it does not begin as a checkpoint of this position does");
    }
    let decrypted;
    let rows = match keys {
        None => covered.get(HEADER_BYTES..),
        Some(keys) => {
            decrypted = decrypt(covered, keys, position)?;
            Some(decrypted.as_slice())
        }
    };
    let rows = rows.and_then(change::decode).ok_or("its rows are cut")?;
    let rows: Rows = rows
        .into_iter()
        .filter_map(|row| Some((row.key, row.value?.into())))
        .collect();
    match u64_at(covered, 16) {
        Some(count) if count == rows.len() as u64 => Ok(rows),
        _ => Err("it does not hold as many rows as it says"),
    }
}

/// Returns the rows of an encrypted checkpoint.
fn decrypt(covered: &[u8], keys: &DataKeys, position: Position) -> Result<Vec<u8>, &'static str> {
    let short = "the file ends too early";
    let (header, rest) = covered
        .split_at_checked(HEADER_ENCRYPTED_BYTES)
        .ok_or(short)?;
    let field = header.last_chunk().ok_or(short)?;
    let (rows, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or(short)?;
    let cipher = keys
        .file_key(FileKind::Checkpoint, position.0, *field)
        .ok_or("the data key that it uses is not in the file KEYS")?;
    let mut rows = rows.to_vec();
    cipher
        .decrypt(numbered_nonce(NONCE), header, &mut rows, *tag)
        .ok_or("its rows cannot be decrypted")?;
    Ok(rows)
}

/// Returns the positions of the checkpoints, in ascending order.
fn list(disk: &Arc<dyn Disk>) -> Result<Vec<Position>, StorageError> {
    let names = disk.list(FOLDER).map_err(at(disk, FOLDER))?;
    let position = |name: &String| {
        let number = name.strip_suffix(".checkpoint")?.parse();
        number.ok().map(Position)
    };
    let mut positions: Vec<Position> = names.iter().filter_map(position).collect();
    positions.sort_unstable();
    Ok(positions)
}

fn remove_before(disk: &Arc<dyn Disk>, position: Position) -> Result<(), StorageError> {
    for older in list(disk)?.into_iter().filter(|&older| older < position) {
        match disk.remove(&path(older)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StorageError::from_io(disk.place(&path(older)), error));
            }
            _ => {}
        }
    }
    Ok(())
}
