//! Finds the files below folders.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::path_text::path_to_text;

/// Which files below the given folders are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkOptions {
    /// Also find files and folders whose names begin with a dot. Folders of version control systems
    /// are always skipped.
    pub hidden: bool,
    /// Follow symbolic links below the given folders. A circular link is a failure, and a file with
    /// two paths is found twice. The given folders themselves can always be links.
    pub follow_links: bool,
    /// Folders to skip, by their canonical paths.
    pub exclude: Vec<PathBuf>,
}

/// A file that may contain documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The absolute path, based on the canonical path of the given folder.
    pub path: PathBuf,
    /// The file's stamp.
    pub stamp: FileStamp,
}

impl FileEntry {
    /// The path as stored in documents, see [`path_to_text`].
    pub fn path_text(&self) -> String {
        path_to_text(&self.path)
    }
}

/// The properties of a file that change with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last modification, in nanoseconds since 1970-01-01 UTC.
    pub modified_ns: i64,
}

impl FileStamp {
    /// Creates a stamp from the fields of a stored document. Returns `None` if one is missing or
    /// invalid.
    pub fn from_fields(size: Option<i64>, modified_ns: Option<i64>) -> Option<FileStamp> {
        Some(FileStamp {
            size: u64::try_from(size?).ok()?,
            modified_ns: modified_ns?,
        })
    }
}

/// A file or folder that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkFailure {
    /// Its path.
    pub path: PathBuf,
    /// The error as a sentence.
    pub reason: String,
}

/// The result of [`walk()`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkResult {
    /// The canonical paths of the given folders, without those below another one.
    pub roots: Vec<PathBuf>,
    /// The files in the order of their paths, component by component.
    pub files: Vec<FileEntry>,
    /// What could not be read.
    pub failures: Vec<WalkFailure>,
}

/// Finds the files below `folders`. Each of them can also be a file.
///
/// Sockets, devices and pipes are not returned. No file is opened.
///
/// ```
/// use windrow_ingest::{WalkOptions, walk};
///
/// let walked = walk(&["src".into()], &WalkOptions::default());
/// assert!(walked.files.iter().any(|file| file.path.ends_with("src/walk.rs")));
/// assert!(walked.failures.is_empty());
/// ```
pub fn walk(folders: &[PathBuf], options: &WalkOptions) -> WalkResult {
    let mut walked = WalkResult::default();
    for folder in folders {
        match folder.canonicalize() {
            Ok(root) => walked.roots.push(root),
            Err(error) => {
                let path = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
                walked.failures.push(WalkFailure {
                    path,
                    reason: error.to_string(),
                });
            }
        }
    }
    walked.roots.sort();
    // In sorted order, a folder precedes everything below it.
    walked
        .roots
        .dedup_by(|below, folder| below.starts_with(&*folder));
    for root in walked.roots.clone() {
        walk_root(&root, options, &mut walked);
    }
    walked
}

fn walk_root(root: &Path, options: &WalkOptions, walked: &mut WalkResult) {
    let entries = WalkDir::new(root)
        .follow_links(options.follow_links)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || is_included(entry, options));
    for entry in entries {
        match entry.and_then(|entry| file_entry(&entry)) {
            Ok(found) => walked.files.extend(found),
            Err(error) => walked.failures.push(walk_failure(root, &error)),
        }
    }
}

fn is_included(entry: &DirEntry, options: &WalkOptions) -> bool {
    const VERSION_CONTROL: [&str; 7] = [".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs"];
    let name = entry.file_name();
    let hidden = name.as_encoded_bytes().starts_with(b".");
    let excluded = || {
        VERSION_CONTROL.iter().any(|folder| name == *folder)
            || options.exclude.iter().any(|folder| entry.path() == folder)
    };
    (options.hidden || !hidden) && !(entry.file_type().is_dir() && excluded())
}

fn file_entry(entry: &DirEntry) -> walkdir::Result<Option<FileEntry>> {
    if !entry.file_type().is_file() {
        return Ok(None);
    }
    let metadata = entry.metadata()?;
    let seconds_ns = metadata.mtime().saturating_mul(1_000_000_000);
    let stamp = FileStamp {
        size: metadata.len(),
        modified_ns: seconds_ns.saturating_add(metadata.mtime_nsec()),
    };
    Ok(Some(FileEntry {
        path: entry.path().to_path_buf(),
        stamp,
    }))
}

fn walk_failure(root: &Path, error: &walkdir::Error) -> WalkFailure {
    let path = error.path().unwrap_or(root).to_path_buf();
    let reason = match error.loop_ancestor() {
        Some(ancestor) => format!("a link leads back to {}", ancestor.display()),
        None => error
            .io_error()
            .map_or_else(|| error.to_string(), io::Error::to_string),
    };
    WalkFailure { path, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    /// A temporary folder, removed on drop.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("windrow-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Folder(path.canonicalize().unwrap())
        }

        fn file(&self, name: impl AsRef<Path>) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "words").unwrap();
        }

        fn names(&self, walked: &WalkResult) -> Vec<String> {
            let name = |file: &FileEntry| path_to_text(file.path.strip_prefix(&self.0).unwrap());
            walked.files.iter().map(name).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn hidden_files_and_version_control_are_skipped() {
        let folder = Folder::new("order");
        for name in [
            "b/z",
            "a.txt",
            "b/.hidden",
            ".git/config",
            "CVS/Root",
            ".config/x",
        ] {
            folder.file(name);
        }
        folder.file(OsStr::from_bytes(b"caf\xe9"));
        let plain = walk(std::slice::from_ref(&folder.0), &WalkOptions::default());
        assert_eq!(folder.names(&plain), ["a.txt", "b/z", "caf\\xe9"]);
        assert_eq!(plain.files[0].stamp.size, 5);
        let without_b = WalkOptions {
            exclude: vec![folder.0.join("b")],
            ..WalkOptions::default()
        };
        let without_b = walk(std::slice::from_ref(&folder.0), &without_b);
        assert_eq!(folder.names(&without_b), ["a.txt", "caf\\xe9"]);
        let all = WalkOptions {
            hidden: true,
            ..WalkOptions::default()
        };
        let all = walk(std::slice::from_ref(&folder.0), &all);
        assert_eq!(
            folder.names(&all),
            [".config/x", "a.txt", "b/.hidden", "b/z", "caf\\xe9"]
        );
    }

    #[test]
    fn circular_links_are_failures() {
        let folder = Folder::new("links");
        folder.file("real/file");
        symlink("..", folder.0.join("real/up")).unwrap();
        symlink("real/file", folder.0.join("link")).unwrap();
        symlink("nowhere", folder.0.join("dangling")).unwrap();
        let plain = walk(std::slice::from_ref(&folder.0), &WalkOptions::default());
        assert_eq!(
            (folder.names(&plain), plain.failures.len()),
            (vec!["real/file".into()], 0)
        );
        let follow = WalkOptions {
            follow_links: true,
            ..WalkOptions::default()
        };
        let followed = walk(std::slice::from_ref(&folder.0), &follow);
        assert_eq!(folder.names(&followed), ["link", "real/file"]);
        let reasons: Vec<_> = followed
            .failures
            .iter()
            .map(|f| f.reason.as_str())
            .collect();
        let circle = format!("a link leads back to {}", folder.0.display());
        assert_eq!(
            reasons,
            ["No such file or directory (os error 2)", circle.as_str()]
        );
    }

    #[test]
    fn nested_folders_are_walked_once_and_missing_folders_are_failures() {
        let folder = Folder::new("roots");
        folder.file("a/b/file");
        folder.file("single");
        let folders = ["a/b", "a", "missing", "single"].map(|name| folder.0.join(name));
        let walked = walk(&folders, &WalkOptions::default());
        assert_eq!(folder.names(&walked), ["a/b/file", "single"]);
        assert_eq!(walked.roots, [folder.0.join("a"), folder.0.join("single")]);
        assert_eq!(walked.failures[0].path, folder.0.join("missing"));
    }
}
