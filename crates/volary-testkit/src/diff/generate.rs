//! Random operations.

use super::op::{Op, Path, SLOTS};
use crate::rng::Rng;
use volary_core::{Caps, Create, FileKind, RenameFlags};

/// One operation. Those that the caps rule out come too, but seldom.
pub(super) fn op(rng: &mut Rng, names: usize, caps: &Caps) -> Op {
    match rng.below(100) {
        0..=13 => Op::Create {
            at: path(rng, names),
            how: *rng.pick(&[Create::New, Create::New, Create::Open, Create::Truncate]),
            slot: slot(rng),
            mode: *rng.pick(&[0o644, 0o600, 0o755, 0o444, 0o4711]),
        },
        14..=21 => Op::MkDir(path(rng, names)),
        22..=23 => special(rng, names, caps),
        24..=29 => Op::Unlink(path(rng, names)),
        30..=32 => Op::RmDir(path(rng, names)),
        33..=42 => Op::Rename(path(rng, names), path(rng, names), flags(rng)),
        43..=46 => Op::Stat(path(rng, names)),
        47..=49 => Op::SetSize(path(rng, names), size(rng)),
        50..=52 => set(rng, names, caps),
        53..=54 => Op::List(path(rng, names), 1 + byte(rng, 9)),
        55 => Op::ListRoot(1 + byte(rng, 9)),
        56..=62 => Op::Open {
            at: path(rng, names),
            slot: slot(rng),
            write: !rng.one_in(4),
        },
        63..=67 => Op::Read {
            slot: slot(rng),
            offset: size(rng),
            len: len(rng),
        },
        68..=81 => Op::Write {
            slot: slot(rng),
            offset: (!rng.one_in(3)).then(|| size(rng)),
            len: len(rng),
            seed: byte(rng, 255),
        },
        82..=83 => Op::SetSizeOpen {
            slot: slot(rng),
            size: size(rng),
        },
        84..=85 => Op::StatOpen(slot(rng)),
        86..=87 => Op::Sync(slot(rng)),
        88..=91 => Op::Close(slot(rng)),
        92..=93 => Op::StatOld(u16::try_from(rng.below(1 << 16)).unwrap_or(0)),
        94 => Op::SyncAll,
        95 if rng.one_in(3) => Op::Reattach,
        _ => Op::Pass(1 + u32::from(byte(rng, 9))),
    }
}

/// Returns what not every volume has.
fn special(rng: &mut Rng, names: usize, caps: &Caps) -> Op {
    let kinds = [
        FileKind::Fifo,
        FileKind::Socket,
        FileKind::CharDevice,
        FileKind::BlockDevice,
    ];
    match rng.below(4) {
        0 if caps.has(Caps::DEVICES) || rng.one_in(4) => {
            Op::MkNod(path(rng, names), *rng.pick(&kinds))
        }
        1 if caps.has(Caps::HARD_LINKS) || rng.one_in(4) => {
            Op::Link(path(rng, names), path(rng, names))
        }
        2 => Op::ReadLink(path(rng, names)),
        _ => Op::Symlink {
            at: path(rng, names),
            len: 1 + u16::try_from(rng.below(300)).unwrap_or(0),
        },
    }
}

fn set(rng: &mut Rng, names: usize, caps: &Caps) -> Op {
    let at = path(rng, names);
    match rng.below(3) {
        0 if caps.has(Caps::MODES) => {
            Op::SetMode(at, u32::try_from(rng.below(0o10000)).unwrap_or(0))
        }
        1 if caps.has(Caps::MODES) => {
            Op::SetOwner(at, *rng.pick(&[0, 1, 1000]), *rng.pick(&[0, 5, 1000]))
        }
        _ => {
            let secs = 1_000_000_000 + i64::try_from(rng.below(700_000_000)).unwrap_or(0);
            let nanos = u32::try_from(rng.below(1_000_000_000)).unwrap_or(0);
            Op::SetTime(at, secs, nanos)
        }
    }
}

/// Mostly at the top, mostly one of the first names, so that paths meet.
fn path(rng: &mut Rng, names: usize) -> Path {
    let depth = match rng.below(10) {
        0..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    let name = |rng: &mut Rng| {
        let among = if rng.one_in(3) { names } else { names.min(6) };
        u8::try_from(rng.index(among)).unwrap_or(0)
    };
    Path((0..depth).map(|_| name(rng)).collect())
}

fn flags(rng: &mut Rng) -> RenameFlags {
    match rng.below(8) {
        0 => RenameFlags::KEEP,
        1 => RenameFlags::SWAP,
        _ => RenameFlags::REPLACE,
    }
}

fn slot(rng: &mut Rng) -> u8 {
    byte(rng, SLOTS)
}

fn byte(rng: &mut Rng, below: u8) -> u8 {
    u8::try_from(rng.below(below.into())).unwrap_or(0)
}

/// Returns a size or an offset: small ones, and those beside what formats count in.
fn size(rng: &mut Rng) -> u64 {
    let edge = [0, 512, 1024, 2048, 4096, 8192, 16_384, 32_768];
    match rng.below(10) {
        0..=2 => rng.below(100),
        3..=5 => (rng.pick(&edge) + rng.below(3)).saturating_sub(1),
        6..=8 => rng.below(10_000),
        _ => rng.below(60_000),
    }
}

fn len(rng: &mut Rng) -> u32 {
    let len = match rng.below(10) {
        0..=4 => rng.below(100),
        5..=7 => rng.below(2000),
        8 => 512 * (1 + rng.below(16)),
        _ => rng.below(20_000),
    };
    u32::try_from(len).unwrap_or(0)
}
