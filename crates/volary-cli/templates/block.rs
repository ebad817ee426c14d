//! DriverName volumes, of blocks. Adapt the superblock and the inodes; [`Tree`] does the rest.
//!
//! The format of this template, little-endian: block 0 is the superblock (magic number, bytes of a
//! block, number of inodes, label). Inodes of 64 bytes follow in block 1 and on: parent (an inode's
//! number, 4 bytes), first block (4), size (8), mode as `st_mode` has it (4), seconds since 1970
//! (8), name (36, zeros at its end). Inode 0 is the root. A file's blocks follow each other.

use std::sync::Arc;
use volary_driver::Bytes;
use volary_driver::core::{Attach, BlockDevice, Fact, FileKind, Format, Fs, Probe, Result, Time};
use volary_driver::readonly::{self, Item, Listing, Tree};

/// The format: `Registry::default().with_format(&DRIVER_NAME)`.
pub static DRIVER_NAME: DriverName = DriverName;

/// DriverName volumes.
pub struct DriverName;

const MAGIC: &[u8] = b"TMPL-VOL";
const INODE: u64 = 64;

impl Format for DriverName {
    fn name(&self) -> &'static str {
        "driver-name"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["driver-name"]
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        if !Bytes::begins_with(dev, 0, MAGIC)? {
            return Ok(None);
        }
        let mut label = [0; 16];
        dev.read_at(16, &mut label)?;
        let label = String::from_utf8_lossy(until_zero(&label)).into_owned();
        Ok(Some(Probe {
            kind: "driver-name",
            label: Some(label).filter(|label| !label.is_empty()),
        }))
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        how.options.check_known(&[])?;
        readonly::attach("driver-name", Volume::new(dev)?, how)
    }

    fn info(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
        let volume = Volume::new(dev)?;
        Ok(vec![
            Fact::number("block size", volume.block, "bytes"),
            Fact::number("inodes", volume.inodes.into(), ""),
        ])
    }
}

/// The superblock, checked.
struct Volume {
    bytes: Bytes,
    block: u64,
    inodes: u32,
}

impl Volume {
    fn new(dev: Arc<dyn BlockDevice>) -> Result<Self> {
        let bytes = Bytes::whole(dev);
        let block = u32::from_le_bytes(bytes.array("the block size", 8)?);
        if !block.is_power_of_two() || !(512..=1 << 16).contains(&block) {
            let found = format!("{block} bytes");
            return Err(bytes.corrupt(
                "the block size",
                8,
                found,
                "a power of two from 512 to 65536",
            ));
        }
        let inodes = u32::from_le_bytes(bytes.array("the number of inodes", 12)?);
        bytes.part("the inodes", block.into(), u64::from(inodes) * INODE)?;
        Ok(Self {
            bytes,
            block: block.into(),
            inodes,
        })
    }

    /// Returns the path of an inode's parent, of those before it.
    fn parent<'a>(&self, paths: &'a [Vec<u8>], at: u64) -> Result<&'a [u8]> {
        let parent = u32::from_le_bytes(self.bytes.array("a parent", at)?);
        let path = paths.get(parent as usize).map(Vec::as_slice);
        let found = || format!("inode {parent}");
        path.ok_or_else(|| {
            self.bytes
                .corrupt("a parent", at, found(), "an inode before this one")
        })
    }
}

impl Tree for Volume {
    /// Where a file's blocks begin, in bytes.
    type File = u64;
    const HAS_PLACES: bool = true;

    fn list(&self, out: &mut Listing<u64>) -> Result<()> {
        let mut paths = vec![Vec::new()];
        for number in 1..u64::from(self.inodes) {
            let at = self.block + number * INODE;
            let name: [u8; 36] = self.bytes.array("a name", at + 28)?;
            let path = [self.parent(&paths, at)?, b"/", until_zero(&name)].concat();
            let start =
                u64::from(u32::from_le_bytes(self.bytes.array("a block", at + 4)?)) * self.block;
            let size = u64::from_le_bytes(self.bytes.array("a size", at + 8)?);
            let mode = u32::from_le_bytes(self.bytes.array("a mode", at + 16)?);
            let time = Time::from_secs(i64::from_le_bytes(self.bytes.array("a time", at + 20)?));
            self.bytes.part("the content of a file", start, size)?;
            let item = match FileKind::from_mode(mode) {
                Some(FileKind::Dir) => Item::dir(),
                Some(FileKind::Symlink) => {
                    Item::symlink(self.bytes.vec("a symlink", start, size, 4096)?)
                }
                _ => Item::file(size, start),
            };
            out.add(&path, item.mode(mode).modified(time))?;
            paths.push(path);
        }
        Ok(())
    }

    fn read(&self, start: &u64, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bytes
            .read("the content of a file", start + offset, buf)
    }

    fn place(&self, start: &u64) -> Option<u64> {
        Some(*start)
    }

    fn size(&self) -> u64 {
        self.bytes.len()
    }
}

fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|&b| b == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_block::MemDevice;
    use volary_driver::core::{Cancel, Cred, Ctx, Kind, Name};
    use volary_test::{Suite, damage};

    /// Returns a volume with a directory, and a file in it.
    fn volume() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&512_u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&3_u32.to_le_bytes());
        bytes[16..20].copy_from_slice(b"DISK");
        for (number, parent, mode, size, name) in
            [(1, 0, 0o040_755, 0, "dir"), (2, 1, 0o100_600, 9, "file")]
        {
            let inode = &mut bytes[512 + number * 64..][..64];
            inode[..4].copy_from_slice(&u32::to_le_bytes(parent));
            inode[4..8].copy_from_slice(&4_u32.to_le_bytes());
            inode[8..16].copy_from_slice(&u64::to_le_bytes(size));
            inode[16..20].copy_from_slice(&u32::to_le_bytes(mode));
            inode[28..28 + name.len()].copy_from_slice(name.as_bytes());
        }
        bytes[4 * 512..][..9].copy_from_slice(b"some text");
        bytes
    }

    fn attach(bytes: Vec<u8>) -> Result<Fs> {
        DRIVER_NAME.attach(Arc::new(MemDevice::from_vec(bytes)), &Attach::default())
    }

    #[test]
    fn the_inodes_are_a_tree() {
        let dev = MemDevice::from_vec(volume());
        assert_eq!(
            DRIVER_NAME.probe(&dev).unwrap().unwrap().label.unwrap(),
            "DISK"
        );
        let fs = attach(volume()).unwrap();
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::EPOCH,
            cancel: &cancel,
        };
        let dir = fs
            .lookup(&cx, fs.root(), Name::new(b"dir").unwrap())
            .unwrap();
        let file = fs
            .lookup(&cx, dir.node, Name::new(b"file").unwrap())
            .unwrap();
        assert_eq!((file.attr.size, file.attr.mode), (9, 0o600));
    }

    #[test]
    fn numbers_that_cannot_be_are_damage() {
        for (at, value) in [
            (8, 513_u32),
            (12, 1 << 30),
            (512 + 2 * 64, 2),
            (512 + 2 * 64 + 4, 1 << 31),
        ] {
            let mut bytes = volume();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert_eq!(attach(bytes).err().unwrap(), Kind::Corrupt, "byte {at}");
        }
    }

    #[test]
    fn the_kit_finds_nothing_wrong_and_damage_is_an_error_at_worst() {
        let good = volume();
        damage::survived(&good, 500, attach);
        let make = move || attach(good.clone()).unwrap();
        Suite::coherent("driver-name", make).unwrap().run();
    }
}
