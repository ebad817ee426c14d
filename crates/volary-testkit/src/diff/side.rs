//! One of the two volumes: does an operation and says what was seen.

use super::op::{Op, Path, SLOTS};
use super::rules::Times;
use crate::rng::pattern;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, FileKind, Fs, Kind, Mode, Name, NodeId, OpenId,
    Result, SetAttr, SetTime, Time,
};

/// A volume and what a sequence has open on it.
pub(super) struct Side {
    pub(super) fs: Fs,
    pub(super) slots: [Option<Slot>; SLOTS as usize],
    /// The node that the last operation found or made, if it gave one.
    pub(super) found: Option<NodeId>,
}

#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) open: OpenId,
    pub(super) node: NodeId,
    write: bool,
    dir: bool,
}

/// What an operation shows to who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    /// There was nothing in the slot.
    PassedOver,
    Attr(AttrSeen),
    Data(Vec<u8>),
    Offset(u64),
    Entries(Vec<(Vec<u8>, FileKind)>),
}

/// The attributes that a volume and its model agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttrSeen {
    pub(super) kind: FileKind,
    pub(super) size: u64,
    pub(super) nlink: u32,
    pub(super) rdev: u64,
    pub(super) owner: (u32, u32, u32),
    pub(super) mtime: Option<Time>,
}

impl AttrSeen {
    pub(super) fn new(attr: &Attr, times: Times) -> Self {
        let dir = attr.kind == FileKind::Dir;
        let timed = match times {
            Times::All => true,
            Times::Files => !dir,
            Times::None => false,
        };
        let sized = matches!(attr.kind, FileKind::File | FileKind::Symlink);
        Self {
            kind: attr.kind,
            size: if sized { attr.size } else { 0 },
            // Formats count the names of directories in their own ways.
            nlink: if dir { 0 } else { attr.nlink },
            rdev: attr.rdev,
            owner: (attr.mode, attr.uid, attr.gid),
            mtime: timed.then_some(attr.mtime),
        }
    }
}

/// What all operations of a step need.
pub(super) struct Step<'a> {
    pub(super) cx: Ctx<'a>,
    pub(super) names: &'a [String],
    pub(super) times: Times,
}

impl Step<'_> {
    fn attr(&self, attr: &Attr) -> Seen {
        Seen::Attr(AttrSeen::new(attr, self.times))
    }
}

impl Side {
    pub(super) fn new(fs: Fs) -> Self {
        Self {
            fs,
            slots: [None; SLOTS as usize],
            found: None,
        }
    }

    fn name<'a>(step: &Step<'a>, index: u8) -> Result<Name<'a>> {
        Ok(Name::new(step.names[usize::from(index)].as_bytes())?)
    }

    /// Returns the directory that holds the last name of a path, and that name.
    fn parent<'a>(&self, step: &Step<'a>, path: &Path) -> Result<(NodeId, Name<'a>)> {
        let (last, dirs) = path.0.split_last().ok_or(Kind::Invalid)?;
        let mut at = self.fs.root();
        for &dir in dirs {
            let entry = self.fs.lookup(&step.cx, at, Self::name(step, dir)?)?;
            if entry.attr.kind != FileKind::Dir {
                return Err(Kind::NotDir.into());
            }
            at = entry.node;
        }
        Ok((at, Self::name(step, *last)?))
    }

    fn find(&mut self, step: &Step<'_>, path: &Path) -> Result<Entry> {
        let (dir, name) = self.parent(step, path)?;
        let entry = self.fs.lookup(&step.cx, dir, name)?;
        self.found = Some(entry.node);
        Ok(entry)
    }

    fn slot(&self, slot: u8) -> Option<Slot> {
        self.slots[usize::from(slot)]
    }

    /// Ends what is in a slot, to make room in it.
    pub(super) fn empty(&mut self, cx: &Ctx<'_>, slot: u8) -> Result<()> {
        match self.slots[usize::from(slot)].take() {
            Some(old) => self.fs.close(cx, old.open),
            None => Ok(()),
        }
    }

    /// Does one operation.
    pub(super) fn act(&mut self, step: &Step<'_>, op: &Op) -> Result<Seen> {
        self.found = None;
        match op {
            Op::Create { .. }
            | Op::MkDir(_)
            | Op::Symlink { .. }
            | Op::MkNod(..)
            | Op::Link(..) => self.make(step, op),
            Op::Unlink(_) | Op::RmDir(_) | Op::Rename(..) => self.remove_or_move(step, op),
            Op::SetSize(at, size) => self.set(step, at, &SetAttr::size(*size)),
            Op::SetMode(at, mode) => self.set(step, at, &SetAttr::mode(*mode)),
            Op::SetOwner(at, uid, gid) => {
                let set = SetAttr {
                    uid: Some(*uid),
                    gid: Some(*gid),
                    ..SetAttr::default()
                };
                self.set(step, at, &set)
            }
            Op::SetTime(at, secs, nanos) => {
                let set = SetAttr {
                    mtime: Some(SetTime::To(Time::new(*secs, *nanos))),
                    ..SetAttr::default()
                };
                self.set(step, at, &set)
            }
            Op::Stat(at) => {
                let node = self.find(step, at)?.node;
                Ok(step.attr(&self.fs.getattr(&step.cx, node)?))
            }
            Op::ReadLink(at) => {
                let node = self.find(step, at)?.node;
                Ok(Seen::Data(self.fs.readlink(&step.cx, node)?))
            }
            Op::List(at, room) => {
                let node = self.find(step, at)?.node;
                self.list(step, node, *room)
            }
            Op::ListRoot(room) => self.list(step, self.fs.root(), *room),
            Op::Open { at, slot, write } => self.open(step, at, *slot, *write),
            Op::SyncAll => self.fs.sync(&step.cx).map(|()| Seen::Nothing),
            Op::StatOld(_) | Op::Reattach | Op::Pass(_) => Ok(Seen::Nothing),
            other => self.on_slot(step, other),
        }
    }

    fn make(&mut self, step: &Step<'_>, op: &Op) -> Result<Seen> {
        let keeps_modes = self.fs.caps().has(Caps::MODES);
        let usual = |mode| {
            if keeps_modes {
                SetAttr::owned(mode, 0, 0)
            } else {
                SetAttr::default()
            }
        };
        let cx = &step.cx;
        let entry = match op {
            Op::Create {
                at,
                how,
                slot,
                mode,
            } => {
                let (dir, name) = self.parent(step, at)?;
                let (entry, open) = self.fs.create(cx, dir, name, *how, &usual(*mode))?;
                self.slots[usize::from(*slot)] = Some(Slot {
                    open,
                    node: entry.node,
                    write: true,
                    dir: false,
                });
                if *how != Create::Open && entry.attr.size != 0 {
                    return Ok(Seen::Offset(entry.attr.size));
                }
                entry
            }
            Op::MkDir(at) => {
                let (dir, name) = self.parent(step, at)?;
                self.fs.mkdir(cx, dir, name, &usual(0o755))?
            }
            Op::Symlink { at, len } => {
                let (dir, name) = self.parent(step, at)?;
                let target = vec![b't'; usize::from(*len)];
                self.fs.symlink(cx, dir, name, &target, &usual(0o777))?
            }
            Op::MkNod(at, kind) => {
                let (dir, name) = self.parent(step, at)?;
                let device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
                let rdev = if device { 5 << 32 | 7 } else { 0 };
                self.fs.mknod(cx, dir, name, *kind, rdev, &usual(0o600))?
            }
            Op::Link(from, to) => {
                let node = self.find(step, from)?.node;
                let (dir, name) = self.parent(step, to)?;
                self.fs.link(cx, node, dir, name)?
            }
            _ => return Ok(Seen::Nothing),
        };
        self.found = Some(entry.node);
        Ok(step.attr(&entry.attr))
    }

    fn remove_or_move(&mut self, step: &Step<'_>, op: &Op) -> Result<Seen> {
        let cx = &step.cx;
        match op {
            Op::Unlink(at) => {
                let (dir, name) = self.parent(step, at)?;
                self.fs.unlink(cx, dir, name)?;
            }
            Op::RmDir(at) => {
                let (dir, name) = self.parent(step, at)?;
                self.fs.rmdir(cx, dir, name)?;
            }
            Op::Rename(from, to, flags) => {
                let (dir, name) = self.parent(step, from)?;
                let (to, new) = self.parent(step, to)?;
                self.fs.rename(cx, dir, name, to, new, *flags)?;
            }
            _ => {}
        }
        Ok(Seen::Nothing)
    }

    fn set(&mut self, step: &Step<'_>, at: &Path, set: &SetAttr) -> Result<Seen> {
        let entry = self.find(step, at)?;
        let kind = entry.attr.kind;
        // The session has seen to sizes; the mode of a symlink means nothing.
        if set.size.is_some() && kind != FileKind::File
            || set.mode.is_some() && kind == FileKind::Symlink
        {
            return Ok(Seen::PassedOver);
        }
        Ok(step.attr(&self.fs.setattr(&step.cx, entry.node, set)?))
    }

    fn list(&self, step: &Step<'_>, dir: NodeId, room: u8) -> Result<Seen> {
        let cx = &step.cx;
        if self.fs.getattr(cx, dir)?.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let open = self.fs.open(cx, dir, Mode::Read)?;
        let mut buf = DirBuf::new(room.into(), 1 << 16, false);
        let (mut all, mut at) = (Vec::new(), Cookie::START);
        loop {
            buf.clear();
            let end = self.fs.readdir(cx, open, at, &mut buf)?;
            all.extend(buf.iter().map(|e| (e.name.to_vec(), e.kind)));
            at = buf.last_cookie().unwrap_or(at);
            if end {
                break;
            }
            assert!(!buf.is_empty(), "readdir gave nothing, but no end");
        }
        self.fs.close(cx, open)?;
        all.sort();
        Ok(Seen::Entries(all))
    }

    fn open(&mut self, step: &Step<'_>, at: &Path, slot: u8, write: bool) -> Result<Seen> {
        let entry = self.find(step, at)?;
        let dir = entry.attr.kind == FileKind::Dir;
        if !dir && entry.attr.kind != FileKind::File {
            return Ok(Seen::PassedOver);
        }
        let mode = if write { Mode::ReadWrite } else { Mode::Read };
        let open = self.fs.open(&step.cx, entry.node, mode)?;
        self.slots[usize::from(slot)] = Some(Slot {
            open,
            node: entry.node,
            write,
            dir,
        });
        Ok(Seen::Nothing)
    }

    fn on_slot(&mut self, step: &Step<'_>, op: &Op) -> Result<Seen> {
        let cx = &step.cx;
        let (Op::Read { slot, .. }
        | Op::Write { slot, .. }
        | Op::SetSizeOpen { slot, .. }
        | Op::StatOpen(slot)
        | Op::Sync(slot)
        | Op::Close(slot)) = op
        else {
            return Ok(Seen::Nothing);
        };
        let Some(held) = self.slot(*slot) else {
            return Ok(Seen::PassedOver);
        };
        match op {
            Op::Read { offset, len, .. } => {
                let mut buf = vec![0; *len as usize];
                let n = self.fs.read(cx, held.open, *offset, &mut buf)?;
                buf.truncate(n);
                Ok(Seen::Data(buf))
            }
            Op::Write {
                offset, len, seed, ..
            } if held.write => {
                let data = pattern((*seed).into(), *len as usize);
                let end = self.fs.write(cx, held.open, *offset, &data)?;
                Ok(Seen::Offset(end))
            }
            Op::SetSizeOpen { size, .. } if held.write => {
                let set = SetAttr::size(*size);
                Ok(step.attr(&self.fs.setattr(cx, held.node, &set)?))
            }
            Op::StatOpen(_) => {
                self.found = (!held.dir).then_some(held.node);
                Ok(step.attr(&self.fs.getattr(cx, held.node)?))
            }
            Op::Sync(_) => self.fs.fsync(cx, held.open, false).map(|()| Seen::Nothing),
            Op::Close(_) => self.empty(cx, *slot).map(|()| Seen::Nothing),
            _ => Ok(Seen::PassedOver),
        }
    }
}
