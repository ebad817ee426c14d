//! POSIX access control lists: permissions that a mode alone cannot express.
//!
//! The rules are those of POSIX.1e, draft 17. The encoding in extended attributes is Linux's
//! (`system.posix_acl_access`, `system.posix_acl_default`, version 2). A volume keeps a list as it
//! was last set. The mode overrides the list's entries for the owner, for others and for the mask
//! (for the group if there is no mask). So a change of the mode changes them.

use crate::{Access, Attr, Caps, Cred, Ctx, Error, FileKind, FileSystem, Kind, Result};

/// The extended attribute that holds a node's access list.
pub const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// The extended attribute that holds the list which new nodes in a directory inherit.
pub const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";

const VERSION: u32 = 2;
/// The id of an entry that names no user or group.
const NOBODY: u32 = u32::MAX;

/// Whom an entry is about: its tag, with the numbers of Linux and FreeBSD.
mod tag {
    pub(super) const OWNER: u16 = 0x01;
    pub(super) const USER: u16 = 0x02;
    pub(super) const GROUP: u16 = 0x04;
    pub(super) const NAMED_GROUP: u16 = 0x08;
    pub(super) const MASK: u16 = 0x10;
    pub(super) const OTHER: u16 = 0x20;
}

/// One entry: tag, permission bits, and the id that it names or `u32::MAX`.
pub type AclEntry = (u16, u8, u32);

/// A sound access list: it names each user and group once, and has a mask if it names any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    /// The owner's permissions: read 4, write 2, execute 1.
    pub owner: u8,
    /// Named users and their permissions.
    pub users: Vec<(u32, u8)>,
    /// The owning group's permissions.
    pub group: u8,
    /// Named groups and their permissions.
    pub groups: Vec<(u32, u8)>,
    /// The upper bound of the permissions of named users and of all groups.
    pub mask: Option<u8>,
    /// The permissions of all others.
    pub other: u8,
}

impl Acl {
    /// Makes a list from entries in any order.
    ///
    /// # Errors
    /// `Invalid` if the list is not sound.
    pub fn from_entries(entries: &[AclEntry]) -> Result<Self> {
        let (mut owner, mut group, mut other, mut mask) = (None, None, None, None);
        let (mut users, mut groups) = (Vec::new(), Vec::new());
        for &(tag, bits, id) in entries {
            let once = |place: &mut Option<u8>| place.replace(bits).is_none();
            let sound = match tag {
                tag::OWNER => once(&mut owner),
                tag::GROUP => once(&mut group),
                tag::OTHER => once(&mut other),
                tag::MASK => once(&mut mask),
                tag::USER => {
                    users.push((id, bits));
                    id != NOBODY
                }
                tag::NAMED_GROUP => {
                    groups.push((id, bits));
                    id != NOBODY
                }
                _ => false,
            };
            if !sound || bits > 7 {
                return Err(Kind::Invalid.into());
            }
        }
        for named in [&mut users, &mut groups] {
            named.sort_unstable();
            if named
                .windows(2)
                .any(|two| matches!(two, [a, b] if a.0 == b.0))
            {
                return Err(Kind::Invalid.into());
            }
        }
        let (Some(owner), Some(group), Some(other)) = (owner, group, other) else {
            return Err(Kind::Invalid.into());
        };
        if mask.is_none() && !(users.is_empty() && groups.is_empty()) {
            return Err(Kind::Invalid.into());
        }
        Ok(Self {
            owner,
            users,
            group,
            groups,
            mask,
            other,
        })
    }

    /// Returns the entries, in the order that Linux and FreeBSD want.
    pub fn entries(&self) -> Vec<AclEntry> {
        let named = |tag, of: &[(u32, u8)]| -> Vec<AclEntry> {
            of.iter().map(|&(id, bits)| (tag, bits, id)).collect()
        };
        let mut out = vec![(tag::OWNER, self.owner, NOBODY)];
        out.extend(named(tag::USER, &self.users));
        out.push((tag::GROUP, self.group, NOBODY));
        out.extend(named(tag::NAMED_GROUP, &self.groups));
        out.extend(self.mask.map(|bits| (tag::MASK, bits, NOBODY)));
        out.push((tag::OTHER, self.other, NOBODY));
        out
    }

    /// Decodes the value of an extended attribute of Linux.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn parse(value: &[u8]) -> Result<Self> {
        let bad = || Error::from(Kind::Invalid);
        let (version, rest) = value.split_first_chunk::<4>().ok_or_else(bad)?;
        let (entries, odd) = rest.as_chunks::<8>();
        if u32::from_le_bytes(*version) != VERSION || !odd.is_empty() {
            return Err(bad());
        }
        let mut out = Vec::with_capacity(entries.len());
        for &[t0, t1, p0, p1, i0, i1, i2, i3] in entries {
            let bits = u16::from_le_bytes([p0, p1]);
            let bits = u8::try_from(bits).map_err(|_| bad())?;
            let tag = u16::from_le_bytes([t0, t1]);
            out.push((tag, bits, u32::from_le_bytes([i0, i1, i2, i3])));
        }
        Self::from_entries(&out)
    }

    /// Encodes the list as the value of an extended attribute of Linux.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = VERSION.to_le_bytes().to_vec();
        for (tag, bits, id) in self.entries() {
            out.extend(tag.to_le_bytes());
            out.extend(u16::from(bits).to_le_bytes());
            out.extend(id.to_le_bytes());
        }
        out
    }

    /// Returns whether a mode can express the whole list.
    pub fn is_mode(&self) -> bool {
        self.mask.is_none()
    }

    /// Returns the list's nine permission bits. The group's bits are the mask if there is one.
    pub fn mode(&self) -> u32 {
        let group = self.mask.unwrap_or(self.group);
        u32::from(self.owner) << 6 | u32::from(group) << 3 | u32::from(self.other)
    }

    /// Sets the owner's, the mask's (or group's) and the others' permissions to the bits of a mode.
    #[must_use]
    pub fn with_mode(mut self, mode: u32) -> Self {
        let bits = |shift: u32| (mode >> shift & 7) as u8;
        self.owner = bits(6);
        self.other = bits(0);
        *self.mask.as_mut().unwrap_or(&mut self.group) = bits(3);
        self
    }

    /// Removes named users and groups and the mask, and limits the group to what the mask allowed.
    /// A mode can express the result.
    #[must_use]
    pub fn without_names(mut self) -> Self {
        self.group &= self.mask.take().unwrap_or(7);
        self.users.clear();
        self.groups.clear();
        self
    }

    /// Returns the access list of a new node that is made with `mode` in a directory with this
    /// default list. It grants no more than either of the two.
    #[must_use]
    pub fn inherited(self, mode: u32) -> Self {
        let both = self.mode() & mode;
        self.with_mode(both)
    }

    /// Returns whether the list grants all of `want` to a caller who is neither root nor the owner.
    /// `gid` is the node's group.
    pub fn permits(&self, cred: &Cred, gid: u32, want: Access) -> bool {
        let masked = |bits: u8| Access(bits & self.mask.unwrap_or(7)).has(want);
        if let Some((_, bits)) = self.users.iter().find(|(uid, _)| *uid == cred.uid) {
            return masked(*bits);
        }
        let own = cred.in_group(gid).then_some(self.group);
        let named = self.groups.iter().filter(|(gid, _)| cred.in_group(*gid));
        let mut theirs = own.into_iter().chain(named.map(|(_, bits)| *bits));
        let mut is_in_any = false;
        let is_granted = theirs.any(|bits| {
            is_in_any = true;
            masked(bits)
        });
        is_granted || !is_in_any && Access(self.other).has(want)
    }
}

/// Returns a node's access list, with the current mode applied to it.
///
/// # Errors
/// `Corrupt` if the list is not sound.
pub fn acl_of(fs: &dyn FileSystem, cx: &Ctx<'_>, attr: &Attr) -> Result<Option<Acl>> {
    let kept = kept(fs, cx, attr, ACL_ACCESS)?;
    Ok(kept.map(|acl| acl.with_mode(attr.mode)))
}

/// Returns the list that new nodes in a directory inherit.
///
/// # Errors
/// As [`acl_of`].
pub fn default_acl_of(fs: &dyn FileSystem, cx: &Ctx<'_>, dir: &Attr) -> Result<Option<Acl>> {
    match dir.kind {
        FileKind::Dir => kept(fs, cx, dir, ACL_DEFAULT),
        _ => Ok(None),
    }
}

fn kept(fs: &dyn FileSystem, cx: &Ctx<'_>, attr: &Attr, name: &[u8]) -> Result<Option<Acl>> {
    if !fs.caps().has(Caps::XATTRS | Caps::MODES) || attr.kind == FileKind::Symlink {
        return Ok(None);
    }
    match fs.getxattr(cx, attr.node, name) {
        Err(e) if e == Kind::NoXattr || e == Kind::Unsupported => Ok(None),
        found => {
            let value = found?;
            let bad = |_| Error::corrupt("access list", 0, "not sound", "a list of POSIX.1e");
            Acl::parse(&value).map(Some).map_err(bad)
        }
    }
}

/// Returns whether a node's mode and access list grant the caller all of `want`.
///
/// # Errors
/// As [`acl_of`].
pub fn permits(fs: &dyn FileSystem, cx: &Ctx<'_>, attr: &Attr, want: Access) -> Result<bool> {
    if cx.cred.is_root() || cx.cred.uid == attr.uid {
        return Ok(attr.permits(cx.cred, want));
    }
    Ok(match acl_of(fs, cx, attr)? {
        Some(acl) => acl.permits(cx.cred, attr.gid, want),
        None => attr.permits(cx.cred, want),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl() -> Acl {
        Acl {
            owner: 7,
            users: vec![(10, 6), (11, 0)],
            group: 4,
            groups: vec![(20, 2), (21, 1)],
            mask: Some(6),
            other: 5,
        }
    }

    fn cred(uid: u32, gid: u32, groups: &[u32]) -> Cred {
        Cred {
            uid,
            gid,
            groups: groups.into(),
        }
    }

    #[test]
    fn the_first_class_that_the_caller_is_in_decides() {
        let (acl, own) = (acl(), 5);
        let may = |cred: &Cred, bits| acl.permits(cred, own, Access(bits));
        assert!(may(&cred(10, 5, &[]), 6) && !may(&cred(10, 5, &[]), 7));
        assert!(
            !may(&cred(11, 5, &[20]), 4),
            "named users come before groups"
        );
        // One group's entry has to grant all of it.
        let two = cred(12, 5, &[20]);
        assert!(may(&two, 4) && may(&two, 2) && !may(&two, 6));
        assert!(!may(&cred(12, 21, &[]), 1), "masked, and not an other");
        assert!(may(&cred(12, 99, &[]), 5) && !may(&cred(12, 99, &[]), 2));
    }

    #[test]
    fn the_mode_is_part_of_the_list() {
        assert_eq!(acl().mode(), 0o765);
        let changed = acl().with_mode(0o640);
        assert_eq!(
            (changed.owner, changed.group, changed.mask),
            (6, 4, Some(4))
        );
        assert_eq!(acl().without_names().mode(), 0o745);
        assert_eq!(acl().inherited(0o640).mode(), 0o640);
        assert_eq!(acl().inherited(0o677).mode(), 0o665);
    }

    #[test]
    fn values_come_back_and_unsound_ones_are_refused() {
        let value = acl().emit();
        assert_eq!(Acl::parse(&value).unwrap(), acl());
        assert_eq!(&value[..12], [2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255]);
        for len in 0..value.len() {
            assert!(Acl::parse(&value[..len]).is_err(), "{len}");
        }
        let entries = acl().entries();
        let bad = |change: &dyn Fn(&mut Vec<AclEntry>)| {
            let mut entries = entries.clone();
            change(&mut entries);
            assert!(Acl::from_entries(&entries).is_err(), "{entries:?}");
        };
        bad(&|e| e.retain(|e| e.0 != tag::MASK));
        bad(&|e| e.push((tag::USER, 1, 10)));
        bad(&|e| e.push((tag::OTHER, 1, NOBODY)));
        bad(&|e| e.push((0x40, 1, NOBODY)));
        bad(&|e| e.push((tag::USER, 8, 12)));
        bad(&|e| e.push((tag::NAMED_GROUP, 4, NOBODY)));
    }
}
