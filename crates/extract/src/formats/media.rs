//! Pictures, sound and video.

use super::rows::{at, at_start, media, media_by_test, unsupported};
use crate::extractors::media;
use crate::format::Format;

pub(super) const FORMATS: &[Format] = &[
    // Images.
    media(
        "PNG image",
        &["png"],
        &["image/png"],
        &[at_start(b"\x89PNG\r\n")],
        media::extract_png,
    ),
    media(
        "JPEG image",
        &["jpg", "jpeg", "jpe", "jfif"],
        &["image/jpeg"],
        &[at_start(b"\xff\xd8\xff")],
        media::extract_jpeg,
    ),
    media(
        "GIF image",
        &["gif"],
        &["image/gif"],
        &[at_start(b"GIF87a"), at_start(b"GIF89a")],
        media::extract_gif,
    ),
    media(
        "WebP image",
        &["webp"],
        &["image/webp"],
        &[at(8, b"WEBPVP8")],
        media::extract_webp,
    ),
    media(
        "TIFF image",
        &["tiff", "tif", "dng", "nef", "cr2", "arw"],
        &["image/tiff"],
        &[at_start(b"II*\0"), at_start(b"MM\0*")],
        media::extract_exif,
    ),
    media(
        "HEIF image",
        &["heic", "heif", "avif"],
        &["image/heic", "image/heif", "image/avif"],
        &[
            at(4, b"ftyphei"),
            at(4, b"ftypmif1"),
            at(4, b"ftypmsf1"),
            at(4, b"ftypavi"),
        ],
        media::extract_exif,
    ),
    unsupported("icon", &[at_start(b"\0\0\x01\0")]),
    // Audio and video.
    media(
        "Ogg media",
        &["ogg", "oga", "opus", "spx"],
        &["audio/ogg", "application/ogg", "audio/opus"],
        &[at_start(b"OggS")],
        media::extract_audio,
    ),
    media(
        "FLAC audio",
        &["flac"],
        &["audio/flac"],
        &[at_start(b"fLaC")],
        media::extract_audio,
    ),
    media_by_test(
        "MP3 audio",
        &["mp3", "mp2", "aac"],
        &["audio/mpeg", "audio/aac"],
        media::is_mpeg_audio,
        media::extract_audio,
    ),
    media_by_test(
        "WAV audio",
        &["wav"],
        &["audio/vnd.wave"],
        |input| media::is_chunked(input, b"RIFF", &[b"WAVE"]),
        media::extract_audio,
    ),
    media_by_test(
        "AIFF audio",
        &["aiff", "aif", "aifc"],
        &["audio/aiff"],
        |input| media::is_chunked(input, b"FORM", &[b"AIFF", b"AIFC"]),
        media::extract_audio,
    ),
    media(
        "WavPack audio",
        &["wv"],
        &["audio/x-wavpack"],
        &[at_start(b"wvpk")],
        media::extract_audio,
    ),
    media(
        "MPEG-4 audio",
        &["m4a", "m4b"],
        &["audio/mp4"],
        &[at(4, b"ftypM4A"), at(4, b"ftypM4B")],
        media::extract_audio,
    ),
    media(
        "MPEG-4 video",
        &["mp4", "m4v", "mov", "3gp"],
        &["video/mp4", "video/quicktime", "video/3gpp"],
        &[at(4, b"ftyp"), at(4, b"moov")],
        media::extract_video,
    ),
    media(
        "AVI video",
        &["avi"],
        &["video/vnd.avi"],
        &[at(8, b"AVI LIST")],
        media::extract_avi,
    ),
    media(
        "Matroska media",
        &["mkv", "webm", "mka"],
        &["video/matroska", "video/webm", "audio/matroska"],
        &[at_start(b"\x1a\x45\xdf\xa3")],
        media::extract_matroska,
    ),
];
