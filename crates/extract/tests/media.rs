//! Pictures, sound and video of real programs, with the expected metadata.

mod common;

use common::read_documents;
use windrow_extract::{DocumentKind, ExtractedDocument};

fn read(name: &str) -> ExtractedDocument {
    let mut documents = read_documents(name);
    assert_eq!(documents.len(), 1, "{name}");
    documents.remove(0)
}

fn check(name: &str, kind: DocumentKind, title: Option<&str>, text: &[&str]) -> ExtractedDocument {
    let document = read(name);
    assert_eq!(document.kind, kind, "{name}");
    assert_eq!(document.title.as_deref(), title, "{name}");
    let lines: Vec<&str> = document.text.lines().collect();
    assert_eq!(lines, text, "{name}");
    document
}

const TITLE: Option<&str> = Some("Crusty loaf");
const AUTHOR: &str = "Ada Lovelace";
const ALBUM: &str = "Größe of bread";
const COMMENT: &str = "A crumb comment";
const CAPTION: &str = "Bread on a table";

#[test]
fn pictures_have_exif_iptc_xmp_and_comments() {
    let cases: [(&str, Option<&str>, &[&str]); 7] = [
        (
            "picture.jpg",
            TITLE,
            &[
                CAPTION,
                AUTHOR,
                "Crusty loaf",
                "rye",
                "wheat",
                ALBUM,
                COMMENT,
                "Acme X100",
                "sourdough",
            ],
        ),
        (
            "picture.png",
            TITLE,
            &[AUTHOR, ALBUM, "Crusty loaf", "sourdough"],
        ),
        ("picture.tiff", TITLE, &[CAPTION, AUTHOR, "Crusty loaf"]),
        ("picture.webp", TITLE, &[CAPTION, AUTHOR, "Crusty loaf"]),
        ("picture.gif", None, &[COMMENT]),
        ("picture.heic", None, &[AUTHOR]),
        ("picture.avif", None, &[AUTHOR]),
    ];
    for (name, title, text) in cases {
        let metadata = check(name, DocumentKind::Image, title, text).metadata;
        // The sizes of HEIF are in boxes that are not read.
        let is_heif = name.ends_with("heic") || name.ends_with("avif");
        let size = (!is_heif).then_some(64);
        assert_eq!(metadata.width, size, "{name}");
    }
    let photo = read("picture.jpg").metadata;
    assert_eq!(photo.camera.as_deref(), Some("Acme X100"));
    assert_eq!(photo.keywords, ["rye", "wheat", "sourdough"]);
    assert_eq!(photo.date_ms, Some(1_714_986_489_000));
}

#[test]
fn sound_has_tags() {
    let all: &[&str] = &["Crusty loaf", AUTHOR, ALBUM, "Baking", COMMENT];
    let cases: [(&str, &[&str]); 10] = [
        ("sound.flac", all),
        ("sound.m4a", all),
        ("sound.ogg", all),
        ("sound.wav", all),
        // ffmpeg writes comments of ID3 under a name of its own.
        ("sound.mp3", &["Crusty loaf", AUTHOR, ALBUM, "Baking"]),
        (
            "sound.aiff",
            &["Crusty loaf", AUTHOR, ALBUM, "Baking", COMMENT],
        ),
        ("sound.opus", &["Crusty loaf", AUTHOR, ALBUM, COMMENT]),
        ("sound.wv", &["Crusty loaf", AUTHOR, ALBUM]),
        ("id3v1.mp3", &["Crusty loaf", AUTHOR]),
        (
            "lyrics.mp3",
            &["Crusty loaf", AUTHOR, "Knead the dough", ALBUM],
        ),
    ];
    for (name, text) in cases {
        let metadata = check(name, DocumentKind::Audio, TITLE, text).metadata;
        assert_eq!(metadata.author.as_deref(), Some(AUTHOR), "{name}");
        let duration = metadata.duration_ms.unwrap_or_default();
        assert!((200..400).contains(&duration), "{name}: {duration}");
    }
}

#[test]
fn video_has_tags() {
    let cases: [(&str, &[&str]); 4] = [
        (
            "video.mp4",
            &["Crusty loaf", AUTHOR, ALBUM, "Baking", COMMENT],
        ),
        (
            "video.mkv",
            &["Crusty loaf", AUTHOR, ALBUM, COMMENT, "Baking"],
        ),
        (
            "video.avi",
            &[AUTHOR, COMMENT, "Baking", "Crusty loaf", ALBUM],
        ),
        ("video.webm", &["Crusty loaf"]),
    ];
    for (name, text) in cases {
        check(name, DocumentKind::Video, TITLE, text);
    }
}
