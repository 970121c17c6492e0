//! Sanitizes text of files for terminals.

/// The expansion of a tab.
const TAB: &str = "    ";

/// Returns a line without control characters and directional marks, which could move the cursor,
/// change colours or reorder text.
pub fn harmless_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\t' => shown.push_str(TAB),
            _ if character.is_control() || is_directional(character) => {}
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns `true` for marks that change the direction of the text after them.
fn is_directional(character: char) -> bool {
    matches!(
        character,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_controls_the_terminal() {
        let cases = [
            ("a\x1b[2Jb\x07\x00c", "a[2Jbc"),
            ("\u{9b}31mred", "31mred"),
            ("a\tb", "a    b"),
            ("txt.\u{202e}exe\u{2066}", "txt.exe"),
            ("ä 漢", "ä 漢"),
        ];
        for (line, expected) in cases {
            assert_eq!(harmless_line(line), expected, "{line:?}");
        }
    }
}
