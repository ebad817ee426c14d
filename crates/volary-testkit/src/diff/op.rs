//! The operations of a sequence, and how they are printed.

use std::fmt;
use volary_core::{Create, FileKind, RenameFlags};

/// Indices into the pool of names, from the root down; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(pub Vec<u8>);

/// How many opens a sequence holds at once.
pub(super) const SLOTS: u8 = 4;

/// One operation. Places are paths or slots, so that any part of a sequence is
/// a sequence; what does not fit its slot is passed over, on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the operations of FileSystem by path and slot")]
pub enum Op {
    Create {
        at: Path,
        how: Create,
        slot: u8,
        mode: u32,
    },
    MkDir(Path),
    Symlink {
        at: Path,
        len: u16,
    },
    MkNod(Path, FileKind),
    Link(Path, Path),
    Unlink(Path),
    RmDir(Path),
    Rename(Path, Path, RenameFlags),
    Stat(Path),
    SetSize(Path, u64),
    SetMode(Path, u32),
    SetOwner(Path, u32, u32),
    SetTime(Path, i64, u32),
    ReadLink(Path),
    /// Lists a directory, so many entries at a time.
    List(Path, u8),
    ListRoot(u8),
    Open {
        at: Path,
        slot: u8,
        write: bool,
    },
    Read {
        slot: u8,
        offset: u64,
        len: u32,
    },
    /// Without an offset, at the end.
    Write {
        slot: u8,
        offset: Option<u64>,
        len: u32,
        seed: u8,
    },
    SetSizeOpen {
        slot: u8,
        size: u64,
    },
    StatOpen(u8),
    Sync(u8),
    Close(u8),
    /// Asks for the attributes of a node that was seen earlier, by its id.
    StatOld(u16),
    SyncAll,
    Reattach,
    Pass(u32),
}

impl Op {
    /// Returns operations that are simpler in one thing each, for shrinking.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        match self {
            Self::Write {
                slot,
                offset,
                len,
                seed,
            } => {
                for (offset, len) in smaller(*offset, *len) {
                    all.push(Self::Write {
                        slot: *slot,
                        offset,
                        len,
                        seed: *seed,
                    });
                }
            }
            Self::Read { slot, offset, len } => {
                for (offset, len) in smaller(Some(*offset), *len) {
                    all.push(Self::Read {
                        slot: *slot,
                        offset: offset.unwrap_or(0),
                        len,
                    });
                }
            }
            Self::SetSize(at, size) => {
                all.extend(halves(*size).map(|s| Self::SetSize(at.clone(), s)));
            }
            Self::SetSizeOpen { slot, size } => {
                all.extend(halves(*size).map(|size| Self::SetSizeOpen { slot: *slot, size }));
            }
            Self::Symlink { at, len } if *len > 1 => all.push(Self::Symlink {
                at: at.clone(),
                len: len / 2,
            }),
            Self::Pass(secs) if *secs > 1 => all.push(Self::Pass(secs / 2)),
            _ => {}
        }
        all
    }
}

fn smaller(offset: Option<u64>, len: u32) -> Vec<(Option<u64>, u32)> {
    let mut all: Vec<_> = halves(len.into())
        .filter_map(|l| Some((offset, u32::try_from(l).ok()?)))
        .collect();
    if let Some(offset) = offset {
        all.extend(halves(offset).map(|o| (Some(o), len)));
    }
    all
}

fn halves(n: u64) -> impl Iterator<Item = u64> {
    let mut all = vec![0, n / 2, n - n % 512, n.saturating_sub(1)];
    all.retain(|&m| m < n);
    all.into_iter()
}

/// An operation with the names that its paths mean.
pub(super) struct Show<'a>(pub(super) &'a Op, pub(super) &'a [String]);

impl Show<'_> {
    fn path(&self, path: &Path) -> String {
        let parts: Vec<&str> = path
            .0
            .iter()
            .map(|&i| self.1[usize::from(i)].as_str())
            .collect();
        format!("\"{}\"", volary_core::escape(parts.join("/").as_bytes()))
    }
}

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = |path| self.path(path);
        match self.0 {
            Op::Create {
                at,
                how,
                slot,
                mode,
            } => {
                write!(f, "o{slot} = create({}, {how:?}, 0o{mode:o})", p(at))
            }
            Op::MkDir(at) => write!(f, "mkdir({})", p(at)),
            Op::Symlink { at, len } => write!(f, "symlink({}, target of {len})", p(at)),
            Op::MkNod(at, kind) => write!(f, "mknod({}, {kind:?})", p(at)),
            Op::Link(a, b) => write!(f, "link({}, {})", p(a), p(b)),
            Op::Unlink(at) => write!(f, "unlink({})", p(at)),
            Op::RmDir(at) => write!(f, "rmdir({})", p(at)),
            Op::Rename(a, b, flags) => {
                write!(f, "rename({}, {}, {})", p(a), p(b), flag_word(*flags))
            }
            Op::Stat(at) => write!(f, "stat({})", p(at)),
            Op::SetSize(at, size) => write!(f, "set_size({}, {size})", p(at)),
            Op::SetMode(at, mode) => write!(f, "set_mode({}, 0o{mode:o})", p(at)),
            Op::SetOwner(at, u, g) => write!(f, "set_owner({}, {u}, {g})", p(at)),
            Op::SetTime(at, s, n) => write!(f, "set_time({}, {s}.{n:09})", p(at)),
            Op::ReadLink(at) => write!(f, "readlink({})", p(at)),
            Op::List(at, room) => write!(f, "list({}, by {room})", p(at)),
            Op::Open { at, slot, write } => {
                write!(f, "o{slot} = open({}, write: {write})", p(at))
            }
            other => show_open(other, f),
        }
    }
}

fn flag_word(flags: RenameFlags) -> &'static str {
    match flags {
        RenameFlags::KEEP => "KEEP",
        RenameFlags::SWAP => "SWAP",
        _ => "REPLACE",
    }
}

/// The operations without a path.
fn show_open(op: &Op, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match op {
        Op::Read { slot, offset, len } => write!(f, "read(o{slot}, {offset}, {len})"),
        Op::Write {
            slot,
            offset: Some(offset),
            len,
            seed,
        } => {
            write!(f, "write(o{slot}, {offset}, {len} bytes of {seed})")
        }
        Op::Write {
            slot, len, seed, ..
        } => {
            write!(f, "append(o{slot}, {len} bytes of {seed})")
        }
        Op::SetSizeOpen { slot, size } => write!(f, "set_size(o{slot}, {size})"),
        Op::ListRoot(room) => write!(f, "list(\"\", by {room})"),
        Op::StatOpen(slot) => write!(f, "stat(o{slot})"),
        Op::Sync(slot) => write!(f, "fsync(o{slot})"),
        Op::Close(slot) => write!(f, "close(o{slot})"),
        Op::StatOld(n) => write!(f, "stat(node {n} of those seen)"),
        Op::SyncAll => f.write_str("sync()"),
        Op::Reattach => f.write_str("reattach()"),
        Op::Pass(secs) => write!(f, "pass({secs} s)"),
        other => write!(f, "{other:?}"),
    }
}
