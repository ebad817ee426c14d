//! Entries of the file name table: keys, and what they lead to.
//!
//! | key | value |
//! |---|---|
//! | 1, directory, name, 0, version | a node's head, or a further name of a node |
//! | 2, uid, number of the name | the directory and name of a name of the node |
//! | 3, uid, part, number | runs, a symlink's target, extended attributes, checksums |
//!
//! Numbers in keys are big-endian, so that keys sort as they do.

use crate::disk::ondisk::{get_time, get_u16, get_u32, get_u64, put, put_time};
use crate::disk::runs::{RUN, Run, Runs};
use volary_core::{Attr, FileKind, Kind, NodeId, Result, Time};

/// The directory's uid under which the root and nodes without a name are.
pub(crate) const NOWHERE: u64 = 0;
/// The root's uid.
pub(crate) const ROOT_UID: u64 = 1;
/// The root's name under [`NOWHERE`].
pub(crate) const ROOT_NAME: &[u8] = b"/";
/// The version of a name that was never replaced.
pub(crate) const FIRST_VERSION: u32 = 1;

/// Bytes of a key with a name, beside the name.
pub(crate) const NAME_KEY: usize = 14;
/// Bytes of a key of a part.
pub(crate) const PART_KEY: usize = 12;
/// Bytes of a head without runs.
pub(crate) const HEAD: usize = 112;
/// Bytes that a head has besides, of a node that stands for one of the remote.
pub(crate) const FAR: usize = 56;

/// What keys with a name begin with, and what the first key past them does.
pub(crate) const NAMES_FROM: &[u8] = &[NAMES];
pub(crate) const NAMES_END: &[u8] = &[PLACES];

const NAMES: u8 = 1;
const PLACES: u8 = 2;
const PARTS: u8 = 3;

/// What a part is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Part {
    /// Runs after those in the head; where there are chains, see [`CHAIN`].
    Runs = 1,
    /// A symlink's target.
    Target = 2,
    /// Extended attributes.
    Xattrs = 3,
    /// Checksums of the data.
    Sums = 4,
}

impl Part {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Runs, Self::Target, Self::Xattrs, Self::Sums];

    /// Returns the kind with this number in keys.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|part| *part as u8 == code)
    }
}

/// The kind of parts in which runs go on under the leader's page in place of the uid: so
/// a file's pages become another node's with no part written anew.
pub(crate) const CHAIN: u8 = 5;
/// Most parts of runs that a head counts.
pub(crate) const CHAIN_MAX: u16 = 0xfff;

/// Returns whether a part's kind is one.
pub(crate) fn is_part(kind: u8) -> bool {
    kind == CHAIN || Part::of_code(kind).is_some()
}

/// Returns whether a part's kind is of runs.
pub(crate) fn is_of_runs(kind: u8) -> bool {
    kind == CHAIN || kind == Part::Runs as u8
}

/// A name in a directory, with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) dir: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) version: u32,
}

impl Place {
    pub(crate) fn new(dir: u64, name: &[u8]) -> Self {
        Self {
            dir,
            name: name.to_vec(),
            version: FIRST_VERSION,
        }
    }

    /// Returns where a node without a name is kept until its last open ends.
    pub(crate) fn nowhere(uid: u64) -> Self {
        Self::new(NOWHERE, format!("{uid:016x}").as_bytes())
    }

    pub(crate) fn key(&self) -> Vec<u8> {
        let version = (!self.version).to_be_bytes();
        name_key(self.dir, &[&self.name, &[0], &version])
    }

    /// Returns the place that a key is of, if it is of one.
    pub(crate) fn of_key(key: &[u8]) -> Option<Self> {
        let name = name_of_key(key)?;
        let (_, dir) = key.get(..9)?.split_last_chunk::<8>()?;
        let (_, version) = key.split_last_chunk::<4>()?;
        Some(Self {
            dir: u64::from_be_bytes(*dir),
            name: name.to_vec(),
            version: !u32::from_be_bytes(*version),
        })
    }

    /// As the value of a place key.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (dir, version) = (self.dir.to_le_bytes(), self.version.to_le_bytes());
        [&dir[..], &version, self.name.as_slice()].concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let name = value
            .get(12..)
            .filter(|n| !n.is_empty() && !n.contains(&0))?;
        Some(Self {
            dir: get_u64(value, 0),
            version: get_u32(value, 8),
            name: name.to_vec(),
        })
    }
}

/// Returns the name in a key of a place, if it is one.
pub(crate) fn name_of_key(key: &[u8]) -> Option<&[u8]> {
    let (space, rest) = key.split_first()?;
    let (_, rest) = rest.split_first_chunk::<8>()?;
    let (rest, _) = rest.split_last_chunk::<4>()?;
    let (zero, name) = rest.split_last()?;
    let good = *space == NAMES && *zero == 0 && !name.is_empty() && !name.contains(&0);
    good.then_some(name)
}

/// Returns what all keys of a name begin with, whatever the version.
pub(crate) fn name_prefix(dir: u64, name: &[u8]) -> Vec<u8> {
    name_key(dir, &[name, &[0]])
}

/// Returns what all keys of the names in a directory begin with.
pub(crate) fn dir_prefix(dir: u64) -> Vec<u8> {
    name_key(dir, &[])
}

/// Returns a key of a directory's names, or what such keys begin with.
fn name_key(dir: u64, rest: &[&[u8]]) -> Vec<u8> {
    let len = rest.iter().map(|part| part.len()).sum::<usize>();
    let mut key = Vec::with_capacity(9 + len);
    key.push(NAMES);
    key.extend_from_slice(&dir.to_be_bytes());
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// Returns the key of a name of a node, by its number.
pub(crate) fn place_key(uid: u64, number: u32) -> Vec<u8> {
    [&[PLACES][..], &uid.to_be_bytes(), &number.to_be_bytes()].concat()
}

/// Returns what all place keys of a node begin with.
pub(crate) fn place_prefix(uid: u64) -> Vec<u8> {
    [&[PLACES][..], &uid.to_be_bytes()].concat()
}

/// Returns the uid and the number in a place key.
pub(crate) fn place_of_key(key: &[u8]) -> Option<(u64, u32)> {
    let (space, rest) = key.split_first()?;
    let (uid, number) = rest.split_first_chunk::<8>()?;
    let number = <[u8; 4]>::try_from(number).ok()?;
    (*space == PLACES).then(|| (u64::from_be_bytes(*uid), u32::from_be_bytes(number)))
}

/// Returns the key of a part, by whose it is: a node's uid, or a leader's page.
pub(crate) fn part_key(of: u64, kind: u8, number: u16) -> Vec<u8> {
    let (of, number) = (of.to_be_bytes(), number.to_be_bytes());
    [&[PARTS][..], &of, &[kind], &number].concat()
}

/// Whose it is, the kind and the number in a part's key.
pub(crate) fn part_of_key(key: &[u8]) -> Option<(u64, u8, u16)> {
    let (space, rest) = key.split_first()?;
    let (uid, rest) = rest.split_first_chunk::<8>()?;
    let [kind, high, low] = *<&[u8; 3]>::try_from(rest).ok()?;
    (*space == PARTS).then(|| {
        (
            u64::from_be_bytes(*uid),
            kind,
            u16::from_be_bytes([high, low]),
        )
    })
}

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are heads")]
pub(crate) enum Entry {
    /// The node itself.
    Head(Head),
    /// A further name of a node whose head is elsewhere: uid, number of the name.
    Link(u64, u32),
}

/// All that is known of a node but its content: the paper's file properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) uid: u64,
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) nlink: u32,
    /// For devices, the device number.
    pub(crate) size: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    pub(crate) btime: Time,
    pub(crate) change: u64,
    /// The number of the name that the head is kept under.
    pub(crate) number: u32,
    /// The number of the next further name.
    pub(crate) next_number: u32,
    /// Versions to keep; 0 and 1 keep one. Of a directory: of new files in it.
    pub(crate) keep: u16,
    /// Which version of the file this is.
    pub(crate) version: u32,
    /// What its older versions are kept under; 0 if it never had any.
    pub(crate) line: u64,
    /// Parts of each kind: runs, target, attributes, checksums.
    pub(crate) parts: [u16; 4],
    /// What it stands for, of a node of the remote.
    pub(crate) far: Option<Far>,
    /// The first runs.
    pub(crate) runs: Vec<Run>,
}

/// What tells a content of a remote's node from all others that it has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) ino: u64,
    pub(crate) generation: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

/// What a node of the remote stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Far {
    /// Whether all of its content is here, as it was seen.
    pub(crate) whole: bool,
    pub(crate) seen: Seen,
    /// When it was used last.
    pub(crate) used: Time,
}

impl Far {
    fn code(&self) -> u8 {
        if self.whole { WHOLE } else { AWAY }
    }

    fn encode(&self) -> [u8; FAR] {
        let mut out = [0; FAR];
        put(&mut out, 0, &self.seen.ino.to_le_bytes());
        put(&mut out, 8, &self.seen.generation.to_le_bytes());
        put(&mut out, 12, &self.seen.size.to_le_bytes());
        put_time(&mut out, 20, self.seen.mtime);
        put_time(&mut out, 32, self.seen.ctime);
        put_time(&mut out, 44, self.used);
        out
    }

    /// Of a head whose ninth byte is `code`.
    fn decode(code: u8, head: &[u8]) -> Option<Self> {
        let whole = match code & 0xf0 {
            AWAY => false,
            WHOLE => true,
            _ => return None,
        };
        let far = head.get(HEAD..HEAD + FAR)?;
        Some(Self {
            whole,
            seen: Seen {
                ino: get_u64(far, 0),
                generation: get_u32(far, 8),
                size: get_u64(far, 12),
                mtime: get_time(far, 20),
                ctime: get_time(far, 32),
            },
            used: get_time(far, 44),
        })
    }
}

const LINK: u8 = 0x40;
/// Beside the kind of a node of the remote: its content is not here, or is.
const AWAY: u8 = 0x10;
const WHOLE: u8 = 0x20;

fn kind_code(kind: FileKind) -> u8 {
    (kind.mode_bits() >> 12) as u8
}

impl Entry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Head(head) => head.encode(),
            Self::Link(uid, number) => {
                let mut out = uid.to_le_bytes().to_vec();
                out.push(LINK);
                out.extend(number.to_le_bytes());
                out
            }
        }
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        match value.get(8)? {
            &LINK if value.len() == 13 => Some(Self::Link(get_u64(value, 0), get_u32(value, 9))),
            _ => Head::decode(value).map(Self::Head),
        }
    }

    /// Returns the node that it leads to.
    pub(crate) fn uid(&self) -> u64 {
        match self {
            Self::Head(head) => head.uid,
            Self::Link(uid, _) => *uid,
        }
    }
}

impl Head {
    /// Returns the version after this one.
    ///
    /// # Errors
    /// `NoSpace` if there is none: 24 bits are stored.
    pub(crate) fn next_version(&self) -> Result<u32> {
        match self.version + 1 {
            next if next >> 24 == 0 => Ok(next),
            _ => Err(Kind::NoSpace.into()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + FAR + RUN * self.runs.len());
        out.resize(HEAD, 0);
        put(&mut out, 0, &self.uid.to_le_bytes());
        let [[runs, more], [target, _], [xattrs, _], [sums, _]] = self.parts.map(u16::to_le_bytes);
        let far = self.far.map_or(0, |far| far.code());
        put(&mut out, 8, &[kind_code(self.kind) | far, sums]);
        let mode = self.mode as u16 & 0o7777 | u16::from(more) << 12;
        put(&mut out, 10, &mode.to_le_bytes());
        put(&mut out, 12, &self.owner.to_le_bytes());
        put(&mut out, 16, &self.group.to_le_bytes());
        put(&mut out, 20, &self.nlink.to_le_bytes());
        put(&mut out, 24, &self.size.to_le_bytes());
        for (i, time) in [self.atime, self.mtime, self.ctime, self.btime]
            .iter()
            .enumerate()
        {
            put_time(&mut out, 32 + 12 * i, *time);
        }
        put(&mut out, 80, &self.change.to_le_bytes());
        put(&mut out, 88, &self.number.to_le_bytes());
        put(&mut out, 92, &self.next_number.to_le_bytes());
        put(&mut out, 96, &self.keep.to_le_bytes());
        put(&mut out, 98, &[runs, target, xattrs]);
        let version = self.version.to_le_bytes();
        put(&mut out, 101, version.get(..3).unwrap_or_default());
        put(&mut out, 104, &self.line.to_le_bytes());
        out.extend(self.far.iter().flat_map(Far::encode));
        out.extend(Runs::encode(&self.runs));
        out
    }

    /// Returns the kind, what it stands for, and the runs as stored.
    fn split(value: &[u8]) -> Option<(FileKind, Option<Far>, &[u8])> {
        let code = *value.get(8)?;
        let (far, tail) = match code & 0xf0 {
            0 => (None, value.get(HEAD..)?),
            _ => (Some(Far::decode(code, value)?), value.get(HEAD + FAR..)?),
        };
        let kind = FileKind::from_mode(u32::from(code & 0xf) << 12)?;
        (tail.len() % RUN == 0).then_some((kind, far, tail))
    }

    /// No more of a head than the node and its kind.
    pub(crate) fn uid_and_kind(value: &[u8]) -> Option<(u64, FileKind)> {
        Self::split(value).map(|(kind, ..)| (get_u64(value, 0), kind))
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let (kind, far, tail) = Self::split(value)?;
        let [runs, target, xattrs] = value.get(98..101)?.first_chunk::<3>()?.map(u16::from);
        let runs = runs | get_u16(value, 10) >> 12 << 8;
        Some(Self {
            uid: get_u64(value, 0),
            kind,
            mode: u32::from(get_u16(value, 10)) & 0o7777,
            owner: get_u32(value, 12),
            group: get_u32(value, 16),
            nlink: get_u32(value, 20),
            size: get_u64(value, 24),
            atime: get_time(value, 32),
            mtime: get_time(value, 44),
            ctime: get_time(value, 56),
            btime: get_time(value, 68),
            change: get_u64(value, 80),
            number: get_u32(value, 88),
            next_number: get_u32(value, 92),
            keep: get_u16(value, 96),
            parts: [runs, target, xattrs, u16::from(*value.get(9)?)],
            version: get_u32(value, 100) >> 8,
            line: get_u64(value, 104),
            far,
            runs: Runs::decode(tail).collect(),
        })
    }

    /// Returns whether it is a file of the remote whose content is not here.
    pub(crate) fn is_away(&self) -> bool {
        self.kind == FileKind::File && self.far.is_some_and(|far| !far.whole)
    }

    /// Returns how many parts of a kind there are.
    pub(crate) fn parts_of(&self, part: Part) -> u16 {
        let found = self.parts.get(part as usize - 1);
        found.copied().unwrap_or(0)
    }

    pub(crate) fn set_parts_of(&mut self, part: Part, count: u16) {
        if let Some(n) = self.parts.get_mut(part as usize - 1) {
            *n = count.min(if part == Part::Runs { CHAIN_MAX } else { 0xff });
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileKind::Dir
    }

    /// Counts a change at `now`, of the content too if `content`.
    pub(crate) fn touch(&mut self, now: Time, content: bool) {
        self.ctime = now;
        if content {
            self.mtime = now;
        }
        self.change = self.change.saturating_add(1);
    }

    /// Returns the attributes; `pages` are those of the file, of `page` bytes each.
    pub(crate) fn attr(&self, node: NodeId, pages: u32, page: u32) -> Attr {
        let is_device = matches!(self.kind, FileKind::CharDevice | FileKind::BlockDevice);
        Attr {
            node,
            kind: self.kind,
            mode: self.mode,
            nlink: self.nlink,
            uid: self.owner,
            gid: self.group,
            rdev: if is_device { self.size } else { 0 },
            size: if is_device { 0 } else { self.size },
            allocated: u64::from(pages) * u64::from(page),
            io_size: IO_SIZE.max(page),
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: Some(self.btime),
            change: self.change,
            dos: None,
        }
    }
}

/// The size in which files are best read and written.
const IO_SIZE: u32 = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_directory_then_name_then_newest_version() {
        let place = |dir, name: &[u8], version| Place {
            dir,
            name: name.to_vec(),
            version,
        };
        let order = [
            place(1, b"a", 3),
            place(1, b"a", 1),
            place(1, b"a\x01", 9),
            place(1, b"ab", 1),
            place(2, b"a", 1),
        ];
        assert!(order.is_sorted_by_key(Place::key));
        for p in order {
            assert_eq!(Place::of_key(&p.key()), Some(p.clone()));
            assert_eq!(Place::decode(&p.encode()), Some(p));
        }
    }

    #[test]
    fn heads_and_links_come_back() {
        let head = Head {
            uid: 1 << 40,
            kind: FileKind::File,
            mode: 0o4755,
            owner: u32::MAX,
            group: 7,
            nlink: 3,
            size: 1 << 40,
            atime: Time::new(-5, 7),
            mtime: Time::from_secs(i64::MAX),
            ctime: Time::EPOCH,
            btime: Time::new(1, 999_999_999),
            change: 9,
            number: 2,
            next_number: 5,
            keep: 4,
            version: 0x12_3456,
            line: u64::MAX - 1,
            parts: [1, 2, 3, 4],
            far: None,
            runs: vec![Run { start: 5, len: 6 }],
        };
        let entry = Entry::Head(head.clone());
        assert_eq!(Entry::decode(&entry.encode()), Some(entry.clone()));
        for whole in [false, true] {
            let far = Far {
                whole,
                seen: Seen {
                    ino: 77,
                    generation: 3,
                    size: 1 << 40,
                    mtime: Time::new(-1, 5),
                    ctime: Time::new(9, 6),
                },
                used: Time::from_secs(4),
            };
            let copy = Entry::Head(Head {
                far: Some(far),
                ..head.clone()
            });
            assert_eq!(Entry::decode(&copy.encode()), Some(copy.clone()));
            assert_eq!(Entry::decode(&copy.encode()[..HEAD + FAR - 1]), None);
        }
        let link = Entry::Link(77, 3);
        assert_eq!(Entry::decode(&link.encode()), Some(link));
        let bytes = entry.encode();
        for len in 0..HEAD {
            assert_eq!(Entry::decode(&bytes[..len]), None, "{len}");
        }
        assert_eq!(
            part_of_key(&part_key(9, Part::Xattrs as u8, 2)),
            Some((9, 3, 2))
        );
        assert_eq!(place_of_key(&place_key(9, 2)), Some((9, 2)));
    }
}
