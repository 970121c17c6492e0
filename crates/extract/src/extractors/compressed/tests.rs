use std::io::Write;

use super::*;
use crate::error::Limit;
use crate::fixtures::{build_tar, extract_documents, gzip};
use crate::limits::Limits;
use crate::output::DocumentKind;

#[test]
fn the_content_is_detected_by_its_own_name_and_bytes() {
    let cases: [(&str, &[u8], DocumentKind, &str); 4] = [
        ("a.md.gz", b"# T", DocumentKind::Markdown, "T"),
        ("a.gz", b"<html>x", DocumentKind::Html, "x"),
        ("a.c.GZ", b"int x;", DocumentKind::Source, "int x;"),
        ("changelog.gz", b"words", DocumentKind::Text, "words"),
    ];
    for (name, bytes, kind, text) in cases {
        let [document] = &extract_documents(name, &gzip(bytes))[..] else {
            panic!("{name}")
        };
        assert_eq!((document.kind, document.text.as_str()), (kind, text));
        assert_eq!(document.inner_path, None);
    }
    let members = [gzip(b"one "), gzip(b"two"), vec![0; 100]].concat();
    assert_eq!(extract_documents("a.gz", &members)[0].text, "one two");
    assert_eq!(derive_content_name("x/a.TGZ"), "x/a.tar");
}

#[test]
fn frames_are_concatenated_and_skippable_ones_skipped() {
    let frame = |bytes: &[u8]| {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(bytes, level)
    };
    let skippable = b"\x5a\x2a\x4d\x18\x03\0\0\0abc".to_vec();
    let file = [
        &skippable[..],
        &frame(b"one "),
        &skippable,
        &frame(b"two"),
        &skippable,
    ]
    .concat();
    assert_eq!(extract_documents("a.zst", &file)[0].text, "one two");
    let frame = |bytes: &[u8]| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let file = [frame(b"one "), frame(b"two")].concat();
    assert_eq!(extract_documents("a.lz4", &file)[0].text, "one two");
}

#[test]
fn codes_of_compress_grow_and_are_cleared() {
    // `printf abababababab | compress`, and damaged forms of it.
    let file = b"\x1f\x9d\x90\x61\xc4\x04\x1c\x28\xb0\x20";
    let read = |bytes: &[u8]| {
        let mut content = Vec::new();
        let mut source = bytes;
        let result = CompressReader::new(&mut source as &mut dyn BufRead)
            .and_then(|mut reader| reader.read_to_end(&mut content));
        result
            .map(|_| String::from_utf8_lossy(&content).into_owned())
            .map_err(|e| e.to_string())
    };
    assert_eq!(read(file), Ok("abababababab".to_string()));
    assert_eq!(read(b"\x1f\x9d\x8f"), Ok(String::new()));
    let code = "the length of its codes is not valid".to_string();
    assert_eq!(read(b"\x1f\x9d\x91"), Err(code));
    let damaged = "its first code is not a byte".to_string();
    assert_eq!(read(b"\x1f\x9d\x90\xff\xff"), Err(damaged));
}

fn error(name: &str, bytes: &[u8], limits: &Limits) -> ExtractError {
    crate::extract(name, bytes, limits, &mut |_| ()).expect_err(name)
}

#[test]
fn damaged_files_and_bombs_are_refused() {
    let whole = gzip(b"some words that are compressed");
    let cut = &whole[..whole.len() - 6];
    assert_eq!(error("a.gz", cut, &Limits::default()).code(), "malformed");
    let bomb = error("a.gz", &gzip(&vec![b'a'; 40 << 20]), &Limits::default());
    assert_eq!(bomb, ExtractError::limit(Limit::ExpansionRatio, 200));
    assert_eq!(
        bomb.to_string(),
        "the ratio of decompressed to compressed size exceeds the limit of 200 times"
    );
    // Also if the archive within is never read as a whole.
    let archive = build_tar(&[("a.png", &[b"\0\x01\0\0\0", &vec![0; 40 << 20][..]].concat())]);
    let bomb = error("a.tgz", &gzip(&archive), &Limits::default());
    assert_eq!(bomb, ExtractError::limit(Limit::ExpansionRatio, 200));
    let limits = Limits {
        expanded_bytes_max: 1000,
        ..Limits::default()
    };
    let archive = build_tar(&[("a.txt", b"words")]);
    let bomb = error("a.tgz", &gzip(&archive), &limits);
    assert_eq!(bomb, ExtractError::limit(Limit::ExpandedSize, 1000));
}
