//! Paths of updates: their syntax and the meaning of their components.

use std::cmp::Ordering;

use windrow_document::ValueRef;

use crate::Error;

/// Maximum number of components. More fail with 15.
const PARTS_MAX: usize = 255;

/// A component of an update's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    text: Box<str>,
    index: Option<usize>,
}

impl Name {
    pub fn new(text: &str) -> Name {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let index = digits.then(|| text.parse::<u32>().ok()).flatten();
        Name {
            text: text.into(),
            index: index.map(|index| index as usize),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the array index that the name stands for. Leading zeros are allowed here.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Returns `true` for `$`: the array index that the filter matched.
    pub fn is_positional(&self) -> bool {
        &*self.text == "$"
    }

    /// Returns the identifier of `$[identifier]`. It is "" for `$[]`.
    pub fn identifier(&self) -> Option<&str> {
        self.text.strip_prefix("$[")?.strip_suffix(']')
    }

    pub fn is_dynamic(&self) -> bool {
        self.is_positional() || self.identifier().is_some()
    }

    /// Returns the order in which fields are updated and new ones are added: numbers by value, then
    /// other names by bytes. Source: MongoDB's manual, "Update Operators Behavior".
    pub fn order(&self, other: &[u8]) -> Ordering {
        order(self.text.as_bytes(), other)
    }
}

/// Returns the order in which new fields are added: numbers by value, then other names by bytes.
pub fn order(one: &[u8], other: &[u8]) -> Ordering {
    match (digits(one), digits(other)) {
        (Some(a), Some(b)) => (a.len(), a, one).cmp(&(b.len(), b, other)),
        (None, None) => one.cmp(other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    }
}

/// Returns the digits of a whole number without leading zeros.
fn digits(name: &[u8]) -> Option<&[u8]> {
    let is_number = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    let zeros = name.iter().take_while(|digit| **digit == b'0').count();
    is_number.then(|| name.get(zeros..)).flatten()
}

/// Splits a path.
///
/// # Errors
///
/// - 56: the path or a component is empty.
/// - 15: there are too many components.
/// - 2: the first component is `$` or `$[…]`, or there are two `$`.
pub(super) fn parse(path: &str) -> Result<Vec<Name>, Error> {
    let names: Vec<Name> = path.split('.').map(Name::new).collect();
    if names.len() > PARTS_MAX {
        return Err(Error::new(
            15,
            format!(
                "Field path is over the maximum of {PARTS_MAX} parts: {}",
                names.len()
            ),
        ));
    }
    if path.is_empty() {
        return Err(Error::new(56, "An empty update path is not valid."));
    }
    if names.iter().any(|name| name.text.is_empty()) {
        return Err(Error::new(
            56,
            format!("The update path '{path}' contains an empty field name, which is not allowed."),
        ));
    }
    if names.first().is_some_and(Name::is_dynamic) {
        return Err(Error::bad_value(format!(
            "Cannot have a positional element in the first position in path '{path}'"
        )));
    }
    if names.iter().filter(|name| name.is_positional()).count() > 1 {
        return Err(Error::bad_value(format!(
            "Too many positional (i.e. '$') elements found in path '{path}'"
        )));
    }
    Ok(names)
}

/// Returns the path as written.
pub(super) fn join(names: &[Name]) -> String {
    let parts: Vec<&str> = names.iter().map(Name::text).collect();
    parts.join(".")
}

/// Error 28, PathNotViable.
pub(super) fn not_viable(name: &str, element: ValueRef<'_>) -> Error {
    Error::new(
        28,
        format!("Cannot create field '{name}' in element {{{element}}}"),
    )
}

/// Error 40, ConflictingUpdateOperators.
pub(super) fn conflict(path: &str, at: &str) -> Error {
    Error::new(
        40,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_paths_fail_with_their_codes() {
        let cases = [
            ("", 56),
            ("a.", 56),
            ("a..b", 56),
            (".a", 56),
            ("$", 2),
            ("$[]", 2),
            ("$[i].a", 2),
            ("a.$.b.$", 2),
        ];
        for (path, code) in cases {
            assert_eq!(parse(path).unwrap_err().code, code, "{path}");
        }
        let deep = vec!["a"; 256].join(".");
        assert_eq!(parse(&deep).unwrap_err().code, 15);
    }

    #[test]
    fn numbers_sort_by_value_before_names() {
        let mut names = ["b", "10", "a", "9", "00", "0", "1a", " "];
        names.sort_by(|one, other| order(one.as_bytes(), other.as_bytes()));
        assert_eq!(names, ["0", "00", "9", "10", " ", "1a", "a", "b"]);
    }

    #[test]
    fn identifiers_are_in_brackets() {
        let identifier = |text| Name::new(text).identifier().map(str::to_owned);
        assert_eq!(identifier("$[]").as_deref(), Some(""));
        assert_eq!(identifier("$[i]").as_deref(), Some("i"));
        assert_eq!(identifier("$[i"), None);
        assert_eq!(identifier("$"), None);
    }
}
