//! Escape sequences of roff. Source: the manual page groff(7).

use std::collections::HashMap;

use crate::accents::{add_accent, typed_accent};

/// The maximum nesting depth of strings.
const STRING_DEPTH_MAX: u32 = 4;
const STRING_BYTES_MAX: usize = 1000;
const STRINGS_MAX: usize = 1000;

/// The strings that a page defines.
#[derive(Default)]
pub(super) struct Strings(HashMap<String, String>);

impl Strings {
    pub(super) fn define(&mut self, name: &str, value: &str) {
        if self.0.len() < STRINGS_MAX && value.len() <= STRING_BYTES_MAX {
            let value = value.strip_prefix('"').unwrap_or(value);
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Returns text as it is printed.
    pub(super) fn render(&self, text: &str) -> String {
        let mut printed = String::with_capacity(text.len());
        self.append(text, 0, &mut printed);
        printed
    }

    fn append(&self, text: &str, depth: u32, printed: &mut String) {
        let mut rest = text;
        while let Some((before, escape)) = rest.split_once('\\') {
            printed.push_str(before);
            rest = self.append_escape(escape, depth, printed);
        }
        printed.push_str(rest);
    }

    /// Appends the output of an escape sequence. Returns the rest of the text.
    fn append_escape<'t>(&self, text: &'t str, depth: u32, printed: &mut String) -> &'t str {
        let mut characters = text.chars();
        let Some(kind) = characters.next() else {
            return "";
        };
        let rest = characters.as_str();
        match kind {
            '-' => printed.push('-'),
            'e' | '\\' => printed.push('\\'),
            '.' | '\'' | '`' => printed.push(kind),
            ' ' | '~' | '0' | 't' => printed.push(' '),
            '"' | '#' => return "",
            '(' => {
                let (name, rest) = split_characters(rest, 2);
                append_special(name, printed);
                return rest;
            }
            '[' => {
                let (name, rest) = rest.split_once(']').unwrap_or((rest, ""));
                append_special(name, printed);
                return rest;
            }
            'C' => {
                let (name, rest) = split_quoted(rest);
                append_special(name, printed);
                return rest;
            }
            '*' => {
                let (name, rest) = split_name(rest);
                if let Some(value) = self.0.get(name).filter(|_| depth < STRING_DEPTH_MAX) {
                    self.append(value, depth + 1, printed);
                } else {
                    printed.push_str(predefined_string(name));
                }
                return rest;
            }
            'f' | 'F' | 'm' | 'M' | 'n' | 'k' | 'g' | 'Y' | 'V' | '$' => {
                return split_name(rest.trim_start_matches(['+', '-'])).1;
            }
            's' => return skip_size(rest),
            'o' => {
                let (inner, rest) = split_quoted(rest);
                printed.push_str(inner.get(..1).unwrap_or(inner));
                return rest;
            }
            'h' | 'v' | 'w' | 'l' | 'L' | 'D' | 'X' | 'Z' | 'b' | 'x' | 'A' | 'B' | 'H' | 'N'
            | 'R' | 'S' => return split_quoted(rest).1,
            // Zero-width characters, and the end of a block.
            _ => {}
        }
        rest
    }
}

/// Splits a name of one character, of two after `(`, or of any number in brackets.
fn split_name(text: &str) -> (&str, &str) {
    if let Some(rest) = text.strip_prefix('(') {
        split_characters(rest, 2)
    } else if let Some(rest) = text.strip_prefix('[') {
        rest.split_once(']').unwrap_or((rest, ""))
    } else {
        split_characters(text, 1)
    }
}

fn split_characters(text: &str, count: usize) -> (&str, &str) {
    let end = text.char_indices().nth(count);
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

/// Splits an argument in quotes of any kind.
fn split_quoted(text: &str) -> (&str, &str) {
    let (quote, rest) = split_characters(text, 1);
    match rest.split_once(quote).filter(|_| !quote.is_empty()) {
        Some(split) => split,
        None => ("", rest),
    }
}

/// Skips a size: `\s0`, `\s-1`, `\s(12`, `\s[12]`, `\s'12'`. Sizes of two digits begin with 1 to 3.
fn skip_size(text: &str) -> &str {
    let text = text.trim_start_matches(['+', '-']);
    match text.as_bytes() {
        [b'(' | b'[', ..] => split_name(text).1,
        [b'\'', ..] => split_quoted(text).1,
        [b'1'..=b'3', b'0'..=b'9', ..] => text.get(2..).unwrap_or_default(),
        [b'0'..=b'9', ..] => text.get(1..).unwrap_or_default(),
        _ => text,
    }
}

fn predefined_string(name: &str) -> &'static str {
    match name {
        "lq" => "“",
        "rq" => "”",
        "R" => "®",
        "Tm" => "™",
        "Lt" => "<",
        "Gt" => ">",
        _ => "",
    }
}

/// Appends a special character by its name.
fn append_special(name: &str, printed: &mut String) {
    if let Ok(at) = SPECIAL_CHARACTERS.binary_search_by(|(known, _)| (*known).cmp(name)) {
        let found = SPECIAL_CHARACTERS.get(at);
        printed.push_str(found.map_or("", |(_, text)| text));
        return;
    }
    if let Some(codes) = name.strip_prefix('u').filter(|codes| codes.len() >= 4) {
        let codes = codes.split('_').map(|code| u32::from_str_radix(code, 16));
        printed.extend(codes.filter_map(|code| char::from_u32(code.ok()?)));
        return;
    }
    if let Some(code) = name.strip_prefix("char") {
        printed.extend(code.parse().ok().and_then(char::from_u32));
        return;
    }
    // A letter with an accent: `'e`, `:u`, `,c`, `oa`, `vs`, `/o`.
    let mut characters = name.chars();
    if let (Some(accent), Some(letter), None) =
        (characters.next(), characters.next(), characters.next())
    {
        let mark = match accent {
            ':' => Some('\u{308}'),
            ',' => Some('\u{327}'),
            'o' => Some('\u{30a}'),
            'v' => Some('\u{30c}'),
            other => typed_accent(other),
        };
        if let Some(mark) = mark.filter(|_| letter.is_alphabetic()) {
            printed.push_str(&add_accent(letter, mark));
        }
    }
}

/// In the order of the names' bytes, for binary search.
#[rustfmt::skip]
const SPECIAL_CHARACTERS: [(&str, &str); 72] = [
    ("!=", "≠"), ("%0", "‰"), ("'A", "Á"), ("+-", "±"), ("->", "→"), ("-D", "Ð"), ("/L", "Ł"),
    ("/O", "Ø"), ("/l", "ł"), ("/o", "ø"), ("12", "½"), ("14", "¼"), ("34", "¾"), ("<-", "←"),
    ("<=", "≤"), ("==", "≡"), (">=", "≥"), ("AE", "Æ"), ("Bq", "„"), ("Cs", "¤"), ("Do", "$"),
    ("Eu", "€"), ("Fc", "»"), ("Fi", "ffi"), ("Fl", "ffl"), ("Fo", "«"), ("OE", "Œ"), ("Po", "£"),
    ("Sd", "ð"), ("TP", "Þ"), ("Tp", "þ"), ("Ye", "¥"), ("aa", "´"), ("ae", "æ"), ("aq", "'"),
    ("at", "@"), ("ba", "|"), ("bq", "‚"), ("br", "|"), ("bu", "•"), ("bv", "|"), ("ci", "○"),
    ("co", "©"), ("cq", "’"), ("ct", "¢"), ("dd", "‡"), ("de", "°"), ("dg", "†"), ("di", "÷"),
    ("dq", "\""), ("em", "—"), ("en", "–"), ("eu", "€"), ("ff", "ff"), ("fi", "fi"), ("fl", "fl"),
    ("ga", "`"), ("ha", "^"), ("hy", "-"), ("lB", "["), ("la", "⟨"), ("lq", "“"), ("mu", "×"),
    ("oe", "œ"), ("oq", "‘"), ("ps", "¶"), ("rB", "]"), ("ra", "⟩"), ("rg", "®"), ("rq", "”"),
    ("rs", "\\"), ("ss", "ß"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_printed() {
        let mut strings = Strings::default();
        strings.define("x", "y\\*z");
        strings.define("z", "\\*x");
        let check = |text: &str, printed: &str| assert_eq!(strings.render(text), printed, "{text}");
        check("\\fBword\\fR \\f(CWx\\f[B]y\\fP", "word xy");
        check("a\\-b\\ec\\&d\\~e\\|f \\\" note", "a-b\\cd ef ");
        check(
            "\\(oqx\\(cq \\[u00E4]\\(:u\\('e\\[char228]\\(ss",
            "‘x’ äüéäß",
        );
        check("\\s-1X\\s+1Y\\s0Z\\s12A\\s(14B", "XYZAB");
        check("\\h'1n'x\\v'-1'y\\w'abc'z", "xyz");
        check("\\*(lqx\\*(rq \\*[none]\\n(.gt", "“x” t");
        check("\\*xq", "yyq");
        for cut in [
            "\\", "\\(", "\\(é", "\\[x", "\\f", "\\h", "\\h'é", "\\s", "\\*[",
        ] {
            strings.render(cut);
        }
    }

    #[test]
    fn special_characters_are_sorted() {
        assert!(SPECIAL_CHARACTERS.is_sorted());
    }
}
