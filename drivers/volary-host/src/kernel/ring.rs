//! Several reads in flight at once, by `io_uring`.

use io_uring::{IoUring, opcode, types};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;

/// Reads in flight: the depth of the ring.
pub(crate) const DEPTH: usize = 32;

/// How many waits may fail for lack of memory before the ring is given up.
const TRIES_MAX: usize = 16;

/// A read of the start of a file, up to the length of `bytes`.
pub(crate) struct Flight {
    pub(crate) fd: OwnedFd,
    pub(crate) bytes: Vec<u8>,
    /// Bytes that were read; `None` if the read failed or has not completed.
    pub(crate) read: Option<usize>,
}

/// A ring, and its reads in flight.
pub(crate) struct Ring {
    ring: IoUring,
    /// Buffers and descriptors, which must not move or close before the completion.
    flights: Vec<Flight>,
    /// Reads without a completion.
    open: usize,
}

impl Ring {
    /// Asks the kernel for a ring.
    ///
    /// # Errors
    /// Those of the host, if it has no rings or this process may not have one.
    pub(crate) fn new() -> std::io::Result<Self> {
        let entries = u32::try_from(DEPTH).unwrap_or(32);
        let mut quiet = IoUring::builder();
        // The waiting thread takes the completions, so the kernel need not interrupt it.
        quiet.setup_coop_taskrun().dontfork();
        let ring = quiet
            .build(entries)
            .or_else(|_| IoUring::builder().dontfork().build(entries))?;
        Ok(Self {
            ring,
            flights: Vec::new(),
            open: 0,
        })
    }

    /// Submits the first [`DEPTH`] of these reads without waiting. Does nothing while others are in
    /// flight.
    #[expect(unsafe_code, reason = "the kernel writes to the buffers later")]
    pub(crate) fn start(&mut self, mut flights: Vec<Flight>) {
        if self.open > 0 {
            return;
        }
        flights.truncate(DEPTH);
        let mut queue = self.ring.submission();
        for (number, flight) in (0..).zip(&mut flights) {
            let fd = types::Fd(flight.fd.as_raw_fd());
            let len = u32::try_from(flight.bytes.len()).unwrap_or(u32::MAX);
            let read = opcode::Read::new(fd, flight.bytes.as_mut_ptr(), len);
            let entry = read.offset(0).build().user_data(number);
            // SAFETY: the buffer has room for `len` bytes. It and the descriptor live in `self.flights`,
            // untouched until the completion, and are leaked if none comes.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
            self.open += 1;
        }
        drop(queue);
        self.flights = flights;
        // What is not submitted now is submitted by the wait.
        let _ = self.ring.submit();
    }

    /// Waits for all reads in flight, and returns them. Returns `None` if waiting fails. The ring
    /// is unusable then.
    pub(crate) fn finish(&mut self) -> Option<Vec<Flight>> {
        let mut tries = 0;
        while self.open > 0 {
            if let Err(e) = self.ring.submit_and_wait(self.open) {
                match Errno::from_io_error(&e) {
                    Some(Errno::INTR) => {}
                    Some(Errno::AGAIN | Errno::BUSY) if tries < TRIES_MAX => tries += 1,
                    _ => return None,
                }
            }
            self.answers();
        }
        Some(std::mem::take(&mut self.flights))
    }

    /// Takes the completions, and stores their results.
    fn answers(&mut self) {
        for answer in self.ring.completion() {
            self.open -= 1;
            let number = usize::try_from(answer.user_data()).unwrap_or(usize::MAX);
            if let Some(flight) = self.flights.get_mut(number) {
                flight.read = usize::try_from(answer.result()).ok();
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.finish().is_none() {
            // The kernel may still write into the buffers, so they must not be freed.
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}
