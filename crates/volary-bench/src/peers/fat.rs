//! FAT: mtools, dosfstools, fusefat, the `fatfs` crate; and fuse2fs, which
//! serves ext4, as the best of the mounted ones.

use super::finding::{Bound, Finding};
use super::folder::{self, Folder, IMAGE_KIB, TREES};
use super::rust_fatfs;
use super::task::{Options, Run, Task};
use crate::measure::{Summary, here, program, program_with_peak};
use crate::needs;
use anyhow::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

/// How many times as fast a large file should come out: the host copies it from the image.
const LARGE_OUT: f64 = 1.3;

const HUGE: &str = "attach 2 TiB and list it";
const HUGE_MADE: &str = "make 2 TiB";
/// What both may take at most.
const HUGE_SECONDS: f64 = 0.2;
const HUGE_PEAK: u64 = 64 << 20;
/// 2 TiB less 64 KiB: about the largest that 32 bits of 512-byte sectors can say.
const HUGE_LEN: u64 = (2 << 40) - (64 << 10);

/// Runs the comparison; `told` hears of each task as soon as it is done.
///
/// # Errors
/// If a program fails.
pub fn run(options: &Options, told: &mut dyn FnMut(&Finding)) -> Result<Vec<Finding>> {
    let place = Place {
        folder: Folder::new(options)?,
    };
    place.prepare()?;
    let mut all = folder::run(place.tasks(), options, told)?;
    if options.wants(HUGE) || options.wants(HUGE_MADE) {
        for bound in place.huge(options.rounds)? {
            let bound = Finding::Bound(bound);
            told(&bound);
            all.push(bound);
        }
    }
    Ok(all)
}

struct Place {
    folder: Folder,
}

impl Place {
    /// An empty image, and images that hold the trees: made by dosfstools and mtools, so that
    /// their layout favours the rival; by volary where these are not installed.
    fn prepare(&self) -> Result<()> {
        let mut mkfs = Command::new("mkfs.fat");
        mkfs.args(["-C", "-F", "32", "-s", "8"])
            .arg(self.folder.path("empty.img"))
            .arg(IMAGE_KIB);
        if needs::optional(program(&mut mkfs, &[0]))?.is_none() {
            let empty = self.folder.path("empty.img");
            self.folder
                .mkfs(&["-t", "fat32", "-o", "cluster=4k"], &empty)?;
        }
        for (tree, ..) in TREES {
            let image = self.folder.image(tree);
            self.fresh(&image)?;
            let copied = program(&mut self.mcopy_in(tree, &image), &[0]);
            if needs::optional(copied)?.is_none() {
                self.folder.copy_in(tree, &image)?;
            }
        }
        Ok(())
    }

    /// A new copy of the empty image, sparse as the first one.
    fn fresh(&self, image: &Path) -> Result<()> {
        let empty = self.folder.path("empty.img");
        self.folder.copy_image(&empty, image)
    }

    fn mcopy_in(&self, tree: &str, image: &Path) -> Command {
        let mut c = Command::new("mcopy");
        c.args(["-s", "-Q", "-i"])
            .arg(image)
            .arg(self.folder.alone(tree).join(tree))
            .arg("::");
        c
    }

    fn tasks(&self) -> Vec<Task<'_>> {
        let mut tasks = Vec::new();
        for (tree, into, out) in TREES {
            let (ours, theirs) = (self.ours_in(tree), self.mtools_in(tree));
            tasks.push(Task::new(into, "mtools", 1.0, ours, theirs));
            let (ours, theirs) = (self.folder.ours_out(tree), self.mtools_out(tree));
            let aim = if tree == "large" { LARGE_OUT } else { 1.0 };
            tasks.push(Task::new(out, "mtools", aim, ours, theirs));
        }
        let (ours, theirs) = (self.ours_list(), self.mdir());
        tasks.push(Task::new("list 50,000 files", "mtools", 1.0, ours, theirs));
        let (ours, theirs) = (self.ours_in("tree"), self.fatfs_in());
        tasks.push(Task::new(TREES[0].1, "fatfs crate", 15.0, ours, theirs));
        let name = "tree in, mounted";
        let (ours, theirs) = (self.ours_mounted(), self.fusefat());
        tasks.push(Task::new(name, "fusefat", 10.0, ours, theirs));
        let (ours, theirs) = (self.ours_mounted(), self.folder.fuse2fs());
        tasks.push(Task::new(name, "fuse2fs", 1.5, ours, theirs));
        let ours = self.folder.ours_check(self.folder.image("many"));
        let mut fsck = Task::new("check 50,000 files", "fsck.fat", 3.0, ours, self.fsck());
        fsck.memory_aim = Some(0.5);
        tasks.push(fsck);
        tasks
    }

    fn ours_in<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.folder.path("ours.img");
        Box::new(move || {
            self.fresh(&image)?;
            self.folder.copy_in(tree, &image)
        })
    }

    fn mtools_in<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.folder.path("theirs.img");
        Box::new(move || {
            self.fresh(&image)?;
            program(&mut self.mcopy_in(tree, &image), &[0])
        })
    }

    fn mtools_out<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.folder.image(tree);
        Box::new(move || {
            let mut c = Command::new("mcopy");
            c.args(["-s", "-Q", "-n", "-i"])
                .arg(&image)
                .arg(format!("::{tree}"));
            self.folder.out(&mut c)
        })
    }

    fn ours_list(&self) -> Run<'_> {
        let place = format!("{}:/", self.folder.image("many").display());
        Box::new(move || {
            program(
                Command::new(&self.folder.volary)
                    .args(["ls", "-R"])
                    .arg(&place),
                &[0],
            )
        })
    }

    fn mdir(&self) -> Run<'_> {
        let image = self.folder.image("many");
        Box::new(move || {
            program(
                Command::new("mdir")
                    .args(["-/", "-b", "-i"])
                    .arg(&image)
                    .arg("::"),
                &[0],
            )
        })
    }

    fn fatfs_in(&self) -> Run<'_> {
        let image = self.folder.path("theirs.img");
        Box::new(move || {
            self.fresh(&image)?;
            here(|| rust_fatfs::copy_in(&self.folder.alone("tree").join("tree"), &image))
        })
    }

    fn ours_mounted(&self) -> Run<'_> {
        let image = self.folder.path("ours.img");
        Box::new(move || {
            self.fresh(&image)?;
            self.folder.mounted_in(self.folder.volary_mount(&image))
        })
    }

    fn fusefat(&self) -> Run<'_> {
        let image = self.folder.path("theirs.img");
        Box::new(move || {
            self.fresh(&image)?;
            let mut c = Command::new("fusefat");
            c.args(["-f", "-o", "rw+"])
                .arg(&image)
                .arg(self.folder.path("mnt"));
            self.folder.mounted_in(c)
        })
    }

    fn fsck(&self) -> Run<'_> {
        let image = self.folder.image("many");
        Box::new(move || program_with_peak(Command::new("fsck.fat").arg("-n").arg(&image), &[0]))
    }

    /// Makes a sparse FAT32 volume of about 2 TiB, and lists its root.
    fn huge(&self, rounds: usize) -> Result<[Bound; 2]> {
        let image = self.folder.path("huge.img");
        let (mut made, mut listed) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            let _ = fs::remove_file(&image);
            let mut mkfs = Command::new(&self.folder.volary);
            mkfs.args(["mkfs", "-t", "fat32"])
                .arg(&image)
                .args(["--size", &HUGE_LEN.to_string()]);
            made.push(program_with_peak(&mut mkfs, &[0])?);
            let mut ls = Command::new(&self.folder.volary);
            ls.arg("ls").arg(format!("{}:/", image.display()));
            listed.push(program_with_peak(&mut ls, &[0])?);
        }
        Ok(
            [(HUGE_MADE, made), (HUGE, listed)].map(|(task, costs)| Bound {
                task: task.into(),
                ours: Summary::of(&costs),
                seconds_max: HUGE_SECONDS,
                peak_max: HUGE_PEAK,
            }),
        )
    }
}
