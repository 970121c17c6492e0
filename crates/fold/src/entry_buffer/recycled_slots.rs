//! A pool of slot vectors of dropped buffers. Memory that is touched for the first time costs more
//! than all other work on a slot.

use parking_lot::Mutex;

use super::BufferSlot;

/// The size of the pool, in bytes.
const POOL_BYTES_MAX: usize = 48 << 20;
/// Smaller vectors are not pooled: the allocator reuses them as fast.
const POOLED_BYTES_MIN: usize = 64 << 10;

static POOL: Mutex<Vec<Vec<BufferSlot>>> = Mutex::new(Vec::new());

fn bytes(buffer: &Vec<BufferSlot>) -> usize {
    buffer.capacity() * size_of::<BufferSlot>()
}

/// Returns an empty vector with room for this many slots: the smallest of the pool that fits and is
/// at most twice as large, or a new one.
pub fn take(slots: usize) -> Vec<BufferSlot> {
    if slots * size_of::<BufferSlot>() < POOLED_BYTES_MIN {
        return Vec::with_capacity(slots);
    }
    let mut pool = POOL.lock();
    let fits = |at: &usize| (slots..=2 * slots).contains(&pool[*at].capacity());
    let fitting = (0..pool.len()).filter(fits);
    match fitting.min_by_key(|at| pool[*at].capacity()) {
        Some(at) => pool.swap_remove(at),
        None => Vec::with_capacity(slots),
    }
}

/// Returns a vector to the pool if there is room.
pub fn give(mut buffer: Vec<BufferSlot>) {
    if bytes(&buffer) < POOLED_BYTES_MIN {
        return;
    }
    buffer.clear();
    let mut pool = POOL.lock();
    let pool_bytes: usize = pool.iter().map(bytes).sum();
    if pool_bytes + bytes(&buffer) <= POOL_BYTES_MAX {
        pool.push(buffer);
    }
}
