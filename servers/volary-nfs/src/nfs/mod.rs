//! NFS version 3 (RFC 1813): its 22 procedures. May use `rpc`, `kept` and `exports`.
//!
//! | module | procedures |
//! |---|---|
//! | `attrs`, `common` | attributes on the wire; common parts of the procedures |
//! | `nodes` | GETATTR, SETATTR, ACCESS, READLINK |
//! | `names` | LOOKUP, REMOVE, RMDIR, RENAME, LINK |
//! | `makers` | CREATE, MKDIR, SYMLINK, MKNOD |
//! | `data` | READ, WRITE, COMMIT |
//! | `dirs` | READDIR, READDIRPLUS |
//! | `volume` | FSSTAT, FSINFO, PATHCONF |

pub(crate) mod attrs;
mod common;
mod data;
mod dirs;
mod makers;
mod names;
mod nodes;
mod volume;

use crate::exports::resolve::Exports;
use crate::rpc::call::Call;
use crate::rpc::message::Refusal;
use volary_rpc::{Input, Output};

pub(crate) const PROGRAM: u32 = 100_003;
pub(crate) const VERSION: u32 = 3;

/// Answers one call of NFS.
pub(crate) fn answer(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Result<(), Refusal> {
    match call.procedure {
        0 => {}
        1 => nodes::getattr(exports, call, input, out)?,
        2 => nodes::setattr(exports, call, input, out)?,
        3 => names::lookup(exports, call, input, out)?,
        4 => nodes::access(exports, call, input, out)?,
        5 => nodes::readlink(exports, call, input, out)?,
        6 => data::read(exports, call, input, out)?,
        7 => data::write(exports, call, input, out)?,
        8 => makers::create(exports, call, input, out)?,
        9 => makers::mkdir(exports, call, input, out)?,
        10 => makers::symlink(exports, call, input, out)?,
        11 => makers::mknod(exports, call, input, out)?,
        12 => names::remove(exports, call, input, out)?,
        13 => names::rmdir(exports, call, input, out)?,
        14 => names::rename(exports, call, input, out)?,
        15 => names::link(exports, call, input, out)?,
        16 => dirs::readdir(exports, call, input, out)?,
        17 => dirs::readdirplus(exports, call, input, out)?,
        18 => volume::fsstat(exports, call, input, out)?,
        19 => volume::fsinfo(exports, call, input, out)?,
        20 => volume::pathconf(exports, call, input, out)?,
        21 => data::commit(exports, call, input, out)?,
        _ => return Err(Refusal::NoProcedure),
    }
    Ok(())
}
