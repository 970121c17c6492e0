//! Damaged files of all formats are read without a panic or hang. The files are made from valid
//! ones by changing, cutting and repeating bytes, with a fixed seed.

use std::io::{Cursor, Read};
use std::time::{Duration, Instant};

use zip::ZipArchive;

use crate::error::ExtractError;
use crate::fixtures::{build_pdf, build_tar, build_tnef, build_zip, gzip};
use crate::limits::Limits;

/// Files that are read by other crates, whose panics are errors of the file.
const PANICKING_PARSERS: [&str; 1] = ["a.pdf"];

/// Marsaglia's xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn damage(valid: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=random.below(6) {
        let offset = random.below(bytes.len());
        match random.below(4) {
            0 => bytes.truncate(offset.max(1)),
            1 => {
                let end = (offset + random.below(64)).min(bytes.len());
                let piece = bytes[offset..end].to_vec();
                bytes.splice(offset..offset, piece);
            }
            _ => bytes[offset] = random.below(256) as u8,
        }
    }
    bytes
}

/// Damages the members of a zip archive instead of the archive, whose checksums would reveal it.
fn damage_members(valid: &[u8], random: &mut Random) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(valid)).unwrap();
    let members: Vec<(String, Vec<u8>)> = (0..archive.len())
        .map(|index| {
            let mut member = archive.by_index(index).unwrap();
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).unwrap();
            if !bytes.is_empty() && random.below(4) == 0 {
                bytes = damage(&bytes, random);
            }
            (member.name().unwrap().into_owned(), bytes)
        })
        .collect();
    let members: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    build_zip(&members)
}

fn check(name: &str, valid: &[u8], damage: impl Fn(&[u8], &mut Random) -> Vec<u8>) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let read = |bytes: &[u8], documents: &mut u64| {
        let result = crate::extract(name, bytes, &Limits::default(), &mut |_| *documents += 1);
        if let Err(ExtractError::Malformed { reason, .. }) = &result {
            let may_panic = PANICKING_PARSERS.contains(&name);
            assert!(may_panic || !reason.contains("panicked"), "{name}");
        }
        result
    };
    assert!(read(valid, &mut 0).is_ok(), "{name}");
    let started = Instant::now();
    for _ in 0..400 {
        let mut documents = 0;
        let counts = read(&damage(valid, &mut random), &mut documents);
        assert!(counts.is_err() || documents > 0 || counts.is_ok_and(|t| t.documents == 0));
    }
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{name} took too long"
    );
}

#[test]
fn damaged_files_are_read_without_a_panic_or_hang() {
    let mail = "From: a\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n\
        --B\nContent-Type: text/html; charset=koi8-r\n\n<p>x\n--B\nContent-Type: message/rfc822\n\n\
        From: b\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n--B--\n";
    let page =
        b"<!DOCTYPE html><html lang=de><title>T</title><p>a&amp;b<script>x</script><pre>y</pre>";
    let drawing = "q BT /F 12 Tf 50 700 Td [(Hel) 20 (lo)] TJ 0 -14 Td (world) Tj ET Q";
    let markdown =
        b"---\ntitle: x\n---\n# A\n\n- b\n  1. c\n\n> d `e` **f**\n\n|a|b|\n|-|-|\n|c|d|\n";
    let from = "From a Mon Jan  1 00:00:00 2024\nContent-Length: 200\n";
    let valid: [(&str, Vec<u8>); 7] = [
        ("a.eml", mail.as_bytes().to_vec()),
        ("a.mbox", format!("{from}{mail}\n{from}{mail}").into_bytes()),
        ("a.html", page.to_vec()),
        ("a.md", markdown.to_vec()),
        ("a.pdf", build_pdf("<< /Title (t) >>", &[drawing, drawing])),
        ("a.txt.gz", gzip(page)),
        (
            "a.zip",
            build_zip(&[
                ("a.html", page),
                ("b.eml", mail.as_bytes()),
                ("c/d.md", markdown),
            ]),
        ),
    ];
    for (name, valid) in &valid {
        check(name, valid, damage);
    }
}

macro_rules! fixtures {
    ($($name:literal),*) => {
        [$(($name, include_bytes!(concat!("../tests/fixtures/", $name)).as_slice())),*]
    };
}

#[test]
fn damaged_documents_in_archives_are_read_without_a_panic_or_hang() {
    let packages = fixtures![
        "book.epub",
        "text.docx",
        "sheet.xlsx",
        "slides.pptx",
        "text.odt",
        "sheet.ods",
        "slides.odp"
    ];
    for (name, valid) in packages {
        check(name, valid, damage);
        check(name, valid, damage_members);
    }
}

#[test]
fn damaged_text_documents_are_read_without_a_panic_or_hang() {
    for (name, valid) in fixtures!["text.rtf", "book.fb2", "table.csv"] {
        check(name, valid, damage);
    }
}

/// Disk images consist of zeros for the most part, so their fixtures are compressed.
fn decompress_fixture(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let compressed = std::fs::read(folder.join(format!("{name}.xz"))).unwrap();
    let mut bytes = Vec::new();
    let mut reader = lzma_rust2::XzReader::new(compressed.as_slice(), false);
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn damaged_archives_are_read_without_a_panic_or_hang() {
    let archives = fixtures![
        "gnu.tar.gz",
        "pax.tar.bz2",
        "v7.tar.xz",
        "ustar.tar.zst",
        "gnu.tar.lz4",
        "gnu.tar.Z",
        "gnu.tar.lzma",
        "gnu.tar.lz",
        "lzma2.7z",
        "ppmd.7z",
        "bzip2.7z",
        "newc.cpio",
        "odc.cpio",
        "bread.deb",
        "bread.rpm",
        "library.a",
        "deflate64.zip",
        "bzip2.zip",
        "lzma.zip",
        "zstd.zip",
        "encrypted.zip"
    ];
    for name in ["rock-ridge.iso", "joliet.iso"] {
        check(name, &decompress_fixture(name), damage);
    }
    for (name, valid) in archives {
        check(name, valid, damage);
    }
    let tar = build_tar(&[("a.html", b"<p>x"), ("b.md", b"# y")]);
    check("a.tar", &tar, damage);
}

#[test]
fn damaged_mails_are_read_without_a_panic_or_hang() {
    let mails = fixtures![
        "attachments.eml",
        "mails.mbox",
        "signed.eml",
        "encrypted.eml",
        "text.msg",
        "html.msg",
        "rtf.msg"
    ];
    for (name, valid) in mails {
        check(name, valid, damage);
    }
    // A subject, an attachment with its data, and its properties: one of 8-bit text.
    let properties = b"\x01\0\0\0\x1e\0\x07\x37\x01\0\0\0\x06\0\0\0a.txt\0\0\0";
    let tnef = build_tnef(&[
        (0x8004, b"subject\0"),
        (0x9002, b""),
        (0x800f, b"words"),
        (0x9005, properties),
    ]);
    check("winmail.dat", &tnef, damage);
}

#[test]
fn damaged_legacy_documents_are_read_without_a_panic_or_hang() {
    for (name, valid) in fixtures!["text.doc", "sheet.xls", "slides.ppt"] {
        check(name, valid, damage);
    }
}
