//! Divides commits into chunks, whose entries several threads create.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use windrow_fold::RecordId;

use crate::record::{self, Commit, Operation};

/// The minimal bytes of commits in a chunk.
const CHUNK_BYTES_MIN: usize = 256 << 10;

/// About the maximal bytes of commits in a chunk. A single commit can be larger.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Divides commits into consecutive chunks of about equal bytes: one for each thread, or more if
/// the chunks would be large.
pub(super) fn chunks_of(commits: &[Arc<Commit>], threads: usize) -> Vec<&[Arc<Commit>]> {
    let bytes = commit_bytes(commits);
    let count_max = threads.max(bytes.div_ceil(CHUNK_BYTES_MAX)).max(1);
    let count = (bytes / CHUNK_BYTES_MIN).clamp(1, count_max);
    let (mut chunks, mut rest, mut rest_bytes) = (Vec::new(), commits, bytes);
    for chunks_left in (1..=count).rev() {
        let (target_bytes, mut chunk_bytes) = (rest_bytes / chunks_left, 0);
        let within = rest.iter().take_while(|commit| {
            let begins_within = chunk_bytes < target_bytes || chunks_left == 1;
            chunk_bytes += if begins_within { commit.bytes } else { 0 };
            begins_within
        });
        let (chunk, others) = rest.split_at(within.count());
        (rest, rest_bytes) = (others, rest_bytes - chunk_bytes);
        chunks.push(chunk);
    }
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}

/// Returns the bytes of commits.
pub(super) fn commit_bytes(commits: &[Arc<Commit>]) -> usize {
    commits.iter().map(|commit| commit.bytes).sum()
}

/// Divides commits that insert many documents: their entries can then be created in several chunks.
/// The pieces have the position of their commit, and refer to its memory.
pub(super) fn divide_inserts(commits: &[Arc<Commit>]) -> Cow<'_, [Arc<Commit>]> {
    let is_large = |commit: &Arc<Commit>| commit.bytes >= 2 * CHUNK_BYTES_MIN;
    if !commits.iter().any(is_large) {
        return Cow::Borrowed(commits);
    }
    let mut pieces = Vec::new();
    for commit in commits {
        match commit.operations.as_slice() {
            [
                Operation::Insert {
                    first, documents, ..
                },
            ] if is_large(commit) => push_pieces(&mut pieces, commit, *first, documents),
            _ => pieces.push(commit.clone()),
        }
    }
    Cow::Owned(pieces)
}

fn push_pieces(
    pieces: &mut Vec<Arc<Commit>>,
    commit: &Commit,
    mut first: RecordId,
    documents: &Bytes,
) {
    let mut start = 0;
    let numbered = record::documents(documents).zip(first.and_following());
    for ((offset, document), id) in numbered {
        let end = offset + document.as_bytes().len();
        if end - start < CHUNK_BYTES_MIN && end < documents.len() {
            continue;
        }
        pieces.push(Arc::new(Commit {
            position: commit.position,
            operations: vec![Operation::Insert {
                first,
                documents: documents.slice(start..end),
                // The keys are computed again from the documents.
                hashes: Vec::new(),
            }],
            bytes: end - start,
        }));
        (start, first) = (end, id.next());
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::DocumentBuf;
    use windrow_fold::Position;
    use windrow_fold::parallel::map_items;

    use super::*;

    fn commits(bytes: &[usize]) -> Vec<Arc<Commit>> {
        let commit = |(position, bytes): (u64, &usize)| {
            Arc::new(Commit {
                position: Position(position),
                operations: Vec::new(),
                bytes: *bytes,
            })
        };
        (1..).zip(bytes).map(commit).collect()
    }

    fn sizes(commits: &[Arc<Commit>], threads: usize) -> Vec<usize> {
        let chunks = chunks_of(commits, threads);
        assert_eq!(
            chunks
                .concat()
                .iter()
                .map(|it| it.position)
                .collect::<Vec<_>>(),
            commits.iter().map(|it| it.position).collect::<Vec<_>>(),
        );
        chunks.iter().map(|chunk| chunk.len()).collect()
    }

    #[test]
    fn commits_are_divided_by_bytes_in_order() {
        assert_eq!(sizes(&commits(&[CHUNK_BYTES_MIN; 8]), 2), [4, 4]);
        assert_eq!(sizes(&commits(&[CHUNK_BYTES_MIN; 8]), 3), [3, 3, 2]);
        let first_large = commits(&[6 * CHUNK_BYTES_MIN, CHUNK_BYTES_MIN, CHUNK_BYTES_MIN]);
        assert_eq!(sizes(&first_large, 2), [1, 2]);
        let last_large = commits(&[1, 1, 6 * CHUNK_BYTES_MIN]);
        assert_eq!(sizes(&last_large, 2), [3]);
        assert_eq!(sizes(&commits(&[8 * CHUNK_BYTES_MIN]), 4), [1]);
        assert_eq!(sizes(&commits(&[CHUNK_BYTES_MIN / 8; 8]), 4), [8]);
        assert_eq!(sizes(&[], 4), [0; 0]);
        // No chunk is large.
        assert_eq!(sizes(&commits(&[CHUNK_BYTES_MIN; 16]), 2), [4; 4]);
        assert_eq!(sizes(&commits(&[CHUNK_BYTES_MAX; 3]), 1), [1; 3]);
    }

    /// One insert of documents of 40 KB.
    fn insert(position: u64, first: u64, count: usize) -> Arc<Commit> {
        let text = "x".repeat(40 << 10);
        let mut document = DocumentBuf::new();
        document.push("text", text.as_str());
        let documents = Bytes::from(document.as_bytes().repeat(count));
        Arc::new(Commit {
            position: Position(position),
            bytes: documents.len(),
            operations: vec![Operation::Insert {
                first: RecordId(first),
                documents,
                hashes: Vec::new(),
            }],
        })
    }

    /// The record ids and positions of all documents.
    fn ids(commits: &[Arc<Commit>]) -> Vec<(u64, u64)> {
        let mut ids = Vec::new();
        for commit in commits {
            for operation in &commit.operations {
                let Operation::Insert {
                    first, documents, ..
                } = operation
                else {
                    panic!("only inserts")
                };
                let count = record::count_documents(documents).expect("whole documents");
                ids.extend((first.0..).take(count).map(|id| (id, commit.position.0)));
            }
        }
        ids
    }

    #[test]
    fn results_are_in_the_order_of_the_chunks() {
        let commits = commits(&[CHUNK_BYTES_MAX; 40]);
        let chunks = chunks_of(&commits, 3);
        let first = |chunk: &&[Arc<Commit>]| chunk.first().map(|commit| commit.position.0);
        let found = map_items(&chunks, 3, first);
        assert_eq!(found, (1..=40).map(Some).collect::<Vec<_>>());
        assert!(map_items(&Vec::new(), 3, first).is_empty());
    }

    #[test]
    fn large_inserts_are_divided_between_documents() {
        let commits = [insert(1, 10, 2), insert(2, 12, 60), insert(3, 72, 1)];
        let pieces = divide_inserts(&commits);
        assert!(pieces.len() > 8, "{}", pieces.len());
        assert_eq!(ids(&pieces), ids(&commits));
        let bytes: usize = pieces.iter().map(|piece| piece.bytes).sum();
        assert_eq!(bytes, commits.iter().map(|it| it.bytes).sum::<usize>());
        let chunks = chunks_of(&pieces, 2);
        let chunk_bytes = |chunk: &&[Arc<Commit>]| chunk.iter().map(|it| it.bytes).sum::<usize>();
        let sizes: Vec<usize> = chunks.iter().map(chunk_bytes).collect();
        assert!(
            sizes[0].abs_diff(sizes[1]) <= 2 * CHUNK_BYTES_MIN,
            "{sizes:?}"
        );
        assert_eq!(divide_inserts(&commits[..1]).len(), 1);
    }
}
