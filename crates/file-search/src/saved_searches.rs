//! Saved searches and the search history, in text files of the data folder.
//!
//! ```text
//! saved-searches.txt    name TAB query
//! search-history.txt    milliseconds since 1970-01-01 UTC TAB query
//! ```

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use windrow_file_query::TimeContext;

use crate::error::SearchError;

const SAVED_FILE: &str = "saved-searches.txt";
const HISTORY_FILE: &str = "search-history.txt";
/// If this variable is `off`, `0` or `no`, the history is not written.
const HISTORY_VARIABLE: &str = "WINDROW_HISTORY";
/// If the history file is larger, its older half is dropped.
const HISTORY_BYTES_MAX: usize = 256 << 10;
/// The history is private, so only its owner may read it.
const FILE_MODE: u32 = 0o600;

/// The saved searches of a data folder.
#[derive(Debug, Default)]
pub struct SavedSearches {
    path: PathBuf,
    queries: BTreeMap<String, String>,
}

impl SavedSearches {
    /// Reads the saved searches. Without a file, there are none.
    pub fn open(data_folder: &Path) -> Result<SavedSearches, SearchError> {
        let path = data_folder.join(SAVED_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(file_failure(&path, &error)),
        };
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let queries = lines.map(|(name, query)| (name.to_owned(), query.to_owned()));
        Ok(SavedSearches {
            queries: queries.collect(),
            path,
        })
    }

    /// Returns the saved query with a name.
    pub fn query(&self, name: &str) -> Option<String> {
        self.queries.get(name).cloned()
    }

    /// Returns names and queries in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.queries.iter();
        all.map(|(name, query)| (name.as_str(), query.as_str()))
    }

    /// Saves a query. Replaces the query of the same name.
    pub fn save(&mut self, name: &str, query: &str) -> Result<(), SearchError> {
        self.queries.insert(name.to_owned(), to_line(query));
        let lines = self
            .iter()
            .map(|(name, query)| format!("{name}\t{query}\n"));
        let text: String = lines.collect();
        replace_file(&self.path, &text).map_err(|error| file_failure(&self.path, &error))
    }
}

fn file_failure(path: &Path, error: &io::Error) -> SearchError {
    SearchError::File(format!("{}: {error}", path.display()))
}

/// Replaces a file atomically, so that readers see either the old or the new content.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE);
    options.open(&new)?.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}

fn to_line(query: &str) -> String {
    query.replace(char::is_control, " ")
}

/// Appends a query to the history, unless the history is disabled. An error is ignored, because it
/// must not stop the search.
pub fn append_history(data_folder: &Path, query: &str) {
    let choice = std::env::var(HISTORY_VARIABLE).unwrap_or_default();
    if matches!(choice.to_lowercase().as_str(), "off" | "0" | "no" | "false") {
        return;
    }
    let path = data_folder.join(HISTORY_FILE);
    // See above.
    let _ = append_line(&path, query);
}

fn append_line(path: &Path, query: &str) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.unwrap_or_default().as_millis();
    let line = format!("{now_ms}\t{}\n", to_line(query));
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .create(true)
        .mode(FILE_MODE)
        .open(path)?;
    file.write_all(line.as_bytes())?;
    if file.metadata()?.len() > HISTORY_BYTES_MAX as u64 {
        let text = fs::read_to_string(path)?;
        let half = text.ceil_char_boundary(text.len().saturating_sub(HISTORY_BYTES_MAX / 2));
        let newest = text.get(half..).and_then(|half| half.split_once('\n'));
        replace_file(path, newest.map_or("", |(_, lines)| lines))?;
    }
    Ok(())
}

/// Returns the latest searches with their times, the newest first.
pub fn read_history(
    data_folder: &Path,
    limit: usize,
) -> Result<Vec<(String, String)>, SearchError> {
    let path = data_folder.join(HISTORY_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(file_failure(&path, &error)),
    };
    let times = TimeContext::system();
    let searches = text.lines().rev().filter_map(|line| {
        let (time_ms, query) = line.split_once('\t')?;
        Some((times.format_ms(time_ms.parse().ok()?), query.to_owned()))
    });
    Ok(searches.take(limit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_searches_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut saved = SavedSearches::open(folder.path()).unwrap();
        assert_eq!(saved.iter().count(), 0);
        saved.save("mine", "from:ada").unwrap();
        saved.save("all", "a\tb\nc").unwrap();
        saved.save("mine", "to:ada").unwrap();
        let read = SavedSearches::open(folder.path()).unwrap();
        let found: Vec<_> = read.iter().collect();
        assert_eq!(found, [("all", "a b c"), ("mine", "to:ada")]);
        assert_eq!(read.query("none"), None);
    }

    #[test]
    fn the_history_has_the_last_searches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(HISTORY_FILE);
        let long = "x".repeat(1_000);
        for number in 0..300 {
            append_line(&path, &format!("{number}\n{long}")).unwrap();
        }
        let found = read_history(folder.path(), 2).unwrap();
        let queries: Vec<_> = found
            .iter()
            .map(|(_, query)| query.split(' ').next())
            .collect();
        assert_eq!(queries, [Some("299"), Some("298")]);
        for number in 0..2_000 {
            append_line(&path, &format!("again{number}")).unwrap();
        }
        assert!(fs::metadata(&path).unwrap().len() <= HISTORY_BYTES_MAX as u64);
        assert_eq!(read_history(folder.path(), 1).unwrap()[0].1, "again1999");
    }
}
