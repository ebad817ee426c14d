//! RPC (RFC 5531): the head of a call, its credentials, and the heads of replies.

use volary_core::Cred;
use volary_rpc::numbers::{AUTH_MAX, AUTH_NONE, AUTH_SYS, GROUPS_MAX, MACHINE_MAX};
use volary_rpc::{Decoded, Garbage, Input, Output};

const CALL: u32 = 0;
const REPLY: u32 = 1;
const VERSION: u32 = 2;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;

/// The head of a call.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) xid: u32,
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) procedure: u32,
    pub(crate) auth: Auth,
}

/// The credentials of a call, as the client claims them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    /// `AUTH_NONE`: no user.
    Nobody,
    /// `AUTH_SYS`.
    Sys(Cred),
    /// `AUTH_SYS` that does not decode.
    Bad,
    /// Another flavor.
    Unknown,
}

/// Why a message is not a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCall {
    /// It is malformed: the connection sends garbage.
    Garbage,
    /// It is a call of another version of RPC.
    Version { xid: u32 },
}

impl From<Garbage> for NoCall {
    fn from(_: Garbage) -> Self {
        Self::Garbage
    }
}

/// Why a call is refused before, or in place of, the procedure's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoProgram,
    /// The supported versions.
    NoVersion {
        low: u32,
        high: u32,
    },
    NoProcedure,
    Garbage,
    /// The server failed: a defect.
    Defect,
    /// `AUTH_BADCRED`.
    BadCredentials,
    /// `AUTH_TOOWEAK`.
    OtherFlavor,
}

impl From<Garbage> for Refusal {
    fn from(_: Garbage) -> Self {
        Self::Garbage
    }
}

impl Head {
    /// Reads the head; `input` is then at the arguments.
    pub(crate) fn read(input: &mut Input<'_>) -> Result<Self, NoCall> {
        let xid = input.u32()?;
        if input.u32()? != CALL {
            return Err(NoCall::Garbage);
        }
        if input.u32()? != VERSION {
            return Err(NoCall::Version { xid });
        }
        let (program, version, procedure) = (input.u32()?, input.u32()?, input.u32()?);
        let flavor = input.u32()?;
        let credentials = input.opaque(AUTH_MAX)?;
        input.u32()?;
        input.opaque(AUTH_MAX)?;
        let auth = match flavor {
            AUTH_NONE => Auth::Nobody,
            AUTH_SYS => sys(Input::new(credentials)).map_or(Auth::Bad, Auth::Sys),
            _ => Auth::Unknown,
        };
        Ok(Self {
            xid,
            program,
            version,
            procedure,
            auth,
        })
    }
}

/// Reads an `authsys_parms` (RFC 5531, appendix A).
fn sys(mut input: Input<'_>) -> Decoded<Cred> {
    input.u32()?;
    input.opaque(MACHINE_MAX)?;
    let (uid, gid) = (input.u32()?, input.u32()?);
    let groups = input.numbers(GROUPS_MAX)?.collect();
    if !input.rest().is_empty() {
        return Err(Garbage);
    }
    Ok(Cred { uid, gid, groups })
}

/// Begins the reply to an accepted call: the procedure's results follow.
pub(crate) fn accept(out: &mut Output, xid: u32) {
    accepted(out, xid, 0);
}

fn accepted(out: &mut Output, xid: u32, status: u32) {
    for n in [xid, REPLY, ACCEPTED, AUTH_NONE, 0, status] {
        out.u32(n);
    }
}

/// Writes the reply to a call that is refused.
pub(crate) fn refuse(out: &mut Output, xid: u32, why: Refusal) {
    match why {
        Refusal::NoProgram => accepted(out, xid, 1),
        Refusal::NoVersion { low, high } => {
            accepted(out, xid, 2);
            out.u32(low);
            out.u32(high);
        }
        Refusal::NoProcedure => accepted(out, xid, 3),
        Refusal::Garbage => accepted(out, xid, 4),
        Refusal::Defect => accepted(out, xid, 5),
        Refusal::BadCredentials => deny(out, xid, 1),
        Refusal::OtherFlavor => deny(out, xid, 5),
    }
}

fn deny(out: &mut Output, xid: u32, auth_status: u32) {
    const AUTH_ERROR: u32 = 1;
    for n in [xid, REPLY, DENIED, AUTH_ERROR, auth_status] {
        out.u32(n);
    }
}

/// Writes the reply to a call of another version of RPC.
pub(crate) fn refuse_version(out: &mut Output, xid: u32) {
    const RPC_MISMATCH: u32 = 0;
    for n in [xid, REPLY, DENIED, RPC_MISMATCH, VERSION, VERSION] {
        out.u32(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call_with(flavor: u32, credentials: &[u8]) -> Vec<u8> {
        let mut out = Output::new();
        for n in [9, CALL, VERSION, 100_003, 3, 1, flavor] {
            out.u32(n);
        }
        out.opaque(credentials);
        out.u32(AUTH_NONE);
        out.opaque(b"");
        out.u32(77);
        out.bytes().to_vec()
    }

    fn sys_bytes(groups: u32) -> Vec<u8> {
        let mut out = Output::new();
        out.u32(1);
        out.opaque(b"machine");
        out.u32(1000);
        out.u32(100);
        out.u32(groups);
        (0..groups).for_each(|g| out.u32(g));
        out.bytes().to_vec()
    }

    #[test]
    fn credentials_come_with_the_call() {
        let bytes = call_with(AUTH_SYS, &sys_bytes(2));
        let mut input = Input::new(&bytes);
        let head = Head::read(&mut input).unwrap();
        let Auth::Sys(cred) = head.auth else { panic!() };
        assert_eq!(
            (cred.uid, cred.gid, &*cred.groups),
            (1000, 100, &[0, 1][..])
        );
        assert_eq!(input.u32(), Ok(77));
    }

    #[test]
    fn credentials_that_are_none_are_told_from_a_call_that_is_none() {
        let read = |bytes: &[u8]| Head::read(&mut Input::new(bytes)).map(|h| h.auth);
        assert_eq!(read(&call_with(AUTH_SYS, &sys_bytes(17))), Ok(Auth::Bad));
        assert_eq!(read(&call_with(AUTH_SYS, b"abcd")), Ok(Auth::Bad));
        assert_eq!(read(&call_with(6, b"")), Ok(Auth::Unknown));
        assert_eq!(read(&call_with(0, b"")), Ok(Auth::Nobody));
        assert_eq!(read(&call_with(0, &[0; 401])), Err(NoCall::Garbage));
        let mut other = call_with(0, b"");
        other[11] = 3;
        assert_eq!(read(&other), Err(NoCall::Version { xid: 9 }));
        let bytes = call_with(0, b"");
        for len in 0..40 {
            assert_eq!(read(&bytes[..len]), Err(NoCall::Garbage), "{len}");
        }
    }
}
