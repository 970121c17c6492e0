//! Message buffers that connections borrow. An idle connection holds none, and a busy one does not
//! allocate memory for each message.

use std::sync::Mutex;

use crate::sync::lock;

/// Buffers for reuse by the next messages, up to a total size.
#[derive(Debug, Default)]
pub struct Buffers {
    idle: Mutex<IdleBuffers>,
}

#[derive(Debug, Default)]
struct IdleBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// Maximum capacity of all stored buffers in bytes: one message of the maximum size, and a reserve.
const IDLE_BYTES_MAX: usize = 64 << 20;

impl Buffers {
    /// Lends an empty buffer.
    pub fn take(&self) -> Vec<u8> {
        let mut idle = lock(&self.idle);
        let buffer = idle.buffers.pop().unwrap_or_default();
        idle.bytes -= buffer.capacity();
        buffer
    }

    /// Takes back a buffer, unless it is too large or there are enough.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut idle = lock(&self.idle);
        if buffer.capacity() > 0 && idle.bytes + buffer.capacity() <= IDLE_BYTES_MAX {
            buffer.clear();
            idle.bytes += buffer.capacity();
            idle.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_buffers_are_empty_and_limited() {
        let buffers = Buffers::default();
        buffers.give(vec![1; 1000]);
        let again = buffers.take();
        assert!(again.is_empty() && again.capacity() >= 1000);
        assert_eq!(buffers.take().capacity(), 0);
        for _ in 0..10 {
            buffers.give(Vec::with_capacity(10 << 20));
        }
        assert_eq!(lock(&buffers.idle).buffers.len(), 6);
    }
}
