//! Files are assembled from their parts.

use super::*;
use crate::fixtures::extract_documents;

fn check(name: &str, bytes: &[u8], kind: DocumentKind, text: &str) -> ExtractedDocument {
    let mut documents = extract_documents(name, bytes);
    let document = documents.remove(0);
    assert_eq!(
        (document.kind, document.text.as_str()),
        (kind, text),
        "{name}"
    );
    document
}

fn segment(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).unwrap().to_be_bytes();
    [&[0xff, kind], &length[..], content].concat()
}

/// A block of Exif with an artist and a camera.
fn exif_block() -> Vec<u8> {
    let entry = |tag: u16, length: u32, offset: u32| {
        let start = [tag.to_be_bytes(), 2u16.to_be_bytes()].concat();
        [
            start,
            length.to_be_bytes().to_vec(),
            offset.to_be_bytes().to_vec(),
        ]
        .concat()
    };
    let mut block = b"MM\0*\0\0\0\x08\0\x03".to_vec();
    block.extend(entry(0x010f, 5, 50));
    block.extend(entry(0x0110, 5, 55));
    block.extend(entry(0x013b, 5, 60));
    block.extend([0; 4]);
    block.extend(b"Acme\0X100\0Ada \0");
    block
}

#[test]
fn properties_of_pictures_are_read() {
    let iptc = [
        &b"\x1c\x02\x69\0\x05Title"[..],
        b"\x1c\x02\x19\0\x03key",
        b"\x1c\x02\x78\0\x05Words",
    ]
    .concat();
    let resource = [b"8BIM\x04\x04\0\0\0\0\0", &[iptc.len() as u8][..], &iptc].concat();
    let jpeg = [
        &b"\xff\xd8"[..],
        &segment(0xe1, &[b"Exif\0\0", &exif_block()[..]].concat()),
        &segment(0xed, &[b"Photoshop 3.0\0", &resource[..]].concat()),
        &segment(0xfe, b"A comment"),
        &segment(0xc0, b"\x08\0\x20\0\x40\x03"),
        b"\xff\xda",
    ]
    .concat();
    let text = "Ada\nTitle\nkey\nWords\nA comment\nAcme X100";
    let document = check("a.jpg", &jpeg, DocumentKind::Image, text);
    assert_eq!(document.title.as_deref(), Some("Title"));
    let metadata = document.metadata;
    assert_eq!(metadata.author.as_deref(), Some("Ada"));
    assert_eq!(metadata.camera.as_deref(), Some("Acme X100"));
    assert_eq!((metadata.width, metadata.height), (Some(64), Some(32)));

    let chunk = |kind: &[u8], content: &[u8]| {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&length[..], kind, content, &[0; 4]].concat()
    };
    let png = [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", b"\0\0\0\x40\0\0\0\x20\x08\0\0\0\0"),
        &chunk(b"tEXt", b"Title\0A picture"),
        &chunk(b"iTXt", "Description\0\0\0\0\0Größe".as_bytes()),
        &chunk(b"IEND", b""),
    ]
    .concat();
    let document = check("a.png", &png, DocumentKind::Image, "A picture\nGröße");
    assert_eq!(document.title.as_deref(), Some("A picture"));
    assert_eq!(
        (document.metadata.width, document.metadata.height),
        (Some(64), Some(32))
    );

    check(
        "a.gif",
        b"GIF89a\x40\0\x20\0\0\0\0\x21\xfe\x05Words\0;",
        DocumentKind::Image,
        "Words",
    );
}

#[test]
fn a_file_without_properties_is_a_document() {
    for (name, bytes) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n"[..]),
        ("a.jpg", b"\xff\xd8\xff"),
        ("a.tif", b"II*\0damaged"),
        ("a.heic", b"\0\0\0\x18ftypheic"),
    ] {
        check(name, bytes, DocumentKind::Image, "");
    }
    check("a.mp3", b"ID3\x04\0\0\0\0\0\0", DocumentKind::Audio, "");
    check("a.mkv", b"\x1a\x45\xdf\xa3", DocumentKind::Video, "");
}

#[test]
fn properties_of_video_are_read() {
    let element = |id: &[u8], content: &[u8]| [id, &[0x80 | content.len() as u8], content].concat();
    let information = element(
        b"\x15\x49\xa9\x66",
        &[
            element(b"\x7b\xa9", b"The film"),
            element(b"\x44\x89", &1500f32.to_be_bytes()),
        ]
        .concat(),
    );
    let tag = |name: &[u8], value: &[u8]| {
        let simple = [element(b"\x45\xa3", name), element(b"\x44\x87", value)].concat();
        element(b"\x73\x73", &element(b"\x67\xc8", &simple))
    };
    let tags = element(
        b"\x12\x54\xc3\x67",
        &[tag(b"DIRECTOR", b"Ada"), tag(b"ENCODER", b"x")].concat(),
    );
    let matroska = [
        &element(b"\x1a\x45\xdf\xa3", b"")[..],
        b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff",
        &information,
        &tags,
    ]
    .concat();
    let document = check("a.mkv", &matroska, DocumentKind::Video, "The film\nAda");
    assert_eq!(document.metadata.duration_ms, Some(1500));
    assert_eq!(document.metadata.author.as_deref(), Some("Ada"));
}

#[test]
fn tags_of_sound_are_read() {
    let frame = |id: &[u8], text: &str| {
        let content = [&[3], text.as_bytes()].concat();
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [id, &length, &[0, 0], &content].concat()
    };
    let frames = [
        frame(b"TIT2", "The song"),
        frame(b"TPE1", "Ada"),
        frame(b"TALB", "Album"),
    ]
    .concat();
    let size = frames.len() as u8;
    // Two frames of silence of 128 kbit/s at 44.1 kHz.
    let silence = [&b"\xff\xfb\x90\x64"[..], &[0; 413]].concat();
    let mp3 = [
        &b"ID3\x04\0\0\0\0\0"[..],
        &[size],
        &frames,
        &silence,
        &silence,
    ]
    .concat();
    let document = check("a.mp3", &mp3, DocumentKind::Audio, "The song\nAda\nAlbum");
    assert_eq!(document.metadata.album.as_deref(), Some("Album"));
    assert_eq!(document.metadata.author.as_deref(), Some("Ada"));
}
