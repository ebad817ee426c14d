//! Rock Ridge (IEEE P1282): POSIX names, modes, symlinks, devices and times.

use crate::disk::date;
use crate::disk::record::Record;
use crate::disk::volume::Volume;
use crate::extensions::susp::{Areas, Field, each_field, le32};
use volary_block::Cache;
use volary_core::{Error, Result, Time};

/// The longest name and the longest target of a symlink, in bytes.
pub(crate) const NAME_MAX: usize = 255;
const TARGET_MAX: usize = 4095;

/// Rock Ridge's fields of a record.
#[derive(Default)]
pub(crate) struct Rock {
    /// `PX`.
    pub(crate) posix: Option<Posix>,
    /// `NM`, joined from all its fields.
    pub(crate) name: Option<Vec<u8>>,
    /// `SL`, joined from all its fields.
    pub(crate) target: Option<Vec<u8>>,
    /// `PN`: the high and the low half.
    pub(crate) device: Option<(u32, u32)>,
    /// `TF`.
    pub(crate) times: Times,
    /// `CL`: the block that a directory was moved to.
    pub(crate) child: Option<u32>,
    /// `PL`: the original parent of a directory that was moved.
    pub(crate) parent: Option<u32>,
    /// `RE`: the directory is here only because it was moved.
    pub(crate) relocated: bool,
    /// `SF`: the data are stored sparsely.
    pub(crate) sparse: bool,
}

/// `PX` (4.1.1).
#[derive(Clone, Copy)]
pub(crate) struct Posix {
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The serial number, which names of one file share. Only version 1.12 and later have it.
    pub(crate) serial: Option<u32>,
}

/// `TF` (4.1.6).
#[derive(Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) creation: Option<Time>,
    pub(crate) modify: Option<Time>,
    pub(crate) access: Option<Time>,
    pub(crate) attributes: Option<Time>,
}

/// Flags of `NM` and of components of `SL`.
const CONTINUE: u8 = 1;
const CURRENT: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

impl Rock {
    /// Reads Rock Ridge's fields behind a record, after the first `skip` bytes (`SP`).
    ///
    /// # Errors
    /// `Corrupt` for a name or target that is too long; those of [`each_field`].
    pub(crate) fn read(
        cache: &Cache,
        volume: &Volume,
        record: &Record,
        skip: usize,
        areas: &mut Areas,
    ) -> Result<Self> {
        let mut rock = Self::default();
        let area = record.system_use.get(skip..).unwrap_or_default();
        let mut target = Target::default();
        each_field(cache, volume, record.at, area, areas, |field| {
            rock.take(field, record.at, &mut target)
        })?;
        rock.target = target.text;
        Ok(rock)
    }

    fn take(&mut self, field: &Field<'_>, at: u64, target: &mut Target) -> Result<()> {
        let data = field.data;
        match &field.signature {
            b"PX" => self.posix = posix(data).or(self.posix),
            b"PN" => self.device = le32(data, 0).zip(le32(data, 8)),
            b"NM" => self.add_name(data, at)?,
            b"SL" => target.add(data, at)?,
            b"TF" => self.times.add(data),
            b"CL" => self.child = le32(data, 0),
            b"PL" => self.parent = le32(data, 0),
            b"RE" => self.relocated = true,
            b"SF" => self.sparse = true,
            _ => {}
        }
        Ok(())
    }

    fn add_name(&mut self, data: &[u8], at: u64) -> Result<()> {
        let Some((flags, text)) = data.split_first() else {
            return Ok(());
        };
        if flags & (CURRENT | PARENT) != 0 {
            return Ok(());
        }
        let name = self.name.get_or_insert_default();
        name.extend_from_slice(text);
        if name.len() > NAME_MAX {
            let (found, max) = (format!("{} bytes", name.len()), NAME_MAX);
            return Err(Error::corrupt("NM", at, found, format!("at most {max}")));
        }
        Ok(())
    }
}

fn posix(data: &[u8]) -> Option<Posix> {
    Some(Posix {
        mode: le32(data, 0)?,
        links: le32(data, 8)?,
        uid: le32(data, 16)?,
        gid: le32(data, 24)?,
        serial: le32(data, 32),
    })
}

/// A symlink's target while its parts are collected.
#[derive(Default)]
struct Target {
    text: Option<Vec<u8>>,
    wants_slash: bool,
}

impl Target {
    fn add(&mut self, data: &[u8], at: u64) -> Result<()> {
        let mut rest = data.get(1..).unwrap_or_default();
        let text = self.text.get_or_insert_default();
        while let [flags, len, ..] = *rest {
            let Some(part) = rest.get(2..2 + usize::from(len)) else {
                break;
            };
            rest = rest.get(2 + usize::from(len)..).unwrap_or_default();
            if flags & ROOT != 0 {
                text.clear();
                text.push(b'/');
                self.wants_slash = false;
                continue;
            }
            if self.wants_slash {
                text.push(b'/');
            }
            text.extend_from_slice(match flags {
                _ if flags & CURRENT != 0 => b".",
                _ if flags & PARENT != 0 => b"..",
                _ => part,
            });
            self.wants_slash = flags & CONTINUE == 0;
            if text.len() > TARGET_MAX {
                let (found, max) = (format!("{} bytes", text.len()), TARGET_MAX);
                return Err(Error::corrupt("SL", at, found, format!("at most {max}")));
            }
        }
        Ok(())
    }
}

impl Times {
    fn add(&mut self, data: &[u8]) {
        const LONG_FORM: u8 = 0x80;
        let Some((&flags, mut rest)) = data.split_first() else {
            return;
        };
        let mut next = |bit: u8| -> Option<Time> {
            if flags & bit == 0 {
                return None;
            }
            let len = if flags & LONG_FORM == 0 { 7 } else { 17 };
            let (bytes, more) = rest.split_at_checked(len)?;
            rest = more;
            match len {
                7 => Some(date::short(bytes.try_into().ok()?)),
                _ => date::long(bytes.try_into().ok()?),
            }
        };
        let (creation, modify, access, attributes) = (next(1), next(2), next(4), next(8));
        self.creation = creation.or(self.creation);
        self.modify = modify.or(self.modify);
        self.access = access.or(self.access);
        self.attributes = attributes.or(self.attributes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(fields: &[&[u8]]) -> Vec<u8> {
        let mut target = Target::default();
        fields.iter().for_each(|f| target.add(f, 0).unwrap());
        target.text.unwrap()
    }

    #[test]
    fn targets_are_put_together_from_their_parts() {
        assert_eq!(target(&[&[0, 0, 1, b'a', 0, 1, b'b']]), b"a/b");
        assert_eq!(target(&[&[0, 8, 0, 0, 1, b'a']]), b"/a");
        assert_eq!(target(&[&[0, 4, 0, 2, 0, 0, 1, b'x']]), b".././x");
        assert_eq!(target(&[&[1, 1, 1, b'a'], &[0, 0, 1, b'b']]), b"ab");
        assert_eq!(target(&[&[1, 0, 1, b'a'], &[0, 0, 1, b'b']]), b"a/b");
        assert_eq!(target(&[&[0, 0, 9, b'a']]), b"");
    }

    #[test]
    fn a_target_without_end_is_refused() {
        let mut target = Target::default();
        let part = [&[0, 1, 250][..], &[b'x'; 250]].concat();
        let refused = (0..20).find_map(|_| target.add(&part, 0).err());
        assert_eq!(refused.unwrap(), volary_core::Kind::Corrupt);
    }
}
