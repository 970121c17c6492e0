//! Reads the fixture of format 1 with nothing but docs/format.md: magic numbers, the numbers of
//! segments, records and runs, and the rows of the catalog.

use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1");
    let entries = std::fs::read_dir(fixture.join(folder)).unwrap();
    let mut files: Vec<(PathBuf, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect();
    files.sort();
    files
}

/// Parses the number in a file name.
fn number(path: &Path) -> u64 {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem.parse().unwrap()
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(*bytes[at..].first_chunk().unwrap()))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

#[test]
fn segments_of_the_log() {
    let segments = files("log");
    assert!(!segments.is_empty());
    let mut next = None;
    for (path, bytes) in segments {
        assert_eq!(&bytes[..8], b"WRlog-01");
        assert_eq!(u64_at(&bytes, 8), number(&path));
        let mut position = u64_at(&bytes, 16);
        assert_eq!(next.unwrap_or(position), position);
        assert_eq!(u64_at(&bytes, 32), 0);
        let mut at = 48;
        while at < bytes.len() {
            let (kind, flags) = (bytes[at + 40], bytes[at + 41]);
            assert!(kind <= 2 && flags <= 1, "kind {kind}, flags {flags}");
            let millis = u64_at(&bytes, at + 40) >> 16;
            assert_eq!(millis, 1_700_000_000_000);
            assert_eq!(u64_at(&bytes, at + 8), position - u64::from(kind == 2));
            position += u64::from(kind < 2);
            let stored = u32_at(&bytes, at + 32);
            let raw = u32_at(&bytes, at + 36);
            assert!(if flags == 1 {
                stored < raw
            } else {
                stored == raw
            });
            let end = at + 48 + stored;
            at = end.next_multiple_of(8);
            assert!(bytes[end..at].iter().all(|byte| *byte == 0), "padding");
        }
        next = Some(position);
    }
}

#[test]
fn runs() {
    let runs = files("runs");
    assert!(runs.len() >= 3);
    for (path, bytes) in runs {
        assert_eq!(&bytes[..8], b"WRrun-01");
        assert_eq!((u64_at(&bytes, 8), u64_at(&bytes, 16)), (number(&path), 0));
        let footer = bytes.len() - 40;
        assert_eq!(&bytes[footer..footer + 8], b"WRend-01");
        assert_eq!(u64_at(&bytes, footer + 8), number(&path));
        assert_eq!(u64_at(&bytes, footer + 16), footer as u64);
        assert!(
            u64_at(&bytes, footer + 24) >= 3,
            "blocks: data, fences, root"
        );
    }
}

#[test]
fn the_checkpoint_of_the_catalog() {
    let [(path, bytes)] = files("catalog").try_into().unwrap();
    assert_eq!(&bytes[..8], b"WRcat-01");
    assert_eq!(u64_at(&bytes, 8), number(&path));
    let (mut rows, mut at) = (Vec::new(), 24);
    while at < bytes.len() - 8 {
        let (key, value) = (u16_at(&bytes, at), u16_at(&bytes, at + 2));
        rows.push(&bytes[at + 4..at + 4 + key]);
        at += 4 + key + value;
    }
    assert_eq!(at, bytes.len() - 8, "a checksum is last");
    assert_eq!(rows.len() as u64, u64_at(&bytes, 16));
    assert!(rows.is_sorted());
    for (kind, length) in [
        (b'c', 9),
        (b'f', 9),
        (b'i', 17),
        (b's', 25),
        (b'n', 1),
        (b'p', 1),
    ] {
        let mut of_kind = rows.iter().filter(|row| row[0] == kind).peekable();
        assert!(of_kind.peek().is_some(), "rows of kind {kind}");
        assert!(
            of_kind.all(|row| row.len() == length),
            "rows of kind {kind}"
        );
    }
}
