//! FSSTAT, FSINFO, PATHCONF.

use super::common::{DATA_MAX, read_fh};
use super::nodes::write_none;
use crate::exports::resolve::Exports;
use crate::nfs::attrs::write_time;
use crate::rpc::call::Call;
use crate::status::Status;
use volary_core::{Caps, Time};
use volary_rpc::{Decoded, Input, Output, count};

/// The preferred size of a READDIR request, in bytes.
const LIST_BEST: u32 = 64 << 10;
const BLOCK: u32 = 4096;

/// The properties of FSINFO (RFC 1813, section 3.3.19).
mod properties {
    pub(super) const LINK: u32 = 0x01;
    pub(super) const SYMLINK: u32 = 0x02;
    pub(super) const HOMOGENEOUS: u32 = 0x08;
    pub(super) const CAN_SET_TIME: u32 = 0x10;
}

pub(super) fn fsstat(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let found = exports.at(call, fh).and_then(|at| {
        let stat = at.session.statfs()?;
        Ok((at, stat))
    });
    match found {
        Ok((at, stat)) => {
            out.u32(Status::OK.0);
            at.write_post(out, at.attr().as_ref());
            let (nodes, free) = (stat.nodes, stat.nodes_free);
            for n in [stat.size, stat.free, stat.available, nodes, free, free] {
                out.u64(n);
            }
            // `invarsec`: the values may change at any time.
            out.u32(0);
        }
        Err(status) => write_none(out, status),
    }
    Ok(())
}

pub(super) fn fsinfo(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let Some(caps) = begin_caps(exports, call, read_fh(input)?, out) else {
        return Ok(());
    };
    let data = count(DATA_MAX);
    for n in [data, data, BLOCK, data, data, BLOCK, LIST_BEST] {
        out.u32(n);
    }
    out.u64(caps.size_max);
    let step = caps.time_step.max(1);
    let secs = i64::try_from(step / 1_000_000_000).unwrap_or(i64::MAX);
    write_time(out, Time::new(secs, (step % 1_000_000_000) as u32));
    let mut bits = properties::HOMOGENEOUS | properties::CAN_SET_TIME;
    if caps.has(Caps::HARD_LINKS) {
        bits |= properties::LINK;
    }
    if caps.has(Caps::SYMLINKS) {
        bits |= properties::SYMLINK;
    }
    out.u32(bits);
    Ok(())
}

pub(super) fn pathconf(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let Some(caps) = begin_caps(exports, call, read_fh(input)?, out) else {
        return Ok(());
    };
    // Volumes do not tell their maximum link count; with hard links, it is at least this.
    let links = if caps.has(Caps::HARD_LINKS) {
        32_000
    } else {
        1
    };
    out.u32(links);
    out.u32(caps.name_max.into());
    // `no_trunc`: names that are too long are refused. `chown_restricted`: only root gives files
    // away.
    out.bool(true);
    out.bool(true);
    out.bool(!caps.has(Caps::CASE_SENSITIVE));
    out.bool(caps.has(Caps::CASE_KEEPING));
    Ok(())
}

/// Begins a reply about the capabilities of a handle's volume. `None` if it became an error, which
/// is complete.
fn begin_caps(exports: &Exports, call: &Call, fh: &[u8], out: &mut Output) -> Option<Caps> {
    match exports.at(call, fh) {
        Ok(at) => {
            out.u32(Status::OK.0);
            at.write_post(out, at.attr().as_ref());
            Some(at.export.caps())
        }
        Err(status) => {
            write_none(out, status);
            None
        }
    }
}
