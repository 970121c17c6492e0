//! Unfinished queries, while the user types.

/// The minimum length of the last word to be searched as a prefix.
const PREFIX_LETTERS_MIN: usize = 3;

/// Returns a query that also matches words that begin with its last word.
pub fn with_prefix(query: &str) -> String {
    let start = query.rfind(|it: char| !it.is_lowercase());
    let start = start.map_or(0, |at| {
        at + query
            .get(at..)
            .and_then(|it| it.chars().next())
            .map_or(0, char::len_utf8)
    });
    let (before, word) = query.split_at(start);
    let is_quoted = before.matches('"').count() % 2 == 1;
    let is_word = before.is_empty() || before.ends_with([' ', '(', '-']);
    if is_quoted || !is_word || word.chars().count() < PREFIX_LETTERS_MIN {
        return query.to_owned();
    }
    format!("{before}({word} OR {word}*)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_may_be_a_beginning() {
        let cases = [
            ("bre", "(bre OR bre*)"),
            ("hot bre", "hot (bre OR bre*)"),
            ("hot -bre", "hot -(bre OR bre*)"),
            ("hot br", "hot br"),
            ("bread ", "bread "),
            ("\"hot bre", "\"hot bre"),
            ("\"hot\" bre", "\"hot\" (bre OR bre*)"),
            ("ext:txt", "ext:txt"),
            ("Bread", "Bread"),
            ("bré~x bread*", "bré~x bread*"),
        ];
        for (query, expected) in cases {
            assert_eq!(with_prefix(query), expected);
        }
    }
}
