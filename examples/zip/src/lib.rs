//! Zip archives as volumes: stored and deflated, of any size, with what Info-ZIP keeps of Unix.
//!
//! Read by hand: libraries take memory for as many entries as an archive says that it has.
#![forbid(unsafe_code)]

use flate2::read::DeflateDecoder;
use std::{io::Read, sync::Arc};
use volary_driver::core::{
    Attach, BlockDevice, Caps, Error, FileKind, Format, Fs, Kind, Probe, Result, Time,
};
use volary_driver::readonly::{self, Item, Listing, Tree};
use volary_driver::{Bytes, Checked, Streams};

/// Zip archives.
pub struct Zip;

/// The format.
pub static ZIP: Zip = Zip;

impl Format for Zip {
    fn name(&self) -> &'static str {
        "zip"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["zip"]
    }

    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        // Of the first file, or, in an empty archive, of the end record.
        let begins = |sign| Bytes::begins_with(dev, 0, sign);
        let is_zip = begins(b"PK\x03\x04")? || begins(b"PK\x05\x06")?;
        Ok(is_zip.then(|| Probe::of("zip")))
    }

    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
        how.options.check_known(&[])?;
        readonly::attach("zip", Archive(Bytes::whole(dev), Streams::new(how)), how)
    }
}

/// An archive's bytes, and the decoders of its files.
struct Archive(Bytes, Streams);

/// A compressed file.
struct Packed {
    bytes: Bytes,
    is_deflated: bool,
    size: u64,
    crc: u64,
}

impl Tree for Archive {
    type File = Packed;

    fn list(&self, out: &mut Listing<Packed>) -> Result<()> {
        let (all, mut at) = (self.directory()?, 0);
        while at < all.len() {
            let head: [u8; 46] = all.array("an entry", at)?;
            if !head.starts_with(b"PK\x01\x02") {
                return Err(all.corrupt("an entry", at, "of another kind", "PK\\1\\2"));
            }
            let [name, extra, comment] = [28, 30, 32].map(|i| number(&head[i..i + 2]));
            let path = all.vec("a path", at + 46, name, 0xffff)?;
            let fields = all.vec("extra fields", at + 46 + name, extra, 0xffff)?;
            match self.item(&head, &path, &fields) {
                Ok(item) => out.add(&path, item)?,
                Err(e) if e == Kind::Io => return Err(e),
                Err(e) => out.leave_out(&path, &e.to_string()),
            }
            at += 46 + name + extra + comment;
        }
        Ok(())
    }

    fn read(&self, file: &Packed, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.1.read(&file.bytes, offset, buf, |packed| {
            let bytes: Box<dyn Read + Send> = match file.is_deflated {
                true => Box::new(DeflateDecoder::new(packed)),
                false => Box::new(packed),
            };
            let crc = crc32fast::Hasher::new();
            Box::new(Checked::new(bytes, file.size, crc, file.crc))
        })
    }

    fn caps(&self, most: Caps) -> Caps {
        let mut caps = most.without(Caps::HARD_LINKS | Caps::DEVICES);
        caps.time_step = 1_000_000_000;
        caps
    }

    fn size(&self) -> u64 {
        self.0.len()
    }
}

impl Archive {
    /// Returns the central directory.
    fn directory(&self) -> Result<Bytes> {
        let len = self.0.len().min(22 + 0xffff);
        let from = self.0.len() - len;
        let tail = self.0.vec("the end", from, len, 22 + 0xffff)?;
        let mut ends = tail.windows(22).enumerate().rev();
        let Some((place, end)) = ends.find(|(_, end)| end.starts_with(b"PK\x05\x06")) else {
            return Err(self.0.corrupt("the end", from, "cut off", "PK\\5\\6"));
        };
        let (mut len, mut at) = (number(&end[12..16]), number(&end[16..20]));
        // Zip64.
        let large = place.checked_sub(20).map(|large| &tail[large..place]);
        if let Some([b'P', b'K', 6, 7, _, _, _, _, large @ .., _, _, _, _]) = large {
            let large = number(large).saturating_add(40);
            let large: [u8; 16] = self.0.array("the end in 64 bits", large)?;
            (len, at) = (number(&large[..8]), number(&large[8..]));
        }
        self.0.part("the directory", at, len)
    }

    fn item(&self, head: &[u8; 46], path: &[u8], fields: &[u8]) -> Result<Item<Packed>> {
        let (flags, method) = (head[8], head[10]);
        if flags & 1 != 0 || !matches!((method, head[11]), (0 | 8, 0)) {
            let why = "it is encrypted, or packed by another method than deflate";
            return Err(Error::note(Kind::Unsupported, why));
        }
        let mut large = field(fields, 1).unwrap_or_default().chunks_exact(8);
        let [size, packed, at] = [24, 20, 42].map(|i| match &head[i..i + 4] {
            [0xff, 0xff, 0xff, 0xff] => large.next().map_or(u64::MAX, number),
            small => number(small),
        });
        let local: [u8; 30] = self.0.array("a file's header", at)?;
        let at = at + 30 + number(&local[26..28]) + number(&local[28..30]);
        let file = Packed {
            bytes: self.0.part("a file's bytes", at, packed)?,
            is_deflated: method == 8,
            size,
            crc: number(&head[16..20]),
        };
        // Of archives made on Unix and on macOS.
        let mode = matches!(head[5], 3 | 19).then(|| number(&head[40..42]) as u32);
        let mut item = match mode.and_then(FileKind::from_mode) {
            Some(FileKind::Symlink) => {
                let mut target = vec![0; size.min(4096) as usize];
                self.read(&file, 0, &mut target)?;
                Item::symlink(target)
            }
            _ if path.ends_with(b"/") => Item::dir(),
            _ => Item::file(size, file),
        };
        if let Some(mode) = mode.filter(|mode| *mode != 0) {
            item = item.mode(mode);
        }
        if let Some([1, 4, u1, u2, u3, u4, 4, g @ ..]) = field(fields, 0x7875) {
            item = item.owner(number(&[*u1, *u2, *u3, *u4]) as u32, number(g) as u32);
        }
        let unix = field(fields, 0x5455).and_then(|field| field.get(1..5));
        Ok(item.modified(match unix {
            Some(secs) => Time::from_secs(i64::from(number(secs) as i32)),
            None => dos_time(number(&head[14..16]) as u32, number(&head[12..14]) as i64),
        }))
    }
}

/// Converts a time of DOS, which has no zone, as UTC.
fn dos_time(date: u32, time: i64) -> Time {
    let secs = (time >> 11) * 3600 + (time >> 5 & 63) * 60 + (time & 31) * 2;
    Time::from_date(1980 + (date >> 9) as i32, date >> 5 & 15, date & 31, secs)
}

/// Returns a little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the extra field of a number.
fn field(mut fields: &[u8], wanted: u64) -> Option<&[u8]> {
    while let [t1, t2, l1, l2, rest @ ..] = fields {
        let (field, next) = rest.split_at_checked(number(&[*l1, *l2]) as usize)?;
        if number(&[*t1, *t2]) == wanted {
            return Some(field);
        }
        fields = next;
    }
    None
}
