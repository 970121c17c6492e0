//! Classifies source code for highlighting: comments, strings, numbers and keywords. It does not
//! parse; it only knows the delimiters of each language family.

use super::marked_text::ClassedRange;

const COMMENT: &str = "sc";
const TEXT: &str = "ss";
const NUMBER: &str = "sn";
const KEYWORD: &str = "sk";

/// The delimiters of comments and strings of a language family.
struct Family {
    languages: &'static [&'static str],
    line_comments: &'static [&'static str],
    has_block_comments: bool,
}

const FAMILIES: [Family; 4] = [
    Family {
        languages: &[
            "python",
            "shell",
            "ruby",
            "perl",
            "r",
            "yaml",
            "toml",
            "make",
            "dockerfile",
            "cmake",
            "elixir",
            "julia",
            "tcl",
            "awk",
            "powershell",
            "nix",
            "properties",
        ],
        line_comments: &["#"],
        has_block_comments: false,
    },
    Family {
        languages: &["sql", "haskell", "lua", "ada", "vhdl", "elm"],
        line_comments: &["--"],
        has_block_comments: true,
    },
    Family {
        languages: &[
            "lisp",
            "scheme",
            "clojure",
            "asm",
            "assembly",
            "ini",
            "emacs-lisp",
        ],
        line_comments: &[";"],
        has_block_comments: false,
    },
    Family {
        languages: &["tex", "latex", "erlang", "matlab", "prolog"],
        line_comments: &["%"],
        has_block_comments: false,
    },
];

/// Languages with the syntax of C: the default.
const LIKE_C: Family = Family {
    languages: &[],
    line_comments: &["//"],
    has_block_comments: true,
};

/// Keywords of the supported languages.
const KEYWORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "begin",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "elif",
    "else",
    "end",
    "enum",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "fn",
    "for",
    "foreach",
    "from",
    "func",
    "function",
    "go",
    "goto",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "include",
    "instanceof",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "module",
    "mut",
    "namespace",
    "new",
    "nil",
    "none",
    "None",
    "not",
    "null",
    "of",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "self",
    "Self",
    "sizeof",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "typedef",
    "typeof",
    "union",
    "unless",
    "unsafe",
    "until",
    "use",
    "using",
    "var",
    "virtual",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "select",
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "TABLE",
    "JOIN",
    "GROUP",
    "ORDER",
    "BY",
];

/// Returns the classified ranges of a source text, in ascending order.
pub fn classify(text: &str, language: &str) -> Vec<ClassedRange> {
    let found = FAMILIES
        .iter()
        .find(|family| family.languages.contains(&language));
    let family = found.unwrap_or(&LIKE_C);
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let part = part(rest, family);
        let length = part.length.max(1);
        if let Some(class) = part.class {
            parts.push(ClassedRange {
                range: at..at + length,
                class,
            });
        }
        at += length;
    }
    parts
}

/// The length and class of the token at the start of a text.
struct Part {
    length: usize,
    class: Option<&'static str>,
}

fn part(rest: &str, family: &Family) -> Part {
    let classed = |length: usize, class: &'static str| Part {
        length,
        class: Some(class),
    };
    if family
        .line_comments
        .iter()
        .any(|begin| rest.starts_with(begin))
    {
        return classed(rest.find('\n').unwrap_or(rest.len()), COMMENT);
    }
    if family.has_block_comments && rest.starts_with("/*") {
        return classed(rest.find("*/").map_or(rest.len(), |at| at + 2), COMMENT);
    }
    let Some(first) = rest.chars().next() else {
        return Part {
            length: 0,
            class: None,
        };
    };
    if matches!(first, '"' | '`') || first == '\'' && is_text(rest) {
        return classed(text_length(rest, first), TEXT);
    }
    if first.is_ascii_digit() {
        let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_');
        return classed(rest.find(|it| !is_part(it)).unwrap_or(rest.len()), NUMBER);
    }
    if first.is_alphabetic() || first == '_' {
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        let class = KEYWORDS.contains(&word).then_some(KEYWORD);
        return Part { length, class };
    }
    Part {
        length: first.len_utf8(),
        class: None,
    }
}

/// Returns `true` if a single quote begins a literal, which ends on the same line. In Rust it may
/// begin a lifetime instead.
fn is_text(rest: &str) -> bool {
    let line = rest.get(1..).unwrap_or_default();
    let line = line.lines().next().unwrap_or_default();
    let end = line.find('\'');
    end.is_some_and(|end| {
        !line
            .get(..end)
            .unwrap_or_default()
            .contains([',', '>', '<', ')', '&'])
            || end <= 2
    })
}

/// Returns the length of a quoted literal. Except in backticks, it ends at the end of the line.
fn text_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' if quote != '`' => return at,
            it if it == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, language: &str, expected: &[(&str, &str)]) {
        let parts = classify(text, language);
        let found: Vec<(&str, &str)> = parts
            .iter()
            .map(|it| (&text[it.range.clone()], it.class))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn parts_are_found() {
        check(
            "fn f<'a>() { \"a\\\"b\"; 0x1F } // é /* x",
            "rust",
            &[
                ("fn", KEYWORD),
                ("\"a\\\"b\"", TEXT),
                ("0x1F", NUMBER),
                ("// é /* x", COMMENT),
            ],
        );
        check(
            "/* a\nb */ 'c'",
            "c",
            &[("/* a\nb */", COMMENT), ("'c'", TEXT)],
        );
        check(
            "x = 'a' # b\nif y",
            "python",
            &[("'a'", TEXT), ("# b", COMMENT), ("if", KEYWORD)],
        );
        check(
            "-- a\n\"open",
            "sql",
            &[("-- a", COMMENT), ("\"open", TEXT)],
        );
        check("ä/*", "js", &[("/*", COMMENT)]);
        check("", "c", &[]);
    }
}
