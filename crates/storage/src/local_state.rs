//! The file STORE of a data folder: which object store the folder is a copy of, and up to where.
//! The layout is drawn in docs/format.md.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, at, read_all, replace};
use crate::error::StorageError;
use crate::position::Position;

pub(crate) const STATE_PATH: &str = "STORE";
pub(crate) const STATE_TEMPORARY: &str = "STORE.new";
const TITLE: &str = "windrow copy of an object store 1";

/// A random id of 16 bytes.
pub(crate) type Id = [u8; 16];

/// Returns a new random id. Fails if the operating system gives no random numbers.
pub(crate) fn random_id() -> Result<Id, StorageError> {
    let mut id = Id::default();
    let filled = getrandom::fill(&mut id);
    filled.map_err(|error| StorageError::from_io("random numbers", io::Error::other(error)))?;
    Ok(id)
}

/// Returns an id as 32 hexadecimal digits.
pub(crate) fn hex(id: Id) -> String {
    format!("{:032x}", u128::from_be_bytes(id))
}

/// Reads an id of 32 hexadecimal digits.
pub(crate) fn parse_hex(digits: &str) -> Option<Id> {
    let number = u128::from_str_radix(digits, 16).ok()?;
    (digits.len() == 32).then_some(number.to_be_bytes())
}

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalState {
    /// The id of this server.
    pub server: Id,
    /// The id of the database in the object store.
    pub database: Id,
    /// The log object from which on the next start compares the local log. `None`: the folder is
    /// not a whole copy yet.
    pub compared: Option<ComparedObject>,
}

/// A log object that the local log was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComparedObject {
    /// The number of the object.
    pub number: u64,
    /// The position of its first record.
    pub first: Position,
}

impl LocalState {
    /// Returns the state of a folder without a copy.
    pub fn new(server: Id, database: Id) -> Self {
        Self {
            server,
            database,
            compared: None,
        }
    }

    /// Reads the file. Returns `None` if there is none.
    pub fn read(disk: &Arc<dyn Disk>) -> Result<Option<Self>, StorageError> {
        let file = match disk.open(STATE_PATH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(at(disk, STATE_PATH))?,
        };
        let bytes = read_all(file.as_ref()).map_err(at(disk, STATE_PATH))?;
        let text = String::from_utf8_lossy(&bytes);
        let state = parse(&text).ok_or_else(|| {
            let what = "it does not say which object store the folder belongs to";
            StorageError::damaged(disk.place(STATE_PATH), what)
        })?;
        Ok(Some(state))
    }

    /// Replaces the file durably.
    pub fn save(&self, disk: &Arc<dyn Disk>) -> Result<(), StorageError> {
        let compared = match self.compared {
            Some(ComparedObject { number, first }) => format!("compared {number} {first}\n"),
            None => String::new(),
        };
        let (server, database) = (hex(self.server), hex(self.database));
        let text = format!("{TITLE}\nserver {server}\ndatabase {database}\n{compared}");
        replace(disk, STATE_TEMPORARY, STATE_PATH, text.as_bytes())
    }
}

fn parse(text: &str) -> Option<LocalState> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return None;
    }
    let id =
        |line: Option<&str>, name: &str| parse_hex(line?.strip_prefix(name)?.strip_prefix(' ')?);
    let (server, database) = (id(lines.next(), "server")?, id(lines.next(), "database")?);
    let compared = match lines.next() {
        None => None,
        Some(line) => {
            let (number, first) = line.strip_prefix("compared ")?.split_once(' ')?;
            Some(ComparedObject {
                number: number.parse().ok()?,
                first: Position(first.parse().ok()?),
            })
        }
    };
    Some(LocalState {
        server,
        database,
        compared,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDisk;

    #[test]
    fn state_is_read_back() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        assert_eq!(LocalState::read(&disk).unwrap(), None);
        let mut state = LocalState::new([9; 16], [7; 16]);
        let object = ComparedObject {
            number: 3,
            first: Position(70),
        };
        for compared in [None, Some(object)] {
            state.compared = compared;
            state.save(&disk).unwrap();
            assert_eq!(LocalState::read(&disk).unwrap(), Some(state));
        }
        let file = disk.open(STATE_PATH).unwrap();
        file.set_len(60).unwrap();
        assert!(LocalState::read(&disk).is_err());
    }
}
