//! The tail of a map: chunks in the order of the log, merged so that there are never many.
//!
//! Several chunks of like size are merged at once, so that an entry is seldom moved: few entries by who
//! makes the last of them, which is often a reader, more by whoever is asked to [`Tail::tidy`]. Large
//! chunks stay a little longer, since a fold merges them all the same, and moving them before costs more
//! than a dozen of them costs a reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::chunk::Chunk;
use crate::filter::HashedKey;
use crate::keys::KeySet;

/// So many chunks of like size become one.
const MERGED: usize = 4;
/// So many, where they have together more than [`LARGE_ENTRIES`].
const MERGED_LARGE: usize = 12;
const LARGE_ENTRIES: usize = 256 << 10;
/// With so few entries, chunks are merged at once.
const SMALL_ENTRIES: usize = 4 << 10;
/// With so many chunks, too: whoever should tidy is too far behind.
const CHUNKS_MAX: usize = 64;

/// Chunks, oldest first.
#[derive(Debug, Default)]
pub struct Tail {
    state: Mutex<State>,
    /// Whether there are chunks that should be merged.
    is_untidy: AtomicBool,
    /// Held by who merges some.
    tidying: Mutex<()>,
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
            ..Tail::default()
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
                let is_tidy = push(Arc::make_mut(&mut state.chunks), chunk);
                self.is_untidy.store(!is_tidy, Ordering::Relaxed);
            }
        }
        state.chunks.clone()
    }

    /// Whether [`tidy`](Self::tidy) would find something to do.
    pub fn is_untidy(&self) -> bool {
        self.is_untidy.load(Ordering::Relaxed)
    }

    /// Merges chunks while others read and add; whether there were any to merge.
    pub fn tidy(&self) -> bool {
        let _alone = self.tidying.lock();
        let state = self.state.lock();
        let chunks = state.chunks.clone();
        let Some(Alike { start, .. }) = Alike::of(&chunks) else {
            // Within the lock, so that it is not what somebody adds who finds too much.
            self.is_untidy.store(false, Ordering::Relaxed);
            return false;
        };
        drop(state);
        let (_, alike) = chunks.split_at(start);
        let merged = Arc::new(Chunk::merge(alike));
        let mut state = self.state.lock();
        let places = start..start + alike.len();
        let still = state.chunks.get(places.clone()).unwrap_or_default();
        // Who added meanwhile may have merged some of them.
        let same = |(one, other): (&Arc<Chunk>, &Arc<Chunk>)| Arc::ptr_eq(one, other);
        if still.len() == alike.len() && still.iter().zip(alike).all(same) {
            Arc::make_mut(&mut state.chunks).splice(places, [merged]);
        }
        true
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

/// Adds a chunk and merges what is merged at once; whether nothing is left to merge.
fn push(chunks: &mut Vec<Arc<Chunk>>, chunk: Chunk) -> bool {
    chunks.push(Arc::new(chunk));
    while let Some(Alike { start, entries }) = Alike::of(chunks) {
        if entries > SMALL_ENTRIES && chunks.len() < CHUNKS_MAX {
            return false;
        }
        let alike = chunks.split_off(start);
        chunks.push(Arc::new(Chunk::merge(&alike)));
    }
    true
}

/// The youngest chunks, of which so many are of like size, the others smaller, that they should be one.
struct Alike {
    start: usize,
    entries: usize,
}

impl Alike {
    fn of(chunks: &[Arc<Chunk>]) -> Option<Alike> {
        let (mut largest, mut count, mut entries) = (0, 0, 0);
        let is_enough = |count: usize, entries: usize| match entries > LARGE_ENTRIES {
            true => count >= MERGED_LARGE,
            false => count >= MERGED,
        };
        for (place, chunk) in chunks.iter().enumerate().rev() {
            let class = class(chunk.len());
            if class > largest {
                if is_enough(count, entries) {
                    let start = place + 1;
                    return Some(Alike { start, entries });
                }
                (largest, count) = (class, 0);
            }
            count += usize::from(class == largest);
            entries += chunk.len();
        }
        is_enough(count, entries).then_some(Alike { start: 0, entries })
    }
}

/// Chunks of a class have sizes within a factor of [`MERGED`].
fn class(entries: usize) -> u32 {
    entries.checked_ilog(MERGED).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkBuilder, Entry};

    /// Entries of one position, so many, whose keys no other position has.
    fn chunk(position: u64, entries: u64) -> Chunk {
        let mut builder = ChunkBuilder::new(position, 1);
        for number in 0..entries {
            let key = [position * 7919 % 1000, number]
                .map(u64::to_be_bytes)
                .concat();
            builder.add(Entry {
                key: &key,
                id: 1,
                position,
                deleted: false,
                payload: b"",
            });
        }
        builder.finish()
    }

    /// Adds chunks with so many entries each; returns how many chunks are left at most at any time.
    fn check(tail: &Tail, count: u64, entries: u64, tidies: bool) -> usize {
        let mut chunks_max = 0;
        for position in 1..=count {
            let chunks = tail.settle(position, |from| {
                assert_eq!(from, position - 1);
                (chunk(position, entries), position)
            });
            while tidies && tail.tidy() {}
            chunks_max = chunks_max.max(chunks.len());
        }
        let chunks = tail.settle(count, |_| unreachable!("settled before"));
        let held: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        assert_eq!(held as u64, count * entries);
        for chunk in chunks.iter() {
            let keys: Vec<&[u8]> = chunk.keys().collect();
            assert!(keys.is_sorted());
        }
        chunks_max
    }

    #[test]
    fn chunks_stay_few_and_hold_everything() {
        let classes = class(1000) as usize + 1;
        let tail = Tail::default();
        let found = check(&tail, 1000, 1, false);
        assert!(found <= classes * (MERGED - 1), "{found}");
        assert!(!tail.is_untidy());
        let found = check(&Tail::default(), 200, 600, true);
        assert!(found <= MERGED + MERGED_LARGE, "{found}");
    }

    #[test]
    fn readers_merge_much_only_where_nobody_tidies() {
        let tail = Tail::default();
        check(&tail, MERGED as u64, SMALL_ENTRIES as u64 / 2, false);
        assert!(tail.is_untidy());
        let found = check(&Tail::default(), 200, 600, false);
        assert!(found <= CHUNKS_MAX, "{found}");
    }

    /// While the youngest are merged, others come.
    #[test]
    fn tidying_and_adding_at_once_lose_nothing() {
        let tail = Tail::default();
        let added = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                check(&tail, 400, 700, false);
                added.store(true, Ordering::Relaxed);
            });
            while !added.load(Ordering::Relaxed) {
                tail.tidy();
            }
        });
        let chunks = tail.settle(400, |_| unreachable!("settled before"));
        assert_eq!(
            chunks.iter().map(|chunk| chunk.len()).sum::<usize>(),
            400 * 700
        );
    }
}
