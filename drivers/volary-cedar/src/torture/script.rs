//! What is done to a volume under torture.

use std::fmt;
use volary_core::{
    Cancel, Create, Cred, Ctx, Fs, Kind, Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr,
    Time,
};
use volary_sim::rng::{Rng, pattern};

/// The time of all calls.
pub(crate) const NOW: Time = Time::from_secs(1_700_000_000);

/// Something to do; numbers name files and directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A new file of so many bytes, in place of what has the name.
    Put(u8, u32),
    /// So many bytes more, of which the first lie a little past the end.
    Append(u8, u32),
    /// Cut to so many bytes.
    Cut(u8, u32),
    /// New content of so many bytes, in place of what there was.
    Rewrite(u8, u32),
    /// So many versions are kept.
    Keep(u8, u8),
    /// A name goes.
    Unlink(u8),
    /// Opened, removed, and kept open.
    Hold(u8),
    /// A name becomes another.
    Rename(u8, u8),
    /// Two names change places.
    Swap(u8, u8),
    /// A further name.
    Link(u8, u8),
    /// A directory.
    Mkdir(u8),
    /// A directory goes.
    Rmdir(u8),
    /// An attribute of so many bytes.
    Xattr(u8, u16),
    /// More than fits.
    TooMuch(u8),
    /// All is made durable.
    Sync,
}

/// A script: things to do, in order.
#[derive(Clone, Debug)]
pub(crate) struct Script(pub(crate) Vec<Op>);

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|op| format!("{op:?}")).collect();
        f.write_str(&words.join(" "))
    }
}

/// Returns a random script; without `appends`, no sector that holds committed data is
/// ever written again.
pub(crate) fn script(seed: u64, len: usize, appends: bool) -> Script {
    let mut rng = Rng::new(seed);
    let mut op = || {
        let (a, b) = (rng.below(8) as u8, rng.below(8) as u8);
        match rng.below(20) {
            0..=5 => Op::Put(a, [0, 100, 700, 1500, 6000][rng.index(5)]),
            6..=7 if appends => Op::Append(a, 1 + rng.below(3000) as u32),
            8 if appends => Op::Cut(a, rng.below(2000) as u32),
            9..=10 => Op::Unlink(a),
            11 => Op::Hold(a),
            12..=13 => Op::Rename(a, b),
            14 => Op::Swap(a, b),
            15 => Op::Link(a, b),
            16 => Op::Mkdir(a % 2),
            17 => Op::Rmdir(a % 2),
            18 => Op::Xattr(a, rng.below(300) as u16),
            6..=8 => Op::TooMuch(a),
            _ => Op::Sync,
        }
    };
    Script((0..len).map(|_| op()).collect())
}

/// Returns a random script about versions.
pub(crate) fn with_versions(seed: u64, len: usize) -> Script {
    let mut rng = Rng::new(seed);
    let mut op = || {
        let (a, b) = (rng.below(3) as u8, rng.below(3) as u8);
        match rng.below(12) {
            0..=4 => Op::Rewrite(a, [0, 100, 700, 1500][rng.index(4)]),
            5..=6 => Op::Rename(a, b),
            7..=8 => Op::Keep(a, 1 + rng.below(4) as u8),
            9 => Op::Append(a, 1 + rng.below(900) as u32),
            10 => Op::Hold(a),
            _ => Op::Sync,
        }
    };
    let first = [
        Op::Put(0, 300),
        Op::Keep(0, 3),
        Op::Put(1, 900),
        Op::Keep(1, 2),
    ];
    Script(first.into_iter().chain((0..len).map(|_| op())).collect())
}

/// Plays scripts on a volume.
pub(crate) struct Player<'a> {
    pub(crate) fs: &'a Fs,
    pub(crate) held: Vec<OpenId>,
    pub(crate) count: u64,
}

/// Calls something as root.
pub(crate) fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: NOW,
        cancel: &cancel,
    })
}

/// Returns the name of a number; those from 5 on are in directories.
fn name(number: u8) -> (Option<String>, String) {
    let dir = (number >= 5).then(|| format!("dir{}", number % 2));
    (dir, format!("file with number {number}"))
}

impl Player<'_> {
    fn dir(&self, cx: &Ctx<'_>, dir: Option<String>) -> Result<NodeId> {
        match dir {
            None => Ok(self.fs.root()),
            Some(dir) => {
                let name = Name::new(dir.as_bytes())?;
                Ok(self.fs.lookup(cx, self.fs.root(), name)?.node)
            }
        }
    }

    /// Does one thing; `after` is told of each call that changed something.
    ///
    /// # Errors
    /// `Io` and `Corrupt` only: a name that is not there and the like are part
    /// of scripts.
    pub(crate) fn play(&mut self, op: &Op, after: &mut dyn FnMut(&Fs)) -> Result<()> {
        self.count += 1;
        match as_root(|cx| self.try_play(cx, op, after)) {
            Err(e) if matches!(e.kind(), Kind::Io | Kind::Corrupt | Kind::ReadOnly) => Err(e),
            _ => Ok(()),
        }
    }

    fn try_play(&mut self, cx: &Ctx<'_>, op: &Op, after: &mut dyn FnMut(&Fs)) -> Result<()> {
        let fs = self.fs;
        let place = |number: u8| {
            let (dir, name) = name(number);
            self.dir(cx, dir).map(|dir| (dir, name))
        };
        let bytes = |s: &str| s.as_bytes().to_vec();
        match *op {
            Op::Put(n, len) => self.put(cx, n, len, Create::New, after)?,
            Op::Rewrite(n, len) => self.put(cx, n, len, Create::Truncate, after)?,
            Op::Append(n, len) => {
                let (dir, name) = place(n)?;
                let found = fs.lookup(cx, dir, Name::new(name.as_bytes())?)?;
                let open = fs.open(cx, found.node, Mode::Write)?;
                let at = found.attr.size + u64::from(len % 700);
                let written = fs.write(cx, open, Some(at), &pattern(self.count, len as usize));
                after(fs);
                fs.close(cx, open)?;
                written?;
            }
            Op::Cut(n, len) => {
                let (dir, name) = place(n)?;
                let found = fs.lookup(cx, dir, Name::new(name.as_bytes())?)?;
                let size = found.attr.size.min(u64::from(len));
                fs.setattr(cx, found.node, &SetAttr::size(size))?;
                after(fs);
            }
            Op::Unlink(n) => {
                let (dir, name) = place(n)?;
                fs.unlink(cx, dir, Name::new(name.as_bytes())?)?;
            }
            Op::Hold(n) => {
                let (dir, name) = place(n)?;
                let name = Name::new(name.as_bytes())?;
                let found = fs.lookup(cx, dir, name)?;
                let open = fs.open(cx, found.node, Mode::Read)?;
                self.held.push(open);
                fs.unlink(cx, dir, name)?;
            }
            Op::Rename(a, b) | Op::Swap(a, b) => {
                let ((from, a), (to, b)) = (place(a)?, place(b)?);
                let (a, b) = (bytes(&a), bytes(&b));
                let flags = match op {
                    Op::Swap(..) => RenameFlags::SWAP,
                    _ => RenameFlags::REPLACE,
                };
                fs.rename(cx, from, Name::new(&a)?, to, Name::new(&b)?, flags)?;
            }
            Op::Link(a, b) => {
                let ((from, a), (to, b)) = (place(a)?, place(b)?);
                let node = fs.lookup(cx, from, Name::new(a.as_bytes())?)?.node;
                fs.link(cx, node, to, Name::new(b.as_bytes())?)?;
            }
            _ => self.play_other(cx, op)?,
        }
        after(fs);
        Ok(())
    }

    /// Makes a file in place of what has the name of this number.
    fn put(
        &self,
        cx: &Ctx<'_>,
        number: u8,
        len: u32,
        how: Create,
        after: &mut dyn FnMut(&Fs),
    ) -> Result<()> {
        let fs = self.fs;
        let (dir, name) = name(number);
        let dir = self.dir(cx, dir)?;
        let name = Name::new(name.as_bytes())?;
        if how == Create::New && fs.unlink(cx, dir, name).is_ok() {
            after(fs);
        }
        let set = SetAttr::default();
        let (_, open) = fs.create(cx, dir, name, how, &set)?;
        after(fs);
        let written = fs.write(cx, open, None, &pattern(self.count, len as usize));
        after(fs);
        fs.close(cx, open)?;
        written.map(drop)
    }

    fn play_other(&self, cx: &Ctx<'_>, op: &Op) -> Result<()> {
        let fs = self.fs;
        match *op {
            Op::Mkdir(n) | Op::Rmdir(n) => {
                let name = format!("dir{n}");
                let name = Name::new(name.as_bytes())?;
                match op {
                    Op::Mkdir(_) => fs.mkdir(cx, fs.root(), name, &SetAttr::default()).map(drop),
                    _ => fs.rmdir(cx, fs.root(), name),
                }
            }
            Op::Keep(n, keep) => {
                let (dir, name) = name(n);
                let dir = self.dir(cx, dir)?;
                let node = fs.lookup(cx, dir, Name::new(name.as_bytes())?)?.node;
                fs.setxattr(cx, node, b"user.cedar.keep", keep.to_string().as_bytes())
            }
            Op::Xattr(n, len) => {
                let (dir, name) = name(n);
                let dir = self.dir(cx, dir)?;
                let node = fs.lookup(cx, dir, Name::new(name.as_bytes())?)?.node;
                fs.setxattr(cx, node, b"user.a", &pattern(self.count, len.into()))
            }
            Op::TooMuch(n) => {
                let (dir, name) = name(n);
                let dir = self.dir(cx, dir)?;
                let set = SetAttr::size(1 << 30);
                let made = fs.create(cx, dir, Name::new(name.as_bytes())?, Create::New, &set);
                made.map(drop)
            }
            _ => fs.sync(cx),
        }
    }
}
