//! The document that a run of an ingestion leaves.
//!
//! ```text
//! files.runs
//! _id                 ObjectId
//! started, ended      dates
//! folders             their paths
//! files_found, files_unchanged, files_added, files_replaced, files_moved, files_removed,
//! files_read, bytes_read, documents, failures, files_skipped
//!                     counts, see `IngestSummary`
//! settings            how files were read, see `setting_changes`
//! pipeline            for each stage its name, threads, items, busy_ms, input_wait_ms, output_wait_ms,
//!                     and the mean and the maximal bytes of the queue to the next one, see `StageReport`
//! ```

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
    let paths = folders.iter().map(|folder| path_to_text(&folder.path));
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
