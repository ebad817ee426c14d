//! The client side: heads of calls, and the meaning of replies.

use crate::numbers::{AUTH_MAX, AUTH_NONE, AUTH_SYS, GROUPS_MAX, MACHINE_MAX, Program};
use crate::{Decoded, Garbage, Input, Output, count};
use volary_core::Cred;

const CALL: u32 = 0;
const REPLY: u32 = 1;
const RPC_VERSION: u32 = 2;

/// Writes the head of a call; the procedure's arguments follow. Without `cred`, the call is
/// anonymous (`AUTH_NONE`). At most sixteen supplementary groups are sent, and at most 255 bytes of
/// the machine's name.
pub fn call(
    out: &mut Output,
    xid: u32,
    program: Program,
    procedure: u32,
    cred: Option<(&Cred, &[u8])>,
) {
    for n in [
        xid,
        CALL,
        RPC_VERSION,
        program.number,
        program.version,
        procedure,
    ] {
        out.u32(n);
    }
    match cred {
        None => {
            out.u32(AUTH_NONE);
            out.u32(0);
        }
        Some((cred, machine)) => {
            out.u32(AUTH_SYS);
            sys(out, cred, machine);
        }
    }
    out.u32(AUTH_NONE);
    out.u32(0);
}

/// Writes an `authsys_parms` (RFC 5531, appendix A), after its length.
fn sys(out: &mut Output, cred: &Cred, machine: &[u8]) {
    let place = out.len();
    out.u32(0);
    let start = out.len();
    out.u32(0);
    out.opaque(machine.get(..MACHINE_MAX).unwrap_or(machine));
    out.u32(cred.uid);
    out.u32(cred.gid);
    let groups = cred.groups.get(..GROUPS_MAX).unwrap_or(&cred.groups);
    out.u32(count(groups.len()));
    groups.iter().for_each(|&g| out.u32(g));
    let len = out.len().saturating_sub(start);
    out.patch(place, count(len));
}

/// The outcome of a call, as a reply tells it.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// It was executed: the procedure's results.
    Done(Input<'a>),
    /// There is no such program, version or procedure.
    Unavailable,
    /// The server could not decode the arguments.
    Garbage,
    /// The server failed (`SYSTEM_ERR`), or speaks another version of RPC.
    Failed,
    /// The credentials were refused (`AUTH_ERROR`).
    Denied,
}

/// Returns the number of the call that a record replies to, and the outcome.
///
/// # Errors
/// [`Garbage`] if it is not a reply.
pub fn reply(record: &[u8]) -> Decoded<(u32, Reply<'_>)> {
    let mut input = Input::new(record);
    let xid = input.u32()?;
    if input.u32()? != REPLY {
        return Err(Garbage);
    }
    match input.u32()? {
        0 => {}
        // MSG_DENIED: RPC_MISMATCH or AUTH_ERROR.
        1 => {
            let why = match input.u32()? {
                0 => Reply::Failed,
                1 => Reply::Denied,
                _ => return Err(Garbage),
            };
            return Ok((xid, why));
        }
        _ => return Err(Garbage),
    }
    input.u32()?;
    input.opaque(AUTH_MAX)?;
    let said = match input.u32()? {
        0 => Reply::Done(input),
        1..=3 => Reply::Unavailable,
        4 => Reply::Garbage,
        5 => Reply::Failed,
        _ => return Err(Garbage),
    };
    Ok((xid, said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::NFS;

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|n| n.to_be_bytes()).collect()
    }

    #[test]
    fn a_call_says_who_calls() {
        let cred = Cred {
            uid: 1000,
            gid: 100,
            groups: (0..20).collect(),
        };
        let mut out = Output::new();
        call(&mut out, 7, NFS, 1, Some((&cred, &[b'm'; 300])));
        let mut input = Input::new(out.bytes());
        for n in [7, 0, 2, 100_003, 3, 1, AUTH_SYS] {
            assert_eq!(input.u32(), Ok(n));
        }
        let mut sys = Input::new(input.opaque(AUTH_MAX).unwrap());
        assert_eq!(sys.u32(), Ok(0));
        assert_eq!(sys.opaque(MACHINE_MAX).unwrap().len(), 255);
        assert_eq!((sys.u32(), sys.u32()), (Ok(1000), Ok(100)));
        assert_eq!(sys.numbers(16).unwrap().count(), 16);
        assert!(sys.rest().is_empty());
        assert_eq!((input.u32(), input.u32()), (Ok(0), Ok(0)));
        assert!(input.rest().is_empty());
    }

    #[test]
    fn what_a_reply_says_is_told_apart() {
        let said = |all: &[u32]| match reply(&words(all)) {
            Err(Garbage) => "garbage".to_string(),
            Ok((9, Reply::Done(rest))) => format!("done {}", rest.rest().len()),
            Ok((9, other)) => format!("{other:?}"),
            Ok(_) => "another's".to_string(),
        };
        assert_eq!(said(&[9, 1, 0, 0, 0, 0, 5]), "done 4");
        assert_eq!(said(&[9, 1, 0, 0, 0, 1]), "Unavailable");
        assert_eq!(said(&[9, 1, 0, 0, 0, 2, 3, 3]), "Unavailable");
        assert_eq!(said(&[9, 1, 0, 0, 0, 4]), "Garbage");
        assert_eq!(said(&[9, 1, 0, 0, 0, 5]), "Failed");
        assert_eq!(said(&[9, 1, 1, 1, 5]), "Denied");
        assert_eq!(said(&[9, 1, 1, 0, 2, 2]), "Failed");
        for bad in [
            &[9, 0, 0, 0, 0, 0][..],
            &[9, 1, 2],
            &[9, 1, 0, 0, 401],
            &[9, 1, 0, 0, 0, 6],
            &[9, 1, 1, 2],
            &[9, 1],
            &[],
        ] {
            assert_eq!(said(bad), "garbage", "{bad:?}");
        }
    }
}
