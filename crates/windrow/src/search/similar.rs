//! `--similar`: finds documents that are similar to a file.

use std::path::Path;

use windrow_document::DocumentBuf;
use windrow_file_search::{Target, similar_target};
use windrow_ingest::path_to_text;

use super::searcher::Searcher;
use crate::command_line::Failure;

/// Returns the target of documents that are similar to an indexed file, restricted to an operator.
/// The file itself is excluded.
pub fn similar_to_file(
    searcher: &mut Searcher,
    file: &Path,
    restriction: Option<DocumentBuf>,
) -> Result<Target, Failure> {
    let target = similar_target(searcher, &document_id(file), restriction)?;
    target.ok_or_else(|| {
        Failure::Runtime(format!(
            "--similar {}: the file is not indexed, or has no text; run `windrow index` on it first",
            file.display()
        ))
    })
}

/// Returns the `_id` of a file or of a member, as shown in results.
pub fn document_id(file: &Path) -> String {
    match file.canonicalize() {
        Ok(path) => path_to_text(&path),
        Err(_) => match std::path::absolute(file) {
            Ok(path) => path_to_text(&path),
            Err(_) => path_to_text(file),
        },
    }
}
