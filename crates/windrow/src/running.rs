//! The note `server.json` in a data folder: which server has the folder open. Other commands use it
//! to find the server. It is only a hint: the lock of the folder decides. A killed server leaves
//! its note behind, and the next server replaces it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use windrow_document::doc;

const NAME: &str = "server.json";

/// The note of a running server. Dropping it removes the note.
pub struct Note {
    path: PathBuf,
}

impl Note {
    /// Writes the note of a server of this process at `address`.
    pub fn write(folder: &Path, address: SocketAddr) -> io::Result<Note> {
        let path = folder.join(NAME);
        let note = doc! {
            "address": (reachable(address).to_string()), "pid": (i64::from(std::process::id())),
        };
        fs::write(&path, format!("{note}\n"))?;
        Ok(Note { path })
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns an address to connect to: the unspecified address of a listener is not one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
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
    fn a_note_lives_as_long_as_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::write(folder.path(), "0.0.0.0:27017".parse().unwrap()).unwrap();
        let text = fs::read_to_string(folder.path().join(NAME)).unwrap();
        let pid = std::process::id();
        let expected = format!(
            "{}\n",
            doc! { "address": "127.0.0.1:27017", "pid": (i64::from(pid)) }
        );
        assert_eq!(text, expected);
        drop(note);
        assert!(!folder.path().join(NAME).exists());
    }
}
