use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::test_folder::TestFolder;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A PDF whose page tree contains itself.
fn circular_pdf() -> Vec<u8> {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [2 0 R 2 0 R 2 0 R] /Count 3 >>",
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "0000000000 65535 f \n".to_owned();
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let start = file.len();
    file += &format!("xref\n0 3\n{table}trailer\n<< /Size 3 /Root 1 0 R >>\n");
    file += &format!("startxref\n{start}\n%%EOF\n");
    file.into_bytes()
}

/// Returns the number of failures in a report.
fn failures(report: &str) -> u64 {
    let before = report.split(" failures").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn damaged_files_and_bombs_are_failures() {
    let folder = TestFolder::new();
    folder.write("bomb.gz", gzip(&vec![b'0'; 300_000_000]));
    folder.write("loop.pdf", circular_pdf());
    folder.write("cut.gz", &gzip(b"never to be seen, for it is cut")[..20]);
    folder.write("cut.zip", b"PK\x03\x04 and no more");
    folder.write("good.txt", "ironbasil");
    let report = folder.index(&[]);
    assert!(failures(&report) >= 3, "{report}");
    assert!(report.contains("files.failures"), "{report}");
    assert_eq!(folder.search("ironbasil"), ["good.txt"]);
    let again = folder.index(&[]);
    assert!(again.starts_with("0 files"), "failures stay: {again}");
    let retried = folder.index(&["--retry"]);
    assert_eq!(failures(&retried), failures(&report), "{retried}");
}

#[test]
fn circular_links_are_failures() {
    let folder = TestFolder::new();
    folder.write("deep/good.txt", "ironbasil");
    symlink("..", folder.files().join("deep/up")).unwrap();
    symlink(folder.files(), folder.files().join("circle")).unwrap();
    symlink("nowhere", folder.files().join("dangling")).unwrap();
    assert_eq!(failures(&folder.index(&[])), 0);
    assert_eq!(failures(&folder.index(&["--follow-links"])), 3);
    assert_eq!(failures(&folder.index(&["--follow-links"])), 3);
    assert_eq!(folder.search("ironbasil"), ["deep/good.txt"]);
}

#[test]
fn file_names_can_be_arbitrary_bytes() {
    let folder = TestFolder::new();
    folder.write(OsStr::from_bytes(b"caf\xe9.txt"), "ironbasil");
    folder.write("line\nbreak\x1b.txt", "oldwillow");
    folder.index(&[]);
    let shown = folder.run(&["search", "ironbasil"]).stdout;
    assert!(shown.contains("/caf\\xe9.txt"), "{shown}");
    let shown = folder.run(&["search", "oldwillow"]).stdout;
    assert!(shown.contains("/line\\u{a}break\\u{1b}.txt"), "{shown}");
    assert!(folder.index(&[]).contains("2 unchanged"));
}

#[test]
fn unreadable_files_are_read_again() {
    let folder = TestFolder::new();
    folder.write("locked.txt", "ironbasil");
    let path = folder.files().join("locked.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // The superuser can read every file.
        return;
    }
    assert_eq!(failures(&folder.index(&[])), 1);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(failures(&folder.index(&[])), 0);
    assert_eq!(folder.search("ironbasil"), ["locked.txt"]);
}

#[test]
fn file_content_cannot_control_the_terminal() {
    let folder = TestFolder::new();
    folder.write("escape.txt", "ironbasil \x1b]0;title\x07 and more words");
    folder.index(&[]);
    let shown = folder.run(&["search", "ironbasil"]).stdout;
    assert!(
        shown.contains("*ironbasil*") && !shown.contains('\x1b'),
        "{shown:?}"
    );
}
