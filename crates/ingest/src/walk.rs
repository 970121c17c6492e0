//! Finds the files below folders.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};

use crate::path_text::path_to_text;

/// Selects the files below a folder. Patterns have the syntax of .gitignore files: a pattern
/// without a slash at its start or inside matches names at every depth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkOptions {
    /// Also find files and folders whose names begin with a dot. Folders of version control systems
    /// are always skipped.
    pub hidden: bool,
    /// Follow symbolic links below the given folders. A circular link is a failure, and a file with
    /// two paths is found twice. The given folders themselves can always be links.
    pub follow_links: bool,
    /// Skip the files that .gitignore and .ignore files exclude, including those in parent folders.
    pub gitignore: bool,
    /// Patterns of the files to find. If empty, all files are found.
    pub include: Vec<String>,
    /// Patterns of files and folders to skip.
    pub skip: Vec<String>,
    /// Folders to skip, by their canonical paths.
    pub exclude: Vec<PathBuf>,
    /// The codes of the languages of the documents. If empty, any language is possible.
    pub languages: Vec<String>,
}

/// A folder or file to walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkRoot {
    /// Its path.
    pub path: PathBuf,
    /// Selects the files below it.
    pub options: WalkOptions,
}

impl WalkOptions {
    /// Returns roots with these options.
    pub fn roots(&self, folders: &[PathBuf]) -> Vec<WalkRoot> {
        let root = |path: &PathBuf| WalkRoot {
            path: path.clone(),
            options: self.clone(),
        };
        folders.iter().map(root).collect()
    }

    /// Checks the patterns.
    ///
    /// # Errors
    /// Returns a sentence that contains the first invalid pattern.
    pub fn check_patterns(&self) -> Result<(), String> {
        self.patterns(Path::new("/")).map(drop)
    }

    /// Returns the patterns relative to a folder.
    fn patterns(&self, root: &Path) -> Result<Override, String> {
        let mut builder = OverrideBuilder::new(root);
        let invalid = |pattern: &str, error: &dyn fmt::Display| {
            format!("the pattern {pattern:?} is invalid: {error}")
        };
        let include = self
            .include
            .iter()
            .map(|pattern| (pattern, pattern.clone()));
        // In the crate `ignore`, an exclamation mark in an override excludes files.
        let skip = self
            .skip
            .iter()
            .map(|pattern| (pattern, format!("!{pattern}")));
        for (pattern, glob) in include.chain(skip) {
            if pattern.is_empty() || pattern.starts_with('!') {
                return Err(invalid(pattern, &"write it without an exclamation mark"));
            }
            builder
                .add(&glob)
                .map_err(|error| invalid(pattern, &error))?;
        }
        builder.build().map_err(|error| error.to_string())
    }
}

/// A file that may contain documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The absolute path, based on the canonical path of the given folder.
    pub path: PathBuf,
    /// The file's stamp.
    pub stamp: FileStamp,
    /// The languages of its documents, see [`WalkOptions::languages`].
    pub languages: Arc<[String]>,
}

impl FileEntry {
    /// Returns the path as stored in documents, see [`path_to_text`].
    pub fn path_text(&self) -> String {
        path_to_text(&self.path)
    }
}

/// The properties of a file that show whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last modification, in nanoseconds since 1970-01-01 UTC.
    pub modified_ns: i64,
    /// The status change time (`ctime`), in the same unit. Programs cannot set it, so it detects
    /// that a file was replaced by one of the same size and modification time.
    pub changed_ns: i64,
    /// The inode. A file that is moved within its file system keeps it.
    pub inode: u64,
}

impl FileStamp {
    /// The names of the fields of stored documents, in the order of the values in
    /// [`from_fields`](Self::from_fields).
    pub const FIELDS: [&str; 4] = ["size", "modified_ns", "changed_ns", "inode"];

    /// Creates a stamp from the fields of a stored document. Returns `None` if one is missing or
    /// invalid.
    pub fn from_fields(fields: [Option<i64>; 4]) -> Option<FileStamp> {
        let [size, modified_ns, changed_ns, inode] = fields;
        Some(FileStamp {
            size: u64::try_from(size?).ok()?,
            modified_ns: modified_ns?,
            changed_ns: changed_ns?,
            inode: inode?.cast_unsigned(),
        })
    }

    /// Returns `true` if a file with these two stamps has not changed. The inode is ignored,
    /// because some network file systems assign new ones on each mount.
    pub fn is_unchanged(&self, other: &FileStamp) -> bool {
        let times = |stamp: &FileStamp| (stamp.size, stamp.modified_ns, stamp.changed_ns);
        times(self) == times(other)
    }

    /// Returns `true` if the files with these stamps are the same file under two paths. The status
    /// change time is ignored, because moving a file changes it.
    pub fn is_moved(&self, other: &FileStamp) -> bool {
        let content = |stamp: &FileStamp| (stamp.inode, stamp.size, stamp.modified_ns);
        content(self) == content(other)
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
    /// The absolute paths of the given folders that do not exist.
    pub missing_roots: Vec<PathBuf>,
    /// The roots are the changed paths of `walk_changed`, so an empty one was deleted.
    pub is_partial: bool,
}

/// Finds the files below folders.
///
/// A given folder inside another one is walked only with its own options. Sockets, devices and
/// pipes are skipped. No file is opened, except for .gitignore files.
///
/// ```
/// use windrow_ingest::{WalkOptions, walk};
///
/// let walked = walk(&WalkOptions::default().roots(&["src".into()]));
/// assert!(walked.files.iter().any(|file| file.path.ends_with("src/walk.rs")));
/// assert!(walked.failures.is_empty());
/// ```
pub fn walk(folders: &[WalkRoot]) -> WalkResult {
    let CanonicalRoots { roots, mut walked } = canonical_roots(folders);
    for root in &roots {
        walk_root(root, &roots, None, &mut walked);
    }
    // The files of a nested root belong between those of the outer one.
    walked.files.sort_by(|one, other| one.path.cmp(&other.path));
    walked.roots = roots.into_iter().map(|root| root.path).collect();
    walked
}

/// The result of [`canonical_roots`].
pub(crate) struct CanonicalRoots {
    /// The folders to walk.
    pub roots: Vec<WalkRoot>,
    /// Contains the folders that cannot be walked.
    pub walked: WalkResult,
}

/// Returns the folders with their canonical paths in ascending order, without those inside another
/// one with the same options. Folders that cannot be resolved are added to the result as missing or
/// failed.
pub(crate) fn canonical_roots(folders: &[WalkRoot]) -> CanonicalRoots {
    let mut walked = WalkResult::default();
    let mut roots: Vec<WalkRoot> = Vec::new();
    for folder in folders {
        match folder.path.canonicalize() {
            Ok(path) => roots.push(WalkRoot {
                path,
                options: folder.options.clone(),
            }),
            Err(error) => {
                let path = std::path::absolute(&folder.path);
                let path = path.unwrap_or_else(|_| folder.path.clone());
                match error.kind() {
                    io::ErrorKind::NotFound => walked.missing_roots.push(path),
                    _ => walked.failures.push(WalkFailure {
                        path,
                        reason: error.to_string(),
                    }),
                }
            }
        }
    }
    roots.sort_by(|one, other| one.path.cmp(&other.path));
    // In sorted order, a folder precedes everything below it.
    roots.dedup_by(|below, folder| {
        let is_same = below.path == folder.path;
        is_same || (below.path.starts_with(&folder.path) && below.options == folder.options)
    });
    CanonicalRoots { roots, walked }
}

/// Finds the files at and below changed paths, as [`walk`] of the folders would. The folders have
/// canonical paths. Changed paths outside of them are ignored.
pub(crate) fn walk_changed(folders: &[WalkRoot], changed: BTreeSet<PathBuf>) -> WalkResult {
    let is_below = |path: &&PathBuf| folders.iter().any(|root| path.starts_with(&root.path));
    let mut walked = WalkResult {
        roots: changed.iter().filter(is_below).cloned().collect(),
        is_partial: true,
        ..WalkResult::default()
    };
    let changed = Arc::new(ChangedPaths(changed));
    for root in folders {
        if changed.concern(&root.path) {
            walk_root(root, folders, Some(changed.clone()), &mut walked);
        }
    }
    walked.files.sort_by(|one, other| one.path.cmp(&other.path));
    walked.files.dedup_by(|one, other| one.path == other.path);
    walked
}

/// The changed paths of a partial walk.
struct ChangedPaths(BTreeSet<PathBuf>);

impl ChangedPaths {
    /// Returns `true` if the path is changed, is below a changed folder, or contains changed paths.
    fn concern(&self, path: &Path) -> bool {
        let ChangedPaths(changed) = self;
        let mut from_here = changed.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        let has_changes = from_here.next().is_some_and(|next| next.starts_with(path));
        has_changes || path.ancestors().any(|folder| changed.contains(folder))
    }
}

/// Adds the files of a folder. Nested roots are skipped, because they are walked separately.
fn walk_root(
    root: &WalkRoot,
    folders: &[WalkRoot],
    changed: Option<Arc<ChangedPaths>>,
    walked: &mut WalkResult,
) {
    let others = folders.iter().map(|other| other.path.clone());
    let others: HashSet<PathBuf> = others.filter(|path| *path != root.path).collect();
    let options = root.options.clone();
    let patterns = match options.patterns(&root.path) {
        Ok(patterns) => patterns,
        Err(reason) => {
            let path = root.path.clone();
            return walked.failures.push(WalkFailure { path, reason });
        }
    };
    let languages: Arc<[String]> = options.languages.clone().into();
    let entries = WalkBuilder::new(&root.path)
        .standard_filters(false)
        .git_ignore(options.gitignore)
        .ignore(options.gitignore)
        .parents(options.gitignore)
        .require_git(false)
        .overrides(patterns)
        .follow_links(options.follow_links)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(move |entry| {
            let path = entry.path();
            let is_included = !others.contains(path)
                && is_included(entry, &options)
                && changed.as_ref().is_none_or(|changed| changed.concern(path));
            entry.depth() == 0 || is_included
        })
        .build();
    for entry in entries {
        match entry.and_then(|entry| file_entry(&entry, &languages)) {
            Ok(found) => walked.files.extend(found),
            Err(error) => walked.failures.push(walk_failure(&root.path, &error)),
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
    let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
    (options.hidden || !hidden) && !(is_folder && excluded())
}

fn file_entry(
    entry: &DirEntry,
    languages: &Arc<[String]>,
) -> Result<Option<FileEntry>, ignore::Error> {
    if !entry.file_type().is_some_and(|it| it.is_file()) {
        return Ok(None);
    }
    let metadata = entry.metadata()?;
    let nanoseconds = |seconds: i64, rest| {
        let seconds_ns = seconds.saturating_mul(1_000_000_000);
        seconds_ns.saturating_add(rest)
    };
    let stamp = FileStamp {
        size: metadata.len(),
        modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    };
    Ok(Some(FileEntry {
        path: entry.path().to_path_buf(),
        stamp,
        languages: languages.clone(),
    }))
}

/// Converts an error. `path` is the root that was walked.
fn walk_failure(path: &Path, error: &ignore::Error) -> WalkFailure {
    let (mut path, mut error) = (path.to_path_buf(), error);
    loop {
        match error {
            ignore::Error::WithPath { path: own, err } => (path, error) = (own.clone(), err),
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
                error = err;
            }
            ignore::Error::Loop { ancestor, child } => {
                let reason = format!("a link leads back to {}", ancestor.display());
                let path = child.clone();
                return WalkFailure { path, reason };
            }
            ignore::Error::Io(error) => {
                let reason = io_reason(error);
                return WalkFailure { path, reason };
            }
            other => {
                let reason = other.to_string();
                return WalkFailure { path, reason };
            }
        }
    }
}

/// Returns the message of the operating system without the path that the library adds.
fn io_reason(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|wrapper| wrapper.source());
    inner.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
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

        fn walk(&self, options: WalkOptions) -> WalkResult {
            walk(&options.roots(std::slice::from_ref(&self.0)))
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
        let plain = folder.walk(WalkOptions::default());
        assert_eq!(folder.names(&plain), ["a.txt", "b/z", "caf\\xe9"]);
        assert_eq!(plain.files[0].stamp.size, 5);
        let without_b = WalkOptions {
            exclude: vec![folder.0.join("b")],
            ..WalkOptions::default()
        };
        let without_b = folder.walk(without_b);
        assert_eq!(folder.names(&without_b), ["a.txt", "caf\\xe9"]);
        let all = WalkOptions {
            hidden: true,
            ..WalkOptions::default()
        };
        let all = folder.walk(all);
        assert_eq!(
            folder.names(&all),
            [".config/x", "a.txt", "b/.hidden", "b/z", "caf\\xe9"]
        );
    }

    #[test]
    fn patterns_select_files() {
        let folder = Folder::new("patterns");
        for name in [
            "a.txt",
            "b.pdf",
            "build/c.txt",
            "src/build/d.txt",
            "src/e.txt",
        ] {
            folder.file(name);
        }
        fs::write(folder.0.join(".gitignore"), "a.*\n").unwrap();
        let check = |include: &[&str], skip: &[&str], gitignore, expected: &[&str]| {
            let owned = |patterns: &[&str]| patterns.iter().map(|it| (*it).to_owned()).collect();
            let options = WalkOptions {
                include: owned(include),
                skip: owned(skip),
                gitignore,
                ..WalkOptions::default()
            };
            assert_eq!(options.check_patterns(), Ok(()));
            let walked = folder.walk(options);
            assert_eq!(folder.names(&walked), expected, "{include:?} {skip:?}");
            assert_eq!(walked.failures, []);
        };
        let all = [
            "a.txt",
            "b.pdf",
            "build/c.txt",
            "src/build/d.txt",
            "src/e.txt",
        ];
        check(&[], &[], false, &all);
        check(&[], &[], true, &all[1..]);
        check(&["*.txt"], &["build"], false, &["a.txt", "src/e.txt"]);
        check(
            &[],
            &["/build", "*.pdf"],
            false,
            &["a.txt", "src/build/d.txt", "src/e.txt"],
        );
        let invalid = WalkOptions {
            skip: vec!["[".into()],
            ..WalkOptions::default()
        };
        let reason = invalid.check_patterns().unwrap_err();
        assert!(reason.contains("\"[\""), "{reason}");
        assert_eq!(folder.walk(invalid).failures[0].reason, reason);
    }

    #[test]
    fn an_inner_folder_has_its_own_options() {
        let folder = Folder::new("inner");
        for name in ["a.txt", "in/.b", "in/c.txt", "z.txt"] {
            folder.file(name);
        }
        let mut roots = WalkOptions::default().roots(&[folder.0.clone(), folder.0.join("in")]);
        roots[1].options.hidden = true;
        roots[1].options.skip = vec!["*.txt".into()];
        let walked = walk(&roots);
        assert_eq!(folder.names(&walked), ["a.txt", "in/.b", "z.txt"]);
        assert_eq!(walked.roots, [folder.0.clone(), folder.0.join("in")]);
    }

    #[test]
    fn changed_paths_are_found_as_in_a_whole_walk() {
        let folder = Folder::new("changed");
        for name in ["a/b/c", "a/b/d", "a/skipped/e", "f", ".hidden/g", "h/i"] {
            folder.file(name);
        }
        let options = WalkOptions {
            skip: vec!["skipped".into()],
            ..WalkOptions::default()
        };
        let roots = options.roots(std::slice::from_ref(&folder.0));
        let check = |changed: &[&str], expected: &[&str]| {
            let changed = changed.iter().map(|name| folder.0.join(name)).collect();
            let walked = walk_changed(&roots, changed);
            assert_eq!(folder.names(&walked), expected);
        };
        check(&["a/b/c"], &["a/b/c"]);
        check(&["a", "a/b", "f", "gone"], &["a/b/c", "a/b/d", "f"]);
        check(&["a/skipped/e", ".hidden/g", "h"], &["h/i"]);
        check(&["../elsewhere"], &[]);
        check(&[""], &["a/b/c", "a/b/d", "f", "h/i"]);
    }

    #[test]
    fn circular_links_are_failures() {
        let folder = Folder::new("links");
        folder.file("real/file");
        symlink("..", folder.0.join("real/up")).unwrap();
        symlink("real/file", folder.0.join("link")).unwrap();
        symlink("nowhere", folder.0.join("dangling")).unwrap();
        let plain = folder.walk(WalkOptions::default());
        assert_eq!(
            (folder.names(&plain), plain.failures.len()),
            (vec!["real/file".into()], 0)
        );
        let follow = WalkOptions {
            follow_links: true,
            ..WalkOptions::default()
        };
        let followed = folder.walk(follow);
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
        let walked = walk(&WalkOptions::default().roots(&folders));
        assert_eq!(folder.names(&walked), ["a/b/file", "single"]);
        assert_eq!(walked.roots, [folder.0.join("a"), folder.0.join("single")]);
        assert_eq!(walked.missing_roots, [folder.0.join("missing")]);
    }
}
