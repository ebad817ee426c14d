//! A folder with trees and images of them, and the runs that are the same for every format.

use super::finding::Finding;
use super::task::{Options, Run, Task};
use super::trees;
use crate::measure::{Cost, Scratch, here, program, program_with_peak};
use crate::needs;
use crate::served::mounts::Mounted;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Files of the small tree, in [`TREE_DIRS`] directories.
const TREE_FILES: usize = 1000;
const TREE_DIRS: usize = 10;
/// Files of the large tree.
const MANY_FILES: usize = 50_000;
const MANY_DIRS: usize = 100;
const FILE_LEN: usize = 4096;
const LARGE_LEN: usize = 256 << 20;
/// Every image.
pub(super) const IMAGE_KIB: &str = "1048576";

/// The trees: where they are in the folder, and what copying them in and out is called.
pub(super) const TREES: [(&str, &str, &str); 3] = [
    (
        "tree",
        "tree of 1000 x 4 KiB in",
        "tree of 1000 x 4 KiB out",
    ),
    ("many", "50,000 small files in", "50,000 small files out"),
    ("large", "256 MiB in", "256 MiB out"),
];

/// The folder; it goes when it is dropped.
pub(super) struct Folder {
    dir: TempDir,
    pub(super) volary: PathBuf,
}

impl Folder {
    /// With nothing in it.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn empty(options: &Options) -> Result<Self> {
        Ok(Self {
            dir: Scratch::Memory.make(options.dir.as_deref())?,
            volary: options.volary.clone(),
        })
    }

    /// With the trees in it.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let folder = Self::empty(options)?;
        trees::make(&folder.tree("tree")?, TREE_DIRS, TREE_FILES, FILE_LEN)?;
        trees::make(&folder.tree("many")?, MANY_DIRS, MANY_FILES, FILE_LEN)?;
        let large = folder.tree("large")?;
        fs::create_dir(&large)?;
        trees::make_file(&large.join("file"), LARGE_LEN)?;
        Ok(folder)
    }

    /// Returns the directory of a tree, alone in one of its own.
    fn tree(&self, name: &str) -> Result<PathBuf> {
        let alone = self.alone(name);
        fs::create_dir(&alone)?;
        Ok(alone.join(name))
    }

    /// Returns the directory that holds a tree and nothing else.
    pub(super) fn alone(&self, tree: &str) -> PathBuf {
        self.path(&format!("alone-{tree}"))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the image that holds a tree.
    pub(super) fn image(&self, tree: &str) -> PathBuf {
        self.path(&format!("{tree}.img"))
    }

    /// `volary mkfs` of a new image; `how` says of which kind.
    ///
    /// # Errors
    /// As [`program`].
    pub(super) fn mkfs(&self, how: &[&str], image: &Path) -> Result<Cost> {
        let _ = fs::remove_file(image);
        let mut mkfs = Command::new(&self.volary);
        mkfs.arg("mkfs").args(how).arg("--size");
        mkfs.arg(format!("{IMAGE_KIB}K")).arg(image);
        program(&mut mkfs, &[0])
    }

    /// Copies an image, sparse as it is.
    ///
    /// # Errors
    /// As [`program`].
    pub(super) fn copy_image(&self, from: &Path, to: &Path) -> Result<()> {
        let mut cp = Command::new("cp");
        cp.arg("--sparse=always").arg(from).arg(to);
        program(&mut cp, &[0]).map(|_| ())
    }

    /// `volary cp -r`.
    pub(super) fn volary_cp(&self) -> Command {
        let mut c = Command::new(&self.volary);
        c.args(["cp", "-r"]);
        c
    }

    /// Copies a tree into an image.
    ///
    /// # Errors
    /// As [`program`].
    pub(super) fn copy_in(&self, tree: &str, image: &Path) -> Result<Cost> {
        let target = format!("{}:/", image.display());
        let source = self.alone(tree).join(tree);
        program(self.volary_cp().arg(source).arg(&target), &[0])
    }

    /// Runs a copy out into a new folder, named by one more argument.
    ///
    /// # Errors
    /// As [`program`].
    pub(super) fn out(&self, command: &mut Command) -> Result<Cost> {
        let out = self.path("out");
        fs::create_dir(&out)?;
        let cost = program(command.arg(&out), &[0])?;
        fs::remove_dir_all(&out)?;
        Ok(cost)
    }

    pub(super) fn ours_out<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let source = format!("{}:/{tree}", self.image(tree).display());
        Box::new(move || self.out(self.volary_cp().arg(&source)))
    }

    /// Mounts, copies the small tree in, unmounts; the copy counts.
    ///
    /// # Errors
    /// As [`Mounted::start`]; the host's.
    pub(super) fn mounted_in(&self, server: Command) -> Result<Cost> {
        let from = self.alone("tree").join("tree");
        self.mounted(server, |mount| trees::copy(&from, &mount.join("tree")))
    }

    /// Mounts, does something with the mount, unmounts; what is done counts.
    ///
    /// # Errors
    /// As [`Mounted::start`]; those of `act`.
    pub(super) fn mounted(
        &self,
        server: Command,
        act: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Cost> {
        let dir = self.path("mnt");
        let mounted = Mounted::start(server, &dir)?;
        let cost = here(|| act(&dir))?;
        mounted.stop()?;
        Ok(cost)
    }

    /// `volary mount` of an image, on `mnt`.
    pub(super) fn volary_mount(&self, image: &Path) -> Command {
        let mut c = Command::new(&self.volary);
        c.arg("mount").arg(image).arg(self.path("mnt"));
        c
    }

    /// `fuse2fs` of an image, on `mnt`.
    pub(super) fn fuse2fs_mount(&self, image: &Path) -> Command {
        let mut c = Command::new("fuse2fs");
        c.args(["-f", "-o", "rw"]).arg(image).arg(self.path("mnt"));
        c
    }

    /// Copying the small tree into a new ext4.
    pub(super) fn fuse2fs(&self) -> Run<'_> {
        let image = self.path("ext4.img");
        Box::new(move || {
            self.mke2fs(&image, None)?;
            self.mounted_in(self.fuse2fs_mount(&image))
        })
    }

    /// A new ext4, with what a directory holds.
    ///
    /// # Errors
    /// As [`program`].
    pub(super) fn mke2fs(&self, image: &Path, holds: Option<&Path>) -> Result<()> {
        let _ = fs::remove_file(image);
        let mut mkfs = Command::new("mke2fs");
        mkfs.args(["-q", "-t", "ext4"]);
        if let Some(dir) = holds {
            mkfs.arg("-d").arg(dir);
        }
        mkfs.arg(image).arg(format!("{IMAGE_KIB}k"));
        program(&mut mkfs, &[0]).map(drop)
    }

    /// `volary fsck -n` of an image.
    pub(super) fn ours_check(&self, image: PathBuf) -> Run<'_> {
        Box::new(move || {
            let mut fsck = Command::new(&self.volary);
            program_with_peak(fsck.args(["fsck", "-n"]).arg(&image), &[0])
        })
    }
}

/// Runs the tasks that are wanted; `told` hears of each as soon as it is done. A rival that is
/// not installed is told of once, and its tasks are left out.
///
/// # Errors
/// If a program fails.
pub(super) fn run(
    tasks: Vec<Task<'_>>,
    options: &Options,
    told: &mut dyn FnMut(&Finding),
) -> Result<Vec<Finding>> {
    let mut all = Vec::new();
    let mut missing = Vec::new();
    for task in tasks {
        let rival = task.rival;
        if !options.wants(task.name) || missing.contains(&rival) {
            continue;
        }
        let finding = match task.run(options.rounds) {
            Ok(row) => Finding::Row(row),
            Err(e) => {
                let why = needs::lacking(e)?;
                missing.push(rival);
                Finding::missing(rival, why)
            }
        };
        told(&finding);
        all.push(finding);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::Lacks;

    #[test]
    fn a_rival_that_is_not_here_is_named_once_and_the_others_are_measured() {
        let options = Options {
            volary: PathBuf::new(),
            dir: None,
            rounds: 1,
            only: None,
        };
        let run = || -> Run<'_> { Box::new(|| Ok(Cost::default())) };
        let absent = || -> Run<'_> { Box::new(|| Err(Lacks::new("no such program").into())) };
        let tasks = vec![
            Task::new("one", "absent", 1.0, run(), absent()),
            Task::new("two", "absent", 1.0, run(), absent()),
            Task::new("two", "present", 1.0, run(), run()),
        ];
        let found = super::run(tasks, &options, &mut |_| ()).unwrap();
        let rivals: Vec<_> = found
            .iter()
            .map(|finding| match finding {
                Finding::Missing(missing) => (&*missing.rival, missing.why.as_str()),
                Finding::Row(row) => (&*row.rival, ""),
                Finding::Bound(_) | Finding::PerFile(_) => ("", ""),
            })
            .collect();
        assert_eq!(rivals, [("absent", "no such program"), ("present", "")]);
    }

    #[test]
    fn a_rival_that_fails_ends_the_run() {
        let options = Options {
            volary: PathBuf::new(),
            dir: None,
            rounds: 1,
            only: None,
        };
        let broken: Run<'_> = Box::new(|| anyhow::bail!("it broke"));
        let ours: Run<'_> = Box::new(|| Ok(Cost::default()));
        let tasks = vec![Task::new("one", "broken", 1.0, ours, broken)];
        assert!(super::run(tasks, &options, &mut |_| ()).is_err());
    }
}
