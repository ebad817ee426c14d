//! [`Buffers`]: memory for large replies, which is reused.

use parking_lot::Mutex;

/// The shortest buffer that is kept, and how many are kept.
const KEPT_LEN_MIN: usize = 32 * 1024;
const KEPT_MAX: usize = 4;

/// A connection's buffers.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Returns `len` bytes of unspecified content.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let kept = if len < KEPT_LEN_MIN {
            None
        } else {
            self.0.lock().pop()
        };
        let mut buffer = kept.unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    /// Returns a buffer for reuse.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() < KEPT_LEN_MIN {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
    }
}
