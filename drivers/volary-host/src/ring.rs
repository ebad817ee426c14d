//! Reads that are under way at the same time, by an `io_uring` of the kernel's.

use io_uring::{IoUring, opcode, types};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;

/// Reads that can be under way at the same time.
pub(crate) const FLIGHTS: usize = 32;

/// How often the kernel may have no memory for a wait.
const TRIES_MAX: usize = 16;

/// A read of the beginning of a file: as much as `bytes` has room for.
pub(crate) struct Flight {
    pub(crate) fd: OwnedFd,
    pub(crate) bytes: Vec<u8>,
    /// How many bytes were read. `None`: it failed, or has not ended.
    pub(crate) read: Option<usize>,
}

/// A ring, and what is under way in it.
pub(crate) struct Ring {
    ring: IoUring,
    /// What these hold stays where it is until the kernel has answered.
    flights: Vec<Flight>,
    /// How many of them have no answer.
    open: usize,
}

impl Ring {
    /// Asks the kernel for a ring.
    ///
    /// # Errors
    /// The host's, where there are none or this process may not have one.
    pub(crate) fn new() -> std::io::Result<Self> {
        let entries = u32::try_from(FLIGHTS).unwrap_or(32);
        let mut quiet = IoUring::builder();
        // Whoever waits takes the answers: nobody needs to be interrupted for them.
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

    /// Begins reads, of which the first [`FLIGHTS`] count, and does not wait for them. There must be
    /// none under way.
    #[expect(unsafe_code, reason = "the kernel writes to the buffers later")]
    pub(crate) fn start(&mut self, mut flights: Vec<Flight>) {
        if self.open > 0 {
            return;
        }
        flights.truncate(FLIGHTS);
        let mut queue = self.ring.submission();
        for (number, flight) in (0..).zip(&mut flights) {
            let fd = types::Fd(flight.fd.as_raw_fd());
            let len = u32::try_from(flight.bytes.len()).unwrap_or(u32::MAX);
            let read = opcode::Read::new(fd, flight.bytes.as_mut_ptr(), len);
            let entry = read.offset(0).build().user_data(number);
            // SAFETY: the buffer has room for `len` bytes. It and the descriptor are moved into
            // `self.flights`, which nobody looks at before the answer is there, and which is
            // leaked if there is none.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
            self.open += 1;
        }
        drop(queue);
        self.flights = flights;
        // What was not taken now is when it is waited for.
        let _ = self.ring.submit();
    }

    /// Waits for all reads that are under way. Returns `None` if the kernel does not answer: the ring
    /// is of no use any more.
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

    /// Takes what the kernel has answered.
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
            // The kernel may still write there.
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}
