//! Detects whether a start creates the data folder. If such a start fails, the folder is removed,
//! because the next start may use other options, such as encryption.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A data folder before the start.
pub struct NewFolder {
    path: PathBuf,
    before: FolderState,
}

#[derive(PartialEq, Eq)]
enum FolderState {
    Missing,
    Empty,
    /// It contains files, or cannot be read.
    InUse,
}

impl NewFolder {
    /// Observes the folder. Must be called before anything is written to it.
    pub fn observe(path: &Path) -> NewFolder {
        let before = match fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => FolderState::Empty,
                Some(_) => FolderState::InUse,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => FolderState::Missing,
            Err(_) => FolderState::InUse,
        };
        NewFolder {
            path: path.to_owned(),
            before,
        }
    }

    /// Removes the files that the start has written, if the folder did not exist before. It
    /// contains no data, because no client was served. Errors are ignored: remaining files are
    /// harmless.
    pub fn discard(self) {
        match self.before {
            FolderState::InUse => {}
            FolderState::Missing => drop(fs::remove_dir_all(&self.path)),
            FolderState::Empty => {
                for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
                    let path = entry.path();
                    let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NewFolder;
    use std::fs;

    #[test]
    fn only_a_new_folder_is_emptied() {
        let root = std::env::temp_dir().join(format!("windrow-new-folder-{}", std::process::id()));
        let [missing, empty, used] = ["missing", "empty", "used"].map(|name| root.join(name));
        for folder in [&empty, &used] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(used.join("data"), "x").unwrap();
        for folder in [&missing, &empty, &used] {
            let observed = NewFolder::observe(folder);
            fs::create_dir_all(folder.join("runs")).unwrap();
            fs::write(folder.join("log"), "x").unwrap();
            observed.discard();
        }
        assert!(!missing.exists());
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&used).unwrap().count(), 3);
        fs::remove_dir_all(&root).unwrap();
    }
}
