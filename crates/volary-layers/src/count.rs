//! Counts calls.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Call, Fs, Layer, Op, Result};

/// Counts the calls of each operation, how many failed, and the bytes that were requested.
pub struct Count {
    below: Fs,
    counters: [Counter; Call::ALL.len()],
}

#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

/// The counts of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRow {
    /// The operation.
    pub call: Call,
    /// How often it was called.
    pub calls: u64,
    /// How many of these failed.
    pub failed: u64,
    /// How many bytes reads and writes asked for.
    pub bytes: u64,
}

impl Count {
    /// Puts the layer over `below`, with all counts at zero.
    pub fn new(below: Fs) -> Self {
        Self {
            below,
            counters: std::array::from_fn(|_| Counter::default()),
        }
    }

    /// Returns the counts of the operations that were called, in the order of [`Call::ALL`].
    pub fn snapshot(&self) -> Vec<CountRow> {
        let rows = Call::ALL.iter().zip(&self.counters);
        rows.map(|(&call, counter)| CountRow {
            call,
            calls: counter.calls.load(Ordering::Relaxed),
            failed: counter.failed.load(Ordering::Relaxed),
            bytes: counter.bytes.load(Ordering::Relaxed),
        })
        .filter(|row| row.calls > 0)
        .collect()
    }

    /// Returns how often one operation was called.
    pub fn calls(&self, call: Call) -> u64 {
        let row = self.snapshot().into_iter().find(|row| row.call == call);
        row.map_or(0, |row| row.calls)
    }
}

impl Layer for Count {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let answer = call();
        if let Some(counter) = self.counters.get(op.call as usize) {
            counter.calls.fetch_add(1, Ordering::Relaxed);
            counter.bytes.fetch_add(op.len, Ordering::Relaxed);
            let failed = u64::from(answer.is_err());
            counter.failed.fetch_add(failed, Ordering::Relaxed);
        }
        answer
    }
}

/// Prints a table with a line for each operation that was called.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, failed, bytes) = ("calls", "failed", "bytes");
        writeln!(
            f,
            "{:<12} {calls:>12} {failed:>12} {bytes:>16}",
            "operation"
        )?;
        for row in self.snapshot() {
            writeln!(
                f,
                "{:<12} {:>12} {:>12} {:>16}",
                row.call.name(),
                row.calls,
                row.failed,
                row.bytes
            )?;
        }
        Ok(())
    }
}
