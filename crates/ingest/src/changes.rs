//! The difference between the stored documents and the files: a pure function of both.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::path_text::path_to_text;
use crate::walk::{FileEntry, FileStamp, WalkResult};

/// The result of [`find_changes`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes<'w> {
    /// Files that are not stored.
    pub add: Vec<&'w FileEntry>,
    /// Files that are stored with another stamp. Their stored documents must be removed first.
    pub replace: Vec<&'w FileEntry>,
    /// Stored paths of files that do not exist any more.
    pub remove: Vec<String>,
    /// The number of files that are stored with their current stamp.
    pub unchanged: u64,
}

/// Compares the files that were found with `stored`, the path (as text) and stamp of every file
/// that has documents or a failure. Files without text are not stored, so they are returned as new
/// each time; a worker recognizes them by their first bytes.
///
/// Only paths below the walked folders are removed. Paths below a folder that could not be read are
/// preserved, because an unmounted disk must not empty the database.
///
/// ```
/// use std::collections::HashMap;
/// use windrow_ingest::{WalkOptions, find_changes, walk};
///
/// let walked = walk(&["src".into()], &WalkOptions::default());
/// let changes = find_changes(&HashMap::new(), &walked);
/// assert_eq!(changes.add.len(), walked.files.len());
/// ```
pub fn find_changes<'w>(
    stored: &HashMap<String, FileStamp>,
    walked: &'w WalkResult,
) -> Changes<'w> {
    let mut changes = Changes::default();
    let mut found = HashSet::with_capacity(walked.files.len());
    for file in &walked.files {
        let path = path_to_text(&file.path);
        match stored.get(&path) {
            None => changes.add.push(file),
            Some(stamp) if *stamp == file.stamp => changes.unchanged += 1,
            Some(_) => changes.replace.push(file),
        }
        found.insert(path);
    }
    let roots: Vec<String> = walked.roots.iter().map(|root| path_to_text(root)).collect();
    let failed: Vec<String> = walked
        .failures
        .iter()
        .map(|failure| path_to_text(&failure.path))
        .collect();
    let is_deleted = |path: &&String| {
        !found.contains(*path) && is_below(path, &roots) && !is_below(path, &failed)
    };
    changes.remove = stored.keys().filter(is_deleted).cloned().collect();
    changes.remove.sort_unstable();
    changes
}

/// A file to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadJob<'w> {
    pub file: &'w FileEntry,
    /// The file has stored documents, which must be removed first.
    pub replaces: bool,
}

impl AsRef<FileEntry> for ReadJob<'_> {
    fn as_ref(&self) -> &FileEntry {
        self.file
    }
}

pub(crate) fn plan_jobs<'w>(changes: &Changes<'w>) -> Vec<ReadJob<'w>> {
    let job = |replaces| move |file: &&'w FileEntry| ReadJob { file, replaces };
    let replaced = changes.replace.iter().map(job(true));
    replaced.chain(changes.add.iter().map(job(false))).collect()
}

/// Returns `true` if `path` is one of `folders` or below one. Converting a path to text preserves
/// its components.
fn is_below(path: &str, folders: &[String]) -> bool {
    folders
        .iter()
        .any(|folder| Path::new(path).starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::WalkFailure;
    use std::path::PathBuf;

    fn stamp(size: u64, modified_ns: i64) -> FileStamp {
        FileStamp { size, modified_ns }
    }

    fn walked(roots: &[&str], files: &[(&str, FileStamp)], failures: &[&str]) -> WalkResult {
        WalkResult {
            roots: roots.iter().map(PathBuf::from).collect(),
            files: files
                .iter()
                .map(|(path, stamp)| FileEntry {
                    path: path.into(),
                    stamp: *stamp,
                })
                .collect(),
            failures: failures
                .iter()
                .map(|path| WalkFailure {
                    path: path.into(),
                    reason: String::new(),
                })
                .collect(),
        }
    }

    #[test]
    fn changed_files_are_detected() {
        let stored: HashMap<String, FileStamp> = [
            ("/d/same", stamp(1, 1)),
            ("/d/grown", stamp(1, 1)),
            ("/d/touched", stamp(1, 1)),
            ("/d/gone", stamp(1, 1)),
            ("/d/locked/file", stamp(1, 1)),
            ("/d2/elsewhere", stamp(1, 1)),
        ]
        .map(|(path, stamp)| (path.to_string(), stamp))
        .into();
        let files = [
            ("/d/grown", stamp(2, 1)),
            ("/d/new", stamp(1, 1)),
            ("/d/same", stamp(1, 1)),
            ("/d/touched", stamp(1, 2)),
        ];
        let walked = walked(&["/d"], &files, &["/d/locked"]);
        let changes = find_changes(&stored, &walked);
        let paths = |files: &[&FileEntry]| -> Vec<String> {
            files.iter().map(|file| path_to_text(&file.path)).collect()
        };
        assert_eq!(paths(&changes.add), ["/d/new"]);
        assert_eq!(paths(&changes.replace), ["/d/grown", "/d/touched"]);
        assert_eq!(changes.remove, ["/d/gone"]);
        assert_eq!(changes.unchanged, 1);
    }

    #[test]
    fn a_missing_folder_removes_nothing() {
        let stored = HashMap::from([("/disk/file".to_string(), stamp(1, 1))]);
        assert_eq!(
            find_changes(&stored, &walked(&[], &[], &["/disk"])),
            Changes::default()
        );
        let emptied = walked(&["/disk"], &[], &[]);
        assert_eq!(find_changes(&stored, &emptied).remove, ["/disk/file"]);
        assert_eq!(
            find_changes(&stored, &walked(&["/"], &[], &[])).remove,
            ["/disk/file"]
        );
    }
}
