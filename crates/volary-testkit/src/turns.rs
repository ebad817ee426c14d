//! Files that grow in turns, as several writers make them: in how many runs they lie.

use crate::rng::{Rng, pattern};
use std::collections::HashMap;
use volary_core::{
    Create, Ctx, Extent, Fs, Kind, Mode, Name, NodeId, OpenId, Place, Result, SetAttr,
};

/// How files grow.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// How many files.
    pub files: u64,
    /// How many pieces each gets, one in each turn.
    pub pieces: usize,
    /// Bytes of a piece.
    pub piece: usize,
    /// Pieces that come in any order, all of a file in its turn, as a kernel gathers them; 1
    /// for none.
    pub gathered: usize,
    /// After so many turns each file is made durable; 0 for never.
    pub sync_each: usize,
}

impl Turns {
    /// So many files that get so many pieces of so many bytes in turns.
    #[must_use]
    pub const fn new(files: u64, pieces: usize, piece: usize) -> Self {
        Self {
            files,
            pieces,
            piece,
            gathered: 1,
            sync_each: 0,
        }
    }

    /// Grows new files of a directory, closes them, and returns them.
    ///
    /// # Panics
    /// If anything fails.
    pub fn run(&self, fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Vec<NodeId> {
        let all = self.open(fs, cx, dir);
        self.grow(fs, cx, &all).expect("room for all");
        for (_, open) in &all {
            fs.close(cx, *open).expect("close");
        }
        fs.sync(cx).expect("sync");
        all.into_iter().map(|(node, _)| node).collect()
    }

    /// Makes the files and opens them.
    ///
    /// # Panics
    /// If anything fails.
    pub fn open(&self, fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> Vec<(NodeId, OpenId)> {
        let make = |i| {
            let text = format!("turn{i}");
            let name = Name::new(text.as_bytes()).expect("a name");
            let made = fs.create(cx, dir, name, Create::New, &SetAttr::default());
            let (entry, open) = made.expect("create");
            (entry.node, open)
        };
        (0..self.files).map(make).collect()
    }

    /// Grows files that are open.
    ///
    /// # Errors
    /// `NoSpace`.
    ///
    /// # Panics
    /// If anything else fails.
    pub fn grow(&self, fs: &Fs, cx: &Ctx<'_>, all: &[(NodeId, OpenId)]) -> Result<()> {
        let mut rng = Rng::new(7);
        let mut order: Vec<usize> = (0..self.pieces).collect();
        for gathered in order.chunks_mut(self.gathered) {
            for i in (1..gathered.len()).rev() {
                gathered.swap(i, rng.index(i + 1));
            }
        }
        let mut parts: Vec<_> = (0..self.files).map(|i| pattern(i, self.piece)).collect();
        for (turn, gathered) in order.chunks(self.gathered).enumerate() {
            for ((_, open), part) in all.iter().zip(&mut parts) {
                for piece in gathered {
                    mark(part, *piece);
                    let at = piece * self.piece;
                    match fs.write(cx, *open, Some(at as u64), part) {
                        Err(e) if e == Kind::NoSpace => return Err(e),
                        done => assert_eq!(done.expect("write"), (at + self.piece) as u64),
                    }
                }
                if self.sync_each > 0 && turn % self.sync_each == 0 {
                    fs.fsync(cx, *open, false).expect("fsync");
                }
            }
        }
        Ok(())
    }

    /// Returns what file `i` holds in the end.
    #[must_use]
    pub fn content(&self, i: u64) -> Vec<u8> {
        let mut part = pattern(i, self.piece);
        let mut content = Vec::with_capacity(self.pieces * self.piece);
        for piece in 0..self.pieces {
            mark(&mut part, piece);
            content.extend_from_slice(&part);
        }
        content
    }

    /// Asserts that the files hold what was written.
    ///
    /// # Panics
    /// If one is not.
    pub fn check(&self, fs: &Fs, cx: &Ctx<'_>, files: &[NodeId]) {
        for (node, i) in files.iter().zip(0..) {
            let open = fs.open(cx, *node, Mode::Read).expect("open");
            let want = self.content(i);
            let mut held = vec![0; want.len() + 1];
            let mut len = 0;
            loop {
                match fs
                    .read(cx, open, len as u64, &mut held[len..])
                    .expect("read")
                {
                    0 => break,
                    more => len += more,
                }
            }
            fs.close(cx, open).expect("close");
            assert!(held[..len] == want, "file {i} is not as it was written");
        }
    }
}

/// Tells a piece from the others of its file.
fn mark(part: &mut [u8], piece: usize) {
    part[..8].copy_from_slice(&(piece as u64).to_le_bytes());
}

/// Returns the runs of a file: where each begins on the device, and its bytes.
///
/// # Panics
/// If it cannot be asked.
pub fn runs(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> Vec<(u64, u64)> {
    let open = fs.open(cx, node, Mode::Read).expect("open");
    let mut extents: Vec<Extent> = Vec::new();
    fs.extents(cx, open, 0, u64::MAX, &mut extents)
        .expect("extents");
    fs.close(cx, open).expect("close");
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for extent in extents {
        let Place::Device(place) = extent.place else {
            continue;
        };
        match runs.last_mut() {
            Some((start, len)) if *start + *len == place => *len += extent.len,
            _ => runs.push((place, extent.len)),
        }
    }
    runs
}

/// Returns how many runs the worst of some files has.
///
/// # Panics
/// As [`runs`].
pub fn most_runs(fs: &Fs, cx: &Ctx<'_>, files: &[NodeId]) -> usize {
    let counts = files.iter().map(|node| runs(fs, cx, *node).len());
    counts.max().unwrap_or(0)
}

/// Fills a directory with small files and takes some away, until one in ten parts is free.
///
/// # Panics
/// If anything fails.
pub fn age(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, unit: usize) {
    let mut rng = Rng::new(3);
    let mut files = HashMap::new();
    for i in 0_u64.. {
        let text = format!("old{i}");
        let name = Name::new(text.as_bytes()).expect("a name");
        let (_, open) = match fs.create(cx, dir, name, Create::New, &SetAttr::default()) {
            Err(e) if e == Kind::NoSpace => break,
            made => made.expect("create"),
        };
        let units = 1 + rng.index(8);
        let done = fs.write(cx, open, Some(0), &vec![7; units * unit]);
        fs.close(cx, open).expect("close");
        files.insert(i, text);
        if done.is_err() {
            break;
        }
    }
    loop {
        let stat = fs.statfs(cx).expect("statfs");
        if stat.free * 10 >= stat.size {
            break;
        }
        let i = rng.below(files.len() as u64 * 2);
        if let Some(text) = files.remove(&i) {
            let name = Name::new(text.as_bytes()).expect("a name");
            fs.unlink(cx, dir, name).expect("unlink");
        }
    }
    fs.sync(cx).expect("sync");
}
