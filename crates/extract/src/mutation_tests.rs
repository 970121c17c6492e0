//! Damaged files of all formats must be read without a panic or hang. They are derived from valid
//! files by changing, truncating and repeating bytes, with a fixed seed.

use std::io::{Cursor, Read};
use std::time::{Duration, Instant};

use zip::ZipArchive;

use crate::error::ExtractError;
use crate::extractors::outlook::data_file_fixture::VERSIONS;
use crate::extractors::outlook::data_file_tests::write_damaged;
use crate::fixtures::{build_pdf, build_tar, build_tnef, build_zip, gzip};
use crate::limits::Limits;

/// Files that make libraries panic. Such panics are errors of the file. The Opus file causes an
/// overflow, which only builds with overflow checks detect.
const PANICKING_PARSERS: [&str; 2] = ["a.pdf", "sound.opus"];

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

/// Damages the beginning of a file, which contains sizes and offsets in media formats.
fn damage_head(valid: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=random.below(4) {
        let offset = random.below(bytes.len().min(512));
        bytes[offset] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)];
    }
    bytes
}

/// Damages the members of a zip archive. Damage of the archive itself would be detected by its
/// checksums.
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
        "slides.odp",
        "table.numbers"
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

/// Disk images consist mostly of zeros, so their fixtures are compressed.
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
        "rar15.rar",
        "rar3-solid.rar",
        "rar3-folders.rar",
        "rar5.rar",
        "rar5-solid.rar",
        "rar5-folders.rar",
        "rar5-encrypted.rar",
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

/// Also damages the content of blocks, with valid checksums.
#[test]
fn damaged_data_files_of_outlook_are_read_without_a_panic_or_hang() {
    for version in VERSIONS {
        let valid = write_damaged(version, &mut |_| ());
        check("a.pst", &valid, damage);
        check("a.pst", &valid, |_, random| {
            let (mut number, damaged) = (0, random.below(60));
            write_damaged(version, &mut |block| {
                if number % 60 == damaged && !block.is_empty() {
                    *block = damage(block, random);
                    block.truncate(8000);
                }
                number += 1;
            })
        });
    }
}

#[test]
fn damaged_legacy_documents_are_read_without_a_panic_or_hang() {
    for (name, valid) in fixtures!["text.doc", "sheet.xls", "slides.ppt", "book.djvu"] {
        check(name, valid, damage);
    }
}

/// A valid file of each text format with structure.
const STRUCTURED_TEXTS: &[(&str, &str)] = &[
    (
        "a.1",
        ".TH LS 1 \"May 2020\"\n.SH NAME\nls \\- list \\fBdirectory\\fP \\(em \\*(lq x\n.TP\n.B \\-a\nall\n\
         .\\\" c\n.ds xx y\n.if n \\{\\\n.nf\nx\n.fi\n.\\}\n.TS\nl l.\na\tb\n.TE\n",
    ),
    (
        "b.1",
        ".Dd May 1, 2020\n.Dt LS 1\n.Os\n.Sh NAME\n.Nm ls\n.Nd list\n.Bl -tag -width x\n.It Fl a Ar b\nall\n.El\n",
    ),
    (
        "a.tex",
        "\\documentclass[a]{b}\n\\title{z\\\"ahler $x^2$}\\author{A \\and B}\n\\begin{document}\\section{S}\n\
         a~b % c\n\\begin{equation}x\\end{equation}\\textbf{d {\\em e}}\\cite[f]{g}\n\\verb|h|\\end{document}\n",
    ),
    (
        "a.bib",
        "@book{k, title = {A {B} c}, author = \"D and E\", year = 1999, note = x # \"y\"}\n@comment{z}\n",
    ),
    (
        "a.adoc",
        "= Title\nAuthor <a@x>\n:lang: de\n\n== S\n\n*b* _c_ `d` https://x[e]\n\n----\ncode\n----\n\n|===\n|a|b\n|===\n",
    ),
    (
        "a.rst",
        "Title\n=====\n\n:Author: A\n\n.. note:: b\n   c\n\n``d`` *e* `f <g>`_ |h|\n\n.. code:: python\n\n   x\n\n+--+\n|i |\n+--+\n",
    ),
    (
        "a.org",
        "#+TITLE: T\n* TODO A :tag:\n:PROPERTIES:\n:ID: x\n:END:\n*b* /c/ =d= [[e][f]]\n#+BEGIN_SRC c\ng\n#+END_SRC\n| h | i |\n",
    ),
    (
        "a.pod",
        "=encoding utf8\n\n=head1 NAME\n\nA B<b I<c>> C<< d >> E<gt> L<e|f>\n\n=over 4\n\n=item * g\n\n=back\n\n=cut\n",
    ),
    (
        "a.texi",
        "\\input texinfo\n@settitle T\n@node Top\n@chapter A\n@code{b} @emph{c @var{d}} @@\n@table @code\n@item e\nf\n@end table\n@bye\n",
    ),
    (
        "a.info",
        "This is a.info, made by x.\n\n\u{1f}\nFile: a.info,  Node: Top,  Next: B,  Up: (dir)\n\nTitle\n*****\n\n* Menu:\n\n* B::  c\n\n\
         \u{1f}\nFile: a.info,  Node: B,  Prev: Top,  Up: Top\n\nText\n",
    ),
    (
        "a.xml",
        "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"c\">]><a d='e'><f>g &amp; h</f><![CDATA[i]]><!-- j --></a>",
    ),
    (
        "a.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>T</title><desc>d</desc><text>a<tspan>b</tspan></text></svg>",
    ),
    (
        "a.rss",
        "<rss version=\"2.0\"><channel><title>T</title><item><title>a</title><description>&lt;p&gt;b</description></item></channel></rss>",
    ),
    (
        "a.atom",
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>T</title><entry><title>a</title><content type=\"html\">&lt;b&gt;c</content></entry></feed>",
    ),
    (
        "a.ipynb",
        "{\"cells\":[{\"cell_type\":\"markdown\",\"source\":[\"# T\\n\",\"a\"]},{\"cell_type\":\"code\",\"source\":\"x=1\",\
         \"outputs\":[{\"text\":[\"b\"],\"data\":{\"text/plain\":\"c\"}}]}],\"metadata\":{\"kernelspec\":{\"language\":\"python\"}},\"nbformat\":4}",
    ),
    (
        "a.json",
        "{\"a\": \"b\\u00e9\\ud83d\\ude00\", \"c\": [1, true, null, {\"d\": \"e\"}]}",
    ),
    (
        "a.yaml",
        "a: &x \"b\\u00e9\"\nc:\n  - d\n  - 'e''f'\ng: |\n  h\n  i\nj: *x\n",
    ),
    ("a.toml", "a = \"b\\u00e9\"\n[c]\nd = '''e\nf'''\n"),
    (
        "a.vcf",
        "BEGIN:VCARD\r\nVERSION:3.0\r\nN:B;A;;;\r\nFN:A B\r\nEMAIL;TYPE=work:a@x\r\nTEL:1\r\nNOTE;ENCODING=QUOTED-PRINTABLE:=C3=A9\r\n c\r\nEND:VCARD\r\n",
    ),
    (
        "a.ics",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:A\\, b\r\nDTSTART;TZID=Europe/Berlin:20240101T100000\r\nATTENDEE;CN=C:mailto:c@x\r\n\
         DESCRIPTION:d\\ne\r\n f\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
    ),
    (
        "a.srt",
        "1\n00:00:01,000 --> 00:00:02,000\n<i>a</i>\n\n2\n00:00:03,000 --> 00:00:04,000\nb\n",
    ),
    (
        "a.vtt",
        "WEBVTT\n\nNOTE c\n\n00:01.000 --> 00:02.000 line:1\n<v A>a</v>\n",
    ),
    (
        "a.ass",
        "[Script Info]\nTitle: T\n[Events]\nFormat: Layer, Start, End, Text\nDialogue: 0,0:00:01.00,0:00:02.00,{\\b1}a\\Nb\n",
    ),
    (
        "a.po",
        "msgid \"\"\nmsgstr \"Language: de\\n\"\n\n#: x\nmsgctxt \"c\"\nmsgid \"a\"\nmsgid_plural \"b\"\nmsgstr[0] \"d\"\n\"e\"\n",
    ),
    (
        "a.torrent",
        "d8:announce3:x:y7:comment1:c13:creation datei1e4:infod5:filesld6:lengthi1e4:pathl1:a1:beee4:name1:n12:piece lengthi1e6:pieces0:ee",
    ),
    ("a.csv", "a;b\n\"c\"\"d\";1,5\n"),
    (
        "a.fb2",
        "<FictionBook><description><title-info><book-title>T</book-title></title-info></description><body><p>a</p></body></FictionBook>",
    ),
    (
        "a.mht",
        "From: x\nSubject: T\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=B\n\n--B\nContent-Type: text/html\n\n<p>a\n--B--\n",
    ),
];

#[test]
fn damaged_texts_with_a_structure_are_read_without_a_panic_or_hang() {
    for (name, text) in STRUCTURED_TEXTS {
        check(name, text.as_bytes(), damage);
        check(&format!("{name}.gz"), &gzip(text.as_bytes()), damage);
    }
}

#[test]
fn damaged_pictures_sound_and_video_are_read_without_a_panic_or_hang() {
    let files = fixtures![
        "picture.jpg",
        "picture.png",
        "picture.gif",
        "picture.webp",
        "picture.tiff",
        "picture.heic",
        "picture.avif",
        "sound.mp3",
        "sound.ogg",
        "sound.opus",
        "sound.flac",
        "sound.m4a",
        "sound.wav",
        "sound.aiff",
        "sound.wv",
        "id3v1.mp3",
        "lyrics.mp3",
        "video.mp4",
        "video.mkv",
        "video.avi",
        "video.webm",
        "gettext.mo"
    ];
    for (name, valid) in files {
        check(name, valid, damage);
        check(name, valid, damage_head);
    }
}

#[test]
fn damaged_texts_of_real_programs_are_read_without_a_panic_or_hang() {
    let files = fixtures![
        "pandoc.adoc",
        "pandoc.dbk",
        "pandoc.html",
        "pandoc.ipynb",
        "pandoc.man",
        "pandoc.md",
        "pandoc.org",
        "pandoc.rst",
        "pandoc.tei",
        "pandoc.tex",
        "pandoc.texi",
        "makeinfo.info",
        "vobject.vcf",
        "icalendar.ics",
        "feedgen.rss",
        "graphviz.svg",
        "transmission.torrent"
    ];
    for (name, valid) in files {
        check(name, valid, damage);
    }
}
