//! Calls about shares and the server (MS-SRVS 3.1.4).

use super::caller::Caller;
use super::ndr::{Args, Results};
use crate::wire::Short;
use volary_core::same_name;

const SHARE_ENUM: u16 = 15;
const SHARE_GET_INFO: u16 = 16;
const SERVER_GET_INFO: u16 = 21;

/// Results of calls.
const OK: u32 = 0;
const INVALID_LEVEL: u32 = 124;
const NO_SUCH_SHARE: u32 = 2310;

/// `PLATFORM_ID_NT`.
const PLATFORM: u32 = 500;
/// `SV_TYPE_WORKSTATION`, `SV_TYPE_SERVER`, `SV_TYPE_SERVER_NT`.
const SERVER_TYPE: u32 = 0x1 | 0x2 | 0x8000;

/// An error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no such operation.
    Operation,
    Args,
    /// The client has not bound the interface.
    Unbound,
}

impl From<Short> for Fault {
    fn from(_: Short) -> Self {
        Self::Args
    }
}

/// A share in a list.
struct Listed<'a> {
    name: &'a str,
    kind: u32,
    remark: &'a str,
}

/// Carries out a call. Returns its results.
pub(super) fn call(caller: Caller<'_>, operation: u16, args: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut args = Args::new(args);
    // Each call begins with the server's name, which is already known.
    let mut unnamed = || args.pointed(Args::string).map(|_| ());
    match operation {
        SHARE_ENUM => {
            unnamed()?;
            share_enum(caller, &mut args)
        }
        SHARE_GET_INFO => {
            unnamed()?;
            share_get_info(caller, &mut args)
        }
        SERVER_GET_INFO => {
            unnamed()?;
            server_get_info(caller, &mut args)
        }
        _ => Err(Fault::Operation),
    }
}

/// Returns the shares that the caller may use.
fn listed(caller: Caller<'_>) -> Vec<Listed<'_>> {
    let shares = caller.config.shares.iter();
    let theirs = shares.filter(move |share| share.is_for(caller.user, caller.peer));
    let shares = theirs.map(|share| Listed {
        name: &share.name,
        kind: 0,
        remark: "",
    });
    let pipes = Listed {
        name: "IPC$",
        kind: 0x8000_0003,
        remark: "Remote IPC",
    };
    shares.chain([pipes]).collect()
}

/// Carries out `NetrShareEnum`.
fn share_enum(caller: Caller<'_>, args: &mut Args<'_>) -> Result<Vec<u8>, Fault> {
    let (level, _switch) = (args.u32()?, args.u32()?);
    let container = args.pointed(|args| {
        let (_count, array) = (args.u32()?, args.u32()?);
        // The array is for the answer, so its pointer must be null in a request.
        if array == 0 { Ok(()) } else { Err(Short) }
    });
    container?;
    let _len_max = args.u32()?;
    let resumes = args.pointed(Args::u32)?.is_some();
    let shares = listed(caller);
    let count = crate::wire::out::len32(shares.len());
    let mut out = Results::default();
    out.u32(level).u32(level);
    let status = if level <= 1 {
        out.pointer().u32(count).pointer().u32(count);
        for share in &shares {
            one_share(&mut out, share, level);
        }
        out.strings().u32(count);
        OK
    } else {
        out.u32(0).u32(0);
        INVALID_LEVEL
    };
    if resumes {
        out.pointer().u32(0);
    } else {
        out.u32(0);
    }
    out.u32(status);
    Ok(out.done())
}

/// Appends `SHARE_INFO_0` or `SHARE_INFO_1`.
fn one_share(out: &mut Results, share: &Listed<'_>, level: u32) {
    out.string(share.name);
    if level >= 1 {
        out.u32(share.kind).string(share.remark);
    }
}

/// Carries out `NetrShareGetInfo`.
fn share_get_info(caller: Caller<'_>, args: &mut Args<'_>) -> Result<Vec<u8>, Fault> {
    let name = args.string()?;
    let level = args.u32()?;
    let shares = listed(caller);
    let found = shares
        .iter()
        .find(|s| same_name(s.name.as_bytes(), name.as_bytes()));
    let mut out = Results::default();
    out.u32(level);
    let status = match found {
        None => NO_SUCH_SHARE,
        Some(_) if level > 1 => INVALID_LEVEL,
        Some(share) => {
            out.pointer();
            one_share(&mut out, share, level);
            out.strings();
            OK
        }
    };
    if status != OK {
        out.u32(0);
    }
    out.u32(status);
    Ok(out.done())
}

/// Carries out `NetrServerGetInfo`.
fn server_get_info(caller: Caller<'_>, args: &mut Args<'_>) -> Result<Vec<u8>, Fault> {
    let level = args.u32()?;
    let mut out = Results::default();
    out.u32(level);
    let status = match level {
        100 | 101 => {
            out.pointer().u32(PLATFORM).string(&caller.config.name);
            if level == 101 {
                out.u32(6).u32(1).u32(SERVER_TYPE).string("");
            }
            out.strings();
            OK
        }
        _ => {
            out.u32(0);
            INVALID_LEVEL
        }
    };
    out.u32(status);
    Ok(out.done())
}
