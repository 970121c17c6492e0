//! Computes the difference between the stored documents and the files: a pure function of both.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use windrow_extract::FilePart;

use crate::path_text::path_to_text;
use crate::stored_document::{extension, file_name};
use crate::walk::{FileEntry, FileStamp, WalkResult};
use crate::worker_pool::ReadTask;

/// The stored state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFile {
    /// The stamp of all its documents. `None` if they differ or if the file must be read again: it
    /// was not stored completely, or it failed for a reason that may no longer apply.
    pub stamp: Option<FileStamp>,
}

impl StoredFile {
    fn is_unchanged(&self, file: &FileEntry) -> bool {
        let stamp = self.stamp.as_ref();
        stamp.is_some_and(|stamp| stamp.is_unchanged(&file.stamp))
    }
}

/// The stored state of all files, by their paths as text.
pub type StoredFiles = BTreeMap<String, StoredFile>;

/// The result of [`find_changes`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes<'w> {
    /// Files that are not stored.
    pub add: Vec<&'w FileEntry>,
    /// Files that are stored with another stamp. Their stored documents must be removed first.
    pub replace: Vec<&'w FileEntry>,
    /// Files whose documents are stored under another path.
    pub moved: Vec<MovedFile<'w>>,
    /// Stored paths of deleted files, without those that were moved.
    pub remove: Vec<String>,
    /// The number of files that are stored with their current stamp.
    pub unchanged: u64,
    /// Folders that are missing or empty, although files below them are stored.
    pub unavailable: Vec<UnavailableFolder>,
}

impl Changes<'_> {
    /// Converts the moved files with these old paths to new files.
    pub(crate) fn read_instead_of_moving(&mut self, from: &HashSet<String>) {
        let is_read = |moved: &mut MovedFile<'_>| from.contains(&moved.from);
        for moved in self.moved.extract_if(.., is_read) {
            self.add.push(moved.file);
            self.remove.push(moved.from);
        }
    }
}

/// A file that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFile<'w> {
    /// The stored path.
    pub from: String,
    /// The file under its new path.
    pub file: &'w FileEntry,
}

/// A given folder that is missing or empty although files below it are stored, probably because its
/// disk is not connected. Its documents are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableFolder {
    /// The folder's path as text.
    pub path: String,
    /// The number of stored files below it.
    pub files: u64,
}

/// Compares the files of a walk with the stored state.
///
/// Only paths below the walked folders are removed. Paths below a folder that is empty or could not
/// be read are kept: a disk that is not connected must not remove all its documents.
///
/// ```
/// use windrow_ingest::{StoredFiles, WalkOptions, find_changes, walk};
///
/// let walked = walk(&WalkOptions::default().roots(&["src".into()]));
/// let changes = find_changes(&StoredFiles::new(), &walked);
/// assert_eq!(changes.add.len(), walked.files.len());
/// ```
pub fn find_changes<'w>(stored: &StoredFiles, walked: &'w WalkResult) -> Changes<'w> {
    let mut changes = Changes::default();
    let mut found = HashSet::with_capacity(walked.files.len());
    for file in &walked.files {
        let path = path_to_text(&file.path);
        match stored.get(&path) {
            None => changes.add.push(file),
            Some(known) if known.is_unchanged(file) => changes.unchanged += 1,
            Some(_) => changes.replace.push(file),
        }
        found.insert(path);
    }
    if !walked.is_partial {
        changes.unavailable = find_unavailable_folders(stored, walked);
    }
    let failed = walked
        .failures
        .iter()
        .map(|failure| path_to_text(&failure.path));
    let unavailable = changes.unavailable.iter();
    let unread: Vec<String> = failed
        .chain(unavailable.map(|folder| folder.path.clone()))
        .collect();
    let is_deleted = |path: &&String| !found.contains(*path) && !is_below(path, &unread);
    for root in &walked.roots {
        let below = stored_below(stored, &path_to_text(root));
        changes
            .remove
            .extend(below.map(|(path, _)| path).filter(is_deleted).cloned());
    }
    changes.remove.sort_unstable();
    changes.remove.dedup();
    find_moves(stored, &mut changes);
    changes
}

/// Returns the given folders that are missing or empty although files below them are stored.
fn find_unavailable_folders(stored: &StoredFiles, walked: &WalkResult) -> Vec<UnavailableFolder> {
    let has_files = |root: &Path| {
        let start = walked
            .files
            .partition_point(|file| file.path.as_path() < root);
        let first = walked.files.get(start);
        first.is_some_and(|file| file.path.starts_with(root))
    };
    let empty = walked.roots.iter().filter(|root| !has_files(root));
    let mut unavailable = Vec::new();
    for folder in empty.chain(&walked.missing_roots) {
        let path = path_to_text(folder);
        let is_missing = walked.missing_roots.contains(folder);
        // An empty folder may have a stored failure under its own path. It is not a file below the
        // folder.
        let stored =
            stored_below(stored, &path).filter(|(stored, _)| is_missing || **stored != path);
        let files = stored.count() as u64;
        if files > 0 {
            unavailable.push(UnavailableFolder { path, files });
        }
    }
    unavailable
}

/// Returns the stored files at and below a path.
pub(crate) fn stored_below<'s>(
    stored: &'s StoredFiles,
    path: &str,
) -> impl Iterator<Item = (&'s String, &'s StoredFile)> + use<'s> {
    let folder = format!("{}/", path.trim_end_matches('/'));
    // `0` is the character after `/`, so this range contains all paths below the folder.
    let end = format!("{}0", path.trim_end_matches('/'));
    let own = stored.get_key_value(path);
    own.into_iter().chain(stored.range(folder..end))
}

/// Pairs new files with deleted files that have the same stamp: these were moved.
fn find_moves(stored: &StoredFiles, changes: &mut Changes<'_>) {
    let mut removed: HashMap<u64, (&String, FileStamp)> = HashMap::new();
    for path in &changes.remove {
        if let Some(StoredFile { stamp: Some(stamp) }) = stored.get(path) {
            removed.insert(stamp.inode, (path, *stamp));
        }
    }
    let (mut moved, mut sources) = (Vec::new(), HashSet::new());
    // Files with different extensions may have different formats, so they are read again.
    let extension_of = |path: &str| extension(&file_name(path, None));
    changes.add.retain(|file| {
        let from = removed.get(&file.stamp.inode);
        let from = from.filter(|(_, stamp)| stamp.is_moved(&file.stamp));
        let from = from.filter(|(from, _)| extension_of(from) == extension_of(&file.path_text()));
        let Some((from, _)) = from.filter(|(from, _)| sources.insert((*from).clone())) else {
            return true;
        };
        let from = (*from).clone();
        moved.push(MovedFile { from, file });
        false
    });
    changes.moved = moved;
    changes.remove.retain(|path| !sources.contains(path));
}

/// A file to read, or a part of a large one.
#[derive(Debug, Clone)]
pub(crate) struct ReadJob<'w> {
    pub file: &'w FileEntry,
    /// The file has stored documents, which must be removed before.
    pub replaces: bool,
    pub file_part: FilePart,
    /// The state of the file if it is read in several parts.
    pub divided: Option<Arc<DividedFile>>,
}

/// The state of a large file that several workers read together.
#[derive(Debug)]
pub(crate) struct DividedFile {
    /// The number of parts that were not read yet.
    unread: AtomicU32,
    /// The number of parts that were not stored yet.
    unstored: AtomicU32,
    has_failed: AtomicBool,
}

impl DividedFile {
    fn new(parts: u32) -> Self {
        DividedFile {
            unread: AtomicU32::new(parts),
            unstored: AtomicU32::new(parts),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Records that a part was read. Returns `true` for the last one.
    pub fn end_read(&self) -> bool {
        self.unread.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Records that a part was stored. Returns `true` for the last one.
    pub fn end_store(&self) -> bool {
        self.unstored.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns `true` for the first failure, because each part can report the same failure.
    pub fn is_first_failure(&self) -> bool {
        !self.has_failed.swap(true, Ordering::AcqRel)
    }
}

impl ReadTask for ReadJob<'_> {
    fn file(&self) -> &FileEntry {
        self.file
    }

    fn file_part(&self) -> FilePart {
        self.file_part
    }
}

/// Larger files are split into parts if their format supports it.
const DIVIDED_BYTES_MIN: u64 = 8 << 20;

/// The maximum number of parts of a file. The worker of each part reads the whole file, but
/// extracts only its part.
const PARTS_MAX: usize = 16;

/// Returns the jobs: first the parts of large files, then the other files, the largest first.
/// Otherwise a single worker could be busy with a large file at the end.
pub(crate) fn plan_jobs<'w>(changes: &Changes<'w>, workers: usize) -> Vec<ReadJob<'w>> {
    let replaced = changes.replace.iter().map(|file| (*file, true));
    let added = changes.add.iter().map(|file| (*file, false));
    let (mut large, others): (Vec<_>, Vec<_>) = replaced
        .chain(added)
        .partition(|(file, _)| file.stamp.size >= DIVIDED_BYTES_MIN);
    large.sort_by_key(|(file, _)| Reverse(file.stamp.size));
    let parts = u32::try_from(workers.clamp(1, PARTS_MAX)).unwrap_or(1);
    let mut jobs = Vec::new();
    for (file, replaces) in large {
        let divided = (parts > 1).then(|| Arc::new(DividedFile::new(parts)));
        jobs.extend((0..parts).map(|index| ReadJob {
            file,
            replaces,
            file_part: FilePart {
                index,
                count: parts,
            },
            divided: divided.clone(),
        }));
    }
    jobs.extend(others.into_iter().map(|(file, replaces)| ReadJob {
        file,
        replaces,
        file_part: FilePart::WHOLE,
        divided: None,
    }));
    jobs
}

/// Returns `true` if `path` equals a folder or is below one. The conversion of a path to text
/// preserves its components.
fn is_below(path: &str, folders: &[String]) -> bool {
    folders
        .iter()
        .any(|folder| Path::new(path).starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::walk::WalkFailure;

    fn stamp(size: u64, modified_ns: i64) -> FileStamp {
        FileStamp {
            size,
            modified_ns,
            changed_ns: modified_ns,
            inode: 1,
        }
    }

    fn entry(path: &str, stamp: FileStamp) -> FileEntry {
        FileEntry {
            path: path.into(),
            stamp,
            languages: Default::default(),
        }
    }

    fn walked(roots: &[&str], files: &[(&str, FileStamp)], failures: &[&str]) -> WalkResult {
        WalkResult {
            roots: roots.iter().map(PathBuf::from).collect(),
            files: files
                .iter()
                .map(|(path, stamp)| entry(path, *stamp))
                .collect(),
            failures: failures
                .iter()
                .map(|path| WalkFailure {
                    path: path.into(),
                    reason: String::new(),
                })
                .collect(),
            missing_roots: Vec::new(),
            is_partial: false,
        }
    }

    fn stored(files: &[(&str, FileStamp)]) -> StoredFiles {
        let file = |stamp| StoredFile { stamp: Some(stamp) };
        let files = files.iter();
        files
            .map(|(path, stamp)| ((*path).to_owned(), file(*stamp)))
            .collect()
    }

    fn paths(files: &[&FileEntry]) -> Vec<String> {
        files.iter().map(|file| path_to_text(&file.path)).collect()
    }

    #[test]
    fn changed_files_are_detected() {
        let stored = stored(&[
            ("/d/same", stamp(1, 1)),
            ("/d/grown", stamp(1, 1)),
            ("/d/touched", stamp(1, 1)),
            ("/d/removed", stamp(1, 1)),
            ("/d/locked/file", stamp(1, 1)),
            ("/d2/elsewhere", stamp(1, 1)),
        ]);
        let replaced = FileStamp {
            changed_ns: 2,
            ..stamp(1, 1)
        };
        let files = [
            ("/d/grown", stamp(2, 1)),
            ("/d/new", stamp(1, 3)),
            ("/d/same", stamp(1, 1)),
            ("/d/touched", replaced),
        ];
        let walked = walked(&["/d"], &files, &["/d/locked"]);
        let changes = find_changes(&stored, &walked);
        assert_eq!(paths(&changes.add), ["/d/new"]);
        assert_eq!(paths(&changes.replace), ["/d/grown", "/d/touched"]);
        assert_eq!(changes.remove, ["/d/removed"]);
        assert_eq!(changes.unchanged, 1);
    }

    #[test]
    fn a_missing_or_empty_folder_keeps_its_documents() {
        let stored = stored(&[("/disk/file", stamp(1, 1)), ("/disk2", stamp(1, 1))]);
        let unavailable = |path: &str| Changes {
            unavailable: vec![UnavailableFolder {
                path: path.into(),
                files: 1,
            }],
            ..Changes::default()
        };
        let missing = |path: &str| WalkResult {
            missing_roots: vec![path.into()],
            ..WalkResult::default()
        };
        assert_eq!(
            find_changes(&stored, &missing("/disk")),
            unavailable("/disk")
        );
        assert_eq!(
            find_changes(&stored, &missing("/disk2")),
            unavailable("/disk2")
        );
        let emptied = walked(&["/disk"], &[], &[]);
        assert_eq!(find_changes(&stored, &emptied), unavailable("/disk"));
        // In a partial walk, the folder was deleted.
        let partial = WalkResult {
            is_partial: true,
            ..emptied
        };
        assert_eq!(find_changes(&stored, &partial).remove, ["/disk/file"]);
        // A folder that still has another file was not emptied by an unmount.
        let other = [("/disk/other", stamp(2, 2))];
        let walked = walked(&["/disk"], &other, &[]);
        assert_eq!(find_changes(&stored, &walked).remove, ["/disk/file"]);
    }

    #[test]
    fn moved_files_are_recognized() {
        let of_inode = |inode| FileStamp {
            inode,
            ..stamp(1, 1)
        };
        let mut stored = stored(&[
            ("/d/a", of_inode(1)),
            ("/d/changed", of_inode(2)),
            ("/d/failed", of_inode(3)),
            ("/d/linked", of_inode(4)),
            ("/d/renamed.txt", of_inode(5)),
        ]);
        if let Some(file) = stored.get_mut("/d/failed") {
            file.stamp = None;
        }
        let renamed = |inode| FileStamp {
            changed_ns: 9,
            ..of_inode(inode)
        };
        let files = [
            ("/d/b", renamed(1)),
            (
                "/d/changed2",
                FileStamp {
                    size: 2,
                    ..renamed(2)
                },
            ),
            ("/d/failed2", renamed(3)),
            ("/d/linked2", renamed(4)),
            ("/d/linked3", renamed(4)),
            ("/d/renamed.md", renamed(5)),
        ];
        let walked = walked(&["/d"], &files, &[]);
        let changes = find_changes(&stored, &walked);
        let moved: Vec<(&str, String)> = changes
            .moved
            .iter()
            .map(|moved| (moved.from.as_str(), moved.file.path_text()))
            .collect();
        let expected = [("/d/a", "/d/b"), ("/d/linked", "/d/linked2")];
        assert_eq!(moved, expected.map(|(from, to)| (from, to.to_owned())));
        let added = ["/d/changed2", "/d/failed2", "/d/linked3", "/d/renamed.md"];
        assert_eq!(paths(&changes.add), added);
        let removed = ["/d/changed", "/d/failed", "/d/renamed.txt"];
        assert_eq!(changes.remove, removed);
    }
}
