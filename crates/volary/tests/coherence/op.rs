//! What clients do, and how they are answered.

use std::fmt;
use volary_testkit::rng::Rng;

/// Of the files that all clients use.
pub(crate) const PATHS: [&str; 4] = ["a", "b", "d/a", "d/b"];
/// Clients of a kind.
pub(crate) const CLIENTS: usize = 2;

pub(crate) type Name = usize;

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Fuse,
    Nfs(usize),
    Smb(usize),
}

/// How a held open is made by an SMB client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Read 1, write 2, delete 4.
    pub(crate) wants: u8,
    pub(crate) allows: u8,
    /// R 1, H 2, W 4; `None` asks for no lease.
    pub(crate) lease: Option<u8>,
}

/// Bytes that are locked together: a tenth of a kilobyte each, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Unit(u64),
    All,
}

impl Span {
    /// First byte and length; a length of 0 has no end.
    pub(crate) fn range(self) -> (u64, u64) {
        match self {
            Self::Unit(n) => (n * 100, 100),
            Self::All => (0, 0),
        }
    }

    pub(crate) fn overlaps(self, offset: u64, len: u64) -> bool {
        let (first, length) = self.range();
        len > 0 && (self == Self::All || (first < offset + len && offset < first + length))
    }

    pub(crate) fn meets(self, other: Self) -> bool {
        self == Self::All || other == Self::All || self == other
    }
}

/// One step. Held opens are counted among those of the client that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create(Who, Name),
    /// Opened, written and closed; the seed says what.
    Write(Who, Name, u64, usize, u64),
    /// All of it, opened and closed.
    Read(Who, Name),
    Resize(Who, Name, u64),
    Rename(Who, Name, Name),
    Remove(Who, Name),
    /// The names in the directory of this one.
    List(Who, Name),
    /// An open that is held.
    Open(usize, Name, Share),
    Hold(Name),
    Close(Who, usize),
    /// Through a held open, out of or into the cache where a lease allows it.
    HeldRead(Who, usize),
    HeldWrite(Who, usize, u64, usize, u64),
    /// Whether it goes with its last open.
    SetDelete(usize, usize, bool),
    LockHeld(Who, usize, u64, bool),
    UnlockHeld(Who, usize, u64),
    LockNamed(usize, Name, u64, bool),
    UnlockNamed(usize, Name, u64),
}

/// Why a client was refused, in the session's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum No {
    NotFound,
    Exists,
    Sharing,
    Pending,
    Locked,
    Access,
    Io,
}

impl No {
    /// Returns what this client's protocol makes of it: some have one word for several.
    pub(crate) fn as_seen_by(self, who: Who) -> Self {
        match (who, self) {
            (Who::Fuse, Self::Pending) => Self::NotFound,
            (Who::Nfs(_), Self::Sharing | Self::Pending) => Self::Access,
            _ => self,
        }
    }
}

/// An answer: what was read or listed, if anything was.
pub(crate) type Answer = Result<Seen, No>;

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    Data(Vec<u8>),
    Names(Vec<String>),
    /// The state of a lease that was asked for.
    Lease(u8),
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("done"),
            Self::Data(data) => {
                let sum = data.iter().fold(0_u64, |sum, byte| {
                    sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
                });
                write!(f, "{} bytes ({sum:x})", data.len())
            }
            Self::Names(names) => write!(f, "{names:?}"),
            Self::Lease(bits) => write!(f, "lease {bits}"),
        }
    }
}

fn who(rng: &mut Rng) -> Who {
    match rng.below(5) {
        0 | 1 => Who::Fuse,
        2 | 3 => Who::Nfs(rng.index(CLIENTS)),
        _ => Who::Smb(rng.index(CLIENTS)),
    }
}

fn share(rng: &mut Rng) -> Share {
    // Those that are leased read and write, so that caches can be filled and emptied.
    if rng.one_in(3) {
        return Share {
            wants: *rng.pick(&[1, 2, 3, 4, 5, 7]),
            allows: *rng.pick(&[7, 7, 7, 5, 3, 1]),
            lease: None,
        };
    }
    Share {
        wants: *rng.pick(&[3, 3, 7]),
        allows: *rng.pick(&[7, 7, 7, 7, 3, 5]),
        lease: Some(*rng.pick(&[1, 3, 5, 7, 7, 7])),
    }
}

/// Returns what is done by name, by any client.
pub(crate) fn named(rng: &mut Rng) -> Op {
    let name = rng.index(PATHS.len());
    let (offset, len) = (rng.below(4) * 2500, 1 + rng.index(9000));
    match rng.below(14) {
        0..=2 => Op::Create(who(rng), name),
        3..=5 => Op::Write(who(rng), name, offset, len, rng.next_u64()),
        6..=8 => Op::Read(who(rng), name),
        9 => Op::Resize(who(rng), name, rng.below(12_000)),
        10 => Op::Rename(who(rng), name, (name + 1 + rng.index(3)) % PATHS.len()),
        11 => Op::Remove(who(rng), name),
        _ => Op::List(who(rng), name),
    }
}

/// Returns what is done through held opens, and locks.
pub(crate) fn held(rng: &mut Rng) -> Op {
    let name = rng.index(PATHS.len());
    let (client, open) = (rng.index(CLIENTS), rng.index(4));
    let who = *rng.pick(&[Who::Fuse, Who::Smb(client), Who::Smb(client)]);
    let (offset, len) = (rng.below(4) * 2500, 1 + rng.index(9000));
    let (unit, alone) = (rng.below(3), rng.one_in(2));
    match rng.below(16) {
        0..=3 => Op::Open(client, name, share(rng)),
        4 => Op::Hold(name),
        5 | 6 => Op::Close(who, open),
        7 | 8 => Op::HeldRead(who, open),
        9..=11 => Op::HeldWrite(who, open, offset, len, rng.next_u64()),
        12 if rng.one_in(2) => Op::SetDelete(client, open, !rng.one_in(4)),
        12 | 13 => Op::LockHeld(who, open, unit, alone),
        14 if rng.one_in(2) => Op::UnlockHeld(who, open, unit),
        14 => Op::UnlockNamed(client, name, unit),
        _ => Op::LockNamed(client, name, unit, alone),
    }
}
