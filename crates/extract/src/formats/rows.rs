//! Shared constructors of table rows.

use crate::format::Extractor::Parts;
use crate::format::{ContentTest, Detection, Format, PartsExtractor, Signature};

pub(super) const fn at_start(bytes: &'static [u8]) -> Signature {
    at(0, bytes)
}

pub(super) const fn at(offset: usize, bytes: &'static [u8]) -> Signature {
    Signature { offset, bytes }
}

pub(super) const fn binary(signatures: &'static [Signature]) -> Detection {
    Detection::Binary {
        signatures,
        test: None,
    }
}

pub(super) const fn text(test: ContentTest) -> Detection {
    Detection::Text { test: Some(test) }
}

/// A picture, sound or video.
pub(super) const fn media(
    name: &'static str,
    extensions: &'static [&'static str],
    mime_types: &'static [&'static str],
    signatures: &'static [Signature],
    extractor: PartsExtractor,
) -> Format {
    Format {
        name,
        extensions,
        mime_types,
        detection: binary(signatures),
        extractor: Some(Parts(extractor)),
    }
}

/// A picture, sound or video that is not identified by a signature.
pub(super) const fn media_by_test(
    name: &'static str,
    extensions: &'static [&'static str],
    mime_types: &'static [&'static str],
    test: ContentTest,
    extractor: PartsExtractor,
) -> Format {
    Format {
        name,
        extensions,
        mime_types,
        detection: Detection::Binary {
            signatures: &[],
            test: Some(test),
        },
        extractor: Some(Parts(extractor)),
    }
}

/// A known binary format without an extractor.
pub(super) const fn unsupported(name: &'static str, signatures: &'static [Signature]) -> Format {
    Format {
        name,
        extensions: &[],
        mime_types: &[],
        detection: binary(signatures),
        extractor: None,
    }
}
