//! The DOS code pages, which are not in the WHATWG standard.
//! Source: <https://www.unicode.org/Public/MAPPINGS/VENDORS/MICSFT/PC/>.

/// A code page: ASCII, and 128 other characters.
#[derive(Clone, Copy)]
pub(crate) struct DosCodePage {
    /// The characters of the bytes from 128 on.
    upper: &'static str,
}

/// Code page 437, the one of the first PCs.
pub(crate) const CODE_PAGE_437: DosCodePage = DosCodePage {
    upper: "\
        ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ\
        áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
        └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
        αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
};

/// Code page 850, for Western Europe. Its letters are also those of code page 437.
pub(crate) const CODE_PAGE_850: DosCodePage = DosCodePage {
    upper: "\
        ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ\
        áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
        └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀\
        ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
};

impl DosCodePage {
    /// Returns the character of a byte.
    pub(crate) fn decode_byte(self, byte: u8) -> char {
        match byte.checked_sub(0x80) {
            None => char::from(byte),
            Some(number) => {
                let found = self.upper.chars().nth(number.into());
                found.unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        }
    }

    /// Decodes a text.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        bytes.iter().map(|byte| self.decode_byte(*byte)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{CODE_PAGE_437, CODE_PAGE_850};

    #[test]
    fn code_pages_have_128_characters_beside_ascii() {
        for page in [CODE_PAGE_437, CODE_PAGE_850] {
            assert_eq!(page.upper.chars().count(), 128);
        }
        assert_eq!(CODE_PAGE_437.decode(b"gr\x94\xe1e \xff"), "größe \u{a0}");
        assert_eq!(CODE_PAGE_850.decode(b"a\xb5"), "aÁ");
    }
}
