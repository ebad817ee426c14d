//! Tar archives as volumes: POSIX and GNU, with long names, hard links, symlinks, devices and extended attributes.
#![forbid(unsafe_code)]

use std::sync::Arc;
use tar::{Archive, EntryType};
use volary_driver::core::{Attach, BlockDevice, FileKind, Format, Fs, Others, Probe, Result, Time};
use volary_driver::readonly::{self, Item, Listing, Tree};
use volary_driver::{Bytes, Cursor};

/// Tar archives.
pub struct Tar;

/// The format.
pub static TAR: Tar = Tar;

impl Format for Tar {
    fn name(&self) -> &'static str {
        "tar"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["tar"]
    }

    fn others(&self) -> Others {
        Others {
            make: Some("tar"),
            change: None,
        }
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let is_tar = Bytes::begins_with(dev, 257, b"ustar")?;
        Ok(is_tar.then(|| Probe::of("tar")))
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        how.options.check_known(&[])?;
        readonly::attach("tar", Contents(Bytes::whole(dev)), how)
    }
}

/// An archive's bytes.
struct Contents(Bytes);

/// The most bytes of headers, long names and attributes of one entry.
const RECORDS_MAX: u64 = 1 << 20;

type Entry<'a> = tar::Entry<'a, Cursor>;

impl Tree for Contents {
    /// Where a file's bytes begin.
    type File = u64;
    const HAS_PLACES: bool = true;

    fn list(&self, out: &mut Listing<u64>) -> Result<()> {
        let (cursor, allowance) = self.0.cursor().bounded(RECORDS_MAX);
        let mut archive = Archive::new(cursor);
        let failed = |e| self.0.failed("a header", 0, e);
        for entry in archive.entries_with_seek().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let at = entry.raw_header_position();
            self.add(&mut entry, out)
                .map_err(|e| self.0.failed("a header", at, e))??;
            allowance.renew();
        }
        Ok(())
    }

    fn read(&self, at: &u64, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read("a file", at + offset, buf)
    }

    fn place(&self, at: &u64) -> Option<u64> {
        Some(*at)
    }

    fn size(&self) -> u64 {
        self.0.len()
    }
}

impl Contents {
    fn add(&self, entry: &mut Entry<'_>, out: &mut Listing<u64>) -> std::io::Result<Result<()>> {
        let path = entry.path_bytes().into_owned();
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let (at, size) = (entry.raw_file_position(), entry.size());
        let header = entry.header().clone();
        let device = || -> std::io::Result<u64> {
            let (major, minor) = (header.device_major()?, header.device_minor()?);
            Ok(u64::from(major.unwrap_or(0)) << 32 | u64::from(minor.unwrap_or(0)))
        };
        let mut item = match header.entry_type() {
            EntryType::Link => return Ok(out.link(&path, &target)),
            EntryType::Symlink => Item::symlink(target),
            EntryType::Directory => Item::dir(),
            EntryType::Fifo => Item::special(FileKind::Fifo, 0),
            EntryType::Char => Item::special(FileKind::CharDevice, device()?),
            EntryType::Block => Item::special(FileKind::BlockDevice, device()?),
            EntryType::Regular | EntryType::Continuous
                if self.0.part("a file", at, size).is_ok() =>
            {
                Item::file(size, at)
            }
            kind => {
                let why = if kind.is_file() {
                    "it is cut off"
                } else {
                    "it is of a kind that is not read"
                };
                out.leave_out(&path, why);
                return Ok(Ok(()));
            }
        };
        item = item
            .mode(header.mode()?)
            .modified(Time::from_secs(header.mtime()?.cast_signed()));
        item = item.owner(header.uid()? as u32, header.gid()? as u32);
        for pair in entry.pax_extensions()?.into_iter().flatten() {
            let pair = pair?;
            let key = pair.key_bytes();
            if key.starts_with(b"GNU.sparse.") {
                out.leave_out(&path, "it is stored without its holes");
                return Ok(Ok(()));
            } else if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                item = item.xattr(name, pair.value_bytes());
            }
        }
        Ok(out.add(&path, item))
    }
}
