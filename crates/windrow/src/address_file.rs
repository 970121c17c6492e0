//! The file `server.json` in a data folder. It contains the address and the process id of the
//! server that has the folder open. Other commands use it to find the server. It is only a hint:
//! the lock of the folder decides. A killed server leaves its file behind, and the next server
//! replaces it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use windrow_document::doc;

const FILE_NAME: &str = "server.json";

/// The address file of a running server. Dropping it removes the file.
pub struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    /// Writes the file of a server of this process at `address`.
    pub fn write(folder: &Path, address: SocketAddr) -> io::Result<AddressFile> {
        let path = folder.join(FILE_NAME);
        let content = doc! {
            "address": (to_connectable(address).to_string()), "pid": (i64::from(std::process::id())),
        };
        fs::write(&path, format!("{content}\n"))?;
        Ok(AddressFile { path })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file that remains is not used: no process with its id holds the folder's lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the address of the server that has the folder open. A killed server leaves its file
/// behind, so the file counts only if it contains the id of `owner`, the process that holds the
/// folder's lock. If the system does not report the owner, the file counts.
pub fn read_address(folder: &Path, owner: Option<u32>) -> Option<SocketAddr> {
    let content = fs::read_to_string(folder.join(FILE_NAME)).ok()?;
    parse_address(&content, owner)
}

/// Returns the address in an address file, if it contains the id of `owner`.
fn parse_address(content: &str, owner: Option<u32>) -> Option<SocketAddr> {
    let after = |name: &str| content.split_once(name).map(|(_, rest)| rest);
    let digits = after("\"pid\":")?.trim_start();
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let pid: u32 = digits.get(..end.unwrap_or(digits.len()))?.parse().ok()?;
    if owner.is_some_and(|owner| owner != pid) {
        return None;
    }
    after("\"address\":")?.split('"').nth(1)?.parse().ok()
}

/// Returns an address that a client can connect to. The unspecified address of a listener is
/// replaced by the loopback address.
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
    fn dropping_an_address_file_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let address_file =
            AddressFile::write(folder.path(), "0.0.0.0:27017".parse().unwrap()).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        let pid = std::process::id();
        let expected = format!(
            "{}\n",
            doc! { "address": "127.0.0.1:27017", "pid": (i64::from(pid)) }
        );
        assert_eq!(text, expected);
        drop(address_file);
        assert!(!folder.path().join(FILE_NAME).exists());
    }

    #[test]
    fn an_address_file_belongs_to_its_server() {
        let check = |content: &str, owner: Option<u32>, expected: Option<&str>| {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(parse_address(content, owner), expected, "{content}");
        };
        let content = "{\"address\":\"127.0.0.1:27018\",\"pid\":7}\n";
        check(content, Some(7), Some("127.0.0.1:27018"));
        check(content, None, Some("127.0.0.1:27018"));
        check(content, Some(8), None);
        let spaced = "{ \"pid\": 7, \"address\": \"[::1]:5\" }";
        check(spaced, Some(7), Some("[::1]:5"));
        check("{\"address\":5,\"pid\":7}", Some(7), None);
        check("{\"address\":\"127.0.0.1:1\"}", None, None);
        check("", None, None);
    }
}
