//! Who reads a set.

use super::sets::{From, Set, Volume};
use crate::measure::{Cost, here, program};
use crate::needs::{self, Lacks};
use crate::peers::task::Run;
use anyhow::Result;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

/// One reader.
pub(super) struct Rival<'a> {
    pub(super) name: &'static str,
    /// How many times as fast volary should be; 0 for no aim.
    pub(super) aim: f64,
    pub(super) read: Run<'a>,
}

/// What reads an image should take at most 1.2 times as long as its bytes in sequence.
const OF_SEQUENCE: f64 = 1.0 / 1.2;

/// Everybody, volary first.
pub(super) fn all<'a>(set: &'static Set, volume: &'a Volume, volary: &'a Path) -> Vec<Rival<'a>> {
    let is_image = set.is_image();
    let is_small = set.is_of_small_files();
    let aim = |of_image: f64, of_tree: f64| match (is_small, is_image) {
        (true, true) => of_image,
        (true, false) => of_tree,
        _ => 1.0,
    };
    let of_sequence = if is_image { OF_SEQUENCE } else { 0.0 };
    let of_rg = match set.is_real() && !is_image {
        true => 2.0,
        false => aim(7.0, 2.5),
    };
    let mut all = vec![
        rival("volary", 0.0, ours(volume, volary)),
        rival("in sequence", of_sequence, in_sequence(volume)),
        rival("in sequence, direct", of_sequence, direct(volume)),
        rival("tar", aim(12.0, 4.0), shell(volume, "tar", TAR)),
        rival("tar --sort=inode", 1.0, shell(volume, "tar", TAR_SORTED)),
        rival("ripgrep", of_rg, ripgrep(volume)),
        rival("b3sum", 1.0, shell(volume, "b3sum", B3SUM)),
    ];
    if is_image {
        all.push(rival("7-Zip", 1.0, sevenzip(set, volume)));
        all.push(rival("sleuthkit", 1.0, sleuthkit(volume)));
    }
    all
}

fn rival<'a>(name: &'static str, aim: f64, read: Run<'a>) -> Rival<'a> {
    Rival { name, aim, read }
}

/// tar sees where its output goes, and reads nothing for `/dev/null`.
const TAR: &str = "tar --one-file-system -cf - . | cat";
const TAR_SORTED: &str = "tar --one-file-system --sort=inode -cf - . | cat";
const B3SUM: &str = "find . -xdev -type f -print0 | xargs -0 -P \"$(nproc)\" b3sum";

fn ours<'a>(volume: &'a Volume, volary: &'a Path) -> Run<'a> {
    Box::new(move || {
        let mut bulk = Command::new(volary);
        // What changes, or may not be read, of a tree that is in use is no failure of the run.
        program(bulk.args(["bulk", "--null"]).arg(&volume.path), &[0, 1])
    })
}

/// Returns the files as the host has them.
///
/// # Errors
/// [`Lacks`].
fn mounted(volume: &Volume) -> Result<&Path> {
    let found = volume.mounted.as_deref();
    found.ok_or_else(|| Lacks::new(volume.why_not.clone()).into())
}

fn shell<'a>(volume: &'a Volume, needed: &'static str, script: &'static str) -> Run<'a> {
    Box::new(move || {
        needs::program(&Command::new(needed))?;
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).current_dir(mounted(volume)?);
        // Files that may not be read have lines of their own, and a code.
        program(&mut sh, &[0, 1, 2, 123])
    })
}

fn ripgrep(volume: &Volume) -> Run<'_> {
    Box::new(move || {
        let mut rg = Command::new("rg");
        rg.args([
            "-a",
            "-uuu",
            "-c",
            "--one-file-system",
            "none of these words",
        ])
        .arg(mounted(volume)?);
        // 1 for nothing found, 2 for a file that may not be read.
        program(&mut rg, &[0, 1, 2])
    })
}

fn sevenzip<'a>(set: &'static Set, volume: &'a Volume) -> Run<'a> {
    Box::new(move || {
        let kind = match set.from {
            From::Ext4 => "-text",
            From::Fat => "-tfat",
            From::Iso => "-tiso",
            From::Ffs2 | From::Tree => return Err(Lacks::new("7-Zip does not read UFS").into()),
        };
        let mut extract = Command::new("7zz");
        program(
            extract.args(["x", "-so", kind]).arg(&volume.path),
            &[0, 1, 2],
        )
    })
}

/// Recovers into memory.
fn sleuthkit(volume: &Volume) -> Run<'_> {
    Box::new(move || {
        let memory = Path::new("/dev/shm");
        let out = match memory.is_dir() {
            true => tempfile::tempdir_in(memory)?,
            false => tempfile::tempdir_in(volume.beside(""))?,
        };
        let mut recover = Command::new("tsk_recover");
        program(recover.arg("-a").arg(&volume.path).arg(out.path()), &[0, 1])
    })
}

const STEP: usize = 1 << 20;

/// As many bytes as the files have, one after the other, as any program reads.
fn in_sequence(volume: &Volume) -> Run<'_> {
    Box::new(move || {
        here(|| {
            let mut file = fs::File::open(&volume.sequence)?;
            let mut buf = vec![0; STEP];
            while file.read(&mut buf)? > 0 {}
            Ok(())
        })
    })
}

/// Requests at a time.
const DEPTH: usize = 4;
/// What memory and offsets are multiples of.
const ALIGN: usize = 4096;

/// Reads as many bytes as `in_sequence`, past the page cache, several requests at a time.
fn direct(volume: &Volume) -> Run<'_> {
    Box::new(move || {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECT);
        let Ok(file) = options.open(&volume.sequence) else {
            return Err(Lacks::new("the host has no O_DIRECT there").into());
        };
        let steps = file.metadata()?.len().div_ceil(STEP as u64);
        let read: &(dyn Fn(u64) -> Result<()> + Sync) = &|first| {
            let mut room = vec![0; STEP + ALIGN];
            let skip = room.as_ptr().align_offset(ALIGN);
            for step in (first..steps).step_by(DEPTH) {
                file.read_at(&mut room[skip..skip + STEP], step * STEP as u64)?;
            }
            Ok(())
        };
        let all = || -> Result<()> {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..DEPTH as u64)
                    .map(|first| scope.spawn(move || read(first)))
                    .collect();
                threads.into_iter().try_for_each(|thread| {
                    let ended = thread.join();
                    ended.unwrap_or_else(|_| anyhow::bail!("a reading thread panicked"))
                })
            })
        };
        let cost: Result<Cost> = here(all);
        cost
    })
}
