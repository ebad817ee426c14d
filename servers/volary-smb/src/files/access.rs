//! Access masks (MS-SMB2 2.2.13.1), and the rights that mode, owner and group give.

use volary_core::{Access, Attr, Cred, FileKind, Result};
use volary_session::Session;

pub(crate) const READ_DATA: u32 = 0x1;
pub(crate) const WRITE_DATA: u32 = 0x2;
pub(crate) const APPEND_DATA: u32 = 0x4;
pub(crate) const READ_EA: u32 = 0x8;
pub(crate) const WRITE_EA: u32 = 0x10;
pub(crate) const EXECUTE: u32 = 0x20;
pub(crate) const DELETE_CHILD: u32 = 0x40;
pub(crate) const READ_ATTRIBUTES: u32 = 0x80;
pub(crate) const WRITE_ATTRIBUTES: u32 = 0x100;
pub(crate) const DELETE: u32 = 0x1_0000;
pub(crate) const READ_CONTROL: u32 = 0x2_0000;
pub(crate) const WRITE_DAC: u32 = 0x4_0000;
pub(crate) const WRITE_OWNER: u32 = 0x8_0000;
pub(crate) const SYNCHRONIZE: u32 = 0x10_0000;
pub(crate) const SYSTEM_SECURITY: u32 = 0x100_0000;
pub(crate) const MAXIMUM_ALLOWED: u32 = 0x200_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// All rights for a file.
pub(crate) const ALL: u32 = 0x1f_01ff;
/// An open with only these rights does not break others' leases.
pub(crate) const STAT_ONLY: u32 = READ_ATTRIBUTES | WRITE_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;
/// Rights that change data.
pub(crate) const WRITES: u32 = WRITE_DATA | APPEND_DATA;

const READS: u32 = READ_DATA | READ_EA | READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;
const MODIFIES: u32 = WRITE_DATA | APPEND_DATA | WRITE_EA | WRITE_ATTRIBUTES;
/// What writing gives beside. A client that asks for all rights of a file asks for this too.
const MODIFIES_ALL: u32 = MODIFIES | DELETE_CHILD;
const EXECUTES: u32 = EXECUTE | READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;

/// Bits that are invalid in requests.
const UNKNOWN: u32 = !(ALL
    | SYSTEM_SECURITY
    | MAXIMUM_ALLOWED
    | GENERIC_ALL
    | GENERIC_EXECUTE
    | GENERIC_WRITE
    | GENERIC_READ);

/// Returns the mask with generic rights expanded (MS-FSA 2.1.4.x). `MAXIMUM_ALLOWED` stays. Returns
/// `None` for a mask with invalid bits.
pub(crate) fn spelled(mask: u32) -> Option<u32> {
    if mask & UNKNOWN != 0 {
        return None;
    }
    let mut out = mask & (ALL | SYSTEM_SECURITY | MAXIMUM_ALLOWED);
    for (generic, rights) in [
        (GENERIC_ALL, ALL),
        (GENERIC_EXECUTE, EXECUTES),
        (GENERIC_WRITE, MODIFIES | READ_CONTROL | SYNCHRONIZE),
        (GENERIC_READ, READS),
    ] {
        if mask & generic != 0 {
            out |= rights;
        }
    }
    Some(out)
}

/// Returns the rights that three mode bits give: read 4, write 2, execute 1.
pub(crate) fn of_mode_bits(bits: u32) -> u32 {
    let mut mask = 0;
    if bits & 4 != 0 {
        mask |= READS;
    }
    if bits & 2 != 0 {
        mask |= MODIFIES_ALL;
    }
    if bits & 1 != 0 {
        mask |= EXECUTES;
    }
    mask
}

/// Returns the node's attributes as they are for this caller. If an access list says what the
/// caller may do, the mode bits of the caller's class are set accordingly.
///
/// # Errors
/// Those of the volume.
pub(crate) fn as_found(session: &Session, attr: &Attr) -> Result<Attr> {
    let cred = session.cred();
    let mut attr = *attr;
    if cred.is_root() || cred.uid == attr.uid {
        return Ok(attr);
    }
    let Some(acl) = session.acl_seen(&attr)? else {
        return Ok(attr);
    };
    let shift = if cred.in_group(attr.gid) { 3 } else { 0 };
    attr.mode &= !(7 << shift);
    for bit in [1, 2, 4] {
        if acl.permits(cred, attr.gid, Access(bit)) {
            attr.mode |= u32::from(bit) << shift;
        }
    }
    Ok(attr)
}

/// Returns all rights that the caller can have on a node in `parent`, which is `None` for the root
/// of a share.
///
/// - Everybody may read attributes and the security descriptor, because `stat` shows them to all.
///   The owner may change them.
/// - A file that may be read may be executed: the client executes files by reading them, and
///   clients that store programs set no mode.
/// - Whoever may change the directory may delete an entry. In a sticky directory, only the owner of
///   the entry or the directory may.
pub(crate) fn maximal(attr: &Attr, parent: Option<&Attr>, cred: &Cred) -> u32 {
    let is_dir = attr.kind == FileKind::Dir;
    let owner = cred.is_root() || cred.uid == attr.uid;
    let mut mask = of_mode_bits(mode_bits(attr, cred));
    mask |= READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;
    if !is_dir && mask & READ_DATA != 0 {
        mask |= EXECUTE;
    }
    if owner {
        mask |= WRITE_ATTRIBUTES | WRITE_DAC | WRITE_OWNER;
    }
    if parent.map_or(owner, |dir| may_remove(attr, dir, cred)) {
        mask |= DELETE;
    }
    mask
}

/// Rights that do not come from permission bits.
pub(crate) const NOT_BY_MODE: u32 = READ_ATTRIBUTES
    | WRITE_ATTRIBUTES
    | READ_CONTROL
    | WRITE_DAC
    | WRITE_OWNER
    | DELETE
    | SYNCHRONIZE;

/// Returns the rights that the mode gives the caller. Reading a file includes executing it.
pub(crate) fn of_mode(attr: &Attr, cred: &Cred) -> u32 {
    let mask = of_mode_bits(mode_bits(attr, cred));
    let executes = if mask & READ_DATA != 0 { EXECUTE } else { 0 };
    mask | executes
}

fn mode_bits(attr: &Attr, cred: &Cred) -> u32 {
    if cred.is_root() {
        return 7;
    }
    let shift = if cred.uid == attr.uid {
        6
    } else if cred.in_group(attr.gid) {
        3
    } else {
        0
    };
    attr.mode >> shift & 7
}

fn may_remove(attr: &Attr, dir: &Attr, cred: &Cred) -> bool {
    const CHANGE: u32 = 3;
    const STICKY: u32 = 0o1000;
    let owns = |a: &Attr| cred.is_root() || cred.uid == a.uid;
    mode_bits(dir, cred) & CHANGE == CHANGE && (dir.mode & STICKY == 0 || owns(dir) || owns(attr))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use volary_core::{NodeId, Time};

    /// Returns the attributes of an empty node.
    pub(in crate::files) fn attr(kind: FileKind, mode: u32, uid: u32, gid: u32) -> Attr {
        Attr {
            node: NodeId::new(1, 0).unwrap(),
            kind,
            mode,
            nlink: 1,
            uid,
            gid,
            rdev: 0,
            size: 0,
            allocated: 0,
            io_size: 4096,
            atime: Time::EPOCH,
            mtime: Time::EPOCH,
            ctime: Time::EPOCH,
            btime: None,
            change: 0,
            dos: None,
        }
    }

    #[test]
    fn the_owner_of_a_plain_file_has_all() {
        let dir = attr(FileKind::Dir, 0o755, 7, 7);
        let file = attr(FileKind::File, 0o644, 7, 7);
        let me = Cred::new(7, 7);
        assert_eq!(maximal(&file, Some(&dir), &me), ALL);
        assert_eq!(maximal(&dir, Some(&dir), &me), ALL);
        assert_eq!(maximal(&file, Some(&dir), &Cred::root()), ALL);
    }

    #[test]
    fn others_have_what_the_mode_leaves_them() {
        let dir = attr(FileKind::Dir, 0o1777, 1, 1);
        let file = attr(FileKind::File, 0o640, 7, 8);
        let look = READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;
        assert_eq!(
            maximal(&file, Some(&dir), &Cred::new(9, 9)),
            look,
            "sticky keeps it"
        );
        assert_eq!(maximal(&file, None, &Cred::new(9, 8)), READS | EXECUTE);
        let open = attr(FileKind::Dir, 0o777, 1, 1);
        assert_eq!(maximal(&file, Some(&open), &Cred::new(9, 9)), look | DELETE);
    }

    #[test]
    fn generic_rights_are_spelled_out_and_unknown_ones_refused() {
        assert_eq!(spelled(GENERIC_ALL), Some(ALL));
        assert_eq!(spelled(GENERIC_READ), Some(0x12_0089));
        assert_eq!(spelled(GENERIC_WRITE), Some(0x12_0116));
        assert_eq!(spelled(GENERIC_EXECUTE), Some(0x12_00a0));
        assert_eq!(spelled(MAXIMUM_ALLOWED), Some(MAXIMUM_ALLOWED));
        for bit in [0x200, 0x8000, 0x20_0000, 0x80_0000, 0x400_0000, 0x800_0000] {
            assert_eq!(spelled(bit), None);
        }
    }
}
