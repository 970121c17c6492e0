//! The document of a run in `files.runs`.
//!
//! ```text
//! files.runs
//! _id                 ObjectId
//! started, ended      dates
//! folders             their absolute paths without symbolic links, as in documents
//! files_found, files_unchanged, files_added, files_replaced, files_moved, files_removed,
//! files_read, bytes_read, documents, failures, files_skipped
//!                     counts, see `IngestSummary`
//! settings            how files were read, see `setting_changes`
//! pipeline            for each stage its name, threads, items, busy_ms, input_wait_ms, output_wait_ms,
//!                     and the mean and the maximal bytes of the queue to the next one, see `StageReport`
//! ```

use std::path::Path;

use windrow_document::object_id::ObjectIdSource;
use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

use crate::path_text::path_to_text;
use crate::summary::IngestSummary;
use crate::walk::WalkRoot;

pub(crate) fn build(
    folders: &[WalkRoot],
    summary: &IngestSummary,
    started_ms: i64,
    ended_ms: i64,
) -> DocumentBuf {
    let id = ObjectIdSource::new(ended_ms.unsigned_abs()).next_now();
    let paths = folders.iter().map(|folder| absolute_path(&folder.path));
    let mut run = doc! {
        "_id": (Value::ObjectId(id)),
        "started": (Value::DateTime(started_ms)), "ended": (Value::DateTime(ended_ms)),
        "folders": (paths.map(Value::String).collect::<ArrayBuf>()),
    };
    let counts = [
        ("files_found", summary.files_found),
        ("files_unchanged", summary.files_unchanged),
        ("files_added", summary.files_added),
        ("files_replaced", summary.files_replaced),
        ("files_moved", summary.files_moved),
        ("files_removed", summary.files_removed),
        ("files_read", summary.files_read),
        ("bytes_read", summary.bytes_read),
        ("documents", summary.documents),
        ("failures", summary.failures),
        ("files_skipped", summary.files_skipped),
    ];
    for (name, count) in counts {
        run.push(name, i64::try_from(count).unwrap_or(i64::MAX));
    }
    run.push("pipeline", summary.pipeline.stages_in_milliseconds());
    run
}

/// Returns the path with which the paths of the folder's files begin. Symbolic links are resolved,
/// unless the folder is missing.
pub(crate) fn absolute_path(folder: &Path) -> String {
    let path = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder));
    path_to_text(&path.unwrap_or_else(|_| folder.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::WalkOptions;

    /// Documents are counted by the folders of runs, and have absolute paths.
    #[test]
    fn folders_are_absolute() {
        let folders = WalkOptions::default().roots(&["src".into(), "none/x".into()]);
        let run = build(&folders, &IngestSummary::default(), 1, 2);
        let found = run.get("folders").unwrap().as_array().unwrap();
        let current = std::env::current_dir().unwrap().canonicalize().unwrap();
        let expected = ["src", "none/x"].map(|name| path_to_text(&current.join(name)));
        let found: Vec<&str> = found.iter().filter_map(|it| it.as_str()).collect();
        assert_eq!(found, expected);
    }
}
