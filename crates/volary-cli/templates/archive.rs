//! DriverName archives as volumes. Adapt what is read in [`Tree::list`]; the rest is done.
//!
//! The format of this template: the magic number, then entries. An entry has the length of its path
//! (4 bytes) and of its content (8 bytes), little-endian, then both. A path that ends with `/` is a
//! directory's.

use std::sync::Arc;
use volary_driver::Bytes;
use volary_driver::core::{Attach, BlockDevice, Format, Fs, Probe, Result};
use volary_driver::readonly::{self, Item, Listing, Tree};

/// The format: `Registry::default().with_format(&DRIVER_NAME)`.
pub static DRIVER_NAME: DriverName = DriverName;

/// DriverName archives.
pub struct DriverName;

const MAGIC: &[u8] = b"TMPL-ARC";
/// The longest path that is believed, in bytes.
const PATH_MAX: usize = 4096;

impl Format for DriverName {
    fn name(&self) -> &'static str {
        "driver-name"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["driver-name"]
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let is_it = Bytes::begins_with(dev, 0, MAGIC)?;
        Ok(is_it.then(|| Probe::of("driver-name")))
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        how.options.check_known(&[])?;
        readonly::attach("driver-name", Archive(Bytes::whole(dev)), how)
    }
}

struct Archive(Bytes);

impl Tree for Archive {
    /// Where a file's bytes begin.
    type File = u64;
    // Files lie in one piece: bulk reads go to the device.
    const HAS_PLACES: bool = true;

    fn list(&self, out: &mut Listing<u64>) -> Result<()> {
        let mut at = MAGIC.len() as u64;
        while at < self.0.len() {
            let path_len = u32::from_le_bytes(self.0.array("the length of a path", at)?);
            let size = u64::from_le_bytes(self.0.array("the length of a file", at + 4)?);
            let path = self.0.vec("a path", at + 12, path_len.into(), PATH_MAX)?;
            let content = at + 12 + u64::from(path_len);
            // Refuses what would end past the device.
            self.0.part("a file", content, size)?;
            match path.ends_with(b"/") {
                true => out.add(&path, Item::dir())?,
                false => out.add(&path, Item::file(size, content))?,
            }
            at = content + size;
        }
        Ok(())
    }

    fn read(&self, content: &u64, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read("a file", content + offset, buf)
    }

    fn place(&self, content: &u64) -> Option<u64> {
        Some(*content)
    }

    fn size(&self) -> u64 {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_block::MemDevice;
    use volary_driver::core::{Cancel, Cred, Ctx, Kind, Mode, Name, Time};
    use volary_test::{Suite, damage, reference};

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (path, content) in entries {
            bytes.extend((path.len() as u32).to_le_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend([path.as_bytes(), content].concat());
        }
        bytes
    }

    fn device(entries: &[(&str, &[u8])]) -> Arc<dyn BlockDevice> {
        Arc::new(MemDevice::from_vec(archive(entries)))
    }

    #[test]
    fn a_file_is_read() {
        let dev = device(&[("dir/", b""), ("dir/file", b"some text")]);
        assert!(DRIVER_NAME.probe(&*dev).unwrap().is_some());
        let fs = DRIVER_NAME.attach(dev, &Attach::default()).unwrap();
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::EPOCH,
            cancel: &cancel,
        };
        let dir = fs
            .lookup(&cx, fs.root(), Name::new(b"dir").unwrap())
            .unwrap()
            .node;
        let file = fs.lookup(&cx, dir, Name::new(b"file").unwrap()).unwrap();
        assert_eq!(file.attr.size, 9);
        let open = fs.open(&cx, file.node, Mode::Read).unwrap();
        let mut buf = [0; 100];
        assert_eq!(fs.read(&cx, open, 5, &mut buf).unwrap(), 4);
        assert_eq!(&buf[..4], b"text");
        fs.close(&cx, open).unwrap();
    }

    #[test]
    fn what_is_cut_off_is_damage() {
        let mut bytes = archive(&[("file", b"text")]);
        bytes.pop();
        let cut = Arc::new(MemDevice::from_vec(bytes));
        assert_eq!(
            DRIVER_NAME.attach(cut, &Attach::default()).err().unwrap(),
            Kind::Corrupt
        );
    }

    #[test]
    fn the_kit_finds_nothing_wrong_and_damage_is_an_error_at_worst() {
        let attach =
            |bytes| DRIVER_NAME.attach(Arc::new(MemDevice::from_vec(bytes)), &Attach::default());
        let good = [("dir/", &b""[..]), ("dir/file", b"some text"), ("empty", b"")];
        damage::survived(&archive(&good), 500, attach);
        // So large that it shows if a byte of a file takes memory for all of it.
        let large = vec![0; reference::LARGE as usize];
        let dev = device(&[&good[..], &[("large", &large)]].concat());
        let make = move || DRIVER_NAME.attach(dev.clone(), &Attach::default()).unwrap();
        Suite::coherent("driver-name", make).unwrap().run();
    }
}
