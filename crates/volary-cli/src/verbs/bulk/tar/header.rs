//! Members of an archive: their headers.

use crate::row::{major, minor};
use tar::{EntryType, Header};
use volary::bulk::Range;
use volary::{Attr, Time};

/// What a member is.
pub(super) enum Kind {
    File,
    Dir,
    Symlink(Vec<u8>),
    Link(Vec<u8>),
    CharDevice,
    BlockDevice,
    Fifo,
}

/// A member.
pub(super) struct Entry<'a> {
    name: Vec<u8>,
    attr: Option<&'a Attr>,
    kind: Kind,
    size: u64,
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Bytes of a name, and of what a link leads to, that the header itself has room for.
const NAME_MAX: usize = 100;

impl<'a> Entry<'a> {
    pub(super) fn new(name: Vec<u8>, attr: Option<&'a Attr>, kind: Kind, size: u64) -> Self {
        Self {
            name,
            attr,
            kind,
            size,
            xattrs: Vec::new(),
        }
    }

    /// Returns the header, and one before it for what that has no room for.
    pub(super) fn header(&self) -> Vec<u8> {
        let name = self.full_name();
        let mut records = self.records();
        if name.len() > NAME_MAX {
            record(&mut records, b"path", &name);
        }
        self.both(&name, &records, self.size)
    }

    /// Returns the headers of a file with holes, its map of data, and how many bytes of data follow.
    pub(super) fn sparse(&self, data: &[Range]) -> (Vec<u8>, u64) {
        let mut map = format!("{}\n", data.len() + 1);
        for range in data {
            map.push_str(&format!("{}\n{}\n", range.offset, range.len));
        }
        // An empty stretch at the end says how long the file is, if a hole ends it.
        map.push_str(&format!("{}\n0\n", self.size));
        let map = padded(map.into_bytes());
        let mut records = self.records();
        record(&mut records, b"GNU.sparse.major", b"1");
        record(&mut records, b"GNU.sparse.minor", b"0");
        record(&mut records, b"GNU.sparse.name", &self.name);
        record(
            &mut records,
            b"GNU.sparse.realsize",
            self.size.to_string().as_bytes(),
        );
        let len = data.iter().map(|r| r.len).sum::<u64>();
        let mut bytes = self.both(b"GNUSparseFile.0/file", &records, map.len() as u64 + len);
        bytes.extend_from_slice(&map);
        (bytes, len)
    }

    /// With a slash at the end of a directory; the root of a volume is `./`.
    fn full_name(&self) -> Vec<u8> {
        let mut name = self.name.clone();
        if matches!(self.kind, Kind::Dir) {
            if name.is_empty() {
                name.push(b'.');
            }
            name.push(b'/');
        }
        name
    }

    fn records(&self) -> Vec<u8> {
        let mut records = Vec::new();
        if let Kind::Symlink(target) | Kind::Link(target) = &self.kind
            && target.len() > NAME_MAX
        {
            record(&mut records, b"linkpath", target);
        }
        for (name, value) in &self.xattrs {
            let key = [b"SCHILY.xattr.", name.as_slice()].concat();
            record(&mut records, &key, value);
        }
        let Some(attr) = self.attr else {
            return records;
        };
        if attr.mtime.nanos != 0 || attr.mtime.secs < 0 {
            record(&mut records, b"mtime", time(attr.mtime).as_bytes());
        }
        records
    }

    fn both(&self, name: &[u8], records: &[u8], size: u64) -> Vec<u8> {
        let mut all = Vec::new();
        let mut records = records.to_vec();
        // Numbers that the header's octal digits have no room for.
        let ids = self.attr.map_or((0, 0), |attr| (attr.uid, attr.gid));
        for (key, number, most) in [
            (&b"size"[..], size, 0o77_777_777_777),
            (b"uid", ids.0.into(), 0o7_777_777),
            (b"gid", ids.1.into(), 0o7_777_777),
        ] {
            if number > most {
                record(&mut records, key, number.to_string().as_bytes());
            }
        }
        if !records.is_empty() {
            let mut extended = Header::new_ustar();
            set_name(&mut extended, b"PaxHeaders/file");
            extended.set_entry_type(EntryType::XHeader);
            extended.set_size(records.len() as u64);
            extended.set_mode(0o644);
            extended.set_cksum();
            all.extend_from_slice(extended.as_bytes());
            all.extend(padded(records));
        }
        all.extend_from_slice(self.own(name, size).as_bytes());
        all
    }

    fn own(&self, name: &[u8], size: u64) -> Header {
        let mut header = Header::new_ustar();
        set_name(&mut header, name);
        header.set_size(size);
        header.set_entry_type(match &self.kind {
            Kind::File => EntryType::Regular,
            Kind::Dir => EntryType::Directory,
            Kind::Symlink(_) => EntryType::Symlink,
            Kind::Link(_) => EntryType::Link,
            Kind::CharDevice => EntryType::Char,
            Kind::BlockDevice => EntryType::Block,
            Kind::Fifo => EntryType::Fifo,
        });
        if let Kind::Symlink(target) | Kind::Link(target) = &self.kind {
            fill(&mut header.as_old_mut().linkname, target);
        }
        if let Some(attr) = self.attr {
            header.set_mode(attr.mode & 0o7777);
            header.set_uid(attr.uid.into());
            header.set_gid(attr.gid.into());
            header.set_mtime(u64::try_from(attr.mtime.secs).unwrap_or(0));
            if matches!(self.kind, Kind::CharDevice | Kind::BlockDevice)
                && let Some(ustar) = header.as_ustar_mut()
            {
                ustar.set_device_major(u32::try_from(major(attr.rdev)).unwrap_or(0));
                ustar.set_device_minor(u32::try_from(minor(attr.rdev)).unwrap_or(0));
            }
        }
        header.set_cksum();
        header
    }
}

/// As much of a name as there is room for: the rest is in a record.
fn set_name(header: &mut Header, name: &[u8]) {
    fill(&mut header.as_old_mut().name, name);
}

fn fill(field: &mut [u8], bytes: &[u8]) {
    for (into, byte) in field.iter_mut().zip(bytes) {
        *into = *byte;
    }
}

/// Seconds, with as many digits after the point as there are nanoseconds.
fn time(time: Time) -> String {
    // What is before 1970 counts down: -1 second and a half is -0.5.
    let nanos = i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!(
        "{sign}{}.{:09}",
        nanos / 1_000_000_000,
        nanos % 1_000_000_000
    )
}

/// Adds a record to a pax extended header: `LENGTH KEY=VALUE\n`. The length includes its own digits.
fn record(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while len.to_string().len() + rest != len {
        len = len.to_string().len() + rest;
    }
    records.extend_from_slice(format!("{len} ").as_bytes());
    records.extend_from_slice(key);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for len in [0, 80, 86, 87, 88, 980, 983, 984, 985, 70_000] {
            let mut bytes = Vec::new();
            record(&mut bytes, b"key", &vec![b'x'; len]);
            let text = String::from_utf8(bytes).unwrap();
            let (count, _) = text.split_once(' ').unwrap();
            assert_eq!(count.parse(), Ok(text.len()));
        }
    }

    #[test]
    fn times_before_1970_are_told() {
        let at = |secs, nanos| time(Time { secs, nanos });
        assert_eq!(at(5, 1), "5.000000001");
        assert_eq!(at(-2, 500_000_000), "-1.500000000");
    }
}
