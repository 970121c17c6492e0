//! Regular expressions of definitions.

/// A regular expression of a definition. It takes time linear in the text: look-around and
/// back-references are not supported.
#[derive(Clone, Debug)]
pub struct Pattern(pub(super) regex::Regex);

impl Pattern {
    /// Compiles a pattern. Fails with a sentence.
    pub fn new(pattern: &str) -> Result<Pattern, String> {
        match regex::Regex::new(pattern) {
            Ok(regex) => Ok(Pattern(regex)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the number of groups, with the whole match.
    pub fn groups(&self) -> usize {
        self.0.captures_len()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}
