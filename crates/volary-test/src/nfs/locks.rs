//! A client process that locks files (NLM version 4).

use super::client::Client;
use super::wire::{Args, Reply};

pub const NLM: u32 = 100_021;
pub const GRANTED: u32 = 0;
pub const DENIED: u32 = 1;
pub const BLOCKED: u32 = 3;
pub const GRACE: u32 = 4;
pub const STALE: u32 = 7;

/// A client process that locks one file.
pub struct Locker {
    pub client: Client,
    pub fh: Vec<u8>,
    machine: &'static [u8],
    process: u32,
}

impl Locker {
    /// Returns a process that makes its calls with `client`.
    pub fn new(client: Client, fh: &[u8], machine: &'static [u8], process: u32) -> Self {
        Self {
            client,
            fh: fh.to_vec(),
            machine,
            process,
        }
    }

    fn lock_args(&self, args: Args, (offset, len): (u64, u64)) -> Args {
        let owner = [self.machine, &self.process.to_be_bytes()].concat();
        let args = args.opaque(self.machine).opaque(&self.fh).opaque(&owner);
        args.u32(self.process).u64(offset).u64(len)
    }

    /// Makes a call whose reply begins with a cookie and a status. Returns the status, and the rest
    /// of the reply.
    fn ask(&mut self, procedure: u32, args: &Args) -> (u32, Reply) {
        let mut reply = self
            .client
            .wire
            .call((NLM, 4, procedure), &self.client.who, args);
        assert_eq!(reply.opaque(), b"cookie");
        (reply.u32(), reply)
    }

    pub fn lock(&mut self, range: (u64, u64), exclusive: bool, waits: bool) -> u32 {
        self.lock_or_claim(range, exclusive, waits, false)
    }

    /// Reclaims a lock that the process held before the server restarted.
    pub fn reclaim(&mut self, range: (u64, u64), exclusive: bool) -> u32 {
        self.lock_or_claim(range, exclusive, false, true)
    }

    fn lock_or_claim(
        &mut self,
        range: (u64, u64),
        exclusive: bool,
        waits: bool,
        reclaims: bool,
    ) -> u32 {
        let args = Args::new().opaque(b"cookie");
        let args = args.u32(waits.into()).u32(exclusive.into());
        let args = self.lock_args(args, range).u32(reclaims.into()).u32(1);
        let (status, reply) = self.ask(2, &args);
        reply.end();
        status
    }

    pub fn unlock(&mut self, range: (u64, u64)) -> u32 {
        let args = self.lock_args(Args::new().opaque(b"cookie"), range);
        let (status, reply) = self.ask(4, &args);
        reply.end();
        status
    }

    /// SHARE with a deny mode and an access mode.
    pub fn share(&mut self, denies: u32, wants: u32) -> u32 {
        self.share_with(20, denies, wants)
    }

    pub fn unshare(&mut self) -> u32 {
        self.share_with(21, 0, 0)
    }

    fn share_with(&mut self, procedure: u32, denies: u32, wants: u32) -> u32 {
        let owner = [self.machine, &self.process.to_be_bytes()].concat();
        let args = Args::new().opaque(b"cookie").opaque(self.machine);
        let args = args.opaque(&self.fh).opaque(&owner);
        let (status, mut reply) = self.ask(procedure, &args.u32(denies).u32(wants).u32(0));
        reply.u32();
        reply.end();
        status
    }

    pub fn cancel(&mut self, range: (u64, u64)) -> u32 {
        let args = Args::new().opaque(b"cookie").u32(1).u32(1);
        let (status, reply) = self.ask(3, &self.lock_args(args, range));
        reply.end();
        status
    }

    /// Returns the status of a TEST for an exclusive lock.
    pub fn test_status(&mut self, range: (u64, u64)) -> u32 {
        let args = Args::new().opaque(b"cookie").u32(1);
        self.ask(1, &self.lock_args(args, range)).0
    }

    /// Returns the lock that is in the way, if any: whether it is exclusive, its process, and its
    /// range.
    pub fn test(&mut self, range: (u64, u64), exclusive: bool) -> Option<(bool, u32, u64, u64)> {
        let args = Args::new().opaque(b"cookie").u32(exclusive.into());
        let (status, mut reply) = self.ask(1, &self.lock_args(args, range));
        let holder = (status == DENIED).then(|| {
            let (exclusive, process) = (reply.bool(), reply.u32());
            reply.opaque();
            (exclusive, process, reply.u64(), reply.u64())
        });
        assert!(holder.is_some() || status == GRANTED, "{status}");
        reply.end();
        holder
    }
}
