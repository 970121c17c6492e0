//! Natural text for W1: bodies of 10 to 40 words from real files in reading order, so that the word
//! frequencies are those of natural text.

use std::path::{Path, PathBuf};

use super::{Corpus, document_random};
use crate::bson;
use crate::error::{At, BenchError};

const FILE_BYTES_MAX: u64 = 4 << 20;

/// All bodies, concatenated.
pub struct Natural {
    text: String,
    ends: Vec<usize>,
}

impl Natural {
    /// Reads the text files below `folder` in the order of their paths until there are `documents`
    /// bodies.
    pub fn read(folder: &Path, documents: u64, seed: u64) -> Result<Self, BenchError> {
        let mut found = Self {
            text: String::new(),
            ends: Vec::new(),
        };
        let mut files = Vec::new();
        files_below(folder, &mut files)?;
        files.sort();
        for path in files {
            if found.ends.len() as u64 >= documents {
                break;
            }
            if let Some(text) = text_of(&path) {
                found.add(&text, documents, seed);
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

    fn add(&mut self, text: &str, documents: u64, seed: u64) {
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
}

impl Corpus for Natural {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        bson::document(out, |writer| {
            writer.int32("_id", number as i32);
            writer.string("body", self.body(number));
        });
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
        let mut found = Natural {
            text: String::new(),
            ends: Vec::new(),
        };
        let text: String = (0..100).map(|number| format!("word{number} \n")).collect();
        found.add(&text, 1_000, 1);
        let bodies: Vec<&str> = (0..found.documents())
            .map(|number| found.body(number))
            .collect();
        assert!((3..=10).contains(&bodies.len()), "{} bodies", bodies.len());
        assert_eq!(
            bodies.join(" "),
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }

    #[test]
    fn the_number_of_documents_is_limited() {
        let mut found = Natural {
            text: String::new(),
            ends: Vec::new(),
        };
        found.add(&"a b c d ".repeat(1_000), 7, 1);
        assert_eq!(found.documents(), 7);
    }
}
