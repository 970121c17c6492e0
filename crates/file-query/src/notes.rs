//! Notes about parts of a query that may not have the intended meaning: unknown field names, and
//! punctuation.

use strsim::osa_distance;

use crate::field::Field;
use crate::lexer::{Lexer, Token};

/// Field names of other programs, with the corresponding fields.
const OTHER_NAMES: [(&str, &str); 16] = [
    ("after", "date"),
    ("bcc", "to"),
    ("before", "date"),
    ("cc", "to"),
    ("directory", "dir"),
    ("extension", "ext"),
    ("file", "filename"),
    ("filetype", "ext"),
    ("folder", "dir"),
    ("format", "mime"),
    ("fname", "filename"),
    ("modified", "date"),
    ("name", "filename"),
    ("sender", "from"),
    ("topic", "subject"),
    ("year", "date"),
];

/// Names of at least this length may have two errors to be recognized.
const LETTERS_FOR_TWO_ERRORS: usize = 8;
/// Shorter names are not compared, because too many others are similar.
const LETTERS_MIN: usize = 4;

/// Returns notes about words that may have been meant differently. They are searched as text.
///
/// ```
/// let notes = windrow_file_query::notes_on_query("autor:ada .NET http://example.org");
/// assert_eq!(notes, [
///     "there is no field \"autor\" (did you mean author:?), so autor:ada is searched as text",
///     "only letters and digits can be found, so .NET is searched as NET",
/// ]);
/// ```
pub fn notes_on_query(query: &str) -> Vec<String> {
    let mut lexer = Lexer::new(query);
    let mut notes = Vec::new();
    // The parser reports the error.
    while let Ok(Some(token)) = lexer.next() {
        match token {
            Token::Field { .. } => {
                lexer.value();
            }
            Token::Word(word) => notes.extend(unknown_field(word).or_else(|| lost_marks(word))),
            _ => {}
        }
    }
    notes
}

/// Returns a note if a word begins with an unknown field name and a colon.
fn unknown_field(word: &str) -> Option<String> {
    let (name, value) = word.split_once(':')?;
    let is_value = value.starts_with(char::is_alphanumeric) || value.starts_with(['~', '*', '?']);
    let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphabetic());
    if !is_name || !(is_value || value.is_empty()) {
        return None;
    }
    let meant = similar_field(&name.to_ascii_lowercase())?;
    Some(format!(
        "there is no field {name:?} (did you mean {meant}:?), so {word} is searched as text"
    ))
}

fn similar_field(name: &str) -> Option<&'static str> {
    let other = OTHER_NAMES.iter().find(|(known, _)| *known == name);
    if let Some((_, field)) = other {
        return Some(field);
    }
    let errors_max = match name.len() {
        0..LETTERS_MIN => return None,
        LETTERS_MIN..LETTERS_FOR_TWO_ERRORS => 1,
        _ => 2,
    };
    let distances = Field::names().filter(|known| known.get(..1) == name.get(..1));
    let distances = distances.map(|known| (osa_distance(name, known), known));
    let (distance, known) = distances.min()?;
    (distance <= errors_max).then_some(known)
}

/// Returns a note if a word is a name that only its punctuation distinguishes from others: `.NET`,
/// `Notepad++`. The signs of `C++` and `C#` belong to the word.
fn lost_marks(word: &str) -> Option<String> {
    let behind = word.trim_end_matches(['+', '#']);
    let inner = if behind.len() < word.len() {
        behind
    } else {
        word.strip_prefix('.')?
    };
    let is_name = !inner.is_empty() && inner.chars().all(char::is_alphanumeric);
    let has_signs = inner.len() == 1 && matches!(word.get(1..), Some("++" | "#"));
    (is_name && !has_signs)
        .then(|| format!("only letters and digits can be found, so {word} is searched as {inner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_like_those_of_fields_have_notes() {
        let cases = [
            ("autor:x", Some("author")),
            ("Titel:x", Some("title")),
            ("form:ada", Some("from")),
            ("folder:src", Some("dir")),
            ("(subjct:x)", Some("subject")),
            ("filenmae:", Some("filename")),
            ("author:autor", None),
            ("title:\"autor:x\"", None),
            ("\"autor:x\"", None),
            ("http://example.org file:///a mailto:ada", None),
            ("10:30 std::vec a:b C:\\dir key:value", None),
            ("note:x TODO:x", None),
        ];
        for (query, meant) in cases {
            let notes = notes_on_query(query);
            let expected = meant.map(|meant| format!("(did you mean {meant}:?)"));
            match expected {
                Some(expected) => assert!(notes.concat().contains(&expected), "{query}: {notes:?}"),
                None => assert!(notes.is_empty(), "{query}: {notes:?}"),
            }
        }
    }

    #[test]
    fn lost_punctuation_is_named() {
        for (query, word) in [("Notepad++", "Notepad"), ("c+", "c"), ("x .NET", "NET")] {
            let [note] = &notes_on_query(query)[..] else {
                panic!("{query} has a note")
            };
            assert!(note.ends_with(&format!("is searched as {word}")), "{note}");
        }
        for query in [
            "C++", "g++", "c#", "a+b", "#include", "node.js", "...", "+", "C", "-", "x*",
        ] {
            assert!(notes_on_query(query).is_empty(), "{query}");
        }
    }

    #[test]
    fn distances_count_swaps() {
        let cases = [
            ("form", "from", 1),
            ("autor", "author", 1),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
        ];
        for (one, other, expected) in cases {
            assert_eq!(osa_distance(one, other), expected, "{one} {other}");
        }
    }
}
