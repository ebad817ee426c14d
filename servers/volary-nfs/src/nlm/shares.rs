//! SHARE and UNSHARE: what a client does with a file, and what it allows others meanwhile. Each
//! share is an open of the session with that share mode, so that it conflicts with SMB clients'
//! opens. The shares of an NFS client never conflict with NFS clients' reads and writes, which name
//! no owner, or with their locks.

use super::Nlm;
use super::sharing::Asked;
use super::wanted::OBJECT_MAX;
use crate::rpc::call::Call;
use crate::status::LockStatus;
use volary_rpc::{Decoded, Input, Output};

impl Nlm {
    pub(super) fn share(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let asked = Asked::read(input, call)?;
        let reclaims = input.bool()?;
        let place = self.place_now(call, asked.fh, reclaims);
        let done = place.and_then(|place| {
            let shared = self.shares.open(&place, &asked)?;
            self.note_client(&asked.owner.client, call.local.ip().to_canonical())?;
            self.shares.put(asked.id(&place), shared)
        });
        answer(out, cookie, done);
        Ok(())
    }

    pub(super) fn unshare(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let asked = Asked::read(input, call)?;
        input.bool()?;
        let place = self.place(call, asked.fh);
        let done = place.map(|place| drop(self.shares.remove(&asked.id(&place))));
        answer(out, cookie, done);
        Ok(())
    }
}

/// Writes an `nlm4_shareres`.
fn answer(out: &mut Output, cookie: &[u8], done: Result<(), LockStatus>) {
    out.opaque(cookie);
    out.u32(done.err().unwrap_or(LockStatus::GRANTED).0);
    // No client looks at the sequence.
    out.u32(0);
}
