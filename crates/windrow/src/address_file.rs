//! The note `server.json` in a data folder: which server has the folder open. Other commands use it
//! to find the server. It is only a hint: the lock of the folder decides. A killed server leaves
//! its note behind, and the next server replaces it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use windrow_document::doc;

const FILE_NAME: &str = "server.json";

/// The note of a running server. Dropping it removes the note.
pub struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    /// Writes the note of a server of this process at `address`.
    pub fn write(folder: &Path, address: SocketAddr) -> io::Result<AddressFile> {
        let path = folder.join(FILE_NAME);
        let note = doc! {
            "address": (to_connectable(address).to_string()), "pid": (i64::from(std::process::id())),
        };
        fs::write(&path, format!("{note}\n"))?;
        Ok(AddressFile { path })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A note that remains is not used: no process with its number holds the folder's lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the address of the server that has the folder open. A killed server leaves its note
/// behind, so a note counts only if it names `owner`, the process that holds the folder's lock. If
/// the system does not report the owner, any note counts.
pub fn read_address(folder: &Path, owner: Option<u32>) -> Option<SocketAddr> {
    let note = fs::read_to_string(folder.join(FILE_NAME)).ok()?;
    parse_address(&note, owner)
}

/// Returns the address in a note, if it names `owner`.
fn parse_address(note: &str, owner: Option<u32>) -> Option<SocketAddr> {
    let after = |name: &str| note.split_once(name).map(|(_, rest)| rest);
    let digits = after("\"pid\":")?.trim_start();
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let pid: u32 = digits.get(..end.unwrap_or(digits.len()))?.parse().ok()?;
    if owner.is_some_and(|owner| owner != pid) {
        return None;
    }
    after("\"address\":")?.split('"').nth(1)?.parse().ok()
}

/// Returns an address to connect to: the unspecified address of a listener is not one.
fn to_connectable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_note_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let note = AddressFile::write(folder.path(), "0.0.0.0:27017".parse().unwrap()).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        let pid = std::process::id();
        let expected = format!(
            "{}\n",
            doc! { "address": "127.0.0.1:27017", "pid": (i64::from(pid)) }
        );
        assert_eq!(text, expected);
        drop(note);
        assert!(!folder.path().join(FILE_NAME).exists());
    }

    #[test]
    fn a_note_names_its_server() {
        let check = |note: &str, owner: Option<u32>, expected: Option<&str>| {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(parse_address(note, owner), expected, "{note}");
        };
        let note = "{\"address\":\"127.0.0.1:27018\",\"pid\":7}\n";
        check(note, Some(7), Some("127.0.0.1:27018"));
        check(note, None, Some("127.0.0.1:27018"));
        check(note, Some(8), None);
        let spaced = "{ \"pid\": 7, \"address\": \"[::1]:5\" }";
        check(spaced, Some(7), Some("[::1]:5"));
        check("{\"address\":5,\"pid\":7}", Some(7), None);
        check("{\"address\":\"127.0.0.1:1\"}", None, None);
        check("", None, None);
    }
}
