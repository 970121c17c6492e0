use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::program::Work;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A PDF whose page tree contains itself.
fn looping_pdf() -> Vec<u8> {
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
fn bombs_loops_and_damage_are_failures() {
    let work = Work::new();
    work.write("bomb.gz", gzip(&vec![b'0'; 300_000_000]));
    work.write("loop.pdf", looping_pdf());
    work.write("cut.gz", &gzip(b"never to be seen, for it is cut")[..20]);
    work.write("cut.zip", b"PK\x03\x04 and no more");
    work.write("good.txt", "ironbasil");
    let report = work.index(&[]);
    assert!(failures(&report) >= 3, "{report}");
    assert!(report.contains("files.failures"), "{report}");
    assert_eq!(work.search("ironbasil"), ["good.txt"]);
    let again = work.index(&[]);
    assert!(again.starts_with("0 files"), "failures stay: {again}");
    let retried = work.index(&["--retry"]);
    assert_eq!(failures(&retried), failures(&report), "{retried}");
}

#[test]
fn circles_of_links_end() {
    let work = Work::new();
    work.write("deep/good.txt", "ironbasil");
    symlink("..", work.files().join("deep/up")).unwrap();
    symlink(work.files(), work.files().join("circle")).unwrap();
    symlink("nowhere", work.files().join("dangling")).unwrap();
    assert_eq!(failures(&work.index(&[])), 0);
    assert_eq!(failures(&work.index(&["--follow-links"])), 3);
    assert_eq!(failures(&work.index(&["--follow-links"])), 3);
    assert_eq!(work.search("ironbasil"), ["deep/good.txt"]);
}

#[test]
fn names_need_not_be_text() {
    let work = Work::new();
    work.write(OsStr::from_bytes(b"caf\xe9.txt"), "ironbasil");
    work.write("line\nbreak\x1b.txt", "oldwillow");
    work.index(&[]);
    let shown = work.run(&["search", "ironbasil"]).said;
    assert!(shown.contains("/caf\\xe9.txt"), "{shown}");
    let shown = work.run(&["search", "oldwillow"]).said;
    assert!(shown.contains("/line\\u{a}break\\u{1b}.txt"), "{shown}");
    assert!(work.index(&[]).contains("2 unchanged"));
}

#[test]
fn what_may_not_be_read_is_tried_again() {
    let work = Work::new();
    work.write("locked.txt", "ironbasil");
    let path = work.files().join("locked.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // The superuser can read every file.
        return;
    }
    assert_eq!(failures(&work.index(&[])), 1);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(failures(&work.index(&[])), 0);
    assert_eq!(work.search("ironbasil"), ["locked.txt"]);
}

#[test]
fn a_file_says_nothing_to_the_terminal() {
    let work = Work::new();
    work.write("escape.txt", "ironbasil \x1b]0;title\x07 and more words");
    work.index(&[]);
    let shown = work.run(&["search", "ironbasil"]).said;
    assert!(
        shown.contains("*ironbasil*") && !shown.contains('\x1b'),
        "{shown:?}"
    );
}
