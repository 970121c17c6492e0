//! Natural text for W1 and W7: bodies from real files in reading order, so that the frequencies of
//! words and of neighbouring words are those of natural text.

use std::path::{Path, PathBuf};

use super::{Corpus, document_random};
use crate::bson;
use crate::error::{At, BenchError};

const FILE_BYTES_MAX: u64 = 4 << 20;

/// How the text of a file is cut into bodies. Words are separated by single spaces.
#[derive(Clone, Copy)]
pub enum Cut {
    /// 10 to 40 words, by this seed.
    Words(u64),
    /// As many words as fit into this number of characters. Longer words are left out.
    Characters(usize),
}

/// All bodies, concatenated.
pub struct Natural {
    text: String,
    ends: Vec<usize>,
}

impl Natural {
    /// Reads the text files below `folder` in the order of their paths until there are `documents`
    /// bodies.
    pub fn read(folder: &Path, documents: u64, cut: Cut) -> Result<Self, BenchError> {
        let mut found = Self::empty();
        let mut files = Vec::new();
        files_below(folder, &mut files)?;
        files.sort();
        for path in files {
            if found.ends.len() as u64 >= documents {
                break;
            }
            if let Some(text) = text_of(&path) {
                found.add(&text, documents, cut);
            }
        }
        if found.ends.is_empty() {
            return Err(BenchError::Usage(format!(
                "no text files below {}",
                folder.display()
            )));
        }
        Ok(found)
    }

    /// The number of documents.
    pub fn documents(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The body of a document.
    pub fn body(&self, number: u64) -> &str {
        let number = number as usize;
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1]
        };
        &self.text[start..self.ends[number]]
    }

    /// Replaces each underscore by a space.
    pub fn without_underscores(self) -> Self {
        Self {
            // Both have one byte, so the ends of the bodies stay.
            text: self.text.replace('_', " "),
            ..self
        }
    }

    /// Appends a document with this number and the body of another one.
    pub fn write_body(&self, number: u64, body: u64, out: &mut Vec<u8>) {
        bson::document(out, |writer| {
            writer.int32("_id", number as i32);
            writer.string("body", self.body(body));
        });
    }

    /// A corpus of these bodies.
    pub fn from_bodies(bodies: impl Iterator<Item = String>) -> Self {
        let mut found = Self::empty();
        for body in bodies {
            found.text.push_str(&body);
            found.ends.push(found.text.len());
        }
        found
    }

    fn empty() -> Self {
        Self {
            text: String::new(),
            ends: Vec::new(),
        }
    }

    fn add(&mut self, text: &str, documents: u64, cut: Cut) {
        match cut {
            Cut::Words(seed) => self.add_by_words(text, documents, seed),
            Cut::Characters(count) => self.add_by_characters(text, documents, count),
        }
    }

    fn add_by_words(&mut self, text: &str, documents: u64, seed: u64) {
        let mut words = text.split_whitespace().peekable();
        while words.peek().is_some() && self.documents() < documents {
            let count = document_random(seed, self.documents()).between(10, 40) as usize;
            for (place, word) in words.by_ref().take(count).enumerate() {
                if place > 0 {
                    self.text.push(' ');
                }
                self.text.push_str(word);
            }
            self.ends.push(self.text.len());
        }
    }

    fn add_by_characters(&mut self, text: &str, documents: u64, count: usize) {
        let mut body_characters = 0;
        for word in text.split_whitespace() {
            let characters = word.chars().count();
            if characters > count {
                continue;
            }
            if body_characters + 1 + characters > count && body_characters > 0 {
                self.ends.push(self.text.len());
                body_characters = 0;
            }
            if self.documents() == documents {
                return;
            }
            if body_characters > 0 {
                self.text.push(' ');
                body_characters += 1;
            }
            self.text.push_str(word);
            body_characters += characters;
        }
        if body_characters > 0 {
            self.ends.push(self.text.len());
        }
    }
}

impl Corpus for Natural {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        self.write_body(number, number, out);
    }
}

fn files_below(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), BenchError> {
    for entry in std::fs::read_dir(folder).at(folder.display())?.flatten() {
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if about.is_dir() {
            // An unreadable folder is skipped.
            let _ = files_below(&entry.path(), into);
        } else if about.is_file() && about.len() <= FILE_BYTES_MAX {
            into.push(entry.path());
        }
    }
    Ok(())
}

/// Returns the file's text, or `None` if it is binary or unreadable.
fn text_of(path: &Path) -> Option<String> {
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_contain_all_words_in_order() {
        let mut found = Natural::empty();
        let text: String = (0..100).map(|number| format!("word{number} \n")).collect();
        found.add(&text, 1_000, Cut::Words(1));
        let bodies = bodies(&found);
        assert!((3..=10).contains(&bodies.len()), "{} bodies", bodies.len());
        assert_eq!(
            bodies.join(" "),
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }

    #[test]
    fn the_number_of_documents_is_limited() {
        for cut in [Cut::Words(1), Cut::Characters(10)] {
            let mut found = Natural::empty();
            found.add(&"a b c d ".repeat(1_000), 7, cut);
            assert_eq!(found.documents(), 7);
        }
    }

    #[test]
    fn bodies_are_cut_between_words() {
        let mut found = Natural::empty();
        found.add(
            "four five\nthree a-very-long-word seven",
            10,
            Cut::Characters(9),
        );
        found.add("Ä öü_ß", 10, Cut::Characters(9));
        let found = found.without_underscores();
        assert_eq!(bodies(&found), ["four five", "three", "seven", "Ä öü ß"]);
    }

    fn bodies(natural: &Natural) -> Vec<&str> {
        let numbers = 0..natural.documents();
        numbers.map(|number| natural.body(number)).collect()
    }
}
