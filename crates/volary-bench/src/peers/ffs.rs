//! FFS: makefs, sleuthkit, fuse-ufs; fuse2fs and e2fsck, which work on ext4.

use super::finding::Finding;
use super::folder::{self, Folder, IMAGE_KIB, TREES};
use super::task::{Options, Run, Task};
use super::trees;
use crate::measure::{Cost, program, program_with_peak};
use crate::needs;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the comparison; `told` hears of each task as soon as it is done.
///
/// # Errors
/// If a program fails.
pub fn run(options: &Options, told: &mut dyn FnMut(&Finding)) -> Result<Vec<Finding>> {
    let place = Place {
        folder: Folder::new(options)?,
    };
    place.prepare()?;
    folder::run(place.tasks(), options, told)
}

/// The same, as each program takes it.
const SIZES: &str = "block=32768,fragment=4096";
const MAKEFS: &str = "version=2,bsize=32768,fsize=4096";

struct Place {
    folder: Folder,
}

impl Place {
    /// Images that hold the trees; an ext4 that holds that of many files. They are made by volary,
    /// as sleuthkit and fuse-ufs do not read makefs's, whose superblock is not where they look.
    fn prepare(&self) -> Result<()> {
        for (tree, ..) in TREES {
            let image = self.folder.image(tree);
            self.fresh(&image)?;
            self.folder.copy_in(tree, &image)?;
        }
        let many = self.folder.alone("many");
        // Without it e2fsck, which is of the same package, is missing too.
        needs::optional(self.folder.mke2fs(&self.ext4(), Some(&many)))?;
        Ok(())
    }

    fn ext4(&self) -> PathBuf {
        self.folder.path("many.ext4")
    }

    fn tasks(&self) -> Vec<Task<'_>> {
        let mut tasks = Vec::new();
        for (tree, into, out) in TREES {
            let (ours, theirs) = (self.ours_in(tree), self.makefs_in(tree));
            tasks.push(Task::new(into, "makefs", 2.0, ours, theirs));
            let (ours, theirs) = (self.folder.ours_out(tree), self.sleuthkit_out(tree));
            tasks.push(Task::new(out, "sleuthkit", 2.0, ours, theirs));
        }
        let (ours, theirs) = (self.ours_mounted_out(), self.fuse_ufs_out());
        tasks.push(Task::new(
            "tree out, mounted",
            "fuse-ufs",
            2.0,
            ours,
            theirs,
        ));
        let (ours, theirs) = (self.ours_mounted_in(), self.folder.fuse2fs());
        tasks.push(Task::new("tree in, mounted", "fuse2fs", 1.5, ours, theirs));
        let ours = self.folder.ours_check(self.folder.image("many"));
        let check = Task::new("check 50,000 files", "e2fsck", 1.0, ours, self.e2fsck());
        tasks.push(check);
        tasks
    }

    /// Makes an empty UFS2, with FreeBSD's sizes.
    fn fresh(&self, image: &Path) -> Result<Cost> {
        self.folder.mkfs(&["-t", "ffs2", "-o", SIZES], image)
    }

    /// Makes a UFS2 that holds a tree.
    fn makefs(&self, tree: &str, image: &Path) -> Result<Cost> {
        let _ = fs::remove_file(image);
        let mut makefs = Command::new("makefs");
        makefs
            .args(["-t", "ffs", "-o", MAKEFS, "-s"])
            .arg(format!("{IMAGE_KIB}k"))
            .arg(image)
            .arg(self.folder.alone(tree));
        program(&mut makefs, &[0])
    }

    /// Both make an image of a tree.
    fn ours_in<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.folder.path("ours.img");
        Box::new(move || {
            let made = self.fresh(&image)?;
            Ok(made.then(self.folder.copy_in(tree, &image)?))
        })
    }

    fn makefs_in<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.folder.path("theirs.img");
        Box::new(move || self.makefs(tree, &image))
    }

    fn sleuthkit_out<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.folder.image(tree);
        Box::new(move || {
            let mut recover = Command::new("tsk_recover");
            recover.args(["-a", "-f", "ufs2"]).arg(&image);
            self.folder.out(&mut recover)
        })
    }

    /// Mounts, copies the small tree out, unmounts; the copy counts.
    fn mounted_out(&self, server: Command) -> Result<Cost> {
        let out = self.folder.path("out");
        let cost = self
            .folder
            .mounted(server, |mount| trees::copy(&mount.join("tree"), &out))?;
        fs::remove_dir_all(&out)?;
        Ok(cost)
    }

    fn ours_mounted_out(&self) -> Run<'_> {
        let image = self.folder.image("tree");
        Box::new(move || {
            let mut mount = self.folder.volary_mount(&image);
            mount.args(["-o", "ro"]);
            self.mounted_out(mount)
        })
    }

    fn fuse_ufs_out(&self) -> Run<'_> {
        let image = self.folder.image("tree");
        Box::new(move || {
            let mut mount = Command::new("fuse-ufs");
            mount.arg("-f").arg(&image).arg(self.folder.path("mnt"));
            self.mounted_out(mount)
        })
    }

    fn ours_mounted_in(&self) -> Run<'_> {
        let image = self.folder.path("ours.img");
        Box::new(move || {
            self.fresh(&image)?;
            self.folder.mounted_in(self.folder.volary_mount(&image))
        })
    }

    /// Checks the tree on ext4 by e2fsck.
    fn e2fsck(&self) -> Run<'_> {
        let image = self.ext4();
        Box::new(move || {
            let mut fsck = Command::new("e2fsck");
            program_with_peak(fsck.args(["-f", "-n"]).arg(&image), &[0])
        })
    }
}
