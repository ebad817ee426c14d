//! Conversion between C's structures and volary's, with checks of everything that comes from a
//! plug-in.

use crate::abi::*;
use volary_core::{Attr, Create, FileKind, Kind, Mode, NodeId, SetAttr, SetTime, StatFs, Time};

/// The largest valid size, in bytes.
const SIZE_MAX: u64 = i64::MAX as u64;

pub(crate) fn kind(code: i64) -> Option<Kind> {
    let index = usize::try_from(code.checked_neg()?.checked_sub(1)?).ok()?;
    Kind::ALL.get(index).copied()
}

pub(crate) fn code(kind: Kind) -> i32 {
    let index = Kind::ALL.iter().position(|k| *k == kind).unwrap_or(0);
    -(index as i32) - 1
}

pub(crate) fn time(t: Time) -> VolaryTime {
    VolaryTime {
        secs: t.secs,
        nanos: t.nanos,
    }
}

fn time_from(t: VolaryTime) -> Result<Time, String> {
    match t.nanos < 1_000_000_000 {
        true => Ok(Time::new(t.secs, t.nanos)),
        false => Err(format!("gave a time with {} nanoseconds", t.nanos)),
    }
}

pub(crate) fn node(n: VolaryNode) -> Result<NodeId, String> {
    NodeId::new(n.ino, n.generation).ok_or_else(|| "gave a node with the number 0".to_owned())
}

pub(crate) fn to_node(n: NodeId) -> VolaryNode {
    VolaryNode {
        ino: n.ino.get(),
        generation: n.generation,
    }
}

const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Dir,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];

pub(crate) fn file_kind(number: u32) -> Result<FileKind, String> {
    let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
    let found = at.and_then(|at| KINDS.get(at)).copied();
    found.ok_or_else(|| format!("gave a node of kind {number}"))
}

pub(crate) fn to_file_kind(kind: FileKind) -> u32 {
    let at = KINDS.iter().position(|k| *k == kind).unwrap_or(0);
    at as u32 + 1
}

/// Converts attributes to volary's form.
///
/// # Errors
/// Says in words what is wrong with them.
pub(crate) fn attr(a: &VolaryAttr) -> Result<Attr, String> {
    if a.mode & !0o7777 != 0 {
        return Err(format!(
            "gave the mode {:o}, of which 12 bits are permissions",
            a.mode
        ));
    }
    if a.size > SIZE_MAX || a.allocated > SIZE_MAX {
        return Err(format!(
            "gave a size of {} bytes, {} of room",
            a.size, a.allocated
        ));
    }
    if a.has & VOLARY_HAS_DOS != 0 && a.dos > 0xff {
        return Err(format!("gave the DOS attributes {:x}", a.dos));
    }
    let ctime = time_from(a.ctime)?;
    let change = match a.has & VOLARY_HAS_CHANGE != 0 {
        true => a.change,
        false => (ctime.secs as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(ctime.nanos.into()),
    };
    Ok(Attr {
        node: node(a.node)?,
        kind: file_kind(a.kind)?,
        mode: a.mode,
        nlink: a.nlink,
        uid: a.uid,
        gid: a.gid,
        rdev: a.rdev,
        size: a.size,
        allocated: a.allocated,
        io_size: if a.io_size == 0 { 4096 } else { a.io_size },
        atime: time_from(a.atime)?,
        mtime: time_from(a.mtime)?,
        ctime,
        btime: match a.has & VOLARY_HAS_BTIME != 0 {
            true => Some(time_from(a.btime)?),
            false => None,
        },
        change,
        dos: (a.has & VOLARY_HAS_DOS != 0).then_some(a.dos as u8),
    })
}

pub(crate) fn to_attr(a: &Attr) -> VolaryAttr {
    let mut has = VOLARY_HAS_CHANGE;
    if a.btime.is_some() {
        has |= VOLARY_HAS_BTIME;
    }
    if a.dos.is_some() {
        has |= VOLARY_HAS_DOS;
    }
    VolaryAttr {
        node: to_node(a.node),
        kind: to_file_kind(a.kind),
        mode: a.mode,
        nlink: a.nlink,
        uid: a.uid,
        gid: a.gid,
        has,
        rdev: a.rdev,
        size: a.size,
        allocated: a.allocated,
        io_size: a.io_size,
        dos: a.dos.unwrap_or(0).into(),
        atime: time(a.atime),
        mtime: time(a.mtime),
        ctime: time(a.ctime),
        btime: time(a.btime.unwrap_or(Time::EPOCH)),
        change: a.change,
    }
}

pub(crate) fn to_set(set: &SetAttr, now: Time) -> VolarySetAttr {
    let mut c = VolarySetAttr::default();
    let mut has = |is_there: bool, bit: u32| {
        if is_there {
            c.set |= bit;
        }
    };
    has(set.mode.is_some(), VOLARY_SET_MODE);
    has(set.uid.is_some(), VOLARY_SET_UID);
    has(set.gid.is_some(), VOLARY_SET_GID);
    has(set.size.is_some(), VOLARY_SET_SIZE);
    has(set.dos.is_some(), VOLARY_SET_DOS);
    has(set.atime.is_some(), VOLARY_SET_ATIME);
    has(set.mtime.is_some(), VOLARY_SET_MTIME);
    has(set.btime.is_some(), VOLARY_SET_BTIME);
    has(set.atime == Some(SetTime::Now), VOLARY_SET_ATIME_NOW);
    has(set.mtime == Some(SetTime::Now), VOLARY_SET_MTIME_NOW);
    has(set.btime == Some(SetTime::Now), VOLARY_SET_BTIME_NOW);
    let given = |set: Option<SetTime>| match set {
        Some(SetTime::To(t)) => time(t),
        Some(SetTime::Now) => time(now),
        None => VolaryTime::default(),
    };
    c.mode = set.mode.unwrap_or(0);
    c.uid = set.uid.unwrap_or(0);
    c.gid = set.gid.unwrap_or(0);
    c.size = set.size.unwrap_or(0);
    c.dos = set.dos.unwrap_or(0).into();
    c.atime = given(set.atime);
    c.mtime = given(set.mtime);
    c.btime = given(set.btime);
    c
}

pub(crate) fn set(c: &VolarySetAttr) -> SetAttr {
    let has = |bit: u32| c.set & bit != 0;
    let given = |bit: u32, now: u32, t: VolaryTime| {
        has(bit).then(|| match has(now) {
            true => SetTime::Now,
            false => SetTime::To(Time::new(t.secs, t.nanos)),
        })
    };
    SetAttr {
        mode: has(VOLARY_SET_MODE).then_some(c.mode),
        uid: has(VOLARY_SET_UID).then_some(c.uid),
        gid: has(VOLARY_SET_GID).then_some(c.gid),
        size: has(VOLARY_SET_SIZE).then_some(c.size),
        atime: given(VOLARY_SET_ATIME, VOLARY_SET_ATIME_NOW, c.atime),
        mtime: given(VOLARY_SET_MTIME, VOLARY_SET_MTIME_NOW, c.mtime),
        btime: given(VOLARY_SET_BTIME, VOLARY_SET_BTIME_NOW, c.btime),
        dos: has(VOLARY_SET_DOS).then_some(c.dos as u8),
    }
}

pub(crate) fn to_mode(mode: Mode) -> u32 {
    match mode {
        Mode::Read => VOLARY_READ,
        Mode::Write => VOLARY_WRITE,
        Mode::ReadWrite => VOLARY_READ | VOLARY_WRITE,
    }
}

pub(crate) fn mode(mode: u32) -> Option<Mode> {
    Some(match mode {
        VOLARY_READ => Mode::Read,
        VOLARY_WRITE => Mode::Write,
        m if m == VOLARY_READ | VOLARY_WRITE => Mode::ReadWrite,
        _ => return None,
    })
}

pub(crate) fn to_create(how: Create) -> u32 {
    match how {
        Create::New => VOLARY_CREATE_NEW,
        Create::Open => VOLARY_CREATE_OPEN,
        Create::Truncate => VOLARY_CREATE_TRUNCATE,
    }
}

pub(crate) fn create(how: u32) -> Option<Create> {
    Some(match how {
        VOLARY_CREATE_NEW => Create::New,
        VOLARY_CREATE_OPEN => Create::Open,
        VOLARY_CREATE_TRUNCATE => Create::Truncate,
        _ => return None,
    })
}

/// Returns how full a volume is whose driver does not tell: of one block, which is in use.
pub(crate) fn untold() -> StatFs {
    StatFs {
        block_size: BLOCK,
        size: BLOCK.into(),
        ..StatFs::default()
    }
}

const BLOCK: u32 = 4096;

pub(crate) fn statfs(c: &VolaryStatFs) -> StatFs {
    StatFs {
        block_size: if c.block_size == 0 {
            BLOCK
        } else {
            c.block_size
        },
        size: c.size,
        free: c.free,
        available: c.available,
        nodes: c.nodes,
        nodes_free: c.nodes_free,
    }
}

pub(crate) fn to_statfs(s: &StatFs) -> VolaryStatFs {
    VolaryStatFs {
        block_size: s.block_size,
        size: s.size,
        free: s.free,
        available: s.available,
        nodes: s.nodes,
        nodes_free: s.nodes_free,
    }
}
