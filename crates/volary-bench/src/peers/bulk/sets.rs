//! The sets that are read: trees on the host's disk, and images of them.

use super::aged;
use crate::measure::program;
use crate::peers::task::Options;
use crate::peers::trees::{self, Counted};
use crate::served::mounts::Looped;
use anyhow::Result;
use rustix::fs::FallocateFlags;
use std::fs::File;

use crate::measure::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What the sets are made of.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Sets have this many times fewer files.
    pub fewer: usize,
    /// The real tree.
    pub tree: std::path::PathBuf,
}

/// What a set is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A directory of the host.
    Tree,
    Ext4,
    Fat,
    Ffs2,
    Iso,
}

/// What is in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// So many files of one length.
    Files(usize, usize),
    /// Files of a volume that is full and fragmented.
    Aged,
    /// The files of the real tree, [`Scale::tree`].
    Real,
}

pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) from: From,
    of: Of,
}

const SMALL: Of = Of::Files(50_000, 4 << 10);
const MIDDLE: Of = Of::Files(20_000, 16 << 10);
const LARGER: Of = Of::Files(10_000, 64 << 10);

pub(super) const SETS: [Set; 13] = [
    Set::new("ext4: 50,000 x 4 KiB", From::Ext4, SMALL),
    Set::new("ext4: 20,000 x 16 KiB", From::Ext4, MIDDLE),
    Set::new("ext4: 10,000 x 64 KiB", From::Ext4, LARGER),
    Set::new("ext4: aged", From::Ext4, Of::Aged),
    Set::new("ext4: real tree", From::Ext4, Of::Real),
    Set::new("fat: 50,000 x 4 KiB", From::Fat, SMALL),
    Set::new("ffs2: 50,000 x 4 KiB", From::Ffs2, SMALL),
    Set::new("iso: 50,000 x 4 KiB", From::Iso, SMALL),
    Set::new("tree: 50,000 x 4 KiB", From::Tree, SMALL),
    Set::new("tree: 20,000 x 16 KiB", From::Tree, MIDDLE),
    Set::new("tree: 10,000 x 64 KiB", From::Tree, LARGER),
    Set::new("tree: aged", From::Tree, Of::Aged),
    Set::new("tree: real", From::Tree, Of::Real),
];

/// Bytes of the aged volume.
const AGED_LEN: u64 = 768 << 20;

impl Set {
    const fn new(name: &'static str, from: From, of: Of) -> Self {
        Self { name, from, of }
    }

    pub(super) fn is_image(&self) -> bool {
        self.from != From::Tree
    }

    pub(super) fn is_of_small_files(&self) -> bool {
        self.of == SMALL
    }

    pub(super) fn is_real(&self) -> bool {
        self.of == Of::Real
    }
}

/// A set that is there, and what goes with it when it is dropped.
pub(super) struct Volume {
    /// The image, or the tree.
    pub(super) path: PathBuf,
    /// The same files as the host has them: the tree, or the image mounted.
    pub(super) mounted: Option<PathBuf>,
    /// Why there are none.
    pub(super) why_not: String,
    pub(super) files: u64,
    /// As many bytes as the files have, in one file.
    pub(super) sequence: PathBuf,
    /// Unmounted before the directory goes.
    _looped: Option<Looped>,
    dir: TempDir,
}

impl Volume {
    /// Makes a set.
    ///
    /// # Errors
    /// of what is not here; of programs that make images; the host's.
    pub(super) fn make(set: &Set, options: &Options, scale: &Scale) -> Result<Self> {
        let dir = Scratch::Disk.make(options.dir.as_deref())?;
        let making = Making {
            dir: dir.path(),
            volary: &options.volary,
            fewer: scale.fewer.max(1),
        };
        let (path, counted) = match (set.of, set.from) {
            (Of::Aged, _) => making.aged()?,
            (of, from) => {
                let tree = making.tree(of, &scale.tree)?;
                let counted = trees::count(&tree)?;
                let path = making.image(from, &tree, counted)?;
                (path.unwrap_or(tree), counted)
            }
        };
        let sequence = dir.path().join("sequence");
        trees::make_file(
            &sequence,
            usize::try_from(counted.bytes)?.next_multiple_of(1 << 20),
        )?;
        let is_mountable = set.from == From::Ext4 || set.of == Of::Aged;
        let is_root = rustix::process::geteuid().is_root();
        let looped = (is_mountable && is_root)
            .then(|| Looped::read_only(&path, &dir.path().join("mnt")))
            .transpose()?;
        let mounted = match (&looped, set.from) {
            (Some(looped), _) => looped.dir().map(Path::to_owned),
            (None, From::Tree) => Some(path.clone()),
            _ => None,
        };
        let path = match (set.from, &mounted) {
            (From::Tree, Some(mounted)) => mounted.clone(),
            _ => path,
        };
        rustix::fs::syncfs(File::open(dir.path())?)?;
        Ok(Self {
            path,
            mounted,
            why_not: "mounting the image for it needs root, and a host that knows the format"
                .into(),
            files: counted.files,
            sequence,
            _looped: looped,
            dir,
        })
    }

    /// Returns where reading it leaves something in the host's memory.
    pub(super) fn files_to_forget(&self) -> Vec<PathBuf> {
        let mut all = vec![self.path.clone(), self.sequence.clone()];
        all.extend(self.mounted.clone());
        all
    }

    /// Returns a new name in the directory that goes with the set.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

struct Making<'a> {
    dir: &'a Path,
    volary: &'a Path,
    fewer: usize,
}

impl Making<'_> {
    fn tree(&self, of: Of, real: &Path) -> Result<PathBuf> {
        let Of::Files(files, len) = of else {
            return Ok(real.to_owned());
        };
        let tree = self.dir.join("tree");
        let files = (files / self.fewer).max(1);
        trees::make(&tree, files.div_ceil(100), files, len)?;
        Ok(tree)
    }

    /// Returns an image that holds a tree; `None` if the tree itself is what is read.
    fn image(&self, from: From, tree: &Path, counted: Counted) -> Result<Option<PathBuf>> {
        let Counted { files, bytes } = counted;
        let image = self.dir.join("image");
        let kib = (bytes + files * 6144) / 1024 * 11 / 10 + (64 << 10);
        match from {
            From::Tree => return Ok(None),
            From::Ext4 => {
                room(&image, kib << 10)?;
                let mut mkfs = Command::new("mke2fs");
                mkfs.args(["-q", "-t", "ext4", "-E", "nodiscard", "-N"])
                    .arg((files * 12 / 10 + 4096).to_string())
                    .arg("-d")
                    .args([tree, &image]);
                program(&mut mkfs, &[0])?;
            }
            From::Fat => self.ours("fat32", tree, &image, kib)?,
            From::Ffs2 => self.ours("ffs2", tree, &image, kib)?,
            From::Iso => {
                let mut mkfs = Command::new("genisoimage");
                mkfs.args(["-quiet", "-R", "-o"]).args([&image, tree]);
                program(&mut mkfs, &[0])?;
            }
        }
        Ok(Some(image))
    }

    /// One that volary makes and fills.
    fn ours(&self, format: &str, tree: &Path, image: &Path, kib: u64) -> Result<()> {
        let mut mkfs = Command::new(self.volary);
        mkfs.args(["mkfs", "-t", format, "--size"])
            .arg(format!("{}K", kib.max(128 << 10)));
        program(mkfs.arg(image), &[0])?;
        let mut cp = Command::new(self.volary);
        cp.args(["cp", "-r"])
            .arg(tree)
            .arg(format!("{}:/", image.display()));
        program(&mut cp, &[0]).map(drop)
    }

    fn aged(&self) -> Result<(PathBuf, Counted)> {
        let image = self.dir.join("image");
        room(&image, (AGED_LEN / self.fewer as u64).max(16 << 20))?;
        let mut mkfs = Command::new("mke2fs");
        mkfs.args(["-q", "-t", "ext4", "-E", "nodiscard", "-m", "0"]);
        program(mkfs.arg(&image), &[0])?;
        let counted = aged::fill(&image, &self.dir.join("aging"))?;
        Ok((image, counted))
    }
}

/// A file with room on the disk, so that the host need not look for it piece by piece.
fn room(image: &Path, len: u64) -> Result<()> {
    let file = File::create_new(image)?;
    file.set_len(len)?;
    // Where there is no such thing, it takes its room as it is written.
    let _ = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len);
    Ok(())
}
