//! FAT: mtools, dosfstools, fusefat, the `fatfs` crate; and fuse2fs, which
//! serves ext4, as the best of the mounted ones.

use super::{Bound, Finding, Options, Run, Task, rust_fatfs, trees};
use crate::measure::{Cost, Summary, here, program, program_with_peak, scratch};
use crate::served::mounts::Mounted;
use anyhow::{Context, Result};
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
/// The image: FAT32 with 4 KiB clusters.
const IMAGE_KIB: &str = "1048576";
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
/// If a rival is not installed, or a program fails.
pub fn run(options: &Options, told: &mut dyn FnMut(&Finding)) -> Result<Vec<Finding>> {
    let place = Place::new(options)?;
    let is_wanted = |name: &str| {
        let only = options.only.as_ref();
        only.is_none_or(|only| name.contains(only.as_str()))
    };
    let mut all = Vec::new();
    let mut note = |finding| {
        told(&finding);
        all.push(finding);
    };
    for task in place.tasks() {
        if is_wanted(task.name) {
            note(Finding::Row(task.run(options.rounds)?));
        }
    }
    if is_wanted(HUGE) || is_wanted(HUGE_MADE) {
        for bound in place.huge(options.rounds)? {
            note(Finding::Bound(bound));
        }
    }
    Ok(all)
}

/// A folder with images and trees.
struct Place {
    dir: TempDir,
    volary: PathBuf,
}

impl Place {
    fn new(options: &Options) -> Result<Self> {
        let dir = scratch(options.dir.as_deref())?;
        let place = Self {
            dir,
            volary: options.volary.clone(),
        };
        place.prepare()?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Trees, an empty image, and images that hold the trees, made by mtools.
    fn prepare(&self) -> Result<()> {
        trees::make(&self.path("tree"), TREE_DIRS, TREE_FILES, FILE_LEN)?;
        trees::make(&self.path("many"), MANY_DIRS, MANY_FILES, FILE_LEN)?;
        fs::create_dir(self.path("large"))?;
        trees::make_file(&self.path("large/file"), LARGE_LEN)?;
        let mut mkfs = Command::new("mkfs.fat");
        mkfs.args(["-C", "-F", "32", "-s", "8"])
            .arg(self.path("empty.img"))
            .arg(IMAGE_KIB);
        program(&mut mkfs, &[0]).context("is dosfstools installed?")?;
        for tree in ["tree", "many", "large"] {
            let image = self.path(&format!("{tree}.img"));
            self.fresh(&image)?;
            program(&mut self.mcopy_in(tree, &image), &[0]).context("is mtools installed?")?;
        }
        Ok(())
    }

    /// A new copy of the empty image, sparse as the first one.
    fn fresh(&self, image: &Path) -> Result<()> {
        let mut cp = Command::new("cp");
        cp.arg("--sparse=always")
            .arg(self.path("empty.img"))
            .arg(image);
        program(&mut cp, &[0]).map(|_| ())
    }

    fn mcopy_in(&self, tree: &str, image: &Path) -> Command {
        let mut c = Command::new("mcopy");
        c.args(["-s", "-Q", "-i"])
            .arg(image)
            .arg(self.path(tree))
            .arg("::");
        c
    }

    fn volary_cp(&self) -> Command {
        let mut c = Command::new(&self.volary);
        c.args(["cp", "-r"]);
        c
    }

    fn tasks(&self) -> Vec<Task<'_>> {
        let mut tasks = Vec::new();
        for (tree, into, out) in [
            (
                "tree",
                "tree of 1000 x 4 KiB in",
                "tree of 1000 x 4 KiB out",
            ),
            ("many", "50,000 small files in", "50,000 small files out"),
            ("large", "256 MiB in", "256 MiB out"),
        ] {
            tasks.push(self.task(
                into,
                "mtools",
                1.0,
                self.ours_in(tree),
                self.mtools_in(tree),
            ));
            tasks.push(self.task(
                out,
                "mtools",
                1.0,
                self.ours_out(tree),
                self.mtools_out(tree),
            ));
        }
        tasks.push(self.task(
            "list 50,000 files",
            "mtools",
            1.0,
            self.ours_list(),
            self.mdir(),
        ));
        let name = "tree of 1000 x 4 KiB in";
        tasks.push(self.task(
            name,
            "fatfs crate",
            15.0,
            self.ours_in("tree"),
            self.fatfs_in(),
        ));
        let name = "tree in, mounted";
        tasks.push(self.task(name, "fusefat", 10.0, self.ours_mounted(), self.fusefat()));
        tasks.push(self.task(name, "fuse2fs", 1.5, self.ours_mounted(), self.fuse2fs()));
        let mut fsck = self.task(
            "check 50,000 files",
            "fsck.fat",
            3.0,
            self.ours_check(),
            self.fsck(),
        );
        fsck.memory_aim = Some(0.5);
        tasks.push(fsck);
        tasks
    }

    fn task<'a>(
        &self,
        name: &'static str,
        rival: &'static str,
        aim: f64,
        ours: Run<'a>,
        theirs: Run<'a>,
    ) -> Task<'a> {
        Task {
            name,
            rival,
            aim,
            memory_aim: None,
            ours,
            theirs,
        }
    }

    fn ours_in<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.path("ours.img");
        let target = format!("{}:/", image.display());
        Box::new(move || {
            self.fresh(&image)?;
            program(self.volary_cp().arg(self.path(tree)).arg(&target), &[0])
        })
    }

    fn mtools_in<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.path("theirs.img");
        Box::new(move || {
            self.fresh(&image)?;
            program(&mut self.mcopy_in(tree, &image), &[0])
        })
    }

    fn ours_out<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let source = format!("{}:/{tree}", self.path(&format!("{tree}.img")).display());
        Box::new(move || self.out(self.volary_cp().arg(&source)))
    }

    fn mtools_out<'a>(&'a self, tree: &'a str) -> Run<'a> {
        let image = self.path(&format!("{tree}.img"));
        Box::new(move || {
            let mut c = Command::new("mcopy");
            c.args(["-s", "-Q", "-n", "-i"])
                .arg(&image)
                .arg(format!("::{tree}"));
            self.out(&mut c)
        })
    }

    /// Runs a copy out into a new folder, named by one more argument.
    fn out(&self, command: &mut Command) -> Result<Cost> {
        let out = self.path("out");
        fs::create_dir(&out)?;
        let cost = program(command.arg(&out), &[0])?;
        fs::remove_dir_all(&out)?;
        Ok(cost)
    }

    fn ours_list(&self) -> Run<'_> {
        let place = format!("{}:/", self.path("many.img").display());
        Box::new(move || {
            program(
                Command::new(&self.volary).args(["ls", "-R"]).arg(&place),
                &[0],
            )
        })
    }

    fn mdir(&self) -> Run<'_> {
        let image = self.path("many.img");
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
        let image = self.path("theirs.img");
        Box::new(move || {
            self.fresh(&image)?;
            here(|| rust_fatfs::copy_in(&self.path("tree"), &image))
        })
    }

    fn ours_mounted(&self) -> Run<'_> {
        let image = self.path("ours.img");
        Box::new(move || {
            self.fresh(&image)?;
            let mut c = Command::new(&self.volary);
            c.arg("mount").arg(&image).arg(self.path("mnt"));
            self.mounted(c)
        })
    }

    fn fusefat(&self) -> Run<'_> {
        let image = self.path("theirs.img");
        Box::new(move || {
            self.fresh(&image)?;
            let mut c = Command::new("fusefat");
            c.args(["-f", "-o", "rw+"])
                .arg(&image)
                .arg(self.path("mnt"));
            self.mounted(c)
        })
    }

    fn fuse2fs(&self) -> Run<'_> {
        let image = self.path("ext4.img");
        Box::new(move || {
            let _ = fs::remove_file(&image);
            let mut mkfs = Command::new("mke2fs");
            mkfs.args(["-q", "-t", "ext4"])
                .arg(&image)
                .arg(format!("{IMAGE_KIB}k"));
            program(&mut mkfs, &[0]).context("is e2fsprogs installed?")?;
            let mut c = Command::new("fuse2fs");
            c.args(["-f", "-o", "rw"]).arg(&image).arg(self.path("mnt"));
            self.mounted(c)
        })
    }

    /// Mounts, copies the small tree in, unmounts; the copy counts.
    fn mounted(&self, server: Command) -> Result<Cost> {
        let dir = self.path("mnt");
        let mounted = Mounted::start(server, &dir)?;
        let cost = here(|| trees::copy(&self.path("tree"), &dir.join("tree")))?;
        mounted.stop()?;
        Ok(cost)
    }

    fn ours_check(&self) -> Run<'_> {
        let image = self.path("many.img");
        Box::new(move || {
            program_with_peak(
                Command::new(&self.volary).args(["fsck", "-n"]).arg(&image),
                &[0],
            )
        })
    }

    fn fsck(&self) -> Run<'_> {
        let image = self.path("many.img");
        Box::new(move || program_with_peak(Command::new("fsck.fat").arg("-n").arg(&image), &[0]))
    }

    /// Makes a sparse FAT32 volume of about 2 TiB, and lists its root.
    fn huge(&self, rounds: usize) -> Result<[Bound; 2]> {
        let image = self.path("huge.img");
        let (mut made, mut listed) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            let _ = fs::remove_file(&image);
            let mut mkfs = Command::new(&self.volary);
            mkfs.args(["mkfs", "-t", "fat32"])
                .arg(&image)
                .args(["--size", &HUGE_LEN.to_string()]);
            made.push(program_with_peak(&mut mkfs, &[0])?);
            let mut ls = Command::new(&self.volary);
            ls.arg("ls").arg(format!("{}:/", image.display()));
            listed.push(program_with_peak(&mut ls, &[0])?);
        }
        Ok(
            [(HUGE_MADE, made), (HUGE, listed)].map(|(task, costs)| Bound {
                task,
                ours: Summary::of(&costs),
                seconds_max: HUGE_SECONDS,
                peak_max: HUGE_PEAK,
            }),
        )
    }
}
