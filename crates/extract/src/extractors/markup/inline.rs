//! Marks within lines.

/// Removes marks that enclose words: `*bold*` becomes `bold`. A mark begins before a word and ends
/// after one, so those within words and between spaces stay.
pub(super) fn remove_emphasis(line: &str, marks: &[char]) -> String {
    if !line.contains(marks) {
        return line.to_owned();
    }
    let characters: Vec<char> = line.chars().collect();
    let at = |index: Option<usize>| index.and_then(|index| characters.get(index)).copied();
    let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let mut shown = String::with_capacity(line.len());
    for (index, character) in characters.iter().enumerate() {
        if marks.contains(character) {
            let is_mark = |it: Option<char>| it.is_some_and(|it| marks.contains(&it));
            let run_start = (0..index)
                .rev()
                .take_while(|at_| is_mark(at(Some(*at_))))
                .last();
            let before = at(run_start.unwrap_or(index).checked_sub(1));
            let run = characters
                .iter()
                .skip(index)
                .take_while(|it| marks.contains(it));
            let after = at(Some(index + run.count()));
            let opens = !is_word(before) && after.is_some_and(|it| !it.is_whitespace());
            let closes = !is_word(after) && before.is_some_and(|it| !it.is_whitespace());
            if opens || closes {
                continue;
            }
        }
        shown.push(*character);
    }
    shown
}

/// Replaces each link, which stands between `open` and `close`, by what `show` returns for it.
pub(super) fn replace_links(
    line: &str,
    open: &str,
    close: &str,
    show: impl Fn(&str) -> String,
) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some((before, link)) = rest.split_once(open) {
        let Some((link, after)) = link.split_once(close) else {
            break;
        };
        shown.push_str(before);
        shown.push_str(&show(link));
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_around_words_are_removed() {
        let check = |line: &str, shown: &str| assert_eq!(remove_emphasis(line, &['*', '_']), shown);
        check("*bold* and _slanted_.", "bold and slanted.");
        check("**two** *_both_*", "two both");
        check("a * b snake_case 2*3", "a * b snake_case 2*3");
        check("(*x*) é*", "(x) é");
        check("*", "*");
    }

    #[test]
    fn links_are_replaced() {
        let check = |line: &str, shown: &str| {
            let found = replace_links(line, "[[", "]]", |link| link.replace('|', " "));
            assert_eq!(found, shown);
        };
        check("a [[b|c]] d [[e]]", "a b c d e");
        check("a [[b", "a [[b");
    }
}
