//! Decompresses the RTF body of mails of Outlook. Source: MS-OXRTFCP,
//! <https://learn.microsoft.com/en-us/openspecs/exchange_server_protocols/ms-oxrtfcp>.
//!
//! ```text
//! compressed size (4) │ size (4) │ "LZFu" or "MELA" (4) │ checksum (4) │ content
//! content of "LZFu": a byte of flags, the lowest bit first; for each
//!   0   a byte
//!   1   a reference: offset (12 bits) and length − 2 (4 bits), big-endian, into a window of 4,096
//!       bytes. A reference to the current position ends the content.
//! ```

const HEADER_BYTES: usize = 16;
const WINDOW_BYTES: usize = 4096;
/// The initial content of the window: strings that are common in RTF.
const INITIAL_WINDOW: &[u8] =
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \
    \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\
    \\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/// Returns the RTF, or `None` if the bytes are invalid. If the content is truncated, returns the
/// part before.
pub(super) fn decompress(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, content) = bytes.split_at_checked(HEADER_BYTES)?;
    match header.get(8..12)? {
        b"LZFu" => Some(decompress_content(content)),
        b"MELA" => Some(content.to_vec()),
        _ => None,
    }
}

fn decompress_content(content: &[u8]) -> Vec<u8> {
    let mut window = [0; WINDOW_BYTES];
    for (slot, byte) in window.iter_mut().zip(INITIAL_WINDOW) {
        *slot = *byte;
    }
    let mut position = INITIAL_WINDOW.len();
    let mut bytes = Vec::new();
    let mut put = |byte: u8, window: &mut [u8; WINDOW_BYTES], position: &mut usize| {
        if let Some(slot) = window.get_mut(*position) {
            *slot = byte;
        }
        *position = (*position + 1) % WINDOW_BYTES;
        bytes.push(byte);
    };
    let mut input = content.iter().copied();
    'content: while let Some(flags) = input.next() {
        for bit in 0..8 {
            let Some(first) = input.next() else {
                break 'content;
            };
            if flags >> bit & 1 == 0 {
                put(first, &mut window, &mut position);
                continue;
            }
            let Some(second) = input.next() else {
                break 'content;
            };
            let reference = usize::from(u16::from_be_bytes([first, second]));
            let offset = reference >> 4;
            if offset == position {
                break 'content;
            }
            for step in 0..(reference & 15) + 2 {
                let byte = window.get((offset + step) % WINDOW_BYTES).copied();
                put(byte.unwrap_or_default(), &mut window, &mut position);
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtf_is_decompressed() {
        // The example of MS-OXRTFCP, section 3.1.
        let compressed =
            b"\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0\x72\x63\x70\x67\x31\
            \x32\x35\x42\x32\x0a\xf3\x20\x68\x65\x6c\x09\0\x20\x62\x77\x05\xb0\x6c\x64\x7d\x0a\x80\
            \x0f\xa0";
        let rtf = b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n";
        assert_eq!(decompress(compressed).as_deref(), Some(&rtf[..]));
        assert_eq!(
            decompress(b"\0\0\0\0\0\0\0\0MELA\0\0\0\0{}").as_deref(),
            Some(&b"{}"[..])
        );
        assert_eq!(decompress(b"\0\0\0\0\0\0\0\0ABCD\0\0\0\0{}"), None);
        assert_eq!(decompress(b"LZFu"), None);
    }
}
