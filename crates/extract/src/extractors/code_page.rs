//! Code pages of Windows.

use encoding_rs::*;

/// Returns the encoding of a code page, or `None` if it is unknown or has several meanings.
/// Source: <https://learn.microsoft.com/en-us/windows/win32/intl/code-page-identifiers>.
pub(super) fn find_encoding(code_page: u32) -> Option<&'static Encoding> {
    Some(match code_page {
        866 => IBM866,
        874 => WINDOWS_874,
        932 => SHIFT_JIS,
        936 => GBK,
        949 => EUC_KR,
        950 => BIG5,
        1250 => WINDOWS_1250,
        1251 => WINDOWS_1251,
        1252 => WINDOWS_1252,
        1253 => WINDOWS_1253,
        1254 => WINDOWS_1254,
        1255 => WINDOWS_1255,
        1256 => WINDOWS_1256,
        1257 => WINDOWS_1257,
        1258 => WINDOWS_1258,
        10000 => MACINTOSH,
        10007 => X_MAC_CYRILLIC,
        20866 => KOI8_R,
        21866 => KOI8_U,
        28592 => ISO_8859_2,
        28595 => ISO_8859_5,
        54936 => GB18030,
        65001 => UTF_8,
        _ => return None,
    })
}

/// Returns the encoding of a character set of Windows fonts (`\fcharset` of RTF).
pub(super) fn find_charset_encoding(charset: i32) -> Option<&'static Encoding> {
    find_encoding(match charset {
        0 => 1252,
        77 => 10000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    })
}
