//! Distinguishes Western European encodings that the detector does not support: DOS code page 850,
//! Mac Roman, and ISO 8859-15, which contains `œ`.

use std::borrow::Cow;

use encoding_rs::{Encoding, ISO_8859_15, MACINTOSH, WINDOWS_1252};

use super::dos::CODE_PAGE_850;

/// Letters that are frequent inside words of Western European languages, and the apostrophe.
const FREQUENT_LETTERS: &str = "äöüßéèêëàâçôîïûùñíóáúòìåøæœãõÄÖÜÉÈÀÇÅØ’";

/// Decodes Western European text that is not UTF-8.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let windows = count_letters(bytes, |byte| decode_one(byte, WINDOWS_1252));
    let macintosh = count_letters(bytes, |byte| decode_one(byte, MACINTOSH));
    let iso = count_letters(bytes, |byte| decode_one(byte, ISO_8859_15));
    let dos = count_letters(bytes, |byte| CODE_PAGE_850.decode_byte(byte));
    if dos > windows.max(iso) && dos >= macintosh {
        Cow::Owned(CODE_PAGE_850.decode(bytes))
    } else if macintosh > windows.max(iso) {
        MACINTOSH.decode_without_bom_handling(bytes).0
    } else if iso > windows {
        ISO_8859_15.decode_without_bom_handling(bytes).0
    } else {
        WINDOWS_1252.decode_without_bom_handling(bytes).0
    }
}

/// Returns the number of non-ASCII bytes that decode to frequent letters between two other letters.
/// Quotation marks and dashes occur at the ends of words instead. A capital may only follow a
/// capital.
fn count_letters(bytes: &[u8], decode: impl Fn(u8) -> char) -> usize {
    let is_letter = |triple: &&[u8]| match triple {
        [before, byte, after] if !byte.is_ascii() => {
            let letter = decode(*byte);
            before.is_ascii_alphabetic()
                && after.is_ascii_alphabetic()
                && FREQUENT_LETTERS.contains(letter)
                && (!letter.is_uppercase() || before.is_ascii_uppercase())
        }
        _ => false,
    };
    bytes.windows(3).filter(is_letter).count()
}

fn decode_one(byte: u8, encoding: &'static Encoding) -> char {
    let byte = [byte];
    let (decoded, _) = encoding.decode_without_bom_handling(&byte);
    decoded
        .chars()
        .next()
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
