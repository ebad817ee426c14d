//! A volume of volary's drivers, on which each operation is done and then brought to the device: what it wrote, and where,
//! is what the models of the paper's systems write.

use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::sync::Arc;
use volary::block::{MemDevice, Recorder, Request};
use volary::{
    Attach, Cancel, Create, Cred, Ctx, Fs, Make, Mode, Name, NodeId, OpenId, Options, SetAttr, Time,
};
use volary_core::{BlockDevice, Place};
use volary_sim::rng::Rng;

/// A range of the volume: first byte, length.
pub(super) type Stretch = (u64, u64);

/// What is written at a time where it makes no difference.
const LONG: u64 = 1 << 18;

/// How a volume is made, and how it was used before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// The format, and the options of mkfs.
    pub(super) format: &'static str,
    pub(super) options: &'static str,
    /// Bytes of it.
    pub(super) size: u64,
    /// How full it is with files that came and went, in percent.
    pub(super) full: u64,
}

/// Where what is on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Superblocks, boot sector.
    Head,
    /// Maps of what is free: cylinder groups, the first FAT.
    Map,
    /// Further FATs.
    Copy,
    Inode,
    /// Directories, content, lists of blocks.
    Rest,
}

/// Offsets that tell them apart.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Fat {
        first: u64,
        second: u64,
        rest: u64,
    },
    /// Fields of 4.3BSD's superblock, in fragments.
    Ffs {
        fragment: u64,
        group: u64,
        shift: u64,
        mask: u64,
        map: u64,
        inodes: u64,
        data: u64,
    },
}

impl Layout {
    fn of(format: &str, dev: &dyn BlockDevice) -> Result<Self> {
        let mut bytes = vec![0; 16 << 10];
        dev.read_at(0, &mut bytes)?;
        let number = |at: usize, len: usize| -> Result<u64> {
            let field = bytes
                .get(at..at + len)
                .context("a field of the first sectors")?;
            Ok(field
                .iter()
                .rev()
                .fold(0, |n, byte| n << 8 | u64::from(*byte)))
        };
        if format.starts_with("fat") {
            let sector = number(11, 2)?;
            let first = number(14, 2)? * sector;
            let (fats, len) = (number(16, 1)?, number(22, 2)? * sector);
            return Ok(Self::Fat {
                first,
                second: first + len,
                rest: first + fats * len,
            });
        }
        let field = |at: usize| number(8192 + at, 4);
        ensure!(
            field(1372)? == 0x01_19_54,
            "no little-endian superblock of UFS1"
        );
        Ok(Self::Ffs {
            map: field(12)?,
            inodes: field(16)?,
            data: field(20)?,
            shift: field(24)?,
            mask: field(28)?,
            fragment: field(52)?,
            group: field(188)?,
        })
    }

    fn what(&self, at: u64) -> What {
        match *self {
            Self::Fat {
                first,
                second,
                rest,
            } => match at {
                _ if at < first => What::Head,
                _ if at < second => What::Map,
                _ if at < rest => What::Copy,
                _ => What::Rest,
            },
            Self::Ffs {
                fragment,
                group,
                shift,
                mask,
                map,
                inodes,
                data,
            } => {
                let number = at / fragment / group;
                let start = number * group + shift * (number & !mask & u64::from(u32::MAX));
                match (at / fragment).checked_sub(start) {
                    _ if at < 16 << 10 => What::Head,
                    Some(n) if n < map => What::Rest,
                    Some(n) if n < inodes => What::Map,
                    Some(n) if n < data => What::Inode,
                    _ => What::Rest,
                }
            }
        }
    }
}

/// What an operation wrote besides content, in the order of places.
#[derive(Clone, Debug, Default)]
pub(super) struct Wrote {
    pub(super) maps: Vec<Stretch>,
    pub(super) copies: Vec<Stretch>,
    pub(super) inodes: Vec<Stretch>,
    /// Directories, and blocks that list blocks.
    pub(super) rest: Vec<Stretch>,
}

/// A file or directory.
#[derive(Clone, Debug)]
pub(super) struct Node {
    id: NodeId,
    open: Option<OpenId>,
    pub(super) len: u64,
    /// Where its entry and, if there are such, its inode are.
    pub(super) entry: Vec<Stretch>,
    pub(super) inode: Vec<Stretch>,
    /// Its content: offset in the file, place, length.
    pub(super) pieces: Vec<(u64, u64, u64)>,
    /// Whether it has grown since it was last closed.
    pub(super) has_grown: bool,
}

impl Node {
    /// Returns whether the driver has it open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Forgets where its content from this byte on is.
    fn cut(&mut self, from: u64) {
        self.pieces.retain(|(offset, ..)| *offset < from);
        if let Some((offset, _, len)) = self.pieces.last_mut() {
            *len = (*len).min(from - *offset);
        }
    }
}

/// A volume in memory.
pub(super) struct Real {
    fs: Fs,
    recorder: Arc<Recorder>,
    layout: Layout,
    cred: Cred,
    cancel: Cancel,
    nodes: HashMap<String, Node>,
}

/// Returns a context for calls.
fn cx<'a>(cred: &'a Cred, cancel: &'a Cancel) -> Ctx<'a> {
    Ctx {
        cred,
        now: Time::from_secs(750_000_000),
        cancel,
    }
}

/// Splits a path into directory and name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Makes a volume, uses it, and attaches it with so much memory over a device that `over` puts on it.
///
/// # Errors
/// Of the driver.
pub(super) fn make<D: BlockDevice + 'static>(
    made: &Made,
    memory: u64,
    over: impl FnOnce(Arc<dyn BlockDevice>) -> Arc<D>,
) -> Result<(Fs, Arc<D>)> {
    let dev: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(made.size));
    let how = Make {
        options: Options::parse(made.options),
        ..Make::default()
    };
    let format = volary::format_of(made.format)?;
    format.make(dev.clone(), made.format, &how)?;
    if made.full > 0 {
        let fs = format.attach(dev.clone(), &Attach::default())?;
        age(&fs, made.full)?;
        call(&fs, |cx, fs| fs.detach(cx))?;
    }
    let dev = over(dev);
    Ok((attach(made.format, dev.clone(), memory)?, dev))
}

/// Attaches a volume with so much memory for caches.
///
/// # Errors
/// Of the driver.
pub(super) fn attach(format: &str, dev: Arc<dyn BlockDevice>, memory: u64) -> Result<Fs> {
    let how = Attach {
        memory,
        ..Attach::default()
    };
    Ok(volary::format_of(format)?.attach(dev, &how)?)
}

fn call<T>(fs: &Fs, act: impl FnOnce(&Ctx<'_>, &Fs) -> volary::Result<T>) -> Result<T> {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    Ok(act(&cx(&cred, &cancel), fs)?)
}

/// Makes a directory.
pub(super) fn new_dir(
    fs: &Fs,
    cx: &Ctx<'_>,
    dir: NodeId,
    name: &str,
) -> volary::Result<volary_core::Entry> {
    fs.mkdir(cx, dir, Name::new(name.as_bytes())?, &SetAttr::default())
}

/// Makes a file, which is open then.
pub(super) fn new_file(
    fs: &Fs,
    cx: &Ctx<'_>,
    dir: NodeId,
    name: &str,
) -> volary::Result<(volary_core::Entry, OpenId)> {
    let name = Name::new(name.as_bytes())?;
    fs.create(cx, dir, name, Create::New, &SetAttr::default())
}

/// Fills a volume with files, takes away a fifth, and fills what that freed.
fn age(fs: &Fs, full: u64) -> Result<()> {
    const DIRS: usize = 32;
    // What was made together goes together.
    const RUN: usize = 8;
    let mut rng = Rng::new(1993);
    let zeros = vec![0; LONG as usize];
    let mut dirs = Vec::new();
    for i in 0..DIRS {
        let name = format!("old{i}");
        let made = call(fs, |cx, fs| new_dir(fs, cx, fs.root(), &name))?;
        dirs.push(made.node);
    }
    let mut files: Vec<(NodeId, String)> = Vec::new();
    let mut number = 0;
    for round in 0..2 {
        let stat = call(fs, |cx, fs| fs.statfs(cx))?;
        let mut room = stat.free.saturating_sub(stat.size * (100 - full) / 100);
        while room > 0 {
            let dir = *rng.pick(&dirs);
            // Most are small, some are long.
            let len = ((1 << rng.below(8)) * (512 + rng.below(2048))).min(room);
            let name = format!("f{number}");
            number += 1;
            call(fs, |cx, fs| {
                let (_, open) = new_file(fs, cx, dir, &name)?;
                for at in (0..len).step_by(LONG as usize) {
                    let part = zeros.get(..LONG.min(len - at) as usize).unwrap_or_default();
                    fs.write(cx, open, Some(at), part)?;
                }
                fs.close(cx, open)
            })?;
            files.push((dir, name));
            room = room.saturating_sub(len.next_multiple_of(2048));
        }
        let removed = if round == 0 { files.len() / RUN / 5 } else { 0 };
        for _ in 0..removed {
            let from = rng.index(files.len().saturating_sub(RUN).max(1));
            for (dir, name) in files.drain(from..(from + RUN).min(files.len())) {
                call(fs, |cx, fs| fs.unlink(cx, dir, Name::new(name.as_bytes())?))?;
            }
        }
        call(fs, |cx, fs| fs.sync(cx))?;
    }
    Ok(())
}

impl Real {
    /// Makes a volume and uses it as it says.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn make(made: &Made) -> Result<Self> {
        let (fs, recorder) = make(made, Attach::MEMORY, |dev| Arc::new(Recorder::new(dev)))?;
        let mut real = Self {
            layout: Layout::of(made.format, &*recorder)?,
            fs,
            recorder,
            cred: Cred::root(),
            cancel: Cancel::new(),
            nodes: HashMap::new(),
        };
        // The first change marks the volume as in use.
        real.mkdir("first")?;
        Ok(real)
    }

    fn call<T>(&self, act: impl FnOnce(&Ctx<'_>, &Fs) -> volary::Result<T>) -> Result<T> {
        Ok(act(&cx(&self.cred, &self.cancel), &self.fs)?)
    }

    /// Returns a node that was made here.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn node(&self, path: &str) -> Result<&Node> {
        self.nodes
            .get(path)
            .with_context(|| format!("{path} is not there"))
    }

    fn node_mut(&mut self, path: &str) -> Result<&mut Node> {
        self.nodes
            .get_mut(path)
            .with_context(|| format!("{path} is not there"))
    }

    fn dir(&self, path: &str) -> Result<NodeId> {
        match path {
            "" => Ok(self.fs.root()),
            path => Ok(self.node(path)?.id),
        }
    }

    /// Syncs the volume. Returns the writes, without those of the content of `of`.
    fn commit(&self, of: Option<&Node>) -> Result<Wrote> {
        self.call(|cx, fs| fs.sync(cx))?;
        let mut wrote = Wrote::default();
        let mut all: Vec<Stretch> = self
            .recorder
            .take()
            .into_iter()
            .filter_map(|request| match request {
                Request::Write { offset, data } => Some((offset, data.len() as u64)),
                _ => None,
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        for (at, len) in all {
            let pieces = of.map_or(&[][..], |node| &node.pieces);
            if pieces
                .iter()
                .any(|(_, place, long)| (*place..place + long).contains(&at))
            {
                continue;
            }
            match self.layout.what(at) {
                What::Head => {}
                What::Map => wrote.maps.push((at, len)),
                What::Copy => wrote.copies.push((at, len)),
                What::Inode => wrote.inodes.push((at, len)),
                What::Rest => wrote.rest.push((at, len)),
            }
        }
        Ok(wrote)
    }

    fn born(&mut self, path: &str, id: NodeId, open: Option<OpenId>) -> Result<Wrote> {
        let wrote = self.commit(None)?;
        let node = Node {
            id,
            open,
            len: 0,
            entry: wrote.rest.clone(),
            inode: wrote.inodes.clone(),
            pieces: Vec::new(),
            has_grown: false,
        };
        self.nodes.insert(path.to_owned(), node);
        Ok(wrote)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn mkdir(&mut self, path: &str) -> Result<Wrote> {
        let (dir, name) = split(path);
        let dir = self.dir(dir)?;
        let made = self.call(|cx, fs| new_dir(fs, cx, dir, name))?;
        self.born(path, made.node, None)
    }

    /// Makes a file, and opens it.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn create(&mut self, path: &str) -> Result<Wrote> {
        let (dir, name) = split(path);
        let dir = self.dir(dir)?;
        let (made, open) = self.call(|cx, fs| new_file(fs, cx, dir, name))?;
        self.born(path, made.node, Some(open))
    }

    /// Returns a file's open; it is kept until the file is closed.
    fn opened(&mut self, path: &str) -> Result<OpenId> {
        let node = self.node(path)?;
        if let Some(open) = node.open {
            return Ok(open);
        }
        let open = self.call(|cx, fs| fs.open(cx, node.id, Mode::ReadWrite))?;
        self.node_mut(path)?.open = Some(open);
        Ok(open)
    }

    /// Lets a file have at least this length. Returns by how many bytes it grew.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn grow(&mut self, path: &str, len: u64) -> Result<u64> {
        let old = self.node(path)?.len;
        if len <= old {
            return Ok(0);
        }
        let open = self.opened(path)?;
        let zeros = vec![0; (len - old) as usize];
        self.call(|cx, fs| fs.write(cx, open, Some(old), &zeros))?;
        // The last fragments may have moved.
        let from = old / LONG * LONG;
        let new = self.pieces(open, (from, len))?;
        let node = self.node_mut(path)?;
        node.cut(from);
        node.pieces.extend(new);
        (node.len, node.has_grown) = (len, true);
        Ok(len - old)
    }

    fn pieces(&self, open: OpenId, (from, to): Stretch) -> Result<Vec<(u64, u64, u64)>> {
        let mut extents = Vec::new();
        self.call(|cx, fs| fs.extents(cx, open, from, to - from, &mut extents))?;
        let mut pieces = Vec::new();
        for extent in extents {
            match extent.place {
                Place::Device(at) => pieces.push((extent.offset, at, extent.len)),
                _ => bail!("a file that was written has holes"),
            }
        }
        Ok(pieces)
    }

    /// Syncs an open file that has grown. Returns the writes, without those of its content.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn settle(&mut self, path: &str) -> Result<Wrote> {
        let wrote = self.commit(Some(self.node(path)?))?;
        let node = self.node(path)?;
        if let Some(open) = node.open {
            let pieces = self.pieces(open, (0, node.len))?;
            self.node_mut(path)?.pieces = pieces;
        }
        Ok(wrote)
    }

    /// Closes a file.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn close(&mut self, path: &str) -> Result<()> {
        let node = self.node_mut(path)?;
        node.has_grown = false;
        if let Some(open) = node.open.take() {
            self.call(|cx, fs| fs.close(cx, open))?;
        }
        Ok(())
    }

    /// Removes a file or, if it is one, a directory. Returns it, and what was written.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn remove(&mut self, path: &str, is_dir: bool) -> Result<(Node, Wrote)> {
        self.close(path)?;
        let (dir, name) = split(path);
        let dir = self.dir(dir)?;
        self.call(|cx, fs| {
            let name = Name::new(name.as_bytes())?;
            if is_dir {
                fs.rmdir(cx, dir, name)
            } else {
                fs.unlink(cx, dir, name)
            }
        })?;
        let node = self.nodes.remove(path).context("it was there")?;
        Ok((node, self.commit(None)?))
    }
}
