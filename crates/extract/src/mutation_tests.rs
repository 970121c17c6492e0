//! Damaged files of all formats are read without a panic or hang. The files are made from valid
//! ones by changing, cutting and repeating bytes, with a fixed seed.

use std::time::{Duration, Instant};

use crate::fixtures::{build_pdf, build_zip, gzip};
use crate::limits::Limits;

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
    let valid: [(&str, Vec<u8>); 7] = [
        ("a.eml", mail.as_bytes().to_vec()),
        (
            "a.mbox",
            format!("From a\n{mail}\nFrom b\n{mail}").into_bytes(),
        ),
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
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, valid) in &valid {
        assert!(
            crate::extract(name, valid, &Limits::default(), &mut |_| ()).is_ok(),
            "{name}"
        );
        let started = Instant::now();
        for _ in 0..400 {
            let bytes = damage(valid, &mut random);
            let mut documents = 0;
            let counts = crate::extract(name, &bytes, &Limits::default(), &mut |_| documents += 1);
            assert!(counts.is_err() || documents > 0 || counts.is_ok_and(|t| t.documents == 0));
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{name} took too long"
        );
    }
}
