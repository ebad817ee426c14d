//! An ext4 that is nearly full, and whose free room is in pieces: made by the host, as it makes them
//! by use.

use crate::needs::Lacks;
use crate::peers::trees::{Counted, content, count};
use crate::served::mounts::Looped;
use anyhow::Result;
use std::fs;
use std::path::Path;

/// How full it is in the end, in percent.
const FULL: u64 = 90;

/// Fills a new ext4 in `image`, mounted at `dir` meanwhile: with small files, half of which go again,
/// twice, and then with files that are larger than the room between them. Returns how many files
/// there are, and their bytes.
///
/// # Errors
/// [`Lacks`] for all but root; the host's.
pub(super) fn fill(image: &Path, dir: &Path) -> Result<Counted> {
    if !rustix::process::geteuid().is_root() {
        return Err(Lacks::new("mounting it to age it needs root").into());
    }
    let looped = Looped::start(image, dir)?;
    let mut growing = Growing { dir, next: 0 };
    let small = growing.until(95, 1..=16)?;
    thin(dir, &small, 2)?;
    let middle = growing.until(93, 8..=64)?;
    thin(dir, &middle, 3)?;
    thin(dir, &small, 3)?;
    growing.until(FULL, 16..=128)?;
    let counted = count(dir)?;
    looped.stop()?;
    Ok(counted)
}

struct Growing<'a> {
    dir: &'a Path,
    next: usize,
}

/// Files of a directory.
const OF_DIR: usize = 100;

impl Growing<'_> {
    /// Writes files until the volume is `percent` full. `blocks` bounds a file's length, in 4 KiB.
    /// Returns the range of the files' numbers.
    fn until(
        &mut self,
        percent: u64,
        blocks: std::ops::RangeInclusive<usize>,
    ) -> Result<std::ops::Range<usize>> {
        let first = self.next;
        let spread = blocks.end() - blocks.start() + 1;
        while used(self.dir)? < percent {
            let path = self.dir.join(name(self.next));
            if let Some(above) = path.parent() {
                fs::create_dir_all(above)?;
            }
            let mixed = self.next.wrapping_mul(0x9e37_79b9) >> 7;
            let len = (blocks.start() + mixed % spread) * 4096;
            fs::write(&path, content(self.next, len))?;
            self.next += 1;
        }
        sync(self.dir)?;
        Ok(first..self.next)
    }
}

fn name(number: usize) -> String {
    format!("d{:03}/file{number:06}.dat", number / OF_DIR)
}

/// Removes about one in `of` of the files that are still there.
fn thin(dir: &Path, files: &std::ops::Range<usize>, of: usize) -> Result<()> {
    let mixed = |number: usize| number.wrapping_mul(0x85eb_ca6b) >> 9;
    for number in files.clone().filter(|number| mixed(*number) % of == 0) {
        // One that an earlier thinning removed is gone.
        let _ = fs::remove_file(dir.join(name(number)));
    }
    sync(dir)
}

fn sync(dir: &Path) -> Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(dir)?)?)
}

/// Returns how full the volume is, in percent.
fn used(dir: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(100 - stat.f_bavail * 100 / stat.f_blocks.max(1))
}
