//! Groups of synonyms.
//!
//! ```text
//! # one group per line; `#` begins a comment
//! car, automobile, motor vehicle
//! ```

use std::collections::HashMap;
use std::fmt;

/// Groups of synonymous words and phrases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synonyms {
    groups: Vec<Vec<String>>,
    /// The groups of each word, in lower case.
    groups_of: HashMap<String, Vec<usize>>,
}

/// A line that is not a group of synonyms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SynonymError {
    /// The line number, counted from 1.
    pub line: usize,
    reason: &'static str,
}

/// The maximum number of words in a group. A word of a query is expanded to all words of its group.
const WORDS_MAX: usize = 100;

impl Synonyms {
    /// Parses groups: one per line, with commas between the words.
    ///
    /// ```
    /// use windrow_file_query::Synonyms;
    ///
    /// let synonyms = Synonyms::parse("car, automobile # vehicles")?;
    /// assert_eq!(synonyms.find("Car"), ["automobile"]);
    /// # Ok::<(), windrow_file_query::SynonymError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if a line has only one word or too many.
    pub fn parse(text: &str) -> Result<Synonyms, SynonymError> {
        let mut synonyms = Synonyms::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words = line.split(',').map(clean).filter(|word| !word.is_empty());
            let words: Vec<String> = words.collect();
            let error = |reason| SynonymError {
                line: number + 1,
                reason,
            };
            match words.len() {
                0 if line.trim().is_empty() => {}
                0 | 1 => return Err(error("a group needs two words with a comma between them")),
                2..=WORDS_MAX => synonyms.add(words),
                _ => return Err(error("a group may have 100 words")),
            }
        }
        Ok(synonyms)
    }

    fn add(&mut self, group: Vec<String>) {
        for word in &group {
            let groups = self.groups_of.entry(word.clone()).or_default();
            groups.push(self.groups.len());
        }
        self.groups.push(group);
    }

    /// Returns the synonyms of a word: the other words of its groups.
    pub fn find(&self, word: &str) -> Vec<String> {
        let word = clean(word);
        let groups = self.groups_of.get(&word).into_iter().flatten();
        let words = groups.filter_map(|group| self.groups.get(*group)).flatten();
        let mut found: Vec<String> = Vec::new();
        for synonym in words {
            if *synonym != word && !found.contains(synonym) {
                found.push(synonym.clone());
            }
        }
        found
    }
}

/// Returns a word in lower case with single spaces between its parts.
fn clean(word: &str) -> String {
    let parts: Vec<&str> = word.split_whitespace().collect();
    parts.join(" ").to_lowercase()
}

impl fmt::Display for SynonymError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for SynonymError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_joined() {
        let text = "# comment\n\nCar,  motor   vehicle ,automobile\ncar, wagon # and so on\n";
        let synonyms = Synonyms::parse(text).unwrap();
        let of_car = ["motor vehicle", "automobile", "wagon"];
        assert_eq!(synonyms.find("CAR"), of_car);
        assert_eq!(synonyms.find("motor vehicle"), ["car", "automobile"]);
        assert!(synonyms.find("bus").is_empty());
    }

    #[test]
    fn lines_without_groups_are_refused() {
        let many = vec!["a"; WORDS_MAX + 1].join(",");
        let cases = [("a, b\nalone", 2), (",", 1), (many.as_str(), 1)];
        for (text, line) in cases {
            assert_eq!(Synonyms::parse(text).unwrap_err().line, line, "{text:?}");
        }
    }
}
