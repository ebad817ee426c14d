//! What the tables' workloads ask of a file system.

use super::cfs::{self, Done};
use super::mounted::Mounted;
use anyhow::Result;
use volary_sim::Preset;

/// Bytes of a small file, which fits in one page.
pub(super) const SMALL: usize = 400;
/// Milliseconds from one small create to the next: what FSD takes for it (Table 2).
pub(super) const APART: u64 = 70;

/// A file system on a disk that counts requests. Names are `dir>file`; the first file of a directory creates it.
pub(super) trait Rival {
    /// Makes a file.
    fn create(&mut self, name: &str, len: usize) -> Result<()>;
    /// Makes a file anew, in place of the one that is there.
    fn replace(&mut self, name: &str, len: usize) -> Result<()>;
    /// Asks for a file's properties.
    fn look(&mut self, name: &str) -> Result<()>;
    /// Opens a file and reads all of it. Returns its bytes.
    fn read(&mut self, name: &str) -> Result<usize>;
    /// Lists a directory with all properties. Returns how many files there are.
    fn list(&mut self, dir: &str) -> Result<usize>;
    fn delete(&mut self, name: &str) -> Result<()>;
    /// Lets milliseconds pass, and writes what is due.
    fn wait(&mut self, ms: u64) -> Result<()>;
    /// Detaches the volume and attaches it again with empty caches.
    fn again(&mut self) -> Result<()>;
    /// Drops cached content of files, which Cedar did not cache.
    fn forget(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns the requests so far.
    fn done(&self) -> Done;
}

/// CFS.
pub(super) struct Cfs(cfs::Volume);

impl Cfs {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(cfs::Volume::make(&Preset::T300)?))
    }
}

impl Rival for Cfs {
    fn create(&mut self, name: &str, len: usize) -> Result<()> {
        self.0.create(name, &vec![7; len])
    }

    /// The new version comes, and then the old one goes.
    fn replace(&mut self, name: &str, len: usize) -> Result<()> {
        self.0.create(name, &vec![7; len])
    }

    fn look(&mut self, name: &str) -> Result<()> {
        self.0.open(name).map(|_| ())
    }

    fn read(&mut self, name: &str) -> Result<usize> {
        let open = self.0.open(name)?;
        Ok(self.0.read(&open)?.len())
    }

    fn list(&mut self, dir: &str) -> Result<usize> {
        Ok(self.0.list(&format!("{dir}>"))?.len())
    }

    fn delete(&mut self, name: &str) -> Result<()> {
        self.0.delete(name)
    }

    /// Nothing waits.
    fn wait(&mut self, ms: u64) -> Result<()> {
        self.0.wait(ms as f64 * 1000.0);
        Ok(())
    }

    fn again(&mut self) -> Result<()> {
        self.0.again()
    }

    fn done(&self) -> Done {
        self.0.done()
    }
}

/// FSD: the real driver, with the paper's parameters.
pub(super) struct Fsd {
    pub(super) on: Mounted,
    /// Reads that are not the workload's.
    aside: u64,
}

/// A file that takes the place of all others in the driver's cache, and its bytes.
const LONG: (&str, usize) = ("aside>Long", 3 << 20);

impl Fsd {
    /// Returns a new volume on a disk that commits as often as `commit` says, an option of attaching.
    pub(super) fn new(disk: &Preset, commit: &str) -> Result<Self> {
        let attach = format!("data=through,iosize=4k{commit}");
        let mut on = Mounted::new(disk, "cedar", "page=512,log=642k", &attach)?;
        on.create(LONG.0, LONG.1)?;
        Ok(Self { on, aside: 0 })
    }
}

impl Rival for Fsd {
    fn create(&mut self, name: &str, len: usize) -> Result<()> {
        self.on.create(name, len)
    }

    fn replace(&mut self, name: &str, len: usize) -> Result<()> {
        self.on.unlink(name)?;
        self.on.create(name, len)
    }

    fn look(&mut self, name: &str) -> Result<()> {
        self.on.find(name).map(|_| ())
    }

    fn read(&mut self, name: &str) -> Result<usize> {
        self.on.read(name)
    }

    fn list(&mut self, dir: &str) -> Result<usize> {
        Ok(self.on.list(dir)?.len())
    }

    fn delete(&mut self, name: &str) -> Result<()> {
        self.on.unlink(name)
    }

    fn wait(&mut self, ms: u64) -> Result<()> {
        self.on.wait(ms);
        Ok(())
    }

    fn again(&mut self) -> Result<()> {
        self.on.again()
    }

    fn forget(&mut self) -> Result<()> {
        let before = self.on.done().reads;
        self.on.read(LONG.0)?;
        self.aside += self.on.done().reads - before;
        Ok(())
    }

    fn done(&self) -> Done {
        let done = self.on.done();
        Done {
            reads: done.reads - self.aside,
            ..done
        }
    }
}
