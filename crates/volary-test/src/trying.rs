//! Determines by trial what a volume can do, for mounted directories and exports, which do not
//! report all of it.

use crate::tree;
use volary_core::{
    Caps, Create, Ctx, FileKind, Fs, Kind, Name, NodeId, OpenId, RenameFlags, Result, SetAttr,
    SetTime, Time,
};

/// The result of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// The claimed caps without those that failed. [`Caps::HOLES`] stays only if a hole can be
    /// punched, or a gap takes no space.
    pub caps: Caps,
    /// Whether holes can be punched.
    pub punches: bool,
}

/// The size of the file that is used for trials, in bytes.
const FILE: u64 = 8192;
/// The size of a file that consists of a gap, except for its first byte.
const GAP: u64 = 1 << 20;

/// Tries each claimed capability in the directory `dir`. Everything that is created is removed
/// again.
///
/// # Errors
/// The error of the volume if even simple changes fail.
pub fn try_out(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Result<Tried> {
    let name = Name::new(b"probe")?;
    let inside = fs.mkdir(cx, dir, name, &SetAttr::default())?.node;
    let tried = Place::new(fs, cx, inside).try_all();
    tree::remove(fs, cx, dir, name)?;
    tried
}

/// A file that was created, and its open.
#[derive(Clone, Copy)]
struct Made {
    node: NodeId,
    open: OpenId,
}

/// The directory in which capabilities are tried.
struct Place<'a> {
    fs: &'a Fs,
    cx: &'a Ctx<'a>,
    dir: NodeId,
}

impl<'a> Place<'a> {
    fn new(fs: &'a Fs, cx: &'a Ctx<'a>, dir: NodeId) -> Self {
        Self { fs, cx, dir }
    }

    fn try_all(&self) -> Result<Tried> {
        let (file, other) = (self.make(b"file")?, self.make(b"other")?);
        let tried = self.try_each(file, other);
        for made in [file, other] {
            self.fs.close(self.cx, made.open)?;
        }
        tried
    }

    fn try_each(&self, file: Made, other: Made) -> Result<Tried> {
        let (fs, cx, dir) = (self.fs, self.cx, self.dir);
        fs.write(cx, file.open, Some(0), &[1; FILE as usize])?;
        fs.write(cx, other.open, Some(0), b"x")?;
        let set = SetAttr::default();
        let punches = fs.allocate(cx, file.open, 0, 4096, true).is_ok();
        let named = |name: &'static [u8]| Name::new(name);
        let abilities = [
            (
                Caps::SYMLINKS,
                fs.symlink(cx, dir, named(b"symlink")?, b"x", &set).is_ok(),
            ),
            (
                Caps::HARD_LINKS,
                fs.link(cx, file.node, dir, named(b"link")?).is_ok(),
            ),
            (
                Caps::DEVICES,
                fs.mknod(cx, dir, named(b"fifo")?, FileKind::Fifo, 0, &set)
                    .is_ok(),
            ),
            (Caps::MODES, self.keeps_modes(file.node)?),
            (
                Caps::CASE_SENSITIVE,
                fs.lookup(cx, dir, named(b"FILE")?).is_err(),
            ),
            (
                Caps::PREALLOCATE,
                fs.allocate(cx, file.open, 0, 65_536, false).is_ok(),
            ),
            (Caps::HOLES, punches || self.gap_takes_no_room(other)?),
            (Caps::SWAP, self.swaps()),
            (Caps::ANY_NAME, self.takes_any_name()?),
        ];
        let mut caps = fs.caps();
        for (ability, _) in abilities.into_iter().filter(|(_, has)| !has) {
            caps = caps.without(ability);
        }
        caps.time_step = caps.time_step.max(self.time_step(other.node)?);
        // Without holes, every byte of the size would take space.
        if caps.has(Caps::HOLES) {
            caps.size_max = self.size_max(file.node, caps.size_max)?;
        }
        Ok(Tried { caps, punches })
    }

    fn make(&self, name: &[u8]) -> Result<Made> {
        let name = Name::new(name)?;
        let made = self
            .fs
            .create(self.cx, self.dir, name, Create::New, &SetAttr::default());
        made.map(|(entry, open)| Made {
            node: entry.node,
            open,
        })
    }

    fn takes_any_name(&self) -> Result<bool> {
        match self.make(b"a:*?\n\xff") {
            Ok(made) => self.fs.close(self.cx, made.open).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn keeps_modes(&self, file: NodeId) -> Result<bool> {
        let set = SetAttr::owned(0o751, 1, 2);
        let done = self.fs.setattr(self.cx, file, &set).is_ok();
        let got = self.fs.getattr(self.cx, file)?;
        Ok(done && (got.mode, got.uid, got.gid) == (0o751, 1, 2))
    }

    fn gap_takes_no_room(&self, file: Made) -> Result<bool> {
        match self.fs.setattr(self.cx, file.node, &SetAttr::size(GAP)) {
            Err(e) if e == Kind::NoSpace => return Ok(false),
            done => done?,
        };
        // Some file systems of the host allocate only at writeback.
        self.fs.fsync(self.cx, file.open, false)?;
        Ok(self.fs.getattr(self.cx, file.node)?.allocated < GAP / 2)
    }

    fn swaps(&self) -> bool {
        let swap = |from: &'static [u8], to: &'static [u8]| {
            let (from, to) = (Name::new(from)?, Name::new(to)?);
            self.fs
                .rename(self.cx, self.dir, from, self.dir, to, RenameFlags::SWAP)
        };
        swap(b"file", b"other").is_ok()
    }

    /// Returns the resolution of timestamps, in nanoseconds.
    fn time_step(&self, file: NodeId) -> Result<u64> {
        let time = Time::new(1_600_000_001, 123_456_789);
        let set = SetAttr {
            mtime: Some(SetTime::To(time)),
            ..SetAttr::default()
        };
        let got = self.fs.setattr(self.cx, file, &set)?.mtime;
        Ok(match (got.secs, got.nanos) {
            (_, 123_456_789) => 1,
            (_, 123_456_700) => 100,
            (_, 123_456_000) => 1000,
            (_, 123_000_000) => 1_000_000,
            (_, 120_000_000) => 10_000_000,
            (1_600_000_001, _) => 1_000_000_000,
            _ => 2_000_000_000,
        })
    }

    /// Returns the greatest size, up to `claimed`, that a file can be set to and then reports.
    fn size_max(&self, file: NodeId, claimed: u64) -> Result<u64> {
        let takes = |size: u64| {
            let set = self.fs.setattr(self.cx, file, &SetAttr::size(size));
            let shown = || self.fs.getattr(self.cx, file);
            set.is_ok() && shown().is_ok_and(|attr| attr.size == size)
        };
        let (mut taken, mut refused) = (FILE, claimed.saturating_add(1));
        while taken + 1 < refused {
            let size = taken + (refused - taken) / 2;
            match takes(size) {
                true => taken = size,
                false => refused = size,
            }
        }
        self.fs.setattr(self.cx, file, &SetAttr::size(0))?;
        Ok(taken)
    }
}
