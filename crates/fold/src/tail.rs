//! The tail of a map: chunks in the order of the log, merged so that there are never many.
//!
//! Small chunks are merged with neighbours of like size at once. Large ones stay until there are many,
//! since a fold merges them all the same, and moving them before costs more than a dozen of them costs
//! a reader.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::chunk::Chunk;
use crate::filter::HashedKey;
use crate::keys::KeySet;

/// Chunks with together more entries than this are merged only where there are many chunks.
const LARGE_ENTRIES: usize = 256 << 10;
/// So many chunks are many.
const CHUNKS_MAX: usize = 12;

/// Chunks, oldest first.
#[derive(Debug, Default)]
pub struct Tail {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chunks: Arc<Vec<Arc<Chunk>>>,
    settled: u64,
    /// From when somebody asks for keys first.
    keys: Option<KeySet>,
}

impl Tail {
    /// A tail that has taken in everything up to `settled`.
    pub fn new(settled: u64) -> Tail {
        Tail {
            state: Mutex::new(State {
                settled,
                ..State::default()
            }),
        }
    }

    /// The chunks up to at least `position`. Where they are not made yet, `make` is asked for the
    /// entries from behind the given position, and says up to where they go.
    pub fn settle(
        &self,
        position: u64,
        make: impl FnOnce(u64) -> (Chunk, u64),
    ) -> Arc<Vec<Arc<Chunk>>> {
        let mut state = self.state.lock();
        if state.settled < position {
            let (chunk, settled) = make(state.settled);
            state.settled = settled.max(state.settled);
            if let Some(keys) = &mut state.keys {
                keys.add(&chunk);
            }
            if !chunk.is_empty() {
                push(Arc::make_mut(&mut state.chunks), chunk);
            }
        }
        state.chunks.clone()
    }

    /// Notes which of these keys may be among those of its chunks. Returns by how many bytes what it
    /// keeps for that has grown since it was asked the last time.
    pub fn note_held(&self, wanted: &[HashedKey<'_>], held: &mut [bool]) -> usize {
        let mut state = self.state.lock();
        let State { chunks, keys, .. } = &mut *state;
        let keys = keys.get_or_insert_with(|| KeySet::of(chunks));
        for (wanted, held) in wanted.iter().zip(held) {
            *held |= keys.may_hold(wanted);
        }
        keys.grown()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let state = self.state.lock();
        let keys = state.keys.as_ref().map_or(0, KeySet::bytes);
        keys + state.chunks.iter().map(|it| it.bytes()).sum::<usize>()
    }

    /// Up to which position entries were made.
    pub fn settled(&self) -> u64 {
        self.state.lock().settled
    }
}

fn push(chunks: &mut Vec<Arc<Chunk>>, chunk: Chunk) {
    let mut chunk = chunk;
    loop {
        let count = chunks.len();
        let joins = |last: &mut Arc<Chunk>| {
            let small = last.len() + chunk.len() <= LARGE_ENTRIES;
            last.len() < 2 * chunk.len() && (small || count >= CHUNKS_MAX)
        };
        match chunks.pop_if(joins) {
            Some(last) => chunk = Chunk::merge(&last, &chunk),
            None => return chunks.push(Arc::new(chunk)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkBuilder, Entry};

    #[test]
    fn chunks_stay_few_and_hold_everything() {
        let tail = Tail::default();
        for position in 1..=1000u64 {
            tail.settle(position, |from| {
                assert_eq!(from, position - 1);
                let mut builder = ChunkBuilder::new(position, 1);
                let key = (position * 7919 % 1000).to_be_bytes();
                builder.add(Entry {
                    key: &key,
                    id: 1,
                    position,
                    deleted: false,
                    payload: b"",
                });
                (builder.finish(), position)
            });
        }
        let chunks = tail.settle(1000, |_| unreachable!("settled before"));
        assert!(chunks.len() <= 12, "{}", chunks.len());
        assert_eq!(chunks.iter().map(|chunk| chunk.len()).sum::<usize>(), 1000);
    }
}
