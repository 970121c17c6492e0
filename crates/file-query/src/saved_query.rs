//! Saved queries: `@name` in a query refers to another query.

use std::fmt;

/// The reason why saved queries cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedQueryError {
    /// The query refers to itself.
    Cycle(String),
    /// The expanded query is too long, or saved queries are nested too deeply.
    TooLong,
}

/// The maximum size of an expanded query in bytes.
const BYTES_MAX: usize = 1 << 20;
/// The maximum nesting depth of saved queries.
const DEPTH_MAX: usize = 20;

/// Replaces `@name` at the beginning of a word, outside of quotation marks, by the saved query in
/// parentheses. A name consists of letters, digits, `-`, `_` and `.`. `find` returns the query of a
/// name. Unknown names remain as words.
///
/// ```
/// use windrow_file_query::expand_saved_queries;
///
/// let find = |name: &str| (name == "mine").then(|| "from:ada OR to:ada".to_owned());
/// assert_eq!(expand_saved_queries("-@mine @other", &find)?, "-(from:ada OR to:ada) @other");
/// # Ok::<(), windrow_file_query::SavedQueryError>(())
/// ```
///
/// # Errors
/// Fails if a query refers to itself, if the result exceeds 1 MiB, or if the nesting exceeds 20.
pub fn expand_saved_queries(
    query: &str,
    find: &dyn Fn(&str) -> Option<String>,
) -> Result<String, SavedQueryError> {
    let mut expanded = String::new();
    expand(query, find, &mut Vec::new(), &mut expanded)?;
    Ok(expanded)
}

/// Returns `true` if a saved query can have this name.
pub fn is_saved_query_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_character)
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '.')
}

/// `open` contains the names of the queries that are being expanded.
fn expand(
    query: &str,
    find: &dyn Fn(&str) -> Option<String>,
    open: &mut Vec<String>,
    expanded: &mut String,
) -> Result<(), SavedQueryError> {
    let (mut rest, mut is_quoted, mut is_at_start) = (query, false, true);
    while let Some(next) = rest.chars().next() {
        if expanded.len() > BYTES_MAX || open.len() > DEPTH_MAX {
            return Err(SavedQueryError::TooLong);
        }
        let behind = rest.get(next.len_utf8()..).unwrap_or_default();
        if next == '@' && is_at_start && !is_quoted {
            let end = behind.find(|it: char| it.is_whitespace() || matches!(it, '(' | ')' | '"'));
            let (name, after) = behind.split_at(end.unwrap_or(behind.len()));
            if let Some(saved) = Some(name)
                .filter(|it| is_saved_query_name(it))
                .and_then(find)
            {
                if open.iter().any(|it| it == name) {
                    return Err(SavedQueryError::Cycle(name.to_owned()));
                }
                open.push(name.to_owned());
                expanded.push('(');
                expand(&saved, find, open, expanded)?;
                expanded.push(')');
                open.pop();
                rest = after;
                continue;
            }
        }
        is_quoted ^= next == '"';
        is_at_start = next.is_whitespace() || matches!(next, '(' | '-');
        expanded.push(next);
        rest = behind;
    }
    Ok(())
}

impl fmt::Display for SavedQueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SavedQueryError::Cycle(name) => write!(f, "the saved search {name:?} refers to itself"),
            SavedQueryError::TooLong => {
                f.write_str("the saved searches of the query are too long or nested too deeply")
            }
        }
    }
}

impl std::error::Error for SavedQueryError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(query: &str) -> Result<String, SavedQueryError> {
        expand_saved_queries(query, &|name| {
            let known = [
                ("a", "x OR y"),
                ("b", "@a z"),
                ("loop", "-@again"),
                ("again", "@loop"),
            ];
            let found = known.iter().find(|(known, _)| *known == name);
            found.map(|(_, query)| (*query).to_owned())
        })
    }

    #[test]
    fn names_are_replaced() {
        let cases = [
            ("@a", "(x OR y)"),
            ("w -@b (@a)", "w -((x OR y) z) ((x OR y))"),
            ("\"@a\" ada@a @ @c @a@b", "\"@a\" ada@a @ @c @a@b"),
            ("title:@a ä", "title:@a ä"),
        ];
        for (query, expected) in cases {
            assert_eq!(expanded(query).as_deref(), Ok(expected), "{query}");
        }
    }

    #[test]
    fn a_query_cannot_need_itself() {
        assert_eq!(
            expanded("@loop"),
            Err(SavedQueryError::Cycle("loop".to_owned()))
        );
        let double = |name: &str| {
            let level: u32 = name.parse().ok()?;
            Some(format!("@{0} @{0}", level + 1))
        };
        assert_eq!(
            expand_saved_queries("@0", &double),
            Err(SavedQueryError::TooLong)
        );
    }
}
