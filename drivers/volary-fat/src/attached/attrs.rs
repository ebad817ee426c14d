//! Attributes: what an entry says of kind, owner, mode and times, and changing
//! that.

use crate::attached::births::Births;
use crate::attached::commit::Commits;
use crate::attached::node::{Meta, Node};
use crate::attached::owners::Owners;
use crate::names::hash::hash_bytes;
use crate::options::MountOptions;
use crate::unix::owner::Ownership;
use crate::unix::paper::Extension;
use crate::unix::today::{GENERATIONS, UnixData};
use crate::unix::which::Unix;
use crate::volume::ondisk::{DirEntry, attr};
use crate::volume::time::{
    CHANGE_STEP, Zone, access_time, create_time, set_access, set_all, set_create, set_write,
    write_time,
};
use volary_core::{Attr, Ctx, Entry, FileKind, Kind, NodeId, Result, SetAttr, SetTime, Time};

/// Kind, mode and owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Perms {
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// DOS attributes that callers see and set.
const DOS_BITS: u8 = attr::READ_ONLY | attr::HIDDEN | attr::SYSTEM | attr::ARCHIVE;
/// Permission bits that allow writing.
const WRITE_BITS: u32 = 0o222;
/// How far a birth may be put off to differ from the one before, in seconds.
const RENEW_MAX: i64 = 86_400;

/// What the entries of an attached volume say.
pub(crate) struct Attrs {
    /// Which UNIX extension is in use.
    pub(crate) unix: Unix,
    /// What local time is.
    pub(crate) zone: Zone,
    pub(crate) births: Births,
    pub(crate) owners: Owners,
    /// Who owns what has no owner of its own.
    own: Ownership,
    /// Changes of mode and owner that cannot be kept succeed without effect.
    quiet: bool,
    io_size: u32,
    cluster_len: u32,
}

impl Attrs {
    /// Returns the attributes' part of a volume with clusters of this length.
    pub(crate) fn new(options: &MountOptions, unix: Unix, cluster_len: u32) -> Self {
        Self {
            unix,
            zone: options.zone,
            births: Births::default(),
            owners: Owners::default(),
            own: options.own,
            quiet: options.quiet,
            io_size: options.io_size,
            cluster_len,
        }
    }

    /// Returns what an entry says of kind, mode and owner.
    pub(crate) fn perms(&self, entry: &DirEntry) -> Perms {
        let own = &self.own;
        let dir = entry.is_dir();
        match self.unix {
            Unix::Today => {
                if let Some(data) = UnixData::read(entry) {
                    let mode = own.masked(dir, data.mode.into());
                    let (uid, gid) = self.owners.get(data.owner).unwrap_or((own.uid, own.gid));
                    return Perms {
                        kind: data.kind,
                        mode,
                        uid,
                        gid,
                    };
                }
            }
            Unix::Paper => {
                if let Some(ext) = Extension::read(entry) {
                    return Perms {
                        kind: ext.kind(),
                        mode: own.masked(dir, u32::from(ext.mode & 0o7777)),
                        uid: ext.uid.into(),
                        gid: ext.gid.into(),
                    };
                }
            }
            Unix::Off => {}
        }
        Perms {
            kind: if dir { FileKind::Dir } else { FileKind::File },
            mode: own.mode(dir, entry.DIR_Attr & attr::READ_ONLY != 0),
            uid: own.uid,
            gid: own.gid,
        }
    }

    /// Returns the generation of a node: what tells it from one that had its place
    /// before.
    pub(crate) fn stamp(&self, entry: &DirEntry, key: u64) -> u32 {
        match self.unix {
            Unix::Paper => return self.births.generation_at(key),
            Unix::Today => {
                if let Some(data) = UnixData::read(entry) {
                    return data.generation.into();
                }
            }
            Unix::Off => {}
        }
        let [a, b] = entry.DIR_CrtTime.get().to_le_bytes();
        let [c, d] = entry.DIR_CrtDate.get().to_le_bytes();
        // The upper bit keeps them apart from generations.
        hash_bytes(&[entry.DIR_CrtTimeTenth, a, b, c, d]) as u32 | 1 << 31
    }

    /// Returns the time of birth, where the entry keeps it.
    fn birth(&self, entry: &DirEntry) -> Option<Time> {
        match self.unix {
            Unix::Paper => None,
            Unix::Today if UnixData::read(entry).is_some() => None,
            _ => create_time(entry, self.zone),
        }
    }

    /// Returns the day of the last access; in the paper's layout those bytes hold
    /// something else.
    fn access(&self, entry: &DirEntry, mtime: Time) -> Time {
        let zone = self.zone;
        match self.unix {
            Unix::Paper => mtime,
            _ if entry.DIR_LstAccDate.get() == 0 => mtime,
            _ => access_time(entry, zone),
        }
    }

    /// Attributes out of what is known of a node.
    pub(crate) fn attr_of(&self, id: NodeId, meta: &Meta) -> Attr {
        let perms = self.perms(&meta.entry);
        let cluster = u64::from(self.cluster_len);
        let is_dir = perms.kind == FileKind::Dir;
        let stored = if is_dir {
            cluster
        } else {
            u64::from(meta.size).next_multiple_of(cluster)
        };
        let size = match perms.kind {
            FileKind::Dir => cluster,
            FileKind::File | FileKind::Symlink => meta.size.into(),
            _ => 0,
        };
        let mtime = even(meta.mtime);
        Attr {
            node: id,
            kind: perms.kind,
            mode: perms.mode,
            nlink: u32::from(!meta.gone),
            uid: perms.uid,
            gid: perms.gid,
            rdev: meta.rdev,
            size,
            allocated: stored,
            io_size: self.io_size,
            atime: self.access(&meta.entry, mtime),
            mtime,
            ctime: meta.ctime,
            btime: self.birth(&meta.entry),
            change: meta.change,
            dos: Some(meta.entry.DIR_Attr & DOS_BITS),
        }
    }

    /// Returns the kind of an entry.
    pub(crate) fn kind_of(&self, entry: &DirEntry) -> FileKind {
        self.perms(entry).kind
    }

    /// Returns a node as `lookup` gives it.
    pub(crate) fn entry(&self, node: &Node) -> Entry {
        Entry {
            node: node.id,
            attr: self.attr(node),
        }
    }

    /// Returns the attributes of a node.
    pub(crate) fn attr(&self, node: &Node) -> Attr {
        self.attr_of(node.id, &node.meta.lock())
    }

    /// Returns what is known of a node that is not in the table, from its entry.
    pub(crate) fn cold_meta(&self, entry: &DirEntry, change: u64) -> Meta {
        let mtime = write_time(entry, self.zone);
        Meta {
            entry: *entry,
            place: None,
            size: if entry.is_dir() {
                0
            } else {
                entry.DIR_FileSize.get()
            },
            mtime,
            ctime: mtime,
            change,
            rdev: 0,
            dirty: false,
            moved: false,
            gone: false,
        }
    }

    /// Puts mode and owner into an entry, as far as this volume keeps them.
    /// `owner` is the index of the pair, for today's layout; `rdev` counts in
    /// the paper's.
    pub(crate) fn set_perms(&self, entry: &mut DirEntry, perms: &Perms, owner: u16, rdev: u64) {
        match self.unix {
            Unix::Off => {
                if perms.kind == FileKind::File {
                    let read_only = perms.mode & WRITE_BITS == 0;
                    set_bit(&mut entry.DIR_Attr, attr::READ_ONLY, read_only);
                }
            }
            Unix::Today => {
                let old = UnixData::read(entry);
                let data = UnixData {
                    kind: perms.kind,
                    mode: (perms.mode & 0o7777) as u16,
                    owner,
                    generation: old.map_or(0, |d| d.generation),
                };
                data.write(entry);
            }
            Unix::Paper => {
                let low = |n: u64| (n & 0xffff) as u16;
                let ext = Extension {
                    mode: (perms.kind.mode_bits() | perms.mode & 0o7777) as u16,
                    uid: low(perms.uid.into()),
                    gid: low(perms.gid.into()),
                    major: low(rdev >> 32),
                    minor: low(rdev),
                };
                ext.write(entry);
            }
        }
        if self.unix != Unix::Off {
            set_bit(
                &mut entry.DIR_Attr,
                attr::READ_ONLY,
                perms.kind == FileKind::File && perms.mode & WRITE_BITS == 0,
            );
        }
    }

    /// Returns the index under which entries name an owner, with a new row of the table if there is none
    /// yet; 0 where entries name none.
    ///
    /// # Errors
    /// `NoSpace` if the table is full; what writing it answers.
    pub(crate) fn owner_index(
        &self,
        commits: &Commits,
        cx: &Ctx<'_>,
        uid: u32,
        gid: u32,
    ) -> Result<u16> {
        match self.unix {
            Unix::Today => self.owners.index(commits, cx, uid, gid),
            Unix::Off | Unix::Paper => Ok(0),
        }
    }

    /// Sets times, as far as this volume keeps them.
    pub(crate) fn set_times(&self, cx: &Ctx<'_>, meta: &mut Meta, set: &SetAttr) {
        let zone = self.zone;
        let time = |t: SetTime| match t {
            SetTime::Now => cx.now,
            SetTime::To(t) => t,
        };
        if let Some(t) = set.atime.filter(|_| self.unix != Unix::Paper) {
            set_access(&mut meta.entry, time(t), zone);
        }
        if let Some(t) = set.mtime {
            let mut entry = meta.entry;
            set_write(&mut entry, time(t), zone);
            meta.mtime = write_time(&entry, zone);
        }
        if let Some(t) = set.btime {
            set_create(&mut meta.entry, time(t), zone);
        }
    }

    /// Returns whether mode and owner can be kept, `false` if they silently are not.
    /// Without the extension that is: the owner there is, and a mode that a
    /// file has with or without the read-only attribute.
    ///
    /// # Errors
    /// `NotPermitted`, and `Invalid` for an owner whose number is too large.
    pub(crate) fn can_keep(
        &self,
        is_root: bool,
        before: &Perms,
        perms: &mut Perms,
    ) -> Result<bool> {
        match self.unix {
            Unix::Today => return Ok(true),
            Unix::Paper if is_root => {}
            Unix::Paper => {
                let fits = perms.uid <= 0xffff && perms.gid <= 0xffff;
                return if fits {
                    Ok(true)
                } else {
                    Err(Kind::Invalid.into())
                };
            }
            Unix::Off => {
                let own = &self.own;
                let dir = before.kind == FileKind::Dir;
                let same_owner = (perms.uid, perms.gid) == (before.uid, before.gid);
                if same_owner && !dir {
                    let read_only = perms.mode & WRITE_BITS & own.mode(false, false) == 0;
                    if perms.mode == own.mode(false, read_only) {
                        return Ok(true);
                    }
                }
            }
        }
        if self.quiet {
            *perms = *before;
            return Ok(false);
        }
        Err(Kind::NotPermitted.into())
    }

    /// Returns an entry for a new node: mode, owner and times, without a name or a
    /// cluster.
    ///
    /// # Errors
    /// `NoSpace` if the owner's pair is one more than the table can hold.
    pub(crate) fn new_entry(
        &self,
        commits: &Commits,
        cx: &Ctx<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<DirEntry> {
        let own = &self.own;
        let dir = kind == FileKind::Dir;
        let mut entry = zerocopy::FromZeros::new_zeroed();
        let DirEntry { DIR_Attr: bits, .. } = &mut entry;
        *bits = match kind {
            FileKind::Dir => attr::DIRECTORY,
            FileKind::File => attr::ARCHIVE,
            _ => attr::SYSTEM,
        };
        if let Some(dos) = set.dos {
            *bits = *bits & !DOS_BITS | dos & DOS_BITS;
        }
        let time = |t: Option<SetTime>| match t {
            Some(SetTime::To(t)) => t,
            _ => cx.now,
        };
        let zone = self.zone;
        if self.unix == Unix::Paper {
            set_write(&mut entry, time(set.mtime), zone);
        } else {
            set_all(&mut entry, time(set.mtime), zone);
            if set.atime != set.mtime {
                set_access(&mut entry, time(set.atime), zone);
            }
            if set.btime != set.mtime {
                set_create(&mut entry, time(set.btime), zone);
            }
        }
        let default_mode = own.mode(dir, false);
        let perms = Perms {
            kind,
            mode: set.mode.unwrap_or(default_mode) & 0o7777,
            uid: set.uid.unwrap_or(own.uid),
            gid: set.gid.unwrap_or(own.gid),
        };
        let owner = match (set.uid, set.gid) {
            (None, None) => 0,
            _ => self.owner_index(commits, cx, perms.uid, perms.gid)?,
        };
        if self.unix != Unix::Off || set.mode.is_some() {
            self.set_perms(&mut entry, &perms, owner, rdev);
        }
        Ok(entry)
    }

    /// Gives a new entry a stamp that differs from that of the entry whose
    /// slot it takes.
    pub(crate) fn renew_stamp(&self, entry: &mut DirEntry, old: &DirEntry) {
        match self.unix {
            Unix::Paper => {}
            Unix::Today => {
                if let (Some(mut data), Some(before)) = (UnixData::read(entry), any_unix(old)) {
                    data.generation = before.generation.wrapping_add(1);
                    data.write(entry);
                }
            }
            Unix::Off => {
                let zone = self.zone;
                let births = create_time(old, zone).zip(create_time(entry, zone));
                let Some((before, now)) = births else {
                    return;
                };
                // Later than that, the clock was set back, and the times of
                // births differ for that alone.
                if before >= now && before.secs - now.secs < RENEW_MAX {
                    let later = Time::new(before.secs, before.nanos + 10_000_000);
                    set_create(entry, later, zone);
                }
            }
        }
    }
}

/// Counts a rename in the birth's hundredths, or in the extension's
/// generation, so that a check can tell the new of two names from the old.
pub(crate) fn count_rename(entry: &mut DirEntry, unix: Unix) {
    match unix {
        Unix::Paper => {}
        Unix::Today => {
            if let Some(mut data) = UnixData::read(entry) {
                data.generation = (data.generation + 1) % GENERATIONS;
                data.write(entry);
            }
        }
        Unix::Off => entry.DIR_CrtTimeTenth = (entry.DIR_CrtTimeTenth + 1) % 200,
    }
}

/// Sets the DOS attributes of an entry that callers may set.
pub(crate) fn set_dos(entry: &mut DirEntry, dos: u8) {
    entry.DIR_Attr = entry.DIR_Attr & !DOS_BITS | dos & DOS_BITS;
}

/// Returns the extension's data of an entry that may be deleted.
fn any_unix(entry: &DirEntry) -> Option<UnixData> {
    let mut copy = *entry;
    // A stale name or kind of entry does not matter here.
    UnixData::read(&copy).or_else(|| {
        copy.DIR_Attr ^= attr::DIRECTORY;
        UnixData::read(&copy)
    })
}

/// Returns the time rounded down to the steps of [`CHANGE_STEP`]: two seconds.
fn even(time: Time) -> Time {
    Time::from_secs(time.secs & !1)
}

const _: () = assert!(CHANGE_STEP == 2_000_000_000);

fn set_bit(bits: &mut u8, bit: u8, on: bool) {
    if on {
        *bits |= bit;
    } else {
        *bits &= !bit;
    }
}
