//! NSM version 1 (program 100024), as far as a lock server needs it: a client tells that it has
//! restarted, and its locks end. A client can end only locks from its own address, and on this host
//! only those of its own user.

use super::Nlm;
use super::state::Client;
use crate::rpc::call::Call;
use crate::rpc::message::Refusal;
use volary_rpc::{Input, Output};

pub(crate) const PROGRAM: u32 = 100_024;
pub(crate) const VERSION: u32 = 1;

impl Nlm {
    /// Answers one call of NSM.
    pub(crate) fn nsm(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        _: &mut Output,
    ) -> Result<(), Refusal> {
        match call.procedure {
            0 => {}
            // SM_NOTIFY
            6 => {
                let client = Client::read(input, call)?;
                input.u32()?;
                self.end_client(&client);
            }
            _ => return Err(Refusal::NoProcedure),
        }
        Ok(())
    }
}
